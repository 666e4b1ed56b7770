//! Differences between requests.

use quipu_trace::{RawCall, TraceBuilder, diff_requests};
use serde_json::{Value, json};

fn check(old: Value, new: Value, expected: &[&str]) {
    let mut builder = TraceBuilder::default();
    for body in [old, new] {
        builder.push(&RawCall {
            url: "/v1/messages".into(),
            request_body: body.to_string().into(),
            ..RawCall::default()
        });
    }
    let trace = builder.finish();
    let found = diff_requests(&trace, &trace.calls[0], &trace.calls[1]);
    let found: Vec<String> = found.iter().map(|found| format!("{:?} {}", found.change, found.at)).collect();
    assert_eq!(found, expected);
}

#[test]
fn tools_are_compared_by_name() {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description});
    check(
        json!({"tools": [tool("Bash", "1"), tool("Read", "1"), tool("Edit", "1")]}),
        json!({"tools": [tool("Agent", "1"), tool("Read", "1"), tool("Bash", "2")]}),
        &[
            "Changed tools[2] Bash",
            "Removed tools[2] Edit",
            "Added tools[0] Agent",
            "Moved tools: Read comes before Bash",
        ],
    );
}

#[test]
fn a_moved_breakpoint_is_no_difference() {
    check(
        json!({"messages": [{"role": "user", "content": "a"}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}]}),
        &[],
    );
}

#[test]
fn parameters_blocks_and_messages_are_named_by_place() {
    let message = |texts: &[&str]| {
        let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        json!({"role": "user", "content": blocks})
    };
    check(
        json!({"model": "a", "system": "x", "messages": [message(&["1", "2"])]}),
        json!({"model": "b", "system": "y", "thinking": {"type": "adaptive"}, "messages": [message(&["1", "3"]), message(&["4"])]}),
        &[
            "Changed model",
            "Added thinking",
            "Changed system[0]",
            "Changed messages[0].content[1]",
            "Added messages[1]",
        ],
    );
}
