//! What is event of an answer, and in which order.

use std::time::Duration;

use quipu_api::mock::ResponseState;
use quipu_api::{ApiError, ApiEvent};
use quipu_message::Block;

use crate::{error_of, event_lines, event_outline, start_server, start_server_with, user_request};

#[tokio::test]
async fn a_streamed_response_gives_events_and_then_the_message() {
    let script = "
- reply:
    - thinking: hm
    - text: ok
    - {tool: Read, input: {file_path: /a}}
";
    let setup = start_server(script).await;
    assert_eq!(
        event_lines(&setup.client, &user_request("hi")).await,
        [
            "began streaming",
            "event message_start",
            "event content_block_start",
            "event content_block_delta",
            "event content_block_delta",
            "event content_block_stop",
            "block 0 thinking",
            "event content_block_start",
            "event content_block_delta",
            "event content_block_stop",
            "block 1 text",
            "event content_block_start",
            "event content_block_delta",
            "event content_block_stop",
            "block 2 tool_use",
            "event message_delta",
            "event message_stop",
            "done \"ok\"",
        ]
    );
    let answer = setup.client.call(&user_request("hi")).response().await.unwrap();
    assert_eq!(answer.message.stop_reason.text(), Some("tool_use"));
    let call = answer.message.content.blocks()[2].tool_use().unwrap();
    assert_eq!((call.name.as_str(), call.input.text()), ("Read", r#"{"file_path":"/a"}"#));
    assert!(answer.request_id.unwrap().as_str().starts_with("req_"));
}

#[tokio::test]
async fn a_server_that_does_not_stream_gives_the_same_events() {
    let script = "
- {times: 1, reply: x, fail: {after: 0}}
- {reply: [whole, {tool: Read}], when: {stream: false}}
";
    let setup = start_server(script).await;
    assert_eq!(
        event_lines(&setup.client, &user_request("hi")).await,
        ["began tool_use", "block 0 text", "block 1 tool_use", "done \"whole\""]
    );
}

#[tokio::test]
async fn stop_reasons_and_usage_come_with_the_answer() {
    for stop in ["max_tokens", "refusal", "end_turn", "stop_sequence"] {
        let script = format!("- {{reply: x, stop: {stop}, usage: {{input_tokens: 7, output_tokens: 5}}}}");
        let setup = start_server(&script).await;
        let message = setup.client.call(&user_request("hi")).response().await.unwrap().message;
        let usage = message.usage.get().unwrap();
        assert_eq!(message.stop_reason.text(), Some(stop));
        assert_eq!((usage.input_tokens.get(), usage.output_tokens.get()), (Some(&7), Some(&5)));
    }
}

#[tokio::test]
async fn a_tool_input_that_is_not_json_reads_as_an_empty_one() {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"file_pa"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let setup = start_server(&recording(&events)).await;
    let message = setup.client.call(&user_request("hi")).response().await.unwrap().message;
    assert_eq!(message.stop_reason.text(), Some("max_tokens"));
    assert_eq!(message.content.blocks()[0].tool_use().unwrap().input.text(), "{}");
}

#[tokio::test]
async fn half_a_surrogate_pair_does_not_break_the_answer() {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let setup = start_server(&recording(&events)).await;
    assert_eq!(event_outline(&setup.client, &user_request("hi")).await, ["done \"a\u{fffd}\""]);
}

#[tokio::test]
async fn a_response_that_is_no_event_stream_is_an_error_of_its_own() {
    let setup = start_server(&recording(&[r#"{"type":"content_block_stop","index":4}"#])).await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert!(error.to_string().contains("content_block_stop before its start"), "{error}");
    let page =
        r#"{"method":"POST","path":"/v1/messages","body":{"model":"m","messages":[]},"status":200,"response":[1]}"#;
    let setup = crate::start_server(page).await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(error.code(), "api.bad_answer");
    assert_eq!(setup.server.requests().len(), 1, "a bad answer is not asked for again");
}

#[tokio::test]
async fn a_stream_without_an_end_is_a_cut_one() {
    let start = r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#;
    let setup = start_server_with(&recording(&[start]), |endpoint| endpoint.retry_policy.max_retries = 0).await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert!(matches!(&error, ApiError::Truncated { reason, .. } if reason == "the message has no end"), "{error:?}");
}

#[tokio::test]
async fn silence_in_the_middle_counts_as_a_cut() {
    let script = "
- {times: 1, reply: half an answer, hang_after: 3}
- reply: whole
";
    let setup = start_server_with(script, |endpoint| endpoint.limits.idle_timeout = Duration::from_millis(30)).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["withdrawn", "retry 1/10 562 ms null unknown", "done \"whole\""]);
    setup.server.wait_until(|seen| seen[0].state == ResponseState::ClientDisconnected).await;
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_given_up() {
    let change = |endpoint: &mut quipu_api::Endpoint| {
        endpoint.limits.response_timeout = Duration::from_millis(30);
        endpoint.retry_policy.max_retries = 0;
    };
    let setup = start_server_with("- {reply: late, delay_ms: 3600000}", change).await;
    assert!(matches!(error_of(&setup.client, &user_request("hi")).await, ApiError::ResponseTimeout { .. }));
}

#[tokio::test]
async fn an_answer_without_end_is_broken_off() {
    let long = "word ".repeat(20_000);
    let change = |endpoint: &mut quipu_api::Endpoint| endpoint.limits.max_response_bytes = 50_000;
    let setup = start_server_with(&format!("- {{reply: \"{long}\", chunk: 5}}"), change).await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert!(matches!(&error, ApiError::BadResponse { reason, .. } if reason.contains("longer than")), "{error:?}");
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_of_pings_alone_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut endpoint = quipu_api::Endpoint::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    endpoint.limits.response_timeout = Duration::from_millis(300);
    endpoint.retry_policy.max_retries = 0;
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65536]).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(b"event: ping\ndata: {\"type\": \"ping\"}\n\n: still here\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let client = quipu_api::Client::new(endpoint).unwrap();
    assert!(matches!(error_of(&client, &user_request("hi")).await, ApiError::IdleTimeout { .. }));
}

#[tokio::test]
async fn dropping_the_call_breaks_it_off() {
    let setup = start_server("- {reply: one two three four, chunk: 4, hang_after: 4}").await;
    let mut call = setup.client.call(&user_request("hi"));
    while let Some(event) = call.next().await {
        if matches!(event.unwrap(), ApiEvent::Event(event) if event.tag() == "content_block_delta") {
            break;
        }
    }
    drop(call);
    setup.server.wait_until(|seen| seen[0].state == ResponseState::ClientDisconnected).await;
}

#[tokio::test]
async fn blocks_come_as_soon_as_they_are_complete() {
    let setup = start_server("- {reply: [{tool: Read, input: {file_path: /a}}, more], hang_after: 5}").await;
    let mut call = setup.client.call(&user_request("hi"));
    loop {
        match call.next().await.unwrap().unwrap() {
            ApiEvent::Block { index: 0, block: Block::ToolUse(call) } => {
                assert_eq!(call.name, "Read");
                return;
            }
            ApiEvent::Completed(_) => panic!("the answer hangs"),
            _ => {}
        }
    }
}

/// One recorded call with these events.
fn recording(events: &[&str]) -> String {
    let body = r#"{"model":"m","messages":[]}"#;
    format!(r#"{{"method":"POST","path":"/v1/messages","body":{body},"status":200,"sse":[{}]}}"#, events.join(","))
}
