//! Runs the command as a user or a script does.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod agent;
mod answer;
mod capture;
mod capture_tls;
#[cfg(unix)]
mod chat;
#[cfg(unix)]
mod chat_server;
mod check;
mod diff;
mod explain;
mod export;
mod filter;
mod follow;
mod index;
mod ls;
mod manage;
#[cfg(unix)]
mod pty_runner;
mod sdk;
mod search;
mod secrets;
mod serve;
mod sessions;
mod show;
#[cfg(unix)]
mod snapshots;
mod statusline;
mod terminal_output;
mod test_collector;
mod trace_export;
mod usage;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use assert_cmd::Command;

fn quipu() -> Command {
    let mut command = Command::cargo_bin("quipu").unwrap();
    // No home folder, terminal or settings of the developer who runs the tests.
    command.env_clear().env("HOME", "/nonexistent").env("XDG_CACHE_HOME", &*CACHE).env("XDG_DATA_HOME", &*CACHE);
    command
}

/// Where the indexes of the tests are; those of earlier runs are thrown away.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let hour = Duration::from_secs(3600);
    for old in fs::read_dir(cache.join("quipu")).into_iter().flatten().flatten() {
        let age = old.metadata().and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > hour) {
            let _ = fs::remove_file(old.path());
        }
    }
    cache
});

#[test]
fn help_has_examples_and_the_version_is_printed() {
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
    quipu().args(["man", "nonsense"]).assert().code(2);
}

#[test]
fn without_a_command_there_is_an_overview() {
    let demo = quipu_testkit::fixture("demo");
    let out = quipu().arg("--claude-dir").arg(&demo).assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.contains("6 sessions") && text.contains("this month $") && text.contains("quipu --help"), "{text}");
    let out = quipu().arg("--claude-dir").arg(&demo).arg("--json").assert().success();
    let all: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!((&all["sessions"], all["latest"].as_array().unwrap().len()), (&6.into(), 5));
    let empty = quipu().assert().success();
    assert!(String::from_utf8_lossy(&empty.get_output().stdout).starts_with("No sessions under"));
}
