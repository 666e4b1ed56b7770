//! The demo agent, from a home folder without anything.

use serde_json::{Value, json};

use super::harness::{ChatEvents, ChatHome, ChatServer};

/// Answers the first prompt that waits and returns the name of its tool.
fn answer(server: &ServerOfChat<'_>, events: &mut ChatEvents, reply: Value) -> String {
    let prompt = events.prompt();
    let path = format!("/api/chats/{}/prompts/{}", server.chat, prompt["id"].as_str().unwrap());
    server.server.post(&path, reply);
    prompt["tool_name"].as_str().unwrap().to_owned()
}

struct ServerOfChat<'a> {
    server: &'a ChatServer,
    chat: String,
}

fn is_idle(chat: &Value) -> bool {
    chat["state"] == "idle"
}

#[test]
fn the_demo_agent_needs_no_key_and_shows_everything() {
    let home = ChatHome::new("- reply: unused");
    let server = home.serve_with(&["--demo"], None);
    let setup = server.get("/api/chat/setup");
    assert_eq!(setup["default_agent"], "demo");
    let started = server.post("/api/chats", json!({"agent": "demo"}));
    let (chat, key) = (started["id"].as_str().unwrap().to_owned(), started["key"].as_str().unwrap());
    let of_chat = ServerOfChat { server: &server, chat: chat.clone() };
    let mut events = server.events(&chat);
    events.chat(is_idle);

    server.send(&chat, "hello");
    assert_eq!(answer(&of_chat, &mut events, json!({"decision": "allow"})), "Edit");
    assert_eq!(answer(&of_chat, &mut events, json!({"decision": "allow"})), "Bash");
    let done = events.chat(is_idle);
    assert_eq!(done["todos"].as_array().unwrap().len(), 4);
    let shown = server.conversation(key);
    for tool in ["TodoWrite", "Read", "Edit", "Bash", "Agent"] {
        assert!(shown.contains(&format!("tool: {tool}")), "{tool}: {shown:?}");
    }
    assert!(shown.iter().any(|item| item.starts_with("thinking: ")), "{shown:?}");
    assert!(shown.last().unwrap().starts_with("assistant: That was the tour."), "{shown:?}");

    server.send(&chat, "ask me something");
    let answers = json!({"Which unit should the tide table use?": "Feet", "Which columns are useful?": "Time"});
    assert_eq!(answer(&of_chat, &mut events, json!({"decision": "allow", "answers": answers})), "AskUserQuestion");
    events.chat(is_idle);
    server.send(&chat, "make a plan");
    assert_eq!(answer(&of_chat, &mut events, json!({"decision": "deny", "message": "no"})), "ExitPlanMode");
    events.chat(is_idle);

    server.send(&chat, "/compact");
    events.chat(|chat| chat["state"] == "compacting");
    events.chat(is_idle);
    let compactions = server.get(&format!("/api/sessions/{key}"))["compactions"].as_array().unwrap().len();
    assert_eq!(compactions, 1);
}

#[test]
fn with_a_key_the_demo_agent_is_the_last_choice() {
    let home = ChatHome::new("- reply: unused");
    let server = home.serve();
    let setup = server.get("/api/chat/setup");
    assert_eq!(setup["default_agent"], "quipu-agent");
    let names: Vec<&str> = setup["agents"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claude", "quipu-agent", "demo"]);
}
