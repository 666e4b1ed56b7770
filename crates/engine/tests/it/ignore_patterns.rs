//! Random patterns of rules for files, compared with git: a deny rule matches at least what an ignore file with the pattern
//! names, an allow rule at most that.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use quipu_engine::testing::permission::{PermissionMode, hidden_file_filter};
use quipu_engine::testing::tool::TargetPath;
use serde_json::json;

use crate::differential::{Random, rounds};
use crate::{TestWorkspace, decision_word, parse_rules};

const FILES: [&str; 21] = [
    "a",
    "A",
    "b",
    "-",
    "a-b",
    "a^b",
    "a]b",
    "key-1",
    "KEY",
    ".env",
    "[id]/a",
    "s/a",
    "s/.env",
    "s/t/a-b",
    "s/t/key-1",
    "é",
    "s/aéb",
    "文",
    "a b",
    "s/_",
    "a\\b",
];

const TOKENS: [&str; 44] = [
    "a",
    "b",
    "A",
    "key",
    "s",
    "t",
    ".env",
    "1",
    "-",
    "_",
    "é",
    "文",
    " ",
    "*",
    "*",
    "*",
    "**",
    "**/",
    "/**",
    "/",
    "?",
    "[",
    "]",
    "[a-z]",
    "[!a]",
    "[^s]",
    "[a-z0-9-_]",
    "[\\-a]",
    "[]a]",
    "[\\]]",
    "[[:alnum:]-]",
    "[[:punct:]]",
    "[![:upper:]]",
    "[é文]",
    "[à-ü]",
    "[+-9]",
    "[^\\]]",
    "\\[",
    "\\]",
    "\\a",
    "\\\\",
    "[A-Z]",
    "***",
    "[[]",
];

/// Returns the files that git ignores with a pattern.
fn ignored_by_git(workspace: &TestWorkspace, pattern: &str) -> BTreeSet<String> {
    workspace.write(".gitignore", format!("{pattern}\n"));
    let mut git = Command::new("git");
    git.args(["-c", "core.quotePath=false", "check-ignore", "--no-index", "--stdin", "-z"]);
    git.current_dir(workspace.inner.root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = git.spawn().unwrap();
    child.stdin.take().unwrap().write_all(FILES.join("\0").as_bytes()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    output.split_terminator('\0').map(str::to_owned).collect()
}

/// Whether a pattern means something else in rules, by the documentation.
fn is_special(pattern: &str) -> bool {
    let starts = ["!", "#", "~", "/", "./", "../"].iter().any(|start| pattern.starts_with(start));
    // git compares the text before the first wildcard on its own, so that `a**/b` matches `ab`.
    let is_joined = pattern.match_indices("**/").any(|(at, _)| {
        let before = pattern[..at].trim_end_matches('*');
        !before.is_empty() && !before.ends_with('/')
    });
    starts || is_joined || pattern.trim() != pattern || pattern.contains("//") || pattern.is_empty()
}

#[test]
fn rules_for_files_mean_what_ignore_files_mean() {
    let workspace = TestWorkspace::new();
    FILES.iter().for_each(|file| workspace.write(file, ""));
    Command::new("git").args(["init", "-q"]).current_dir(workspace.inner.root()).status().unwrap();
    let mut dice = Random(0xA5A5_1234_9876_0002);
    let mut differences = Vec::new();
    for _ in 0..rounds() / 40 {
        let length = 1 + dice.next_below(4);
        let pattern: String = (0..length).map(|_| TOKENS[dice.next_below(TOKENS.len())]).collect();
        if is_special(&pattern) {
            continue;
        }
        let ignored = ignored_by_git(&workspace, &pattern);
        let hidden = hidden_file_filter(&parse_rules(&[&format!("deny Read({pattern})")]), &workspace.inner)();
        let allow = [&*format!("allow Edit({pattern})")];
        // git compares bytes, so that two brackets match one letter of two bytes.
        let bytes_differ = pattern.contains(['[', '?']);
        for file in FILES.iter().filter(|file| file.is_ascii() || !bytes_differ) {
            let is_ignored = ignored.contains(*file);
            if is_ignored && !hidden(&TargetPath::new(workspace.path(file))) {
                differences.push(format!("deny {pattern:?} does not match {file}"));
            }
            let input = json!({"file_path": workspace.path(file), "content": ""});
            let decision = workspace.evaluate(PermissionMode::Default, &allow, "Write", &input);
            if !is_ignored && decision_word(&decision) == "allow" {
                differences.push(format!("allow {pattern:?} matches {file}"));
            }
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}
