//! Context references on their way: a host attaches them, the agent sends and records them,
//! `quipu show` finds them in the file.

use std::process::Command;

use quipu_api::mock::{MockServer, Script};
use quipu_sdk::message::context_ref;
use quipu_sdk::message::user_assistant::User;
use quipu_sdk::{ContextKind, ContextRef, Options, query_result, user_message};
use serde_json::Value;
use tempfile::TempDir;

/// Says one message to `quipu-agent`, and returns what the model was asked and what
/// `quipu show` makes of the session.
async fn send_and_show(message: User) -> (String, Vec<Value>) {
    let server = MockServer::start(Script::parse("- reply: Good day.").unwrap()).await.unwrap();
    let folder: TempDir = tempfile::tempdir().unwrap();
    let config = folder.path().join(".claude");
    let options = Options::new()
        .cli(env!("CARGO_BIN_EXE_quipu-agent"))
        .cwd(folder.path())
        .env("HOME", folder.path())
        .env("CLAUDE_CONFIG_DIR", &config)
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("ANTHROPIC_API_KEY", "any");
    let result = query_result(message, options).await.unwrap();
    assert_eq!(result.result.text(), Some("Good day."));
    let sent = server.requests().pop().unwrap().request.unwrap().messages.pop().unwrap().content.to_text();
    let show = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["show", "latest", "--view", "screen", "--as", "json", "--claude-dir"])
        .arg(&config)
        .env("HOME", folder.path())
        .output()
        .unwrap();
    assert!(show.status.success(), "{}", String::from_utf8_lossy(&show.stderr));
    let items: Vec<Value> = serde_json::from_slice(&show.stdout).unwrap();
    (sent, items.into_iter().filter(|item| item["kind"] == "user").collect())
}

fn every_kind() -> Vec<ContextRef> {
    vec![
        ContextRef::file("src/main.rs", "/home/dev/src/main.rs"),
        ContextKind::Web { url: "https://example.org/a".into(), title: Some("A page".into()) }.into(),
        ContextKind::Folder { path: "src".into(), file_count: 15 }.into(),
        ContextKind::Symbol {
            name: "run()".into(),
            symbol_type: "FUNCTION".into(),
            file: "src/main.rs".into(),
            line: 7,
        }
        .into(),
        ContextKind::Terminal { lines: 3, is_error: true }.into(),
        ContextKind::Problems { count: 2, severity: Some("ERROR".into()) }.into(),
        ContextKind::Git { git_type: "DIFF".into() }.into(),
        ContextKind::Selection.into(),
        ContextKind::Workspace.into(),
    ]
}

#[tokio::test]
async fn what_a_host_attaches_is_sent_recorded_and_shown() {
    let contexts = every_kind();
    let (asked, shown) = send_and_show(user_message("Explain this.").with_contexts(contexts.clone())).await;
    assert!(asked.contains(&format!("{}Explain this.", context_ref::write_block(&contexts))), "{asked}");
    assert_eq!(asked.matches("上下文资料").count(), 1, "{asked}");
    assert_eq!((shown.len(), &shown[0]["text"]), (1, &Value::from("Explain this.")));
    assert_eq!(shown[0]["contexts"], serde_json::to_value(&contexts).unwrap());
}

#[tokio::test]
async fn a_block_is_written_for_a_host_that_sends_references_alone() {
    let contexts = vec![ContextRef::file("a.rs", "/home/dev/a.rs")];
    let message = User { contexts: contexts.clone().into(), ..user_message("Explain this.") };
    let (asked, shown) = send_and_show(message).await;
    assert!(asked.contains(&format!("{}Explain this.", context_ref::write_block(&contexts))), "{asked}");
    assert_eq!(shown[0]["contexts"], serde_json::to_value(&contexts).unwrap());
}

#[tokio::test]
async fn a_block_that_comes_without_references_stays_as_it_is() {
    let block = "> **上下文资料**\n> - 📄 `a.rs`\n\n";
    let (asked, shown) = send_and_show(user_message(format!("{block}Explain this."))).await;
    assert!(asked.contains(&format!("{block}Explain this.")), "{asked}");
    assert_eq!(shown[0]["contexts"][0]["path"], "a.rs");
}
