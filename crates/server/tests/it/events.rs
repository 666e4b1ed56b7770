//! What changes is reported while it happens.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Events;
use crate::scratch::{Scratch, assistant, text, user};

#[test]
fn a_new_line_is_reported_and_can_be_read() {
    let scratch = Scratch::new(&[user("a", None, "one")]);
    let server = scratch.server();
    server.wait_for_index();
    let mut events = Events::open(&server);
    let mut times = Vec::new();
    let mut parent = "a".to_owned();
    for n in 0..10 {
        let uuid = format!("b{n}");
        let written = Instant::now();
        scratch.append("s", &[assistant(&uuid, &parent, text(&uuid))]);
        events.find("session", |event| event["key"] == "s");
        let window = server.json("/api/sessions/s/items?count=1");
        assert_eq!(window["items"][0]["text"], uuid.as_str());
        times.push(written.elapsed());
        parent = uuid;
    }
    times.sort();
    // Not a measurement: another process may use the processor. Without a watcher it takes 500 ms.
    assert!(times[5] < Duration::from_millis(450), "{times:?}");
}

#[test]
fn a_new_session_and_its_state_are_reported() {
    let scratch = Scratch::new(&[user("a", None, "one")]);
    let server = scratch.server();
    server.wait_for_index();
    let mut events = Events::open(&server);
    let ask = json!({"type": "tool_use", "id": "t", "name": "AskUserQuestion",
                     "input": {"questions": [{"question": "Which harbour?"}]}});
    scratch.append("later", &[user("z", None, "hi"), assistant("y", "z", ask)]);
    events.find("session", |event| event["key"] == "later");
    let asked = events.find("activity", |event| event["key"] == "later" && event["waiting"] == "question");
    assert_eq!((asked["live"].clone(), asked["activity_detail"].clone()), (json!(true), json!("Which harbour?")));
    events.find("sessions", |_| server.json("/api/sessions")["total"] == 2);
    let rows = server.json("/api/sessions");
    let row = rows["sessions"].as_array().unwrap().iter().find(|row| row["key"] == "later").unwrap();
    assert_eq!((row["live"].clone(), row["waiting"].clone()), (json!(true), json!("question")));
    scratch.append("later/subagents/agent-x", &[user("x1", None, "look")]);
    events.find("session", |event| event["key"] == "later");
}
