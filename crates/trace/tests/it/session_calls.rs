//! The calls of a session from its captures and from its file.

use std::fs;

use quipu_trace::capture::CaptureFolder;
use quipu_trace::{CallSource, Trace};
use serde_json::{Value, json};

fn captured_call(message_id: &str, prompt: &str) -> Value {
    json!({
        "request": {
            "timestamp": 1760256840.0, "method": "POST", "url": "https://api.anthropic.com/v1/messages",
            "headers": {"x-claude-code-session-id": "s"},
            "body": {"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]},
        },
        "response": {
            "timestamp": 1760256841.0, "status_code": 200, "headers": {},
            "body": {"id": message_id, "type": "message", "role": "assistant", "model": "claude-opus-5-5",
                     "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
                     "usage": {"input_tokens": 1, "output_tokens": 1}},
        },
        "logged_at": "2026-10-12T08:14:00.000Z",
    })
}

#[test]
fn captures_that_lack_calls_of_the_session_are_used_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.jsonl");
    let mut lines = String::new();
    for n in 1..=2 {
        let user = json!({"type": "user", "uuid": format!("u{n}"), "sessionId": "s", "timestamp": "2026-10-12T08:00:00Z",
            "message": {"role": "user", "content": format!("prompt {n}")}});
        let assistant = json!({"type": "assistant", "uuid": format!("a{n}"), "parentUuid": format!("u{n}"), "sessionId": "s",
            "timestamp": "2026-10-12T08:00:01Z", "requestId": format!("req_{n}"),
            "message": {"id": format!("msg_{n}"), "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn",
                        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}}});
        lines += &format!("{user}\n{assistant}\n");
    }
    fs::write(&session, lines).unwrap();
    let captures = CaptureFolder::new(folder.path().join("captures"));
    let open = |source| {
        let trace = Trace::open_session(&session, Some(&captures), source).unwrap();
        (trace.calls.len(), trace.calls.iter().all(|call| call.is_reconstructed))
    };
    let add_capture = |name: &str, message_id: &str| {
        let path = folder.path().join("captures").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_extension("capture"), format!("{}\n", captured_call(message_id, "prompt"))).unwrap();
        fs::write(path.with_extension("sessions"), "s\n").unwrap();
    };
    assert_eq!(open(CallSource::Complete), (2, true));

    add_capture("first", "msg_1");
    assert_eq!(open(CallSource::Complete), (2, true));
    assert_eq!(open(CallSource::Captures), (1, false));

    add_capture("second", "msg_2");
    assert_eq!(open(CallSource::Complete), (2, false));
    assert_eq!(open(CallSource::SessionFile), (2, true));
}
