//! The tree stays small and has each thing once.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may be long, and why.
const LONG_FILES: [(&str, &str); 0] = [];

const MAX_FILE_LINES: usize = 800;

fn sources() -> Vec<PathBuf> {
    let rust =
        |path: &Path| path.extension().is_some_and(|ext| ext == "rs") && !path.to_string_lossy().contains("/target/");
    let mut files = quipu_testkit::files_under(&quipu_testkit::repository_root().join("crates"), rust);
    files.extend(quipu_testkit::files_under(&quipu_testkit::repository_root().join("testkit"), rust));
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(quipu_testkit::repository_root()).unwrap().to_string_lossy().replace('\\', "/")
}

#[test]
fn no_file_is_too_long_to_read() {
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let name = relative(&path);
        let excused = LONG_FILES.iter().any(|(long, _)| *long == name);
        assert!(lines <= MAX_FILE_LINES || excused, "{name} has {lines} lines: look for the second idea in it");
    }
}

/// Things that must be in one file only, found by the words that give a second one away.
const SINGLE_IMPLEMENTATIONS: [(&str, &str, &[&str]); 6] = [
    (
        "an SSE parser",
        "crates/message/src/sse.rs",
        &["starts_with(\"data:\")", "strip_prefix(\"data:\")", "strip_prefix(\"data: \")", "struct SseParser"],
    ),
    ("a price table", "crates/conversation/src/price", &["per_million", "write_5m ="]),
    ("tool pairing", "crates/conversation/src/tool_results.rs", &["struct ToolResults<", "struct ResultPairs"]),
    ("a stream accumulator", "crates/conversation/src/accumulate.rs", &["struct Accumulator"]),
    ("a parser of the names of MCP tools", "crates/message/src/tool/name.rs", &["\"mcp__\"", "\"mcp__{"]),
    ("a project folder encoder", "crates/transcript/src/find", &["fn encode_project", "fn project_folder"]),
];

#[test]
fn there_is_one_of_each() {
    for path in sources() {
        let name = relative(&path);
        let text = fs::read_to_string(&path).unwrap();
        for (what, home, words) in SINGLE_IMPLEMENTATIONS {
            let found = words.iter().find(|word| text.contains(**word));
            assert!(
                found.is_none() || name.starts_with(home) || name == "testkit/tests/tidy.rs",
                "{name} looks like a second {what}: {found:?}"
            );
        }
    }
}

#[test]
fn only_message_knows_the_names_of_the_wire() {
    let names =
        ["\"parentUuid\"", "\"sessionId\"", "\"tool_use_id\"", "\"toolUseResult\"", "\"cache_read_input_tokens\""];
    for path in sources() {
        let name = relative(&path);
        let is_test = name.contains("/tests/") || name.contains("/benches/") || name.ends_with("tests.rs");
        // The generator writes what others wrote, so that we are not our own witness.
        if is_test || name.starts_with("crates/message/") || name.starts_with("testkit/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let found = names.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{name} reads the wire by itself");
        }
    }
}

/// The names of tools that `ToolName` has as variants.
fn known_tool_names() -> Vec<String> {
    let text = fs::read_to_string(quipu_testkit::repository_root().join("crates/message/src/tool/name.rs")).unwrap();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" => "));
    names.map(|(name, _)| format!("\"{name}\"")).collect()
}

#[test]
fn tool_names_are_not_text_in_code() {
    let tools = known_tool_names();
    assert!(tools.len() > 20, "{tools:?}");
    for path in sources() {
        let name = relative(&path);
        let is_code = name.contains("/src/") && !name.contains("tests") && !name.starts_with("testkit/");
        if !is_code || name.starts_with("crates/message/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let found = tools.iter().find(|tool| line.contains(tool.as_str()));
            assert_eq!(found, None, "{name}: use ToolName in {line}");
        }
    }
}
