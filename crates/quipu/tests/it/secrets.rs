//! `quipu secrets`

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::quipu;

/// A made-up token; the repository holds none that looks like a secret.
fn token() -> String {
    format!("ghp_{}", "a1B2c3".repeat(6))
}

fn write(path: &Path, lines: &[Value]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn user_line(text: &str) -> Value {
    json!({"type": "user", "uuid": "a", "message": {"role": "user", "content": text}})
}

#[test]
fn secrets_are_listed_by_kind_and_place_but_never_printed() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-srv-app");
    write(&project.join("11111111-aaaa.jsonl"), &[user_line("hello"), user_line(&format!("use {0} and {0}", token()))]);
    write(&project.join("22222222-bbbb.jsonl"), &[user_line("nothing here")]);
    write(&project.join("22222222-bbbb/subagents/agent-7.jsonl"), &[user_line("DB_PASSWORD=hunter2 ./run")]);
    fs::create_dir_all(project.join("22222222-bbbb/tool-results")).unwrap();
    fs::write(project.join("22222222-bbbb/tool-results/x.txt"), "a\nAPI_KEY=abcdef123456\n").unwrap();
    let run = |args: &[&str]| {
        let out = quipu().arg("--claude-dir").arg(dir.path()).args(args).assert().code(1);
        let out = out.get_output();
        let (text, notes) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        for secret in [&*token(), "hunter2", "abcdef"] {
            assert!(!text.contains(secret) && !notes.contains(secret), "{text}{notes}");
        }
        (text.into_owned(), notes.into_owned())
    };
    let place = |kind: &str, session: &str, file: &str, line: u64, prefix: &str, length: u64| json!({"kind": kind, "session_id": session, "path": project.join(file), "line": line, "prefix": prefix, "length": length});
    let (text, _) = run(&["secrets", "--json"]);
    let expected = json!([
        place("GitHub token", "11111111-aaaa", "11111111-aaaa.jsonl", 2, "ghp_", 40),
        place("password", "22222222-bbbb", "22222222-bbbb/subagents/agent-7.jsonl", 1, "hun", 7),
        place("secret", "22222222-bbbb", "22222222-bbbb/tool-results/x.txt", 2, "abcd", 12),
    ]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    let (text, notes) = run(&["secrets"]);
    assert_eq!(
        text,
        "kind          begins with  length  lines  session   place\n\
         GitHub token  ghp_…            40      1  11111111  11111111:2\n\
         password      hun…              7      1  22222222  agent-7:1\n\
         secret        abcd…            12      1  22222222  x:2\n"
    );
    assert!(notes.starts_with("3 findings in 2 sessions"), "{notes}");
    let (text, _) = run(&["secrets", "22222222"]);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn clean_sessions_end_with_0() {
    let out =
        quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).args(["secrets", "--json"]).assert().success();
    assert_eq!(out.get_output().stdout, b"[]\n");
}

#[cfg(unix)]
#[test]
fn a_session_that_cannot_be_read_is_not_called_clean() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-srv-app");
    write(&project.join("11111111-aaaa.jsonl"), &[user_line("hello")]);
    std::os::unix::fs::symlink("/proc/self/mem", project.join("22222222-bbbb.jsonl")).unwrap();
    let out = quipu().arg("--claude-dir").arg(dir.path()).arg("secrets").assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("22222222-bbbb"));
}

#[test]
fn without_sessions_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let out = quipu().arg("--claude-dir").arg(dir.path()).arg("secrets").assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("no sessions in"));
}
