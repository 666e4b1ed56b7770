//! The index as commands use it: killed, broken, shared and not to be had.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use quipu_testkit::generate::generate_tree;
use serde_json::Value;

fn usage(dir: &Path, cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.env_clear().env("HOME", "/nonexistent").env("XDG_CACHE_HOME", cache).env("XDG_DATA_HOME", cache);
    command.arg("--claude-dir").arg(dir).args(["usage", "--json", "--timezone", "UTC"]);
    command
}

fn totals(mut command: Command) -> Value {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice::<Value>(&out.stdout).unwrap()["totals"].take()
}

#[test]
fn killed_at_any_moment_the_next_command_is_right() {
    let dir = tempfile::tempdir().unwrap();
    generate_tree(dir.path(), 11, 8_000_000).unwrap();
    let mut plain = usage(dir.path(), dir.path());
    plain.arg("--no-index");
    let truth = totals(plain);
    for round in 0..12 {
        let cache = tempfile::tempdir().unwrap();
        // Both the count and the words are interrupted, at ever later moments.
        for kill in 0..3 {
            let mut command = usage(dir.path(), cache.path());
            if kill == 2 {
                command = Command::new(env!("CARGO_BIN_EXE_quipu"));
                command
                    .env_clear()
                    .env("HOME", "/nonexistent")
                    .env("XDG_CACHE_HOME", cache.path())
                    .env("XDG_DATA_HOME", cache.path());
                command.arg("--claude-dir").arg(dir.path()).args(["search", "harbour", "--json"]);
            }
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(15 * (round + 1)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(totals(usage(dir.path(), cache.path())), truth, "round {round}");
    }
}

#[test]
fn two_commands_at_once_are_right() {
    let dir = tempfile::tempdir().unwrap();
    generate_tree(dir.path(), 12, 4_000_000).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let all: Vec<Value> = std::thread::scope(|scope| {
        let run = || totals(usage(dir.path(), cache.path()));
        let running: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut plain = usage(dir.path(), cache.path());
    plain.arg("--no-index");
    let truth = totals(plain);
    for one in all {
        assert_eq!(one, truth);
    }
}

#[test]
fn without_a_place_for_the_index_the_command_still_answers() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 13, 300_000).unwrap();
    let file = dir.path().join("a-file");
    fs::write(&file, "").unwrap();
    let out = usage(dir.path(), &file).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("using an index in memory for this command"));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["totals"]["output_tokens"], truth.total.output);
}

#[test]
fn a_broken_index_is_set_aside_with_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 14, 300_000).unwrap();
    let cache = tempfile::tempdir().unwrap();
    totals(usage(dir.path(), cache.path()));
    for file in fs::read_dir(cache.path().join("quipu")).unwrap().flatten() {
        if file.path().extension().is_some_and(|ext| ext == "sqlite") {
            fs::write(file.path(), "broken ".repeat(2000)).unwrap();
        }
    }
    let out = usage(dir.path(), cache.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("the index was damaged and is built again"));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["totals"]["messages"], truth.total.messages);
}

#[test]
fn a_file_that_grows_while_it_is_counted_ends_up_right() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    generate_tree(dir.path(), 15, 1_000_000).unwrap();
    let folder = dir.path().join("projects/-growing");
    fs::create_dir_all(&folder).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(folder.join("g.jsonl")).unwrap();
    for n in 0..40 {
        // In two halves, so that some looks fall in between.
        let line = format!(
            r#"{{"type":"assistant","uuid":"u{n}","timestamp":"2026-11-15T10:00:00Z","message":{{"id":"g{n}","model":"claude-haiku-4-5","usage":{{"output_tokens":1}},"content":[]}}}}"#
        );
        file.write_all(&line.as_bytes()[..40]).unwrap();
        if n % 8 == 0 {
            totals(usage(dir.path(), cache.path()));
        }
        file.write_all(&line.as_bytes()[40..]).unwrap();
        file.write_all(b"\n").unwrap();
    }
    let mut plain = usage(dir.path(), cache.path());
    plain.arg("--no-index");
    assert_eq!(totals(usage(dir.path(), cache.path())), totals(plain));
}

#[test]
fn a_full_disk_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 16, 2_000_000).unwrap();
    let cache = tempfile::tempdir().unwrap();
    // No file may grow beyond 64 blocks, which the system reports as it does a full disk.
    let mut command = Command::new("sh");
    command.arg("-c").arg("trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"");
    let plain = usage(dir.path(), cache.path());
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let out = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && stderr.contains("using an index in memory for this command"), "{stderr}");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["totals"]["output_tokens"], truth.total.output);
}

#[test]
fn damage_found_while_reading_rebuilds_the_index() {
    use std::os::unix::fs::FileExt;
    let dir = tempfile::tempdir().unwrap();
    generate_tree(dir.path(), 17, 2_000_000).unwrap();
    let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let truth = totals(usage(dir.path(), cache.path()));
    let database = |cache: &Path| {
        let files = fs::read_dir(cache.join("quipu")).unwrap().flatten().map(|file| file.path());
        files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "sqlite")).unwrap()
    };
    let whole = database(cache.path());
    let pages = fs::metadata(&whole).unwrap().len() / 4096;
    let damaged = scratch.path().join("quipu").join(whole.file_name().unwrap());
    fs::create_dir(scratch.path().join("quipu")).unwrap();
    let mut set_aside = 0;
    for page in (1..pages).step_by((pages / 12).max(1) as usize) {
        fs::copy(&whole, &damaged).unwrap();
        let file = fs::File::options().write(true).open(&damaged).unwrap();
        file.write_all_at(&[0xff; 4096], page * 4096).unwrap();
        assert_eq!(totals(usage(dir.path(), scratch.path())), truth, "page {page}");
        set_aside += usize::from(fs::remove_file(damaged.with_extension("broken")).is_ok());
    }
    assert!(set_aside > 0);
}

#[test]
fn deleted_sessions_stay_in_the_report_and_no_index_reports_what_it_omits() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 18, 3_000_000).unwrap();
    let cache = tempfile::tempdir().unwrap();
    totals(usage(dir.path(), cache.path()));
    quipu_testkit::generate::delete_every_third(dir.path()).unwrap();
    let report = totals(usage(dir.path(), cache.path()));
    assert_eq!(report["output_tokens"], truth.total.output);
    assert_eq!(report["vanished"], true);
    let mut plain = usage(dir.path(), cache.path());
    let out = plain.arg("--no-index").output().unwrap();
    let there: Value = serde_json::from_slice(&out.stdout).unwrap();
    let (there, all) = (&there["totals"]["messages"], &report["messages"]);
    let left_out = all.as_u64().unwrap() - there.as_u64().unwrap();
    assert_eq!(left_out, report["vanished_messages"].as_u64().unwrap());
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains(&format!("not counted: {left_out} messages")), "{stderr}");
}
