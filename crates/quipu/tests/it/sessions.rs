//! Where sessions are looked for, how they are named, and in which order they come.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::quipu;

/// Writes a session with one prompt; `hour` is when it was asked and `age` how long ago the
/// file was written.
fn write(dir: &Path, project: &str, id: &str, hour: u32, age: u64) {
    let folder = dir.join("projects").join(project);
    fs::create_dir_all(&folder).unwrap();
    let line = format!(
        r#"{{"type":"user","uuid":"{project}{id}","cwd":"/home/dev/app","timestamp":"2026-11-15T{hour:02}:00:00Z","message":{{"role":"user","content":"prompt {hour}"}}}}"#
    );
    let path = folder.join(format!("{id}.jsonl"));
    fs::write(&path, line + "\n").unwrap();
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(age))
        .unwrap();
}

/// Three sessions, one of them in two projects. The files were written in another order than
/// the messages.
fn tree() -> TempDir {
    let dir = tempdir().unwrap();
    write(dir.path(), "-home-dev-app", "aaaa1111-x", 9, 10);
    write(dir.path(), "-home-dev-app", "aaaa2222-x", 12, 3000);
    write(dir.path(), "-home-dev-app", "bbbb", 10, 5);
    write(dir.path(), "-home-dev-app-copy", "bbbb", 11, 2000);
    dir
}

fn show(dir: &Path, spec: &str) -> String {
    let out = quipu().arg("--claude-dir").arg(dir).args(["show", spec, "--json"]).assert().success();
    let items: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
    items[0]["text"].as_str().unwrap().to_owned()
}

fn stderr(dir: &Path, args: &[&str]) -> String {
    let out = quipu().arg("--claude-dir").arg(dir).args(args).assert().code(1);
    String::from_utf8_lossy(&out.get_output().stderr).into_owned()
}

#[test]
fn the_latest_session_has_the_latest_message_whenever_files_were_written() {
    let dir = tree();
    assert_eq!(show(dir.path(), "latest"), "prompt 12");
    let out = quipu().arg("--claude-dir").arg(dir.path()).args(["--json"]).assert().success();
    let overview: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let out = quipu().arg("--claude-dir").arg(dir.path()).args(["ls", "--json"]).assert().success();
    let ls: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let prompts: Vec<&str> = ls.iter().map(|row| row["first_prompt"].as_str().unwrap()).collect();
    assert_eq!(prompts, ["prompt 12", "prompt 11", "prompt 10", "prompt 9"]);
    assert_eq!(overview["latest"], Value::from(ls));
}

#[test]
fn the_latest_session_is_found_without_bringing_the_index_up_to_date() {
    let dir = tree();
    let cache = tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = quipu();
        command.env("XDG_CACHE_HOME", cache.path()).arg("-v").arg("--claude-dir").arg(dir.path()).args(args);
        let out = command.assert().success();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&out.get_output().stdout), text(&out.get_output().stderr))
    };
    let latest = ["show", "latest", "--tail", "1"];
    let (shown, log) = run(&latest);
    assert!(shown.contains("prompt 12") && !log.contains("refresh"), "{shown}{log}");
    let (_, log) = run(&["ls"]);
    assert!(log.contains("refresh"), "{log}");
    // The index knows this session as it was before.
    write(dir.path(), "-home-dev-app", "bbbb", 13, 0);
    let (shown, log) = run(&latest);
    assert!(shown.contains("prompt 13") && !log.contains("refresh"), "{shown}{log}");
}

#[test]
fn only_recent_messages_make_a_session_active() {
    let dir = tree();
    let active = |now: &str| {
        let out = quipu().env("QUIPU_TEST_NOW", now).arg("--claude-dir").arg(dir.path()).arg("--json").assert();
        let overview: Value = serde_json::from_slice(&out.success().get_output().stdout).unwrap();
        overview["live"].as_array().unwrap().len()
    };
    assert_eq!(active("2026-11-15T12:03:00Z"), 1);
    assert_eq!(active("2026-11-15T13:00:00Z"), 0);
}

#[test]
fn an_id_in_two_projects_is_named_with_its_project() {
    let dir = tree();
    let error = stderr(dir.path(), &["show", "bbbb"]);
    assert!(error.contains("2 sessions match 'bbbb'; use PROJECT/ID:"), "{error}");
    assert!(error.contains("  home-dev-app/bbbb ") && error.contains("  home-dev-app-copy/bbbb "), "{error}");
    assert!(error.contains("prompt 10"), "{error}");
    assert_eq!(show(dir.path(), "home-dev-app/bbbb"), "prompt 10");
    assert_eq!(show(dir.path(), "home-dev-app-copy/bb"), "prompt 11");
    assert_eq!(show(dir.path(), "app-copy/latest"), "prompt 11");
}

#[test]
fn a_prefix_of_several_ids_lists_them() {
    let dir = tree();
    let error = stderr(dir.path(), &["show", "aaaa"]);
    assert!(error.contains("2 sessions match 'aaaa'; add more characters:"), "{error}");
    assert!(error.contains("aaaa1111-x") && error.contains("aaaa2222-x") && error.contains("prompt 9"), "{error}");
    assert_eq!(show(dir.path(), "AAAA1"), "prompt 9");
    let error = stderr(dir.path(), &["show", "cccc"]);
    assert!(error.contains("no session matches 'cccc'") && error.contains("`quipu ls`"), "{error}");
    assert!(stderr(dir.path(), &["show", "/no/such.jsonl"]).contains("no session matches '/no/such.jsonl'"));
}

