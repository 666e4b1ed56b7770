use quipu_message::factory;
use serde_json::Value;

use super::*;
use crate::clock::Clock;

/// What is sent as text and as messages, together.
fn sent(log: &mut Log) -> Vec<Value> {
    let (settled, rest) = log.sending();
    let settled = [b"[", settled.pieces().concat().as_slice(), b"]"].concat();
    let mut all: Vec<Value> = serde_json::from_slice(&settled).unwrap();
    all.extend(rest.iter().map(|message| serde_json::to_value(message).unwrap()));
    all
}

fn plain(log: &Log) -> Vec<Value> {
    log.messages().iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

fn log() -> Log {
    Log::new(PathBuf::from("nowhere.jsonl"), Facts::default(), Durability::default(), false)
}

fn turn(log: &mut Log, n: usize) {
    let _ = log.record(vec![Entry::User(Box::new(factory::user(format!("question {n}"), &mut Clock)))]).unwrap();
    log.answer(factory::assistant(format!("answer {n}"), &mut Clock)).unwrap();
}

#[test]
fn settled_turns_and_the_rest_are_the_whole_conversation() {
    let mut log = log();
    for n in 0..30 {
        let question = factory::user(format!("question {n}"), &mut Clock);
        let _ = log.record(vec![Entry::User(Box::new(question))]).unwrap();
        assert_eq!(sent(&mut log), plain(&log), "asked {n}");
        // Some turns are broken off before the model answers.
        if n % 7 != 3 {
            log.answer(factory::assistant(format!("answer {n}"), &mut Clock)).unwrap();
        }
        assert_eq!(sent(&mut log), plain(&log), "answered {n}");
    }
    assert!(log.settled.nodes > 40, "{}", log.settled.nodes);
    assert!(log.sending().1.len() <= 6, "the last turns are still messages");
}

#[test]
fn what_is_settled_is_forgotten_when_the_past_changes() {
    let mut log = log();
    (0..10).for_each(|n| turn(&mut log, n));
    assert!(!log.sending().0.is_empty());
    log.answer(factory::api_error("image too large", quipu_message::turn::ErrorKind::InvalidRequest, &mut Clock))
        .unwrap();
    assert_eq!(log.settled.nodes, 0);
    assert_eq!(sent(&mut log), plain(&log));
    log.resume(Vec::new(), None, HashSet::new());
    assert!(sent(&mut log).is_empty());
}
