use quipu_message::api::StreamEvent;
use serde_json::{Value, json};

use super::*;

/// Applies events in JSON and returns the messages that they withdraw.
pub(crate) fn push_all(messages: &mut PartialMessages, agent: Option<&str>, events: &[Value]) -> Vec<String> {
    let event = |event: &Value| serde_json::from_str::<StreamEvent>(&event.to_string()).unwrap();
    events.iter().filter_map(|json| messages.push(agent, &event(json))).collect()
}

pub(crate) fn start(id: &str) -> Value {
    json!({"type": "message_start", "message": {"id": id, "role": "assistant", "content": []}})
}

pub(crate) fn block(index: usize, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

pub(crate) fn text_delta(index: usize, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
}

#[test]
fn blocks_grow_until_they_are_complete() {
    let mut messages = PartialMessages::default();
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let input = |json: &str| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": json}});
    push_all(
        &mut messages,
        None,
        &[
            start("m"),
            block(0, json!({"type": "text", "text": ""})),
            text_delta(0, "a"),
            text_delta(0, "b"),
            json!({"type": "content_block_stop", "index": 0}),
            block(1, call),
            input("{\"file"),
            input("_path\":1}"),
        ],
    );
    let blocks: Vec<_> = messages.blocks().map(|block| (block.kind, block.text.as_str(), block.is_complete)).collect();
    assert_eq!(blocks, [(PartialKind::Text, "ab", true), (PartialKind::ToolUse, "{\"file_path\":1}", false)]);
    let call = messages.blocks().nth(1).unwrap();
    assert_eq!((call.tool_name.as_deref(), call.tool_use_id.as_deref()), (Some("Read"), Some("t")));
}

#[test]
fn a_message_that_was_broken_off_is_withdrawn_and_a_complete_one_is_replaced() {
    let mut messages = PartialMessages::default();
    let stop = json!({"type": "message_stop"});
    assert_eq!(push_all(&mut messages, None, &[start("a"), start("b"), stop.clone(), start("c")]), ["a"]);
    assert!(push_all(&mut messages, Some("call"), &[start("d")]).is_empty());
    assert_eq!(messages.remove_incomplete(false), ["c"]);
    assert_eq!(messages.remove_incomplete(true), ["d"]);
    push_all(&mut messages, None, &[start("e"), stop]);
    assert!(messages.remove_incomplete(true).is_empty());
    assert!(messages.withdraw("e") && !messages.withdraw("e"));
}

#[test]
fn text_and_messages_are_bounded() {
    let mut messages = PartialMessages::default();
    push_all(&mut messages, None, &[start("m"), block(0, json!({"type": "text", "text": ""}))]);
    let long = text_delta(0, &"x".repeat(MAX_PARTIAL_BYTES / 2));
    push_all(&mut messages, None, &[long.clone(), long.clone(), long]);
    assert_eq!(messages.blocks().map(|block| block.text.len()).sum::<usize>(), MAX_PARTIAL_BYTES);
    for agent in 0..2 * MAX_MESSAGES {
        push_all(&mut messages, Some(&agent.to_string()), &[start("s")]);
    }
    assert_eq!(messages.iter().count(), MAX_MESSAGES);
    // What is removed does not count any more.
    push_all(&mut messages, None, &[start("n"), block(0, json!({"type": "text", "text": ""})), text_delta(0, "y")]);
    assert_eq!(messages.blocks().map(|block| block.text.len()).sum::<usize>(), 1);
}
