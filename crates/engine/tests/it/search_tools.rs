//! Glob and Grep.

use std::fs::File;
use std::time::{Duration, SystemTime};

use quipu_engine::testing::permission::hidden_file_filter;
use serde_json::{Value, json};

use crate::{TestWorkspace, error_text, parse_rules, success_text};

/// A file that was changed so many minutes after others.
fn write_aged(workspace: &TestWorkspace, name: &str, content: &str, minutes: u64) {
    workspace.write(name, content);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + 60 * minutes);
    File::options().write(true).open(workspace.path(name)).unwrap().set_modified(time).unwrap();
}

fn sample_tree() -> TestWorkspace {
    let workspace = TestWorkspace::new();
    write_aged(&workspace, "src/main.rs", "fn main() {\n    run();\n}\n", 1);
    write_aged(&workspace, "src/deep/run.rs", "// Run\nfn run() {}\n", 3);
    write_aged(&workspace, "notes.md", "run it\nRUN it\n", 2);
    write_aged(&workspace, "target/out.rs", "fn run() {}\n", 4);
    write_aged(&workspace, ".hidden.rs", "fn run() {}\n", 0);
    workspace.write(".git/config.rs", "fn run() {}\n");
    workspace.write(".gitignore", "target/\n");
    workspace.write("blob.rs", b"run\0run\n");
    workspace
}

#[tokio::test]
async fn files_are_found_by_name_the_latest_first() {
    let workspace = sample_tree();
    std::fs::remove_file(workspace.path("blob.rs")).unwrap();
    let lines = |names: &[&str]| names.iter().map(|name| workspace.path_text(name)).collect::<Vec<_>>().join("\n");
    let all = ["target/out.rs", "src/deep/run.rs", "src/main.rs", ".hidden.rs"];
    assert_eq!(success_text(workspace.run_tool("Glob", json!({"pattern": "**/*.rs"})).await), lines(&all));
    assert_eq!(success_text(workspace.run_tool("Glob", json!({"pattern": "*.rs"})).await), lines(&all));
    assert_eq!(success_text(workspace.run_tool("Glob", json!({"pattern": "src/*.rs"})).await), lines(&["src/main.rs"]));
    assert_eq!(
        success_text(workspace.run_tool("Glob", json!({"pattern": "*.rs", "path": "src/deep"})).await),
        lines(&["src/deep/run.rs"])
    );
    let absolute = format!("{}/**/*.md", workspace.inner.root().display());
    assert_eq!(success_text(workspace.run_tool("Glob", json!({"pattern": absolute})).await), lines(&["notes.md"]));
    assert_eq!(success_text(workspace.run_tool("Glob", json!({"pattern": "*.txt"})).await), "No files found");
    assert!(
        error_text(workspace.run_tool("Glob", json!({"pattern": "*", "path": "none"})).await)
            .contains("does not exist")
    );
}

#[tokio::test]
async fn no_more_than_a_hundred_files_are_named() {
    let workspace = TestWorkspace::new();
    (0..101).for_each(|i| workspace.write(&format!("f{i}"), ""));
    let output = workspace.run_tool("Glob", json!({"pattern": "f*"})).await;
    let raw = output.raw.clone().unwrap();
    assert_eq!((raw["numFiles"].as_u64(), raw["truncated"].as_bool()), (Some(100), Some(true)));
    let words = success_text(output);
    assert_eq!(words.lines().count(), 101);
    assert!(words.ends_with("(Results are truncated. Consider using a more specific path or pattern.)"));
}

