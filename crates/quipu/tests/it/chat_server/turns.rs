//! Turns of chats: streamed text, tools, prompts, the queue, interrupts.

use serde_json::{Value, json};

use super::harness::{ChatHome, is_idle};

#[test]
fn a_turn_is_streamed_and_then_in_the_session() {
    let home = ChatHome::new(
        "- when: {says: Hello}\n  reply:\n    - thinking: A greeting.\n    - text: Good day to you.\n  chunk: 3\n  pause_ms: 5\n- reply: Title",
    );
    let server = home.serve();
    let untrusted = server.call("POST", "/api/chats", json!({"cwd": home.project()}));
    assert_eq!((untrusted.0, &untrusted.1["error"]["code"]), (409, &json!("folder.not_trusted")));
    let (status, chat) = server.call("POST", "/api/chats", json!({"cwd": home.project(), "trust": true}));
    assert_eq!((status, &chat["agent"], &chat["state"]), (201, &json!("quipu-agent"), &json!("starting")));
    // Trust is recorded: the folder is not asked about again.
    let again = server.call("POST", "/api/chats", json!({"cwd": home.project()}));
    assert_eq!(again.0, 201, "{}", again.1);
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    let snapshot = events.next();
    assert_eq!((&snapshot["type"], &snapshot["chat"]["id"]), (&json!("snapshot"), &json!(id)));
    let uuid = server.send(id, "Hello there");
    let turn = events.until(|event| event["chat"]["turn_started_at"].is_string());
    assert!(turn.last().unwrap()["chat"]["agent_version"].is_string());
    let turn = events.until(|event| event["type"] == "chat" && is_idle(&event["chat"]));
    let text_of = |index: usize| {
        let part = |event: &Value| match event["type"].as_str() {
            Some("block_start") if event["block"]["index"] == index => {
                event["block"]["text"].as_str().map(str::to_owned)
            }
            Some("delta") if event["index"] == index => event["text"].as_str().map(str::to_owned),
            _ => None,
        };
        turn.iter().filter_map(part).collect::<String>()
    };
    assert_eq!((text_of(0), text_of(1)), ("A greeting.".to_owned(), "Good day to you.".to_owned()));
    let ends: Vec<&Value> = turn.iter().filter(|event| event["type"] == "message_end").collect();
    assert_eq!(ends.len(), 1, "{turn:#?}");
    let last = &turn.last().unwrap()["chat"];
    assert!(last["cost_usd"].as_f64().unwrap() > 0.0 && last["tokens"]["output"].as_u64().unwrap() > 0, "{last}");
    assert_eq!(last["turn_started_at"], Value::Null);
    assert_eq!(server.conversation(key), ["user: Hello there", "thinking: A greeting.", "assistant: Good day to you."]);
    let window = server.get(&format!("/api/sessions/{key}/items"));
    assert_eq!(window["items"][0]["uuid"], uuid);
    assert_eq!(window["items"][2]["message_id"], ends[0]["message_id"]);
}
