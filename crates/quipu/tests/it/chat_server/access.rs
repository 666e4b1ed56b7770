//! Other origins, other hosts, no token, bodies that are too long, agents and pages that misbehave.

use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::harness::{ChatHome, is_idle};

#[test]
fn another_origin_can_neither_start_nor_steer_a_chat() {
    let home = ChatHome::new("- reply: Hello.");
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    server.events(id).chat(|chat| chat["state"] == "idle");
    let start = json!({"cwd": home.project()}).to_string();
    let message = json!({"text": "steered"}).to_string();
    let requests = [
        ("POST", "/api/chats".to_owned(), start.as_str()),
        ("POST", format!("/api/chats/{id}/messages"), message.as_str()),
        ("POST", format!("/api/chats/{id}/interrupt"), ""),
        ("POST", format!("/api/chats/{id}/prompts/x"), r#"{"decision":"allow"}"#),
        ("GET", format!("/api/chats/{id}/events"), ""),
        ("DELETE", format!("/api/chats/{id}"), ""),
    ];
    for (method, path, body) in &requests {
        // The token would be sent if the page of another origin knew it.
        for (name, value) in [("origin", "http://127.0.0.1:1"), ("origin", "null"), ("origin", "https://evil.example")]
        {
            let mut text = String::new();
            server.connect(method, path, &[(name, value)], body.as_bytes()).read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 403"), "{method} {path}: {text}");
            assert!(text.to_lowercase().contains("referrer-policy: no-referrer"), "{text}");
        }
        assert_eq!(server.status_without_token(method, path, body.as_bytes()), 401, "{method} {path}");
    }
    assert_eq!(server.get("/api/chats").as_array().unwrap().len(), 1);
    assert!(server.get(&format!("/api/chats/{id}"))["ended"].is_null());
    assert!(home.api.requests().is_empty());
}

#[test]
fn bodies_that_are_too_long_or_wrong_are_refused() {
    let home = ChatHome::new("- reply: Hello.");
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let messages = format!("/api/chats/{}/messages", chat["id"].as_str().unwrap());
    let check = |path: &str, body: Value, status: u16, code: &str| {
        let (found, error) = server.call("POST", path, body);
        assert_eq!((found, error["error"]["code"].as_str()), (status, Some(code)), "{path}");
    };
    check(&messages, json!({"text": "x".repeat(33 << 20)}), 413, "body.too_large");
    check("/api/chats", json!({"cwd": "x".repeat(3 << 20)}), 413, "body.too_large");
    check("/api/chats", json!({"cwd": 1}), 400, "body");
    check(&messages, json!([]), 400, "body");
    check("/api/chats/none/messages", json!({"text": "x"}), 404, "chat.not_found");
    check("/api/chats", json!({"cwd": home.project(), "agent": "../agent"}), 400, "agent.not_found");
    check("/api/chats", json!({"cwd": "relative"}), 400, "folder.not_found");
    check("/api/chats", json!({}), 400, "folder.missing");
    check("/api/chats", json!({"resume": "../../etc"}), 404, "session.not_found");
}

/// Starts and answers `initialize`, then writes without end.
const FLOOD: &str = r#"#!/bin/sh
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[]}}}\n' "$id"
printf '{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}}\n'
printf '{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}\n'
text=$(head -c 60000 /dev/zero | tr '\0' x)
n=0
while [ $n -lt 3000 ]; do
  printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}}\n' "$text"
  printf '{"type":"system","subtype":"informational","level":"info","content":"note %s %s"}\n' "$n" "$text"
  n=$((n + 1))
done
printf '{"type":"result","subtype":"success","is_error":false}\n'
cat > /dev/null
"#;

#[test]
fn an_agent_that_floods_and_a_page_that_does_not_read_cost_bounded_memory() {
    let home = ChatHome::new("- reply: Hello.");
    let agent = home.path("flood");
    std::fs::write(&agent, FLOOD).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = home.serve();
    let chat = server.start_chat(&home, json!({"agent": agent}));
    let id = chat["id"].as_str().unwrap();
    // This page is connected and reads nothing.
    let _slow = server.connect("GET", &format!("/api/chats/{id}/events"), &[], b"");
    let mut events = server.events(id);
    // 180 MB of text and as much of notes; at most 8 MiB and 200 notes are kept.
    let shown = events.until(|event| {
        event["type"] == "chat" && is_idle(&event["chat"]) && event["chat"]["turn_started_at"].is_null()
    });
    assert!(!shown.is_empty());
    let peak = server.peak_memory_kib();
    assert!(peak < 250 * 1024, "{peak} KiB");
    let mut page = server.events(id);
    assert!(page.next()["notes"].as_array().unwrap().len() <= 200);
}
