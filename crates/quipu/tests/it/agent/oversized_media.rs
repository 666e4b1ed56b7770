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
    let stage = ScriptedAgent::from_script_text(REFUSES);
    let mut talk = stage.spawn(&[]);
    talk.send(shows("first", "AAAA"));
    assert_eq!(talk.read_result()["is_error"], false);
    talk.send(shows("second", "BBBB"));
    assert_eq!(talk.read_result()["is_error"], true);
    talk.send_prompt("third");
    assert_eq!(talk.read_result()["is_error"], false);
    let id = talk.heard[0]["session_id"].as_str().unwrap().to_owned();
    talk.end();
    let sent = || stage.answerer.requests().last().unwrap().body.clone();
    assert!(sent().contains("AAAA") && !sent().contains("BBBB") && sent().contains("refused it as too large"));
    stage.lines(&["fourth", "--resume", &id]);
    assert!(sent().contains("AAAA") && !sent().contains("BBBB"), "{}", sent());
}
