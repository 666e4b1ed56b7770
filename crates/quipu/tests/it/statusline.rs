//! `quipu statusline`

use std::fs;

use serde_json::{Value, json};

use crate::quipu;

fn line(cost: u32) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"u{cost}","timestamp":"2026-11-15T10:00:00Z","message":{{"id":"m{cost}","model":"claude-opus-5-5","content":[],"usage":{{"input_tokens":40000,"output_tokens":{cost}}}}}}}"#
    ) + "\n"
}

#[test]
fn the_line_shows_model_costs_block_and_context() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    fs::create_dir_all(&folder).unwrap();
    // 40,000 input tokens at $4 and 50,000 output tokens at $20 a million.
    let (session, other) = (folder.join("a.jsonl"), folder.join("b.jsonl"));
    fs::write(&session, line(50_000)).unwrap();
    fs::write(&other, line(100_000)).unwrap();
    let run = |input: &Value, args: &[&str]| {
        let mut command = quipu();
        command.env("QUIPU_TEST_NOW", "2026-11-15T12:30:00Z").env("TZ", "UTC");
        command.arg("--claude-dir").arg(dir.path()).arg("statusline").args(args).write_stdin(input.to_string());
        let out = command.assert().success();
        String::from_utf8_lossy(&out.get_output().stdout).into_owned()
    };
    let given = json!({"transcript_path": session, "model": {"display_name": "Opus"}});
    // Only the given session is read until another command has read the others.
    assert_eq!(run(&given, &[]), "Opus · session $1.16 · today $1.16 · block 2h 30m left · context 20%\n");
    quipu().arg("--claude-dir").arg(dir.path()).arg("ls").assert().success();
    let full = json!({"transcript_path": session, "model": {"id": "x", "display_name": "Opus"},
        "context_window": {"used_percentage": 43.4}});
    assert_eq!(run(&full, &[]), "Opus · session $1.16 · today $3.32 · block 2h 30m left · context 43%\n");
    let shown: Value = serde_json::from_str(&run(&full, &["--json"])).unwrap();
    assert_eq!(shown["block_minutes_left"], 150.0);
    assert_eq!(run(&json!({}), &[]), "today $3.32 · block 2h 30m left\n");
}

#[test]
fn a_session_of_another_folder_is_counted_but_not_put_into_the_index() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(dir.path().join("projects")).unwrap();
    let session = other.path().join("a.jsonl");
    fs::write(&session, line(50_000)).unwrap();
    let run = || {
        let input = json!({"transcript_path": session}).to_string();
        let mut command = quipu();
        command.env("QUIPU_TEST_NOW", "2026-11-15T12:30:00Z").env("TZ", "UTC");
        command.arg("--claude-dir").arg(dir.path()).arg("statusline").write_stdin(input);
        String::from_utf8_lossy(&command.assert().success().get_output().stdout).into_owned()
    };
    assert_eq!(run(), "opus-5-5 · session $1.16 · today $0.00 · context 20%\n");
    assert_eq!(run(), "opus-5-5 · session $1.16 · today $0.00 · context 20%\n");
}

#[test]
fn input_that_is_no_json_is_an_error_with_a_hint() {
    let out = quipu().arg("statusline").write_stdin("hello").assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("hint: Claude Code sends it"));
}
