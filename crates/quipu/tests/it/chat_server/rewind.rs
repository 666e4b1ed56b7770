//! Rewinding files and conversation.

use std::fs;

use serde_json::{Value, json};

use super::harness::ChatHome;

#[test]
fn files_and_conversation_are_taken_back_to_before_a_message() {
    let home = ChatHome::with_script(|folder| {
        let file = folder.join("project/note.txt").display().to_string();
        format!(
            "
- when: {{tools: false}}
  reply: Title
- when: {{result_of: Write}}
  reply: Written.
- when: {{says: two}}
  reply:
    - tool: Write
      input: {{file_path: {file}, content: two}}
- reply: Hello.
"
        )
    });
    let server = home.serve();
    let chat = server.start_chat(&home, json!({"permission_mode": "acceptEdits"}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    server.run_turn(&mut events, id, "one");
    server.run_turn(&mut events, id, "two");
    let items = server.get(&format!("/api/sessions/{key}/items"));
    let uuid_of = |text: &str| {
        let found = items["items"].as_array().unwrap().iter().find(|item| item["text"] == text);
        found.unwrap()["uuid"].clone()
    };
    let (first, second) = (uuid_of("one"), uuid_of("two"));
    let file = home.path("project/note.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    let rewind = format!("/api/chats/{id}/rewind");
    let shown = server.post(&rewind, json!({"uuid": second, "files": true, "dry_run": true}));
    assert_eq!((&shown["can_rewind"], shown["files"].as_array().unwrap().len()), (&json!(true), 1), "{shown}");
    assert!(file.exists());
    let (status, error) = server.call("POST", &rewind, json!({"uuid": "nonsense", "conversation": true}));
    assert_eq!((status, &error["error"]["code"]), (404, &json!("message.not_found")));
    let done = server.post(&rewind, json!({"uuid": second, "files": true, "conversation": true}));
    assert!(!file.exists());
    let kept = &done["chat"]["rewound_to"];
    let items = server.get(&format!("/api/sessions/{key}/items"));
    assert_eq!((&items["items"][1]["uuid"], &items["items"][1]["text"]), (kept, &json!("Hello.")));
    let chat = server.run_turn(&mut events, id, "three");
    assert_eq!((&chat["key"], &chat["rewound_to"]), (&json!(key), &Value::Null));
    let texts = server.conversation(key);
    assert_eq!(texts[..2], ["user: one", "assistant: Hello."]);
    assert_eq!(texts[texts.len() - 2..], ["user: three", "assistant: Hello."]);
    assert!(!texts.contains(&"user: two".to_owned()), "{texts:?}");
    let request = home.api.requests().pop().unwrap().request.unwrap();
    assert!(!serde_json::to_string(&request.messages).unwrap().contains("\"two\""));
    // Before the first message there is nothing: the chat goes on in a new session.
    let done = server.post(&rewind, json!({"uuid": first, "conversation": true}));
    assert_ne!(done["chat"]["key"], key);
    assert_eq!(done["chat"]["rewound_to"], Value::Null);
    let chat = server.run_turn(&mut events, id, "four");
    assert_eq!(server.conversation(chat["key"].as_str().unwrap()), ["user: four", "assistant: Hello."]);
}
