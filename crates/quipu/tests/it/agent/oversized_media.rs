//! Images that the API refuses as too large.

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

const REFUSES: &str = r#"
- when: {says: first}
  reply: I see.
- {times: 1, when: {says: second}, error: {status: 400, type: invalid_request_error, message: "messages.2.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"}}
- reply: Go on.
"#;

fn shows(text: &str, data: &str) -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let content = json!([{"type": "text", "text": text}, {"type": "image", "source": source}]);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

#[test]
fn an_image_that_was_refused_as_too_large_is_not_sent_again() {
    let agent = ScriptedAgent::from_script_text(REFUSES);
    let mut process = agent.spawn(&[]);
    process.send(shows("first", "AAAA"));
    assert_eq!(process.read_result()["is_error"], false);
    process.send(shows("second", "BBBB"));
    assert_eq!(process.read_result()["is_error"], true);
    process.send_prompt("third");
    assert_eq!(process.read_result()["is_error"], false);
    let id = process.lines[0]["session_id"].as_str().unwrap().to_owned();
    process.end();
    let sent = || agent.server.requests().last().unwrap().body.clone();
    assert!(sent().contains("AAAA") && !sent().contains("BBBB") && sent().contains("refused it as too large"));
    agent.lines(&["fourth", "--resume", &id]);
    assert!(sent().contains("AAAA") && !sent().contains("BBBB"), "{}", sent());
}
