//! Requests of hosts, where no recording shows more than a refusal.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, ScriptedAgent};
use super::scripted_cases::mcp_server;

/// Asks and returns the answer.
fn asked(talk: &mut AgentProcess, request: Value) -> Value {
    talk.send_request("1", request);
    talk.read_until(|line| line["type"] == "control_response")["response"].clone()
}

#[test]
fn the_effort_for_a_model_is_kept_in_the_persons_settings() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write(".claude/settings.json", r#"{"theme":"dark"}"#);
    let mut talk = stage.spawn(&[]);
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
    let body: Value = serde_json::from_str(&stage.answerer.requests().last().unwrap().body).unwrap();
    assert_eq!(body["output_config"]["effort"], "high");
}

#[test]
fn settings_of_a_flag_take_effect_at_once() {
    let stage = ScriptedAgent::new("touch.yaml");
    let mut talk = stage.spawn(&["--allowedTools", "Bash"]);
    let settings = json!({"model": "haiku", "permissions": {"deny": ["Bash(touch:*)"]}});
    assert_eq!(asked(&mut talk, json!({"subtype": "apply_flag_settings", "settings": settings}))["subtype"], "success");
    talk.send_prompt("touch it");
    assert_eq!(talk.read_result()["permission_denials"].as_array().unwrap().len(), 1);
    let (_, heard) = talk.end();
    let init = heard.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "claude-haiku-5-5");
    assert!(!stage.folder.path.join("made").exists());
}

#[test]
fn only_a_folder_below_the_sessions_own_is_opened_and_only_once() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write("repo/CLAUDE.md", "The inner rules.");
    stage.write("repo/.claude/commands/inner.md", "hello from inside");
    let mut talk = stage.spawn(&[]);
    let open = |directory: &str| json!({"subtype": "register_repo_root", "directory": directory, "reload_claude_md": true, "reload_skills": true});
    for refused in [".", "..", "/tmp", "missing"] {
        assert_eq!(asked(&mut talk, open(refused))["subtype"], "error", "{refused}");
    }
    assert_eq!(asked(&mut talk, open("repo"))["subtype"], "success");
    assert_eq!(asked(&mut talk, open("repo"))["subtype"], "error");
    talk.send_prompt("/inner");
    talk.read_result();
    talk.end();
    let seen = stage.answerer.requests();
    let body = &seen.last().unwrap().body;
    assert!(body.contains("The inner rules.") && body.contains("hello from inside"), "{body}");
}

#[test]
fn a_resource_of_a_server_is_read_for_the_host() {
    let stage = ScriptedAgent::new("hello.yaml");
    let mut talk = stage.spawn(&["--mcp-config", &mcp_server(&stage)]);
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
    let stage = ScriptedAgent::new("hello.yaml");
    let mut talk = stage.spawn(&[]);
    asked(&mut talk, json!({"subtype": "initialize"}));
    asked(&mut talk, json!({"subtype": "initialize"}));
    let line = talk.read_until(|line| line["type"] == "system");
    assert_eq!((&line["subtype"], &line["tasks"]), (&json!("background_tasks_changed"), &json!([])));
    talk.end();
}

#[test]
fn a_server_of_the_host_whose_tools_changed_is_asked_for_them_anew() {
    let stage = ScriptedAgent::new("hello.yaml");
    let mut talk = stage.spawn(&[]);
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
    talk.send_request("2", says("sums"));
    let question = talk.read_until(|line| line["type"] == "control_request");
    assert_eq!(question["request"]["message"]["method"], "initialize");
    talk.end();
}

#[test]
fn settings_of_a_flag_keep_files_from_searches() {
    let script = "- {when: {result_of: Grep}, reply: Done.}\n\
                  - reply:\n    - {tool: Grep, input: {pattern: needle, output_mode: content}}";
    let stage = ScriptedAgent::from_script_text(script);
    stage.write("open.txt", "needle in the open");
    stage.write("kept.txt", "needle in the dark");
    let mut talk = stage.spawn(&[]);
    let settings = json!({"permissions": {"deny": ["Read(./kept.txt)"]}});
    assert_eq!(asked(&mut talk, json!({"subtype": "apply_flag_settings", "settings": settings}))["subtype"], "success");
    talk.send_prompt("look");
    talk.read_result();
    talk.end();
    let body = stage.answerer.requests().last().unwrap().body.clone();
    assert!(body.contains("in the open") && !body.contains("in the dark"), "{body}");
}

#[test]
fn local_settings_are_written_where_they_are_read() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write("checkout/.claude/settings.json", "{}");
    let mut talk = stage.spawn(&["--project-config-root", "checkout", "--trust-folder"]);
    let settings = json!({"outputStyle": "Explanatory"});
    let update = json!({"subtype": "update_settings", "source": "localSettings", "settings": settings});
    assert_eq!(asked(&mut talk, update)["subtype"], "success");
    talk.end();
    let read = |name: &str| fs::read_to_string(stage.folder.path.join(name)).ok();
    assert!(read("checkout/.claude/settings.local.json").unwrap().contains("Explanatory"));
    assert_eq!(read(".claude/settings.local.json"), None);
}

#[test]
fn servers_of_a_request_are_read_and_allowed_like_those_of_flags() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write("server.py", super::work_folder::MCP_SERVER);
    let server = json!({"command": "${PROGRAM:-python3}", "args": ["server.py"]});
    let set = |servers: Value| json!({"subtype": "mcp_set_servers", "servers": servers});
    let denied = r#"{"deniedMcpServers": [{"serverName": "refused"}]}"#;
    let mut talk = stage.spawn(&["--managed-settings", denied]);
    let answer = asked(&mut talk, set(json!({"good": server, "refused": server})))["response"].clone();
    assert_eq!(answer["added"], json!(["good"]), "{answer}");
    assert_eq!(answer["errors"], json!({"refused": "settings do not allow it"}));
    let status = asked(&mut talk, json!({"subtype": "mcp_status"}))["response"]["mcpServers"].clone();
    let rows: Vec<(&Value, &Value)> =
        status.as_array().unwrap().iter().map(|row| (&row["name"], &row["status"])).collect();
    assert_eq!(rows, [(&json!("good"), &json!("connected"))]);
    // One that cannot be read leaves everything as it was.
    let refused = asked(&mut talk, set(json!({"another": server, "broken": {"type": "carrier pigeon"}})));
    assert!(refused["error"].as_str().unwrap().contains("broken"), "{refused}");
    let status = asked(&mut talk, json!({"subtype": "mcp_status"}))["response"]["mcpServers"].clone();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    talk.end();
    let mut talk = stage.spawn(&["--safe-mode"]);
    let answer = asked(&mut talk, set(json!({"good": server})))["response"].clone();
    assert_eq!((&answer["added"], &answer["errors"]["good"]), (&json!([]), &json!("not used with --safe-mode")));
    talk.end();
}
