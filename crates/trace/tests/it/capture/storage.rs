//! What a conversation repeats is stored once.

use quipu_trace::capture::{CaptureLog, CaptureProxy, LogOptions};

use super::harness::{Step, Upstream, exchange, post, read_calls};

/// Sizes as in the benchmark: 40 sessions of 250 calls, 800 bytes a message; a few sessions
/// suffice here, interleaved as they would be.
const SESSIONS: usize = 2;
const CALLS: usize = 250;

fn request(session: usize, messages: usize) -> Vec<u8> {
    let message = |index: usize| {
        let control = if index + 1 == messages { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
        let text: String = (0..80).map(|word| format!("w{session:03}{index:03}{word:02} ")).collect();
        let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"{}"{control}}}]}}"#, &text[..700])
    };
    let messages: Vec<String> = (0..messages).map(message).collect();
    let messages = messages.join(",");
    format!(r#"{{"model":"m","messages":[{messages}],"system":"You are.","stream":true}}"#).into_bytes()
}

#[tokio::test]
async fn long_sessions_take_three_percent_of_their_size() {
    let answer = "data: {\"type\":\"content_block_delta\",\"text\":\"some words\"}\n\n".repeat(12);
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_011CPcYnhuUN4SCMaSABYKAd\r\ncf-ray: 9479284b0e015a89-VIE\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    );
    let upstream = Upstream::start(vec![Step::Send(response.into_bytes()), Step::Close]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.capture");
    let log = CaptureLog::create(&path, &LogOptions::default()).unwrap();
    let proxy = CaptureProxy::start("127.0.0.1:0".parse().unwrap(), &format!("http://{}", upstream.address), log).await;
    let proxy = proxy.unwrap();
    let (mut naive, mut bodies) = (0, Vec::new());
    for call in 1..=CALLS {
        for session in 0..SESSIONS {
            let body = request(session, call);
            let headers =
                format!("x-claude-code-session-id: 5e55-{session}\r\nx-client-request-id: {call}-{session}\r\n");
            let request = post("/v1/messages", &headers, &body);
            exchange(&proxy.address().to_string(), &request).await;
            naive += request.len() + answer.len();
            bodies.push(body);
        }
    }
    let stats = proxy.shut_down().await;
    assert_eq!((stats.calls, stats.lost_requests), ((CALLS * SESSIONS) as u64, 0));
    assert_eq!(stats.session_ids.len(), SESSIONS);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, stats.bytes);
    assert!(
        bytes.len() * 100 <= naive * 3,
        "{} of {naive}: {:.2} %",
        bytes.len(),
        bytes.len() as f64 * 100.0 / naive as f64
    );
    let calls = read_calls(&bytes);
    assert_eq!(calls.len(), bodies.len());
    for (call, body) in calls.iter().zip(&bodies) {
        assert_eq!(call.request_body.as_ref().unwrap(), body, "call {}", call.number);
    }
}
