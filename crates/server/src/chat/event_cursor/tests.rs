use serde_json::{Value, json};

use super::super::partial::tests::{block, push_all, start, text_delta};
use super::super::view::{ChatPhase, NoteLevel};
use super::*;

/// The events that a client gets next.
fn next(cursor: &mut EventCursor, state: &ChatState) -> Vec<Value> {
    let lines = String::from_utf8(cursor.next_lines(state)).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Changes the state as a chat does.
fn change(state: &mut ChatState, change: impl FnOnce(&mut ChatState)) {
    change(state);
    state.version += 1;
}

fn push(state: &mut ChatState, events: &[Value]) {
    change(state, |state| {
        for withdrawn in push_all(&mut state.partial, None, events) {
            state.add_withdrawn(withdrawn);
        }
    });
}

#[test]
fn a_client_gets_a_snapshot_and_then_what_changed() {
    let (mut state, mut cursor) = (ChatState::default(), EventCursor::default());
    push(&mut state, &[start("m"), block(0, json!({"type": "text", "text": ""})), text_delta(0, "é")]);
    let snapshot = next(&mut cursor, &state);
    assert_eq!((types(&snapshot), &snapshot[0]["partial"][0]["text"]), (vec!["snapshot"], &json!("é")));
    assert!(next(&mut cursor, &state).is_empty());
    push(&mut state, &[text_delta(0, "b"), text_delta(0, "c")]);
    assert_eq!(next(&mut cursor, &state), [json!({"type": "delta", "message_id": "m", "index": 0, "text": "bc"})]);
    let ends = [json!({"type": "content_block_stop", "index": 0}), json!({"type": "message_stop"})];
    push(&mut state, &ends);
    assert_eq!(types(&next(&mut cursor, &state)), ["block_end", "message_end"]);
    change(&mut state, |state| state.touch().state = ChatPhase::Idle);
    assert_eq!(types(&next(&mut cursor, &state)), ["chat"]);
    change(&mut state, |state| state.set_progress("t", 5, None));
    assert_eq!(next(&mut cursor, &state)[0]["elapsed_ms"], 5);
}

#[test]
fn a_slow_client_misses_steps_but_not_the_outcome() {
    let (mut state, mut cursor) = (ChatState::default(), EventCursor::default());
    next(&mut cursor, &state);
    let text = block(0, json!({"type": "text", "text": ""}));
    push(&mut state, &[start("a"), text.clone(), text_delta(0, "x")]);
    assert_eq!(types(&next(&mut cursor, &state)), ["block_start"]);
    // The message ends, and two others follow; one of them is broken off.
    push(&mut state, &[json!({"type": "message_stop"}), start("b"), start("c"), text, text_delta(0, "y")]);
    let events = next(&mut cursor, &state);
    assert_eq!(types(&events), ["block_start", "message_end"]);
    assert_eq!((&events[0]["block"]["text"], &events[1]["message_id"]), (&json!("y"), &json!("a")));
    push(&mut state, &[start("d")]);
    assert_eq!(next(&mut cursor, &state), [json!({"type": "withdrawn", "message_id": "c"})]);
}

#[test]
fn notes_are_sent_once_and_bounded() {
    let (mut state, mut cursor) = (ChatState::default(), EventCursor::default());
    next(&mut cursor, &state);
    for n in 0..1000 {
        change(&mut state, |state| state.add_note(NoteLevel::Info, &format!("{n} {}", "z".repeat(10_000))));
    }
    let events = next(&mut cursor, &state);
    assert!(events.len() <= 200, "{}", events.len());
    assert!(events.last().unwrap()["text"].as_str().unwrap().starts_with("999 "));
    assert!(events.iter().all(|event| event["text"].as_str().unwrap().len() <= 2000));
    assert!(next(&mut cursor, &state).is_empty());
    assert_eq!(next(&mut EventCursor::default(), &state)[0]["notes"].as_array().unwrap().len(), events.len());
}
