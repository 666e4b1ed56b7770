//! A capture becomes a trace.

use std::io::Write as _;

use quipu_trace::{CallEnd, Endpoint, TraceBuilder};

use super::harness::{Running, Step, Upstream, exchange, post};

const EVENTS: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"yes\"}}\n\n\
    data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

#[tokio::test]
async fn a_compressed_stream_becomes_a_call_with_its_message() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(EVENTS.as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nrequest-id: req_1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let upstream = Upstream::start(vec![Step::Send([head.into_bytes(), body].concat()), Step::Close]).await;
    let running = Running::start(&format!("http://{}", upstream.address)).await;
    let request = br#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#;
    let headers = "x-claude-code-session-id: 5e55\r\nx-api-key: 0123456789\r\n";
    exchange(&running.address(), &post("/v1/messages?beta=true", headers, request)).await;
    let (bytes, _) = running.finish().await;
    let mut builder = TraceBuilder::default();
    builder.push_capture(bytes.as_slice()).unwrap();
    let trace = builder.finish();
    assert!(trace.problems.is_empty());
    let call = &trace.calls[0];
    assert_eq!(
        (call.endpoint, call.id.as_str(), call.response.end),
        (Endpoint::Messages, "call-1", CallEnd::Completed)
    );
    assert_eq!(call.identity.session_id.as_deref(), Some("5e55"));
    assert_eq!(call.response.message_id.as_deref(), Some("msg_1"));
    assert_eq!((call.response.status, call.response.request_id.as_deref()), (Some(200), Some("req_1")));
    assert!(call.started_at.is_some() && call.duration_ms.is_some() && call.first_event_ms.is_some());
}
