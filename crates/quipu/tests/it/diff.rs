//! `quipu diff`

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::quipu;

fn diff(args: &[&str]) -> assert_cmd::assert::Assert {
    quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).arg("diff").args(args).assert()
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

#[test]
fn each_file_a_session_changed_has_one_diff() {
    let changes: Vec<Value> = serde_json::from_str(&stdout(&diff(&["05ef", "--json"]).success())).unwrap();
    assert!(!changes.is_empty());
    let text = stdout(&diff(&["05ef"]).success());
    for change in &changes {
        assert!(matches!(change["status"].as_str(), Some("created" | "modified" | "deleted")), "{change}");
        assert!(text.contains(change["diff"].as_str().unwrap()) && change["path"].is_string());
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("+++ ")).count(), changes.len());
    let stat = stdout(&diff(&["05ef", "--stat"]).success());
    assert!(stat.starts_with("file ") && stat.lines().count() > changes.len(), "{stat}");
}

#[test]
fn on_a_terminal_a_diff_has_colours_and_no_control_characters() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s.jsonl");
    let call = r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/x","content":"\u001b[2Jred\n"}}]}}"#;
    let result = r#"{"type":"user","uuid":"b","toolUseResult":{"type":"create","filePath":"/x","content":"\u001b[2Jred\n","structuredPatch":[]},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#;
    std::fs::write(&session, format!("{call}\n{result}\n")).unwrap();
    let run = |color: &str| stdout(&quipu().args(["diff", "--color", color]).arg(&session).assert().success());
    assert!(run("never").contains("+\u{1b}[2Jred"), "in a pipe the file is as it is");
    let shown = run("always");
    assert!(shown.contains("\u{1b}[32m+red\u{1b}[0m") && !shown.contains("[2J"), "{shown:?}");
}

#[test]
fn a_diff_can_be_applied() {
    if Command::new("git").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let changes: Vec<Value> = serde_json::from_str(&stdout(&diff(&["05ef", "--json"]).success())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for change in &changes {
        let patch = dir.path().join("one.patch");
        std::fs::write(&patch, change["diff"].as_str().unwrap()).unwrap();
        let checked = Command::new("git").args(["apply", "--numstat"]).arg(&patch).current_dir(&dir).output().unwrap();
        assert!(checked.status.success(), "{change}: {}", String::from_utf8_lossy(&checked.stderr));
        let numbers = String::from_utf8_lossy(&checked.stdout).into_owned();
        let expected = format!("{}\t{}\t", change["added"], change["removed"]);
        assert!(numbers.starts_with(&expected), "{numbers} {expected}");
    }
}

#[test]
fn a_session_without_changes_is_reported() {
    let line = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#;
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").unwrap();
    std::fs::write(file.path(), line).unwrap();
    let out = quipu().arg("diff").arg(file.path()).assert().success();
    assert!(stdout(&out).is_empty() && String::from_utf8_lossy(&out.get_output().stderr).contains("no files changed"));
    assert_eq!(stdout(&quipu().args(["diff", "--json"]).arg(file.path()).assert().success()), "[]\n");
}

#[test]
fn published_sessions_can_be_diffed() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let sessions = quipu_testkit::files_under(&shared.join("corpus/data"), |path| {
        path.extension().is_some_and(|ext| ext == "jsonl")
    });
    let (mut all, mut incomplete) = (0, 0);
    for path in sessions.iter().step_by(5) {
        let out = quipu().args(["diff", "--json"]).arg(path).assert().success();
        let changes: Vec<Value> = serde_json::from_str(&stdout(&out)).unwrap();
        all += changes.len();
        incomplete += changes.iter().filter(|change| change["missing"].is_number()).count();
    }
    // Some published sessions are shortened: what an edit replaced is not in them.
    assert!(all > 20 && incomplete * 5 <= all, "{incomplete} of {all}");
}
