//! Following files as they are written.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_transcript::{ChangeWatcher, FollowEvent, Follower, LineSource, SessionFollower};
use tempfile::tempdir;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A follower that waits.
struct EventReader {
    follower: Follower,
    changes: ChangeWatcher,
    ready: VecDeque<FollowEvent>,
}

impl EventReader {
    fn open(path: &Path) -> Self {
        let mut changes = ChangeWatcher::new();
        changes.watch(path.parent().unwrap(), false);
        Self { follower: Follower::open(path).unwrap(), changes, ready: VecDeque::new() }
    }

    fn next(&mut self) -> FollowEvent {
        let start = Instant::now();
        loop {
            self.ready.extend(self.follower.poll().unwrap());
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            assert!(start.elapsed() < TIMEOUT, "nothing came");
            self.changes.wait(TIMEOUT);
        }
    }

    fn line(&mut self) -> (u64, u64, String) {
        match self.next() {
            FollowEvent::Line { number, offset, bytes } => (number, offset, String::from_utf8(bytes).unwrap()),
            other => panic!("no line but {other:?}"),
        }
    }
}

#[test]
fn lines_come_whole_and_a_half_one_waits_for_its_end() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"one\ntw").unwrap();
    let mut reader = EventReader::open(&path);
    assert_eq!(reader.line(), (1, 0, "one".into()));
    assert_eq!(reader.follower.poll().unwrap(), []);
    file.write_all(b"o\r\nthree\n").unwrap();
    assert_eq!(reader.line(), (2, 4, "two".into()));
    assert_eq!(reader.line(), (3, 9, "three".into()));
}

#[test]
fn a_writer_in_another_thread_is_followed() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    File::create(&path).unwrap();
    let mut reader = EventReader::open(&path);
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            for n in 0..200 {
                writeln!(file, "line {n}").unwrap();
            }
        })
    };
    for n in 0..200 {
        assert_eq!(reader.line().2, format!("line {n}"));
    }
    writer.join().unwrap();
}

#[test]
fn truncation_and_replacement_are_events() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\ntwo\n").unwrap();
    let mut reader = EventReader::open(&path);
    reader.line();
    reader.line();
    fs::write(&path, "new\n").unwrap();
    assert_eq!(reader.next(), FollowEvent::Truncated);
    assert_eq!(reader.line(), (1, 0, "new".into()));
    let other = dir.path().join("other");
    fs::write(&other, "other\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(reader.next(), FollowEvent::Replaced);
    assert_eq!(reader.line(), (1, 0, "other".into()));
}

#[test]
fn a_large_file_comes_in_pieces_and_a_long_line_whole() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let long = "x".repeat(3 << 20);
    fs::write(&path, format!("{long}\n{}", "line\n".repeat(600_000))).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    let mut pieces = Vec::new();
    loop {
        let events = follower.poll().unwrap();
        if events.is_empty() {
            break;
        }
        pieces.push(events.len());
    }
    assert_eq!(pieces.iter().sum::<usize>(), 600_001);
    assert!(pieces.len() > 2 && pieces.iter().all(|lines| *lines < 400_000), "{pieces:?}");
}

#[test]
fn reading_files_is_no_change() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\n").unwrap();
    let mut follower = Follower::open(&path).unwrap();
    follower.poll().unwrap();
    let mut changes = ChangeWatcher::new();
    assert!(changes.watch(dir.path(), true));
    for _ in 0..3 {
        follower.poll().unwrap();
        fs::read(&path).unwrap();
        fs::read_dir(dir.path()).unwrap().count();
    }
    assert_eq!(changes.wait(TIMEOUT), Default::default());
    writeln!(OpenOptions::new().append(true).open(&path).unwrap(), "two").unwrap();
    assert_eq!(changes.wait(TIMEOUT).into_iter().collect::<Vec<_>>(), [path]);
}

#[test]
fn subagents_are_followed_with_their_session_also_those_that_begin_later() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "main\n").unwrap();
    let mut follower = SessionFollower::open(&path).unwrap();
    assert_eq!(follower.poll().unwrap().len(), 1);
    let folder = dir.path().join("s/subagents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent-a1.jsonl"), "side\n").unwrap();
    fs::write(folder.join("agent-a1.meta.json"), r#"{"agentType":"Explore","toolUseId":"t1"}"#).unwrap();
    assert!(
        follower.is_session_path(&folder.join("agent-a1.jsonl"))
            && !follower.is_session_path(&dir.path().join("t.jsonl"))
    );
    let events = follower.poll().unwrap();
    let [(LineSource::Subagent(agent), FollowEvent::Line { bytes, .. })] = &events[..] else { panic!("{events:?}") };
    assert_eq!((agent.agent_type.as_deref(), &bytes[..]), (Some("Explore"), &b"side"[..]));
    assert_eq!(follower.poll().unwrap(), []);
}

#[test]
fn a_file_followed_near_its_end_keeps_its_line_numbers() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let mut follower = Follower::open_near_end(&path, 8).unwrap();
    let three = FollowEvent::Line { number: 3, offset: 8, bytes: b"three".to_vec() };
    assert_eq!(follower.poll().unwrap(), [three]);
    writeln!(OpenOptions::new().append(true).open(&path).unwrap(), "four").unwrap();
    assert_eq!(follower.poll().unwrap(), [FollowEvent::Line { number: 4, offset: 14, bytes: b"four".to_vec() }]);
}
