//! `quipu check`

use std::path::PathBuf;

use serde_json::Value;

use crate::quipu;

fn check(paths: &[PathBuf]) -> Value {
    let out = quipu().args(["check", "--roundtrip", "--json"]).args(paths).assert().success();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

#[test]
fn recordings_and_published_sessions_hold_nothing_unknown() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut paths = quipu_testkit::recorded_files(&shared);
    paths.extend(quipu_testkit::corpus_files(&shared, &["session", "stream-json"]));
    let report = check(&paths);
    let field = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(field("files"), paths.len() as u64);
    let counts = ["unknown", "unknown_blocks", "unknown_attachments", "roundtrip_failures", "unproven_messages"];
    assert_eq!(counts.map(field), [0; 5], "{}", report["problems"]);
    // Malformed: only lines that are not JSON. Foreign: one run printed an array.
    assert_eq!((field("malformed"), field("foreign"), field("proven_messages")), (10, 1, 454));
    let list = report["problems"].as_array().unwrap();
    assert!(list.iter().all(|problem| problem["code"] != "entry.malformed"), "{list:?}");
    assert!(report["kinds"]["system/init"].as_u64().unwrap() > 50);
}

#[test]
fn other_files_are_counted_and_never_crash() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut paths = quipu_testkit::files_under(&shared.join("recordings"), |p| {
        p.ends_with("stdin.jsonl") || p.ends_with("api.jsonl") || p.ends_with("io.jsonl")
    });
    paths.extend(quipu_testkit::files_under(&shared.join("corpus/data"), |_| true));
    let report = check(&paths);
    assert_eq!(report["roundtrip_failures"], 0);
    assert!(report["foreign"].as_u64() > Some(300) && report["unknown"].as_u64() > Some(90));
}

#[test]
fn problems_have_file_line_and_byte() {
    let path = quipu_testkit::fixture("broken/torn-tail.jsonl");
    let report = check(std::slice::from_ref(&path));
    let problem = &report["problems"][0];
    assert_eq!((problem["code"].as_str(), problem["path"].as_str()), (Some("line.torn"), path.to_str()));
    assert!(problem["line"].as_u64() > Some(1) && problem["offset"].as_u64() > Some(0));
    quipu().args(["check", "--strict"]).arg(&path).assert().code(1);
    quipu().arg("check").arg(&path).assert().code(0);
}

#[test]
fn standard_input_is_checked_too() {
    let out =
        quipu().args(["check", "--json", "-"]).write_stdin("{\"type\":\"keep_alive\"}\nnope\n").assert().success();
    let report: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(
        (&report["lines"], &report["malformed"], &report["kinds"]["keep_alive"]),
        (&2.into(), &1.into(), &1.into())
    );
}

#[test]
fn without_paths_all_sessions_of_the_folder_are_checked() {
    let demo = quipu_testkit::fixture("demo");
    let out = quipu().arg("--claude-dir").arg(&demo).args(["check", "--json"]).assert().success();
    let report: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(report["files"], 8);
}

#[test]
fn a_missing_file_is_an_error_with_a_hint() {
    let out = quipu().args(["check", "--json", "no/such/file"]).assert().code(1);
    let error: Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
    assert_eq!(error["error"]["code"], "file.not_found");
    assert!(!error["error"]["hint"].as_str().unwrap().is_empty());
    let out = quipu().arg("check").assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("hint:"));
}

#[test]
fn repair_makes_a_backup_and_reports_every_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::copy(quipu_testkit::fixture("broken/torn-tail.jsonl"), &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let out = quipu().args(["check", "--repair", "--json"]).arg(&path).assert().success();
    let done: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(done[0]["changes"][0]["code"], "line.unreadable");
    assert_eq!(std::fs::read(done[0]["backup"].as_str().unwrap()).unwrap(), before);
    assert_eq!(check(&[path])["problems"], serde_json::json!([]));
}
