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
    let mut turn = events.until(|event| event["chat"]["turn_started_at"].is_string());
    assert!(turn.last().unwrap()["chat"]["agent_version"].is_string());
    turn.extend(events.until(|event| event["type"] == "chat" && is_idle(&event["chat"])));
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

const SCRIPT: &str = "
- when: {tools: false}
  reply: Title
- when: {says: slow}
  reply: This takes its time.
  hang_after: 3
- reply: Done.
";

#[test]
fn an_interrupted_turn_ends_and_its_response_is_withdrawn() {
    let home = ChatHome::new(SCRIPT);
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    let mut events = server.events(id);
    server.send(id, "slow");
    let started = events.until(|event| event["type"] == "block_start").pop().unwrap();
    server.post(&format!("/api/chats/{id}/interrupt"), Value::Null);
    let rest = events.until(|event| event["type"] == "chat" && is_idle(&event["chat"]));
    let is_over = |event: &Value| {
        (event["type"] == "withdrawn" || event["type"] == "message_end")
            && event["message_id"] == started["block"]["message_id"]
    };
    assert!(rest.iter().any(is_over), "{rest:#?}");
    server.run_turn(&mut events, id, "go on");
    assert_eq!(server.conversation(chat["key"].as_str().unwrap()).last().unwrap(), "assistant: Done.");
}

#[test]
fn messages_wait_for_the_running_turn_and_can_be_removed() {
    let home = ChatHome::new(SCRIPT);
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    server.send(id, "slow");
    events.until(|event| event["type"] == "block_start");
    let kept = server.send(id, "kept");
    let removed = server.send(id, "removed");
    let queued = events.chat(|chat| chat["queued"].as_array().unwrap().len() == 2);
    assert_eq!(queued["queued"], json!([{"uuid": kept, "text": "kept"}, {"uuid": removed, "text": "removed"}]));
    // They are shown after a reload, too.
    assert_eq!(server.events(id).next()["chat"]["queued"].as_array().unwrap().len(), 2);
    let (status, left) = server.call("DELETE", &format!("/api/chats/{id}/queue/{removed}"), Value::Null);
    assert_eq!((status, left["queued"].as_array().unwrap().len()), (200, 1), "{left}");
    let (status, _) = server.call("DELETE", &format!("/api/chats/{id}/queue/{removed}"), Value::Null);
    assert_eq!(status, 409);
    server.post(&format!("/api/chats/{id}/interrupt"), Value::Null);
    events.chat(is_idle);
    let texts = server.conversation(key);
    assert!(texts.contains(&"user: kept".to_owned()) && !texts.contains(&"user: removed".to_owned()), "{texts:?}");
    assert_eq!(texts.last().unwrap(), "assistant: Done.");
}

#[test]
fn mode_and_model_are_changed_and_kept() {
    let home = ChatHome::new(SCRIPT);
    home.configure("[chat]\nmodel = \"claude-haiku-4-5\"\npermission_mode = \"plan\"\n");
    let server = home.serve();
    let setup = server.get(&format!("/api/chat/setup?cwd={}", home.project()));
    assert_eq!((&setup["default_agent"], &setup["default_model"]), (&json!("quipu-agent"), &json!("claude-haiku-4-5")));
    assert_eq!((&setup["agents"][0]["usable"], &setup["agents"][1]["usable"]), (&json!(false), &json!(true)));
    assert_eq!(setup["is_trusted"], false);
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/chat/setup?cwd={}", home.project()))["is_trusted"], true);
    let mut events = server.events(id);
    assert_eq!(events.chat(|chat| chat["state"] == "idle")["permission_mode"], "plan");
    let mode = server.post(&format!("/api/chats/{id}/permission_mode"), json!({"permission_mode": "acceptEdits"}));
    assert_eq!(mode["permission_mode"], "acceptEdits");
    let model = server.post(&format!("/api/chats/{id}/model"), json!({"model": "claude-opus-5-5"}));
    assert_eq!(model["model"], "claude-opus-5-5");
    let chat = server.run_turn(&mut events, id, "hello");
    assert_eq!((&chat["model"], &chat["permission_mode"]), (&json!("claude-opus-5-5"), &json!("acceptEdits")));
    let (status, error) =
        server.call("POST", &format!("/api/chats/{id}/permission_mode"), json!({"permission_mode": "any"}));
    assert_eq!((status, &error["error"]["code"]), (409, &json!("sdk.refused")));
}
