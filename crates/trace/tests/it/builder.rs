//! Requests and responses in parts.

use quipu_trace::{Breakpoint, CallEnd, Endpoint, RawCall, RawResponse, Trace, TraceBuilder};

fn trace_of(bodies: &[&str]) -> Trace {
    let mut builder = TraceBuilder::default();
    for body in bodies {
        builder.push(&RawCall {
            url: "http://127.0.0.1/v1/messages?beta=true".into(),
            request_body: (*body).into(),
            ..RawCall::default()
        });
    }
    builder.finish()
}

#[test]
fn a_moved_breakpoint_changes_neither_history_nor_cached_bytes() {
    let trace = trace_of(&[
        r#"{"messages":[{"role":"user","content":"hi"}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#,
    ]);
    let [a, b] = [0, 1].map(|index| {
        let request = trace.calls[index].request.as_ref().unwrap();
        trace.prompts.message(request.messages[0])
    });
    assert_eq!((a.history_hash, a.cache_hash), (b.history_hash, b.cache_hash));
    assert_eq!(a.blocks[0].text, b.blocks[0].text);
    assert_eq!((a.blocks[0].breakpoint, b.blocks[0].breakpoint), (None, Some(Breakpoint::OneHour)));
}

#[test]
fn thinking_and_key_order_count_for_the_cache_only() {
    let trace = trace_of(&[
        r#"{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"tool_use","id":"t","name":"Bash","input":{"a":1,"b":2}}]}]}"#,
        r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"b":2,"a":1}}]}]}"#,
    ]);
    let messages = trace.calls.iter().map(|call| trace.prompts.message(call.request.as_ref().unwrap().messages[0]));
    let (history, cache): (Vec<_>, Vec<_>) = messages.map(|message| (message.history_hash, message.cache_hash)).unzip();
    assert_eq!(history[0], history[1]);
    assert_ne!(cache[0], cache[1]);
}

#[test]
fn the_session_is_found_in_both_forms_of_the_user_id() {
    let trace = trace_of(&[
        r#"{"messages":[],"metadata":{"user_id":"user_1_account__session_5e55"}}"#,
        r#"{"messages":[],"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"5e55\"}"}}"#,
        r#"{"messages":[],"metadata":{"user_id":"somebody"}}"#,
    ]);
    let ids: Vec<_> = trace.calls.iter().map(|call| call.identity.session_id.as_deref()).collect();
    assert_eq!(ids, [Some("5e55"), Some("5e55"), None]);
}

#[test]
fn the_billing_line_is_no_part_of_the_system_prompt() {
    let trace = trace_of(&[
        r#"{"messages":[],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1"},{"type":"text","text":"You are"}]}"#,
    ]);
    let request = trace.calls[0].request.as_ref().unwrap();
    assert!(request.billing_line.is_some());
    assert_eq!(request.system.len(), 1);
}

#[test]
fn a_streamed_response_gives_message_usage_and_end() {
    let events = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-5\",\"content\":[],\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"yes\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let mut builder = TraceBuilder::default();
    builder.push(&RawCall {
        method: "POST".into(),
        url: "/v1/messages".into(),
        status: Some(200),
        response: RawResponse::Sse(events.into()),
        ..RawCall::default()
    });
    let trace = builder.finish();
    let call = &trace.calls[0];
    assert_eq!(call.endpoint, Endpoint::Messages);
    let response = &call.response;
    assert_eq!(response.end, CallEnd::Completed);
    assert_eq!(response.message_id.as_deref(), Some("msg_1"));
    let tokens = response.tokens.unwrap();
    assert_eq!((tokens.input, tokens.cache_read, tokens.output), (3, 7, 9));
    assert_eq!(trace.prompts.text(response.blocks[0].text), r#"{"type":"text","text":"yes"}"#);
}

#[test]
fn a_body_that_is_no_request_is_a_problem_and_the_call_is_kept() {
    let trace = trace_of(&[r#"{"messages":7}"#]);
    assert!(trace.calls[0].request.is_none());
    assert_eq!(trace.problems.len(), 1);
}

#[test]
fn cleared_context_and_the_servers_diagnosis_are_read_from_stream_and_body() {
    let message = r#"{"id":"m","type":"message","role":"assistant","model":"claude-opus-5","content":[],"usage":{"input_tokens":3},"diagnostics":{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":40}}"#;
    let edits = r#""context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":2,"cleared_input_tokens":900}]}"#;
    let events = vec![
        format!(r#"{{"type":"message_start","message":{message}}}}}"#).into(),
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},{edits}}}"#).into(),
    ];
    for response in [RawResponse::Events(events), RawResponse::Json(format!("{message},{edits}}}").into())] {
        let mut builder = TraceBuilder::default();
        builder.push(&RawCall { url: "/v1/messages".into(), response, ..RawCall::default() });
        let trace = builder.finish();
        let response = &trace.calls[0].response;
        assert_eq!(response.context_edits[0].cleared_input_tokens.get(), Some(&900));
        let diagnosis = response.cache_diagnosis.as_ref().unwrap();
        assert_eq!(
            (diagnosis.kind.text(), diagnosis.cache_missed_input_tokens.get()),
            (Some("tools_changed"), Some(&40))
        );
    }
}

#[test]
fn an_id_that_occurs_twice_is_made_unique() {
    let mut builder = TraceBuilder::default();
    for _ in 0..2 {
        builder.push(&RawCall { source_id: "req_1".into(), ..RawCall::default() });
    }
    let ids: Vec<_> = builder.finish().calls.into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["req_1", "req_1-2"]);
}
