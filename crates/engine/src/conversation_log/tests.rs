use quipu_message::factory;
use serde_json::Value;

use super::*;
use crate::clock::Clock;

/// What is sent as text and as messages, together.
fn sent_messages(log: &mut ConversationLog) -> Vec<Value> {
    let (settled, rest) = log.encoded_messages();
    let settled = [b"[", settled.chunks().concat().as_slice(), b"]"].concat();
    let mut all: Vec<Value> = serde_json::from_slice(&settled).unwrap();
    all.extend(rest.iter().map(|message| serde_json::to_value(message).unwrap()));
    all
}

fn plain_messages(log: &ConversationLog) -> Vec<Value> {
    log.api_messages().iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

fn test_log() -> ConversationLog {
    ConversationLog::new(PathBuf::from("nowhere.jsonl"), EnvelopeDefaults::default(), Durability::default(), false)
}

fn record_turn(log: &mut ConversationLog, n: usize) {
    let _ = log.record(vec![Entry::User(Box::new(factory::user(format!("question {n}"), &mut Clock)))]).unwrap();
    log.record_answer_block(factory::synthetic_assistant(format!("answer {n}"), &mut Clock)).unwrap();
}

#[test]
fn settled_turns_and_the_rest_are_the_whole_conversation() {
    let mut log = test_log();
    for n in 0..30 {
        let question = factory::user(format!("question {n}"), &mut Clock);
        let _ = log.record(vec![Entry::User(Box::new(question))]).unwrap();
        assert_eq!(sent_messages(&mut log), plain_messages(&log), "asked {n}");
        // Some turns are broken off before the model answers.
        if n % 7 != 3 {
            log.record_answer_block(factory::synthetic_assistant(format!("answer {n}"), &mut Clock)).unwrap();
        }
        assert_eq!(sent_messages(&mut log), plain_messages(&log), "answered {n}");
    }
    assert!(log.encoded_prefix.node_count > 40, "{}", log.encoded_prefix.node_count);
    assert!(log.encoded_messages().1.len() <= 6, "the last turns are still messages");
}

#[test]
fn what_is_settled_is_forgotten_when_the_past_changes() {
    let mut log = test_log();
    (0..10).for_each(|n| record_turn(&mut log, n));
    assert!(!log.encoded_messages().0.is_empty());
    log.record_answer_block(factory::api_error_assistant(
        "image too large",
        quipu_message::user_assistant::AssistantErrorKind::InvalidRequest,
        &mut Clock,
    ))
    .unwrap();
    assert_eq!(log.encoded_prefix.node_count, 0);
    assert_eq!(sent_messages(&mut log), plain_messages(&log));
    log.resume(Vec::new(), None, HashSet::new());
    assert!(sent_messages(&mut log).is_empty());
}
