//! The command as a person or a script runs it.
#![allow(clippy::unwrap_used, reason = "a test says what must hold")]

mod check;
mod export;
mod follow;
mod ls;
mod show;
mod usage;

use assert_cmd::Command;

fn quipu() -> Command {
    let mut command = Command::cargo_bin("quipu").unwrap();
    // No home, no terminal, no settings of whoever runs the tests.
    command.env_clear().env("HOME", "/nonexistent");
    command
}

#[test]
fn help_shows_examples_and_version_is_said() {
    let help = quipu().arg("--help").assert().success();
    assert!(String::from_utf8_lossy(&help.get_output().stdout).contains("Examples:"));
    let help = quipu().args(["show", "--help"]).assert().success();
    assert!(String::from_utf8_lossy(&help.get_output().stdout).contains("quipu show session.jsonl"));
    quipu().arg("--version").assert().success().stdout(format!("quipu {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_ends_with_2() {
    quipu().arg("frobnicate").assert().code(2);
    let out = quipu().args(["--json", "frobnicate"]).assert().code(2);
    let error: serde_json::Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
    assert_eq!(error["error"]["code"], "usage");
}

#[test]
fn completions_and_manual_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(quipu().args(["completions", shell]).assert().success().get_output().stdout.len() > 500);
    }
    let page = quipu().arg("man").assert().success();
    assert!(String::from_utf8_lossy(&page.get_output().stdout).contains(".TH quipu"));
    quipu().args(["man", "show"]).assert().success();
    quipu().args(["man", "nonsense"]).assert().code(1);
}
