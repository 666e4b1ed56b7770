//! Following a file as it is written.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use quipu_transcript::{Followed, Follower};
use tempfile::tempdir;

const LONG: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::ZERO;

fn line(event: Option<Followed>) -> (u64, u64, String) {
    match event {
        Some(Followed::Line { number, offset, bytes }) => (number, offset, String::from_utf8(bytes).unwrap()),
        other => panic!("no line but {other:?}"),
    }
}

#[test]
fn lines_come_whole_and_a_half_one_waits_for_its_end() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"one\ntw").unwrap();
    let mut follower = Follower::open(&path).unwrap();
    assert_eq!(line(follower.next(LONG).unwrap()), (1, 0, "one".into()));
    assert_eq!(follower.next(NOW).unwrap(), None);
    file.write_all(b"o\r\nthree\n").unwrap();
    assert_eq!(line(follower.next(LONG).unwrap()), (2, 4, "two".into()));
    assert_eq!(line(follower.next(LONG).unwrap()), (3, 9, "three".into()));
}

#[test]
fn a_writer_in_another_thread_is_followed() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    File::create(&path).unwrap();
    let mut follower = Follower::open(&path).unwrap();
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
        assert_eq!(line(follower.next(LONG).unwrap()).2, format!("line {n}"));
    }
    writer.join().unwrap();
}

#[test]
fn truncation_and_replacement_are_events() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\ntwo\n").unwrap();
    let mut follower = Follower::open(&path).unwrap();
    line(follower.next(LONG).unwrap());
    line(follower.next(LONG).unwrap());
    fs::write(&path, "new\n").unwrap();
    assert_eq!(follower.next(LONG).unwrap(), Some(Followed::Truncated));
    assert_eq!(line(follower.next(LONG).unwrap()), (1, 0, "new".into()));
    let other = dir.path().join("other");
    fs::write(&other, "other\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(follower.next(LONG).unwrap(), Some(Followed::Replaced));
    assert_eq!(line(follower.next(LONG).unwrap()), (1, 0, "other".into()));
}
