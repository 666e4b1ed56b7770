use serde_json::{Value, json};

use super::super::state::LogEntry;
use super::super::view::QueuedMessage;
use super::*;

fn apply(state: &mut ChatState, entries: &[Value]) {
    for json in entries {
        let entry = Entry::read(&json.to_string()).unwrap();
        state.apply(&entry, "now", &Prices::bundled());
        state.version += 1;
    }
}

fn notes(state: &ChatState) -> Vec<&str> {
    let entries = state.log.iter().map(|(_, entry)| entry);
    entries.filter_map(|entry| if let LogEntry::Note(note) = entry { Some(note.text.as_str()) } else { None }).collect()
}

fn state() -> ChatState {
    let mut state = ChatState::default();
    state.chat.state = ChatPhase::Idle;
    state
}

#[test]
fn a_turn_begins_with_its_prompt_and_ends_with_its_result() {
    let mut state = state();
    let queued = |uuid: &str| QueuedMessage { uuid: uuid.to_owned(), text: String::new() };
    state.chat.queued = vec![queued("a"), queued("b"), queued("c")];
    state.chat.rewound_to = Some("x".to_owned());
    let replay = json!({"type": "user", "isReplay": true, "uuid": "a", "message": {"role": "user", "content": "hi"}});
    apply(&mut state, &[replay]);
    assert_eq!((state.chat.state, state.chat.turn_started_at.as_deref()), (ChatPhase::Running, Some("now")));
    assert_eq!((state.chat.queued.len(), &state.chat.rewound_to), (2, &None));
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "total_cost_usd": 0.5,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}, "user_message_uuids": ["a", "b"]});
    apply(&mut state, &[result]);
    assert_eq!((state.chat.state, state.chat.cost_usd), (ChatPhase::Idle, 0.5));
    assert_eq!((state.chat.tokens.input, state.chat.tokens.output), (15, 3));
    assert_eq!(state.chat.queued.len(), 1);
    apply(&mut state, &[json!({"type": "command_lifecycle", "command_uuid": "c", "state": "queued"})]);
    assert_eq!(state.chat.queued.len(), 1);
    apply(&mut state, &[json!({"type": "command_lifecycle", "command_uuid": "c", "state": "started"})]);
    assert_eq!((state.chat.queued.len(), state.chat.state), (0, ChatPhase::Running));
}

#[test]
fn the_state_that_an_agent_reports_counts_more_than_results() {
    let mut state = state();
    let change = |to: &str| json!({"type": "system", "subtype": "session_state_changed", "state": to});
    let result = json!({"type": "result", "subtype": "success", "is_error": false});
    apply(&mut state, &[change("running"), result]);
    assert_eq!(state.chat.state, ChatPhase::Running);
    apply(&mut state, &[change("idle")]);
    assert_eq!((state.chat.state, &state.chat.turn_started_at), (ChatPhase::Idle, &None));
}

#[test]
fn a_compaction_is_a_state_and_a_note() {
    let mut state = state();
    let status = |value: Value| json!({"type": "system", "subtype": "status", "status": value});
    apply(&mut state, &[status(json!("compacting"))]);
    // Its API call is streamed, too.
    let start = json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}});
    apply(&mut state, &[json!({"type": "stream_event", "event": start})]);
    assert_eq!(state.chat.state, ChatPhase::Compacting);
    apply(
        &mut state,
        &[
            status(Value::Null),
            json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"pre_tokens": 900}}),
        ],
    );
    assert_eq!(state.chat.state, ChatPhase::Running);
    assert_eq!(notes(&state), ["the conversation was compacted; it had 900 tokens"]);
    let failed = json!({"type": "system", "subtype": "status", "status": null, "compact_result": "failed",
                        "compact_error": "too short"});
    apply(&mut state, &[failed]);
    assert_eq!(notes(&state)[1], "the conversation was not compacted: too short");
}

#[test]
fn a_running_message_is_counted_before_the_result() {
    let mut state = state();
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    apply(
        &mut state,
        &[
            event(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [],
                "model": "claude-opus-5-5", "usage": {"input_tokens": 1000, "output_tokens": 1}}})),
            event(json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 50}})),
        ],
    );
    assert_eq!((state.chat.tokens.input, state.chat.tokens.output), (1000, 50));
    assert!(state.chat.cost_usd > 0.0);
}

#[test]
fn todos_are_those_of_the_main_agent() {
    let mut state = state();
    let write = |parent: Value, content: &str| {
        json!({"type": "assistant", "uuid": "u", "parent_tool_use_id": parent, "message": {"id": "m", "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "TodoWrite",
            "input": {"todos": [{"content": content, "status": "in_progress", "activeForm": "doing"}]}}]}})
    };
    apply(&mut state, &[write(Value::Null, "mine"), write(json!("call"), "another")]);
    let todos: Vec<_> = state.chat.todos.iter().map(|todo| (todo.content.as_str(), todo.status.as_str())).collect();
    assert_eq!(todos, [("mine", "in_progress")]);
}

#[test]
fn a_tombstone_withdraws_the_message_of_its_entry() {
    let mut state = state();
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    apply(
        &mut state,
        &[
            event(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}})),
            json!({"type": "assistant", "uuid": "u", "message": {"id": "m", "role": "assistant", "content": []}}),
            json!({"type": "tombstone", "message": {"uuid": "u"}}),
        ],
    );
    assert!(state.partial.iter().next().is_none());
    assert!(matches!(&state.log[0].1, LogEntry::Withdrawn(id) if id == "m"));
}

#[test]
fn a_conversation_that_is_reset_has_another_key() {
    let mut state = state();
    state.chat.session_id = "old".to_owned();
    apply(&mut state, &[json!({"type": "conversation_reset", "new_conversation_id": "new"})]);
    assert_eq!((state.chat.session_id.as_str(), state.chat.key.as_str()), ("new", "new"));
}
