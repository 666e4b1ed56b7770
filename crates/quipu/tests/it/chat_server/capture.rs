//! Chats whose API calls are captured.

use serde_json::json;

use super::harness::{ChatHome, is_idle};

#[test]
fn calls_of_a_captured_chat_are_shown_with_its_session() {
    let home = ChatHome::new("- when: {tools: false}\n  reply: Title\n- reply: Hello.");
    let server = home.serve();
    let chats = [0, 1].map(|_| server.start_chat(&home, json!({"capture": true})));
    for chat in &chats {
        let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
        let mut events = server.events(id);
        server.send(id, "Hello");
        let shown = events.chat(|chat| is_idle(chat) && chat["capture"]["calls"].as_u64() > Some(0));
        let path = shown["capture"]["path"].as_str().unwrap();
        assert!(path.starts_with(&home.path(".local/share").display().to_string()), "{path}");
        let calls = server.get(&format!("/api/sessions/{key}/calls"));
        assert!(calls["has_captures"] == true && !calls["calls"].as_array().unwrap().is_empty(), "{calls}");
        assert!(server.get(&format!("/api/sessions/{key}/cache"))["calls"].is_array());
        // The key is masked.
        assert!(!std::fs::read(path).unwrap().windows(13).any(|part| part == b"any-made-up-k"));
    }
}
