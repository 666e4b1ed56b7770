//! Files, symbols and texts that a user can attach.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::harness::{ChatHome, is_idle};

#[test]
fn files_folders_and_symbols_of_a_folder_are_found() {
    let home = ChatHome::new("- reply: Hello.");
    fs::create_dir_all(home.path("project/src")).unwrap();
    fs::write(home.path("project/src/tide_table.rs"), "fn high_water() {}\n").unwrap();
    fs::write(home.path("project/ignored.txt"), "").unwrap();
    fs::write(home.path("project/.ignore"), "ignored.txt\n").unwrap();
    let server = home.serve();
    let find = |q: &str| server.get(&format!("/api/files?cwd={}&q={q}", home.project()));
    let found = find("tdtbl");
    assert_eq!(
        (&found["matches"][0]["kind"], &found["matches"][0]["path"]),
        (&json!("file"), &json!("src/tide_table.rs"))
    );
    assert_eq!(found["matches"][0]["positions"].as_array().unwrap().len(), 5);
    assert_eq!(find("ignored")["matches"], json!([]));
    assert_eq!(
        (&find("src")["matches"][0]["kind"], &find("src")["matches"][0]["file_count"]),
        (&json!("folder"), &json!(1))
    );
    // Symbols are looked for in the background.
    let mut symbols = find("high_water");
    while symbols["is_complete"] == false {
        symbols = find("high_water");
    }
    let symbol = &symbols["matches"][0];
    assert_eq!(
        (&symbol["kind"], &symbol["name"], &symbol["line"]),
        (&json!("symbol"), &json!("high_water"), &json!(1))
    );
    for folder in ["relative", "/nowhere/at/all", ""] {
        let (status, error) = server.call("GET", &format!("/api/files?cwd={folder}&q=a"), Value::Null);
        assert_eq!((status, &error["error"]["code"]), (400, &json!("folder.not_found")), "{folder}");
    }
}

#[test]
fn changes_and_commits_of_git_can_be_attached_in_a_trusted_folder() {
    let home = ChatHome::new("- reply: Hello.");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Sam", "-c", "user.email=sam@example.org"]).args(args);
        assert!(command.current_dir(home.path("project")).env("HOME", home.path("")).status().unwrap().success());
    };
    git(&["init", "-q"]);
    fs::write(home.path("project/a.txt"), "one\n").unwrap();
    git(&["add", "a.txt"]);
    git(&["commit", "-q", "-m", "Begin"]);
    fs::write(home.path("project/a.txt"), "two\n").unwrap();
    let server = home.serve();
    let path = |kind: &str| format!("/api/context?cwd={}&kind={kind}", home.project());
    assert_eq!(server.call("GET", &path("git_diff"), Value::Null).1["error"]["code"], "folder.not_trusted");
    server.start_chat(&home, json!({}));
    let diff = server.get(&path("git_diff"));
    assert!(diff["text"].as_str().unwrap().contains("-one\n+two"), "{diff}");
    let commit = server.get(&format!("{}&arg=HEAD", path("git_commit")));
    assert!(commit["text"].as_str().unwrap().contains("Begin"), "{commit}");
    for arg in ["--output=x", "nonsense"] {
        assert_eq!(server.call("GET", &format!("{}&arg={arg}", path("git_commit")), Value::Null).0, 400, "{arg}");
    }
}

#[test]
fn contexts_and_images_are_sent_and_shown() {
    let home = ChatHome::new("- when: {tools: false}\n  reply: Title\n- reply: Hello.");
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    let contexts = json!([
        {"type": "FileReference", "path": "a.rs", "fullPath": "/p/a.rs", "displayType": "TAG"},
        {"type": "GitReference", "gitType": "DIFF"},
    ]);
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";
    let image = json!({"media_type": "image/png", "data": pixel});
    let message = json!({"text": "Look at this.", "contexts": contexts, "images": [image]});
    server.post(&format!("/api/chats/{id}/messages"), message);
    events.chat(|chat| is_idle(chat) && chat["tokens"]["output"].as_u64() > Some(0));
    let items = server.get(&format!("/api/sessions/{key}/items"));
    let items = items["items"].as_array().unwrap();
    let user = items.iter().find(|item| item["text"] == "Look at this.").unwrap();
    assert_eq!(user["contexts"], contexts);
    assert!(items.iter().any(|item| item["kind"] == "image" || item["source"].is_object()), "{items:#?}");
    let request = home.api.requests().pop().unwrap().request.unwrap();
    let sent = serde_json::to_string(&request.messages).unwrap();
    assert!(sent.contains("上下文资料") && sent.contains(pixel), "{sent}");
    let other = json!({"text": "", "images": [{"media_type": "text/html", "data": ""}]});
    assert_eq!(server.call("POST", &format!("/api/chats/{id}/messages"), other).1["error"]["code"], "image.type");
    let empty = server.call("POST", &format!("/api/chats/{id}/messages"), json!({"text": " "}));
    assert_eq!(empty.1["error"]["code"], "message.empty");
}
