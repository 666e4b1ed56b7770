//! What goes wrong around a file: a clear error with a code, earlier bytes unchanged.

use std::collections::VecDeque;
use std::fs;

use quipu_message::Line;
use quipu_transcript::{AppendError, Journal, Recorder};
use tempfile::tempdir;

use crate::support::{SequentialStamps, envelope_defaults, fast_durability, to_entry, user};

fn make_lines(n: usize) -> VecDeque<Line> {
    (0..n).map(|n| Line::parse(&format!("{{\"type\":\"mode\",\"mode\":\"{n}\"}}")).unwrap()).collect()
}

fn error_code(result: Result<impl std::fmt::Debug, AppendError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn replaced_deleted_and_cut_files_are_noticed() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    journal.append(&mut make_lines(3), true).unwrap();

    let before = fs::read(&path).unwrap();
    fs::write(&path, &before[..10]).unwrap();
    assert_eq!(error_code(journal.append(&mut make_lines(1), true)), "append.truncated");
    assert_eq!(fs::read(&path).unwrap(), &before[..10]);

    let mut journal = Journal::open(&path).unwrap();
    let other = dir.path().join("other");
    fs::write(&other, "theirs\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(error_code(journal.append(&mut make_lines(1), true)), "append.replaced");
    assert_eq!(fs::read(&path).unwrap(), b"theirs\n");

    let mut journal = Journal::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(error_code(journal.append(&mut make_lines(1), true)), "append.deleted");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Recorder::create(&file.join("s.jsonl"), envelope_defaults(), fast_durability()).unwrap_err();
    assert_eq!(error.code(), "append.cannot_create");
    assert!(error.to_string().contains("s.jsonl"));
    assert_eq!(
        error_code(Recorder::resume(&dir.path().join("none"), envelope_defaults(), fast_durability())),
        "append.cannot_open"
    );
}

#[test]
fn what_an_error_left_is_written_by_the_next_call() {
    let dir = tempdir().unwrap();
    let (path, away) = (dir.path().join("s.jsonl"), dir.path().join("away"));
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    recorder.record(&[to_entry(user("one", &mut stamp))]).unwrap();
    fs::rename(&path, &away).unwrap();
    assert_eq!(error_code(recorder.record(&[to_entry(user("two", &mut stamp))])), "append.deleted");
    fs::rename(&away, &path).unwrap();
    recorder.record(&[to_entry(user("three", &mut stamp))]).unwrap();
    recorder.close().unwrap();
    let chain = crate::support::read_chain(&path);
    assert_eq!(chain.len(), 3);
    assert_eq!(chain[2].1.as_ref(), Some(&chain[1].0));
}

/// A limit on the size of files simulates a full disk: the write that crosses it
/// is cut short. Run in a child, because the limit is the process's.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_earlier_lines_whole_and_the_next_append_too() {
    use std::process::Command;
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    journal.append(&mut make_lines(10), true).unwrap();
    let before = fs::read(&path).unwrap();
    let out = Command::new("sh")
        .args([
            "-c",
            "ulimit -f 1; trap '' XFSZ; exec \"$0\" append_errors::full_disk_child --exact --nocapture --test-threads=1",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("QUIPU_FULL_DISK", &path)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(stdout.contains("code=append.disk_full"), "{stdout} {}", String::from_utf8_lossy(&out.stderr));
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());

    let mut journal = Journal::open(&path).unwrap();
    journal.append(&mut make_lines(1), true).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let good = text.lines().filter(|line| Line::parse(line).is_ok()).count();
    assert!(good >= 11 && text.lines().count() - good <= 1, "at most one torn line");
    assert!(Line::parse(text.lines().last().unwrap()).is_ok());
}

#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn full_disk_child() {
    let Some(path) = std::env::var_os("QUIPU_FULL_DISK") else { return };
    let mut journal = Journal::open(path.as_ref()).unwrap();
    let error = journal.append(&mut make_lines(100_000), false).unwrap_err();
    println!("code={}", error.code());
}

#[cfg(unix)]
#[test]
fn files_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join("deep/er/s.jsonl");
    Journal::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
