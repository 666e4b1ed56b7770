//! A file cut at any byte reads as a prefix plus at most one torn line, and takes
//! the next append whole.

use std::fs;

use quipu_message::Line;
use quipu_transcript::{Entries, Journal, ProblemKind, Recorder, TranscriptState};
use tempfile::tempdir;

use crate::support::{SequentialStamps, envelope_defaults, fast_durability, read_chain, to_entry, user};

#[test]
fn cut_at_every_byte_of_two_hundred_entries() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("whole.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    for n in 0..100 {
        recorder.record(&[to_entry(user(&format!("question {n} 问"), &mut stamp))]).unwrap();
        recorder.record(&[to_entry(user(&format!("answer {n}"), &mut stamp))]).unwrap();
    }
    recorder.close().unwrap();
    let whole = fs::read(&path).unwrap();
    let entries = read_chain(&path);
    assert_eq!(entries.len(), 200);
    let starts: Vec<usize> =
        [0].into_iter().chain(whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1)).collect();
    let cut = dir.path().join("cut.jsonl");
    let after = Line::from_serialize(&to_entry(user("after", &mut stamp))).unwrap();
    for at in 0..=whole.len() {
        // Entries more than a line before the cut do not depend on where the cut is, so
        // the file holds that line and the piece; the first lines are cut as they are.
        let line = starts.partition_point(|&start| start <= at) - 1;
        let first = line.saturating_sub(1);
        let piece = &whole[starts[first]..at];
        // A new file each time: some file systems flush one that is emptied and rewritten.
        let _ = fs::remove_file(&cut);
        fs::write(&cut, piece).unwrap();
        let complete = line - first;
        let torn = usize::from(!piece.is_empty() && piece.last() != Some(&b'\n'));
        let (mut read, mut bad) = (0, 0);
        for item in Entries::open(&cut).unwrap() {
            match item {
                Ok(located) => {
                    assert_eq!(located.entry.envelope().unwrap().uuid.get(), Some(&entries[first + read].0));
                    read += 1;
                }
                Err(problem) if problem.kind == ProblemKind::Torn => bad += 1,
                Err(problem) => assert_eq!(problem.kind, ProblemKind::NoFinalNewline),
            }
        }
        assert!(read >= complete && read + bad == complete + torn, "at {at}");

        let head = TranscriptState::read(&cut).unwrap().leaf_uuid;
        assert_eq!(head.as_ref(), read.checked_sub(1).map(|last| &entries[first + last].0));
        Journal::open(&cut).unwrap().append(&mut [after.clone()].into(), false).unwrap();
        let aside = if torn == 1 { "\n" } else { "" };
        let expect = [piece, aside.as_bytes(), after.as_str().as_bytes(), b"\n"].concat();
        assert_eq!(fs::read(&cut).unwrap(), expect, "earlier bytes unchanged, the new line whole");
    }
}
