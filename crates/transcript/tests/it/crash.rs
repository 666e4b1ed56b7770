//! Writers killed with SIGKILL at random moments: no acknowledged entry is lost, no
//! line is unreadable but a torn one, the chain is intact, the next append is whole.
//!
//! A few kills by default; `QUIPU_CRASH_KILLS=2000` for the long run of docs/durability.md.
#![cfg(unix)]

use std::collections::HashSet;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quipu_message::Uuid;
use quipu_transcript::{Durability, Entries, Journal, ProblemKind, Recorder};
use tempfile::tempdir;

use crate::support::{SequentialStamps, assistant, compact_boundary, envelope_defaults, has_problem, to_entry, user};

fn spawn_writer(path: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["crash::writer_child", "--exact", "--nocapture", "--test-threads=1"])
        .env("QUIPU_CRASH_WRITER", path)
        .env("QUIPU_CRASH_NAME", name)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Appends until it is killed, and says each id once it is acknowledged.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn writer_child() {
    let Some(path) = std::env::var_os("QUIPU_CRASH_WRITER") else { return };
    let mut stamp = SequentialStamps(std::env::var("QUIPU_CRASH_NAME").unwrap().parse::<u64>().unwrap() << 24);
    let durability =
        Durability { sync: true, max_delay: Duration::from_millis(2), max_open_delay: Duration::from_millis(2) };
    let mut recorder = Recorder::resume(path.as_ref(), envelope_defaults(), durability).unwrap();
    let mut say = std::io::stdout();
    for n in 0.. {
        let words = "words ".repeat(1 + n * 37 % 4000);
        let prompt_id = recorder.record(&[to_entry(user(&words, &mut stamp))]).unwrap().unwrap();
        // One write: a line cut by the kill is no acknowledgement.
        say.write_all(format!("ack {prompt_id}\n").as_bytes()).unwrap();
        recorder.queue_assistant(assistant(&words, &mut stamp)).unwrap();
        if n % 17 == 16 {
            let summary = user("in short", &mut stamp);
            let boundary = compact_boundary(&summary, &[prompt_id], &mut stamp);
            let head = recorder.compact(boundary, summary).unwrap().unwrap();
            say.write_all(format!("ack {head}\n").as_bytes()).unwrap();
        }
    }
}

fn read_acknowledged(mut child: Child) -> HashSet<Uuid> {
    child.kill().unwrap();
    let mut text = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.filter_map(|line| line.trim().split("ack ").nth(1).map(Uuid::from)).collect()
}

#[test]
fn no_acknowledged_entry_is_lost_when_writers_are_killed() {
    let kills: u64 = std::env::var("QUIPU_CRASH_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let dir = tempdir().unwrap();
    let mut path = dir.path().join("0.jsonl");
    Journal::create(&path).unwrap();
    let (mut acks, mut entries, mut torn, mut done) = (0, 0, 0, 0);
    let mut expected: HashSet<Uuid> = HashSet::new();
    let mut killed_here = 0;
    let mut random = 0x9E37_79B9_u64;
    while done < kills {
        let children =
            [spawn_writer(&path, &(done * 2 + 1).to_string()), spawn_writer(&path, &(done * 2 + 2).to_string())];
        // Wait until both are at work, then a random moment more.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let start = Instant::now();
        let before = std::fs::metadata(&path).unwrap().len();
        while std::fs::metadata(&path).unwrap().len() == before && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random >> 40 & 0x7FFF));
        for child in children {
            let acknowledged = read_acknowledged(child);
            acks += acknowledged.len();
            expected.extend(acknowledged);
            done += 1;
            killed_here += 1;
        }
        let (read, unreadable) = check_file(&path, &expected);
        assert!(unreadable <= killed_here, "{unreadable} unreadable lines after {killed_here} kills");
        // The next append is whole.
        let mut recorder = Recorder::resume(&path, envelope_defaults(), Durability::default()).unwrap();
        expected
            .extend(recorder.record(&[to_entry(user("after the kill", &mut SequentialStamps(done << 40)))]).unwrap());
        recorder.close().unwrap();
        let (after, _) = check_file(&path, &expected);
        assert_eq!(after, read + 1);
        // A new file now and then, or looking at it takes all the time.
        if after > 2000 || done >= kills {
            (entries, torn) = (entries + after, torn + unreadable);
            path = dir.path().join(format!("{done}.jsonl"));
            Journal::create(&path).unwrap();
            expected.clear();
            killed_here = 0;
        }
    }
    eprintln!("{done} kills, two writers: {acks} acknowledged, {entries} entries, {torn} torn lines, none lost");
}

/// Counts entries and unreadable lines; every expected entry must be there.
fn check_file(path: &Path, expected: &HashSet<Uuid>) -> (usize, usize) {
    let (mut read, mut unreadable) = (HashSet::new(), 0);
    for item in Entries::open(path).unwrap() {
        match item {
            Ok(located) => assert!(read.insert(located.entry.envelope().unwrap().uuid.get().unwrap().clone()), "twice"),
            Err(problem) if problem.kind == ProblemKind::NoFinalNewline => {}
            Err(_) => unreadable += 1,
        }
    }
    let lost: Vec<_> = expected.difference(&read).collect();
    assert!(lost.is_empty(), "lost {lost:?}");
    assert!(!has_problem(path, "tree.no_parent"), "a parent is missing");
    (read.len(), unreadable)
}
