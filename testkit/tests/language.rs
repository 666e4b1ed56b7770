//! Names and prose are plain technical English, and modules have one direction.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that were figures of speech or said nothing. Each has a plain successor.
const BANNED_NAMES: [&str; 44] = [
    "Aside",
    "Begun",
    "Chosen",
    "Coming",
    "Confusion",
    "Court",
    "Desk",
    "FarEnd",
    "Finer",
    "Given",
    "Gone",
    "Heard",
    "Hearing",
    "Press",
    "Settled",
    "Spent",
    "Stage",
    "Story",
    "Talk",
    "Trouble",
    "Voice",
    "Works",
    "Answerer",
    "MERCY",
    "PATIENCE",
    "PARTING",
    "SOON",
    "LAST_MOMENT",
    "LONGEST",
    "MOST",
    "DEEPEST",
    "LARGEST",
    "SHAPE",
    "judge",
    "mend",
    "fresh",
    "nudge",
    "tell",
    "hear",
    "talk",
    "wanders",
    "stillborn",
    "complain",
    "greets",
];

/// Phrases that describe programs as people, or hide what a sentence is about.
const BANNED_PHRASES: [&str; 22] = [
    "nobody",
    "somebody",
    "whoever",
    "the person",
    "a person",
    "people hear",
    "is told",
    "are told",
    "was told",
    "none when",
    "anew",
    "speaks",
    "speak of",
    "hears",
    "the dearest",
    "what stands",
    "stands for",
    "stands in",
    "stands there",
    "unless you say otherwise",
    "wishes",
    "leave to",
];

/// Every text that is checked: code, documentation, help texts.
fn texts() -> Vec<PathBuf> {
    let is_text = |path: &Path| {
        let is_kept = match path.extension() {
            Some(extension) => ["rs", "md", "py", "mjs"].iter().any(|kept| extension == *kept),
            None => path.file_name().is_some_and(|name| name == "run"),
        };
        let name = path.to_string_lossy();
        is_kept && !name.contains("/target/") && !name.contains("/snapshots/")
    };
    let mut files = Vec::new();
    for folder in ["crates", "testkit", "docs", "interop", "bench", "fuzz"] {
        files.extend(quipu_testkit::files_under(&quipu_testkit::repository_root().join(folder), is_text));
    }
    files.extend(
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|name| quipu_testkit::repository_root().join(name)),
    );
    files.retain(|path| path.exists() && !path.ends_with("testkit/tests/language.rs"));
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(quipu_testkit::repository_root()).unwrap().to_string_lossy().replace('\\', "/")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[test]
fn no_name_is_a_figure_of_speech() {
    let mut found = Vec::new();
    for path in texts().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let defined = ["struct ", "enum ", "trait ", "type ", "fn ", "const ", "static ", "mod "];
            let names = defined.iter().filter_map(|keyword| words(code.split_once(keyword)?.1).next());
            let banned = names.filter(|name| BANNED_NAMES.contains(name));
            found.extend(banned.map(|name| format!("{}:{}: {name}", relative(&path), number + 1)));
        }
    }
    assert!(found.is_empty(), "names to replace:\n{}", found.join("\n"));
}

#[test]
fn no_sentence_uses_a_banned_phrase() {
    let mut found = Vec::new();
    for path in texts() {
        let is_code = path.extension().is_some_and(|ext| ext == "rs");
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            // In code, comments and texts for users; names of tests are checked by reading.
            let prose = if is_code { line.split_once("//").map_or("", |(_, comment)| comment) } else { line };
            let prose = format!(" {} ", words(prose).collect::<Vec<_>>().join(" ").to_lowercase());
            let banned = BANNED_PHRASES.iter().filter(|phrase| prose.contains(&format!(" {phrase} ")));
            found.extend(banned.map(|phrase| format!("{}:{}: {phrase}", relative(&path), number + 1)));
        }
    }
    assert!(found.is_empty(), "{} phrases to replace:\n{}", found.len(), found.join("\n"));
}

/// The lines of a file that are not inside a macro that declares wire types, whose fields are
/// documented by the wire itself.
fn outside_wire_macros(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let opens = !line.starts_with([' ', '/', '#']) && line.ends_with("! {");
        inside = (inside || opens) && line != "}";
        if !inside {
            lines.push((number + 1, line));
        }
    }
    lines
}

#[test]
fn public_docs_have_at_least_three_words() {
    let sources = quipu_testkit::files_under(&quipu_testkit::repository_root().join("crates"), |path| {
        let name = path.to_string_lossy();
        name.ends_with(".rs") && name.contains("/src/") && !name.contains("/target/")
    });
    let mut found = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let lines = outside_wire_macros(&text);
        for pair in lines.windows(3) {
            let [(_, before), (number, doc), (_, item)] = pair else { unreachable!("windows of three") };
            let is_alone = doc.trim_start().starts_with("///") && !before.trim_start().starts_with("///");
            let is_public = item.trim_start().starts_with("pub ");
            if is_alone && is_public && words(doc.trim_start_matches([' ', '/'])).count() < 3 {
                found.push(format!("{}:{number}: {}", relative(&path), doc.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{} docs of fewer than three words:\n{}", found.len(), found.join("\n"));
}

/// The top-level modules of a crate and which of them each one uses.
fn module_graph(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in quipu_testkit::files_under(source, |path| path.extension().is_some_and(|ext| ext == "rs")) {
        let inner = path.strip_prefix(source).unwrap().to_string_lossy().into_owned();
        let is_test = inner.ends_with("tests.rs") || inner.contains("/tests/");
        if is_test || inner.starts_with("bin/") || ["lib.rs", "main.rs"].contains(&&*inner) {
            continue;
        }
        let module = inner.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let uses = graph.entry(module).or_default();
        for part in code.join("\n").split("crate::").skip(1) {
            uses.extend(words(part).next().map(str::to_owned));
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, uses) in &mut graph {
        uses.retain(|used| used != module && modules.contains(used));
    }
    graph
}

/// The modules that can reach themselves.
fn in_cycles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reaches = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            open.extend(graph[module].iter().filter(|used| seen.insert((*used).clone())));
        }
        seen.contains(start)
    };
    graph.keys().filter(|module| reaches(module)).cloned().collect()
}

#[test]
fn modules_of_a_crate_have_no_cycles() {
    for name in ["message", "conversation", "transcript", "index", "render", "api", "engine", "sdk", "quipu"] {
        let source = quipu_testkit::repository_root().join("crates").join(name).join("src");
        let cycles = in_cycles(&module_graph(&source));
        assert!(cycles.is_empty(), "{name}: these modules use each other in a circle: {cycles:?}");
    }
}

#[test]
fn no_code_compares_the_texts_of_codes() {
    let sources = quipu_testkit::files_under(&quipu_testkit::repository_root().join("crates"), |path| {
        let name = path.to_string_lossy();
        name.ends_with(".rs") && name.contains("/src/") && !name.contains("/target/") && !name.ends_with("tests.rs")
    });
    let mut found = Vec::new();
    for path in sources {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let is_compared =
                ["code == \"", "code() == \"", "code, \"", "code(), \""].iter().any(|text| line.contains(text));
            if is_compared && (line.contains("==") || line.contains("matches!")) {
                found.push(format!("{}:{}: {}", relative(&path), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "match on the kind, not on its code:\n{}", found.join("\n"));
}
