//! Requests of hosts, where no recording shows more than a refusal.

use std::fs;

use serde_json::{Value, json};

use super::own::mcp_server;
use super::stage::{Stage, Talk};

/// Asks and returns the answer.
fn asked(talk: &mut Talk, request: Value) -> Value {
    talk.ask("1", request);
    talk.until(|line| line["type"] == "control_response")["response"].clone()
}

#[test]
fn the_effort_for_a_model_is_kept_in_the_persons_settings() {
    let stage = Stage::new("hello.yaml");
    stage.write(".claude/settings.json", r#"{"theme":"dark"}"#);
    let mut talk = stage.talk(&[]);
    let set =
        |source: &str, settings: Value| json!({"subtype": "update_settings", "source": source, "settings": settings});
    let refused = asked(&mut talk, set("userSettings", json!({"effortLevel": "high", "hooks": {}})));
    assert_eq!(refused["error"], "update_settings keys not allowed: hooks");
    assert!(asked(&mut talk, set("projectSettings", json!({})))["error"].is_string());
    assert!(asked(&mut talk, set("userSettings", json!({"effortLevel": "max"})))["error"].is_string());
    assert_eq!(asked(&mut talk, set("userSettings", json!({"effortLevel": "high"})))["subtype"], "success");
    talk.end();
    let file: Value =
        serde_json::from_str(&fs::read_to_string(stage.folder.path.join(".claude/settings.json")).unwrap()).unwrap();
    let model = json!({"claude-opus-5-5": {"effortLevel": "high"}});
    assert_eq!(file, json!({"theme": "dark", "modelSettings": model}));
    stage.lines(&["hello"]);
    let body: Value = serde_json::from_str(&stage.answerer.seen().last().unwrap().body).unwrap();
    assert_eq!(body["output_config"]["effort"], "high");
}

#[test]
fn settings_of_a_flag_take_effect_at_once() {
    let stage = Stage::new("touch.yaml");
    let mut talk = stage.talk(&["--allowedTools", "Bash"]);
    let settings = json!({"model": "haiku", "permissions": {"deny": ["Bash(touch:*)"]}});
    assert_eq!(asked(&mut talk, json!({"subtype": "apply_flag_settings", "settings": settings}))["subtype"], "success");
    talk.say("touch it");
    assert_eq!(talk.until_result()["permission_denials"].as_array().unwrap().len(), 1);
    let (_, heard) = talk.end();
    let init = heard.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "claude-haiku-5-5");
    assert!(!stage.folder.path.join("made").exists());
}

#[test]
fn only_a_folder_below_the_sessions_own_is_opened_and_only_once() {
    let stage = Stage::new("hello.yaml");
    stage.write("repo/CLAUDE.md", "The inner rules.");
    stage.write("repo/.claude/commands/inner.md", "hello from inside");
    let mut talk = stage.talk(&[]);
    let open = |directory: &str| json!({"subtype": "register_repo_root", "directory": directory, "reload_claude_md": true, "reload_skills": true});
    for refused in [".", "..", "/tmp", "missing"] {
        assert_eq!(asked(&mut talk, open(refused))["subtype"], "error", "{refused}");
    }
    assert_eq!(asked(&mut talk, open("repo"))["subtype"], "success");
    assert_eq!(asked(&mut talk, open("repo"))["subtype"], "error");
    talk.say("/inner");
    talk.until_result();
    talk.end();
    let seen = stage.answerer.seen();
    let body = &seen.last().unwrap().body;
    assert!(body.contains("The inner rules.") && body.contains("hello from inside"), "{body}");
}

#[test]
fn a_resource_of_a_server_is_read_for_the_host() {
    let stage = Stage::new("hello.yaml");
    let mut talk = stage.talk(&["--mcp-config", &mcp_server(&stage)]);
    asked(&mut talk, json!({"subtype": "initialize"}));
    let read = |name: &str, uri: &str| json!({"subtype": "mcp_read_resource", "serverName": name, "uri": uri});
    assert_eq!(asked(&mut talk, read("far", "file:///x"))["error"], "mcp_read_resource: uri must use the ui:// scheme");
    assert_eq!(asked(&mut talk, read("near", "ui://x"))["error"], "Server not found: near");
    let page = asked(&mut talk, read("far", "ui://page"));
    assert_eq!(
        page["response"]["contents"][0],
        json!({"uri": "ui://page", "mimeType": "text/html", "text": "<p>far</p>"})
    );
    talk.end();
}

#[test]
fn a_host_that_comes_back_is_told_what_runs() {
    let stage = Stage::new("hello.yaml");
    let mut talk = stage.talk(&[]);
    asked(&mut talk, json!({"subtype": "initialize"}));
    asked(&mut talk, json!({"subtype": "initialize"}));
    let line = talk.until(|line| line["type"] == "system");
    assert_eq!((&line["subtype"], &line["tasks"]), (&json!("background_tasks_changed"), &json!([])));
    talk.end();
}

#[test]
fn a_server_of_the_host_whose_tools_changed_is_asked_for_them_anew() {
    let stage = Stage::new("hello.yaml");
    let mut talk = stage.talk(&[]);
    let says = |name: &str| {
        let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        json!({"subtype": "mcp_message", "server_name": name, "message": message})
    };
    assert_eq!(asked(&mut talk, says("sums"))["error"], "Server not found: sums");
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "sums", "version": "1"}});
    let manifest = json!({"initializeResult": hello, "toolsListResult": {"tools": []}});
    let servers =
        json!({"subtype": "initialize", "sdkMcpServers": ["sums"], "sdkMcpServerManifests": {"sums": manifest}});
    assert_eq!(asked(&mut talk, servers)["subtype"], "success");
    talk.ask("2", says("sums"));
    let question = talk.until(|line| line["type"] == "control_request");
    assert_eq!(question["request"]["message"]["method"], "initialize");
    talk.end();
}