#[tokio::test]
async fn lines_are_found_by_pattern() {
    let workspace = sample_tree();
    let check = async |input: Value, expected: &str| {
        assert_eq!(success_text(workspace.run_tool("Grep", input.clone()).await), expected, "{input}")
    };
    check(json!({"pattern": "fn run"}), "Found 2 files\nsrc/deep/run.rs\n.hidden.rs").await;
    check(json!({"pattern": "nothing"}), "No files found").await;
    check(json!({"pattern": "run", "glob": "*.md"}), "Found 1 file\nnotes.md").await;
    check(json!({"pattern": "run", "type": "md"}), "Found 1 file\nnotes.md").await;
    check(json!({"pattern": "run", "path": "notes.md", "output_mode": "content"}), "1:run it").await;
    check(
        json!({"pattern": "run", "path": "notes.md", "output_mode": "content", "-i": true, "-n": false}),
        "run it\nRUN it",
    )
    .await;
    check(
        json!({"pattern": "r.n", "path": "src", "output_mode": "content", "-o": true}),
        "src/deep/run.rs:2:run\nsrc/main.rs:2:run",
    )
    .await;
    check(
        json!({"pattern": "run", "path": "src/main.rs", "output_mode": "content", "-B": 1}),
        "1-fn main() {\n2:    run();",
    )
    .await;
    check(
        json!({"pattern": "run", "path": "src/main.rs", "output_mode": "content", "-C": 1}),
        "1-fn main() {\n2:    run();\n3-}",
    )
    .await;
    check(
        json!({"pattern": "main.*run", "path": "src/main.rs", "output_mode": "content", "multiline": true}),
        "1:fn main() {\n2:    run();",
    )
    .await;
    check(json!({"pattern": "xyz", "output_mode": "content"}), "No matches found").await;
    check(
        json!({"pattern": "run", "glob": "*.md", "-i": true, "output_mode": "count"}),
        "notes.md:2\n\nFound 2 total occurrences across 1 files.",
    )
    .await;
    let limited = "1:run it\n\n[Showing results with pagination = limit: 1, offset: 0]";
    check(
        json!({"pattern": "run", "path": "notes.md", "output_mode": "content", "-i": true, "head_limit": 1}),
        limited,
    )
    .await;
    let rest = "2:RUN it\n\n[Showing results with pagination = limit: 250, offset: 1]";
    check(json!({"pattern": "run", "path": "notes.md", "output_mode": "content", "-i": true, "offset": 1}), rest).await;
}

#[tokio::test]
async fn queries_that_cannot_be_searched_are_reported() {
    let workspace = sample_tree();
    let missing = error_text(workspace.run_tool("Grep", json!({"pattern": "x", "path": "/none"})).await);
    assert_eq!(missing, "<tool_use_error>Path does not exist: /none</tool_use_error>");
    assert!(error_text(workspace.run_tool("Grep", json!({"pattern": "(("})).await).contains("pattern cannot be read"));
    assert!(
        error_text(workspace.run_tool("Grep", json!({"pattern": "x", "type": "klingon"})).await).contains("klingon")
    );
    assert!(
        error_text(workspace.run_tool("Grep", json!({"pattern": "x", "output_mode": "all"})).await)
            .contains("`output_mode` must be one of")
    );
}

#[tokio::test]
async fn searches_pass_over_what_may_not_be_read() {
    let workspace = sample_tree();
    workspace.inner.set_hidden_files(hidden_file_filter(&parse_rules(&["deny Read(src/deep/**)"]), &workspace.inner));
    assert_eq!(
        success_text(workspace.run_tool("Grep", json!({"pattern": "fn run", "path": "src"})).await),
        "No files found"
    );
    let found = success_text(workspace.run_tool("Glob", json!({"pattern": "src/**/*.rs"})).await);
    assert_eq!(found, workspace.path_text("src/main.rs"));
}

#[tokio::test]
async fn searches_follow_no_links() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.rs"), "fn run").unwrap();
    std::os::unix::fs::symlink(outside.path(), workspace.path("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.rs"), workspace.path("link.rs")).unwrap();
    assert_eq!(success_text(workspace.run_tool("Grep", json!({"pattern": "fn run"})).await), "No files found");
    assert!(!success_text(workspace.run_tool("Glob", json!({"pattern": "**/*"})).await).contains("secret"));
}

#[tokio::test]
async fn files_that_are_too_large_to_be_held_are_left_out() {
    let workspace = TestWorkspace::new();
    workspace.write("small.rs", "fn run");
    let large = std::fs::File::create(workspace.path("large.rs")).unwrap();
    large.set_len(1 << 40).unwrap();
    for multiline in [false, true] {
        let found = workspace.run_tool("Grep", json!({"pattern": "fn run", "multiline": multiline})).await;
        assert_eq!(success_text(found), "Found 1 file\nsmall.rs");
    }
}

#[tokio::test]
async fn a_line_with_very_many_matches_is_not_collected_whole() {
    let workspace = TestWorkspace::new();
    workspace.write("a.txt", "a".repeat(200_000));
    let request = json!({"pattern": "a", "output_mode": "content", "-o": true, "-n": false, "head_limit": 0});
    assert_eq!(success_text(workspace.run_tool("Grep", request).await).lines().count(), 100_000);
}

#[tokio::test]
async fn patterns_that_would_take_hours_are_refused() {
    let workspace = TestWorkspace::new();
    workspace.write("a.txt", "a".repeat(1 << 20));
    let error = error_text(workspace.run_tool("Grep", json!({"pattern": "(a{1000}){1000}"})).await);
    assert!(error.contains("The pattern cannot be read"), "{error}");
}
