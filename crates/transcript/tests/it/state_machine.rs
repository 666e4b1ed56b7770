//! Append, crash, resume, rewind, compact and fork in any order, against a plain
//! list in memory.

use std::fs::OpenOptions;
use std::path::PathBuf;

use proptest::prelude::*;
use quipu_message::Uuid;
use quipu_transcript::{Fork, Recorder};
use tempfile::tempdir;

use crate::support::{
    SequentialStamps, assistant, compact_boundary, envelope_defaults, fast_durability, has_problem, read_chain,
    to_entry, user,
};

#[derive(Debug, Clone)]
enum Step {
    Say,
    Answer,
    /// The process dies; a piece of a line is left at the end.
    Crash(u8),
    Rewind(prop::sample::Index),
    Compact,
    Fork,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Say),
        4 => Just(Step::Answer),
        2 => any::<u8>().prop_map(Step::Crash),
        1 => any::<prop::sample::Index>().prop_map(Step::Rewind),
        1 => Just(Step::Compact),
        1 => Just(Step::Fork),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_file_is_what_a_list_in_memory_is(steps in prop::collection::vec(step(), 1..30)) {
        let dir = tempdir().unwrap();
        let mut path: PathBuf = dir.path().join("0.jsonl");
        let mut facts = envelope_defaults();
        let mut stamp = SequentialStamps(0);
        let mut recorder = Recorder::create(&path, facts.clone(), fast_durability()).unwrap();
        // The model: every acknowledged entry with its parent, and the head.
        let mut model: Vec<(Uuid, Option<Uuid>)> = Vec::new();
        let mut head: Option<Uuid> = None;
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Say => {
                    let line = to_entry(user("q", &mut stamp));
                    let uuid = line.envelope().unwrap().uuid.get().unwrap().clone();
                    model.push((uuid.clone(), head.clone()));
                    head = Some(uuid);
                    prop_assert_eq!(&recorder.record(&[line]).unwrap(), &head);
                }
                Step::Answer => {
                    let line = assistant("a", &mut stamp);
                    let uuid = line.envelope.uuid.get().unwrap().clone();
                    model.push((uuid.clone(), head.clone()));
                    head = Some(uuid);
                    recorder.queue_assistant(line).unwrap();
                }
                Step::Crash(cut) => {
                    // Everything was acknowledged: a crash may leave a torn piece only.
                    recorder.close().unwrap();
                    let torn = &br#"{"type":"user","uuid":"torn","message":{"ro"#[..usize::from(cut) % 40];
                    std::io::Write::write_all(&mut OpenOptions::new().append(true).open(&path).unwrap(), torn).unwrap();
                    recorder = Recorder::resume(&path, facts.clone(), fast_durability()).unwrap();
                    let last = model.last().map(|(uuid, _)| uuid.clone());
                    prop_assert_eq!(recorder.leaf_uuid(), last.as_ref());
                    head = last;
                }
                Step::Rewind(to) => {
                    if !model.is_empty() {
                        let to = model[to.index(model.len())].0.clone();
                        recorder.rewind_to(&to).unwrap();
                        head = Some(to);
                    }
                }
                Step::Compact => {
                    let kept: Vec<Uuid> = head.iter().cloned().collect();
                    let summary = user("short", &mut stamp);
                    let anchor = summary.envelope.uuid.get().unwrap().clone();
                    let boundary = SequentialStamps(stamp.0).peek_uuid();
                    let made = compact_boundary(&summary, &kept, &mut stamp);
                    recorder.compact(made, summary).unwrap();
                    model.push((boundary.clone(), None));
                    model.push((anchor.clone(), Some(boundary)));
                    head = Some(anchor);
                }
                Step::Fork => {
                    recorder.flush().unwrap();
                    let to = dir.path().join(format!("{}.jsonl", n + 1));
                    facts.session_id = format!("fork-{n}").into();
                    Fork { from: &path, to: &to, session_id: &facts.session_id, prompt_id: "p", last_uuid: None }.run().unwrap();
                    path = to;
                    recorder = Recorder::resume(&path, facts.clone(), fast_durability()).unwrap();
                    head = model.last().map(|(uuid, _)| uuid.clone());
                }
            }
        }
        recorder.close().unwrap();
        prop_assert_eq!(read_chain(&path), model);
        prop_assert!(!has_problem(&path, "tree.no_parent"));
    }
}

impl SequentialStamps {
    /// The id the next call will give.
    fn peek_uuid(mut self) -> Uuid {
        quipu_message::StampSource::new_uuid(&mut self)
    }
}
