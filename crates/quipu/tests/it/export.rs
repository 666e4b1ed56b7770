//! `quipu export`

use quipu_testkit as kit;
use serde_json::Value;

use crate::quipu;

#[test]
fn a_session_is_written_in_the_form_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    for (name, begins) in [("s.html", "<!doctype html>"), ("s.md", "# "), ("s.json", "[{")] {
        let to = dir.path().join(name);
        quipu()
            .arg("--claude-dir")
            .arg(kit::fixture("demo"))
            .args(["export", "05ef", "--to"])
            .arg(&to)
            .assert()
            .success();
        assert!(std::fs::read_to_string(&to).unwrap().starts_with(begins));
    }
    let out = quipu()
        .arg("--claude-dir")
        .arg(kit::fixture("demo"))
        .args(["export", "05ef", "--to", "s.pdf"])
        .assert()
        .code(2);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains(".html, .md or .json"));
}

#[test]
fn redaction_masks_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("s.json");
    let out = quipu()
        .arg("--claude-dir")
        .arg(kit::fixture("demo"))
        .args(["export", "05ef", "--redact", "--json", "--to"])
        .arg(&to)
        .assert()
        .success();
    let report: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert!(report["masked"]["home folder"].as_u64() > Some(0), "{report}");
    assert!(!std::fs::read_to_string(&to).unwrap().contains("/home/sam"));
}
