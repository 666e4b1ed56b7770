//! Permission requests, questions and plans.

use std::fs;

use serde_json::{Value, json};

use super::harness::{ChatHome, ChatServer, is_idle};

const SCRIPT: &str = "
- when: {tools: false}
  reply: Title
- when: {result_says: pencil}
  reply: The pencil it is.
- when: {result_of: ExitPlanMode}
  reply: To work.
- when: {result_of: Write}
  reply: So be it.
- when: {says: write}
  reply:
    - tool: Write
      input: {file_path: NOTE, content: made}
- when: {says: ask}
  reply:
    - tool: AskUserQuestion
      input: {questions: [{question: Which tool?, header: Tool, multiSelect: false, options: [{label: pencil, description: soft}, {label: pen, description: hard}]}]}
- when: {says: plan}
  reply:
    - tool: ExitPlanMode
      input: {plan: First look.}
- reply: Nothing.
";

fn home() -> ChatHome {
    ChatHome::with_script(|folder| SCRIPT.replace("NOTE", &folder.join("project/note.txt").display().to_string()))
}

fn reply(server: &ChatServer, chat: &str, prompt: &Value, reply: Value) -> (u16, Value) {
    server.call("POST", &format!("/api/chats/{chat}/prompts/{}", prompt["id"].as_str().unwrap()), reply)
}

#[test]
fn a_prompt_survives_a_reload_and_is_decided_once() {
    let home = home();
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    let mut events = server.events(id);
    server.send(id, "write the note");
    let prompt = events.prompt();
    assert_eq!((&prompt["kind"], &prompt["tool_name"]), (&json!("permission"), &json!("Write")));
    assert_eq!(prompt["input"]["content"], "made");
    // The connection is lost; the next one shows the prompt again.
    drop(events);
    let mut events = server.events(id);
    let snapshot = events.next();
    assert_eq!(snapshot["chat"]["prompts"][0], prompt);
    assert_eq!(server.get("/api/chats")[0]["prompts"][0], prompt);
    let (status, error) = reply(&server, id, &prompt, json!({"decision": "allow", "suggestion": 99}));
    assert_eq!((status, &error["error"]["code"]), (400, &json!("prompt.suggestion")));
    assert_eq!(reply(&server, id, &prompt, json!({"decision": "allow"})).0, 200);
    let (status, error) = reply(&server, id, &prompt, json!({"decision": "deny"}));
    assert_eq!((status, &error["error"]["code"]), (404, &json!("prompt.gone")));
    events.chat(is_idle);
    assert_eq!(fs::read_to_string(home.path("project/note.txt")).unwrap(), "made");
    assert_eq!(server.conversation(chat["key"].as_str().unwrap()).last().unwrap(), "assistant: So be it.");
}

#[test]
fn a_call_is_denied_with_a_message_or_runs_with_another_input() {
    let home = home();
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    let mut events = server.events(id);
    server.send(id, "write the note");
    let prompt = events.prompt();
    reply(&server, id, &prompt, json!({"decision": "deny", "message": "Use another folder."}));
    events.chat(is_idle);
    assert!(!home.path("project/note.txt").exists());
    let request = home.api.requests().pop().unwrap().request.unwrap();
    let last = serde_json::to_string(request.messages.last().unwrap()).unwrap();
    assert!(last.contains("Use another folder."), "{last}");
    server.send(id, "write the note again");
    let prompt = events.prompt();
    let mut input = prompt["input"].clone();
    input["content"] = json!("made by hand");
    reply(&server, id, &prompt, json!({"decision": "allow", "input": input}));
    events.chat(is_idle);
    assert_eq!(fs::read_to_string(home.path("project/note.txt")).unwrap(), "made by hand");
    // A suggestion that is followed: the mode in which edits are not asked about.
    server.send(id, "write the note once more");
    let prompt = events.prompt();
    let suggestions = prompt["suggestions"].as_array().unwrap();
    let mode = suggestions.iter().position(|suggestion| suggestion["mode"] == "acceptEdits").unwrap();
    reply(&server, id, &prompt, json!({"decision": "allow", "suggestion": mode}));
    assert_eq!(events.chat(is_idle)["permission_mode"], "acceptEdits");
}

#[test]
fn questions_are_answered_and_plans_approved() {
    let home = home();
    let server = home.serve();
    let chat = server.start_chat(&home, json!({"permission_mode": "plan"}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    server.send(id, "ask me");
    let prompt = events.prompt();
    assert_eq!(prompt["kind"], "question");
    assert_eq!(prompt["input"]["questions"][0]["options"][1]["description"], "hard");
    reply(&server, id, &prompt, json!({"decision": "allow", "answers": {"Which tool?": "pencil"}}));
    events.chat(is_idle);
    assert_eq!(server.conversation(key).last().unwrap(), "assistant: The pencil it is.");
    server.send(id, "plan it");
    let prompt = events.prompt();
    assert_eq!((&prompt["kind"], &prompt["input"]["plan"]), (&json!("plan"), &json!("First look.")));
    reply(&server, id, &prompt, json!({"decision": "allow"}));
    let chat = events.chat(is_idle);
    assert_eq!(chat["permission_mode"], "default");
    assert_eq!(server.conversation(key).last().unwrap(), "assistant: To work.");
}

#[test]
fn a_prompt_is_denied_when_no_page_is_connected() {
    let home = home();
    home.configure("[chat]\nprompt_timeout_seconds = 0.2\n");
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    server.send(id, "write the note");
    events.prompt();
    // A connected page may take its time.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(server.get("/api/chats")[0]["prompts"].as_array().unwrap().len(), 1);
    drop(events);
    while server.get("/api/chats")[0]["state"] != "idle" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!home.path("project/note.txt").exists());
    assert_eq!(server.conversation(key).last().unwrap(), "assistant: So be it.");
}
