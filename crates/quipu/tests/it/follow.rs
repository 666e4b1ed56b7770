//! `quipu follow`

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn what_is_appended_is_shown_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let line = |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n");
    std::fs::write(&path, line("already there")).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("quipu"))
        .args(["-q", "follow"])
        .arg(&path)
        .env_clear()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.any(|text| text.contains("already there")));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let late = line("said later");
    file.write_all(&late.as_bytes()[..20]).unwrap();
    file.write_all(&late.as_bytes()[20..]).unwrap();
    assert!(shown.any(|text| text.contains("said later")));
    child.kill().unwrap();
    child.wait().unwrap();
}