#[test]
fn latest_of_the_current_folder_has_a_dot_before_it() {
    let dir = tree();
    let error = stderr(dir.path(), &["show", "./latest"]);
    assert!(error.contains("no session matches './latest'"), "{error}");
}

#[test]
fn folders_are_found_wherever_they_may_be() {
    let rows = |mut command: assert_cmd::Command| {
        let out = command.args(["ls", "--json"]).assert().success();
        serde_json::from_slice::<Vec<Value>>(&out.get_output().stdout).unwrap().len()
    };
    let (demo, tree) = (quipu_testkit::fixture("demo"), tree());
    let mut command = quipu();
    command.arg("--claude-dir").arg(demo.join("projects"));
    assert_eq!(rows(command), 6);
    let mut command = quipu();
    command.env("CLAUDE_CONFIG_DIR", format!("{}, {}", demo.display(), tree.path().display()));
    assert_eq!(rows(command), 10);
    let home = tempdir().unwrap();
    write(&home.path().join(".claude"), "-a", "one", 1, 0);
    write(&home.path().join(".config/claude"), "-b", "two", 2, 0);
    let mut command = quipu();
    command.env("HOME", home.path());
    assert_eq!(rows(command), 2);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    for args in [&["ls"][..], &["usage"], &["search", "x"], &["check"], &["show", "latest"], &["--json", "ls"], &[]] {
        let error = stderr(Path::new("/no/such"), args);
        assert!(error.contains("no folder '/no/such'"), "{args:?}: {error}");
    }
    for args in [&["ls"][..], &["usage"], &["search", "x"], &["check"], &["--json", "ls"]] {
        let out = quipu().args(args).assert().code(1);
        let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(error.contains("no sessions in /nonexistent/.claude"), "{args:?}: {error}");
    }
}

#[test]
fn filters_that_match_nothing_are_reported() {
    let out =
        quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).args(["ls", "-p", "nope"]).assert().success();
    assert_eq!(String::from_utf8_lossy(&out.get_output().stderr), "no session matches the filters\n");
    assert!(out.get_output().stdout.is_empty());
}

/// Only Unix has names of files that are not Unicode.
#[cfg(target_os = "linux")]
#[test]
fn a_session_in_a_folder_whose_name_is_not_unicode_can_be_opened() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    write(dir.path(), "-good", "aaaa1111-x", 9, 10);
    let projects = dir.path().join("projects");
    fs::rename(projects.join("-good"), projects.join(std::ffi::OsStr::from_bytes(b"-bad\xff"))).unwrap();
    assert_eq!(show(dir.path(), "aaaa"), "prompt 9");
    assert_eq!(show(dir.path(), "latest"), "prompt 9", "by the list");
    let run = |args: &[&str]| {
        let out = quipu().arg("--claude-dir").arg(dir.path()).args(args).assert().success();
        String::from_utf8_lossy(&out.get_output().stdout).into_owned()
    };
    for args in [&["ls"][..], &["search", "prompt"], &["search", "--exact", "prompt 9"], &["resume"]] {
        assert!(run(args).contains("aaaa1111"), "{args:?}");
    }
}

#[test]
fn subagents_in_folders_below_are_counted_searched_and_named() {
    let dir = tempdir().unwrap();
    write(dir.path(), "-p", "aaaa1111-x", 9, 10);
    let below = dir.path().join("projects/-p/aaaa1111-x/subagents/workflows/w1");
    fs::create_dir_all(&below).unwrap();
    let answer = |text: &str, n: u32| {
        format!(
            r#"{{"type":"assistant","isSidechain":true,"agentId":"deep{n}","uuid":"u{n}","timestamp":"2026-11-15T09:00:0{n}Z","message":{{"id":"m{n}","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":"{text}"}}],"usage":{{"output_tokens":7}}}}}}"#
        ) + "\n"
    };
    fs::write(below.join("agent-deep1.jsonl"), answer("barnacles", 1)).unwrap();
    let folder = dir.path().join("projects/-p/aaaa1111-x/subagents");
    File::open(folder).unwrap().set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let run = |args: &[&str]| {
        let out = quipu().arg("--claude-dir").arg(dir.path()).args(args).assert();
        String::from_utf8_lossy(&out.get_output().stdout).into_owned()
    };
    let output = |args: &[&str]| {
        let report: Value = serde_json::from_str(&run(args)).unwrap();
        report["totals"]["output_tokens"].as_u64().unwrap()
    };
    assert_eq!(output(&["usage", "--json"]), 7);
    assert_eq!(output(&["usage", "--json", "--no-index"]), 7);
    for args in [&["search", "barnacles"][..], &["search", "--exact", "barnacles"]] {
        let hits = run(args);
        assert!(hits.contains("prompt 9") && hits.contains("agent-deep1:1"), "{hits}");
    }
    assert!(run(&["show", "agent-deep1"]).contains("barnacles"));
    // Another one, in a folder that the folder of subagents does not show as changed.
    fs::write(below.join("agent-deep2.jsonl"), answer("limpets", 2)).unwrap();
    assert_eq!(output(&["usage", "--json"]), 14);
}
