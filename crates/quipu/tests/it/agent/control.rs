//! Requests of hosts, where no recording shows more than a refusal.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, ScriptedAgent};
use super::scripted_cases::mcp_server;

/// Sends a control request and returns the response.
fn request(process: &mut AgentProcess, request: Value) -> Value {
    process.send_request("1", request);
    process.read_until(|line| line["type"] == "control_response")["response"].clone()
}

#[test]
fn the_effort_for_a_model_is_stored_in_the_user_settings() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(".claude/settings.json", r#"{"theme":"dark"}"#);
    let mut process = agent.spawn(&[]);
    let set =
        |source: &str, settings: Value| json!({"subtype": "update_settings", "source": source, "settings": settings});
    let refused = request(&mut process, set("userSettings", json!({"effortLevel": "high", "hooks": {}})));
    assert_eq!(refused["error"], "update_settings keys not allowed: hooks");
    assert!(request(&mut process, set("projectSettings", json!({})))["error"].is_string());
    assert!(request(&mut process, set("userSettings", json!({"effortLevel": "max"})))["error"].is_string());
    assert_eq!(request(&mut process, set("userSettings", json!({"effortLevel": "high"})))["subtype"], "success");
    process.end();
    let file: Value =
        serde_json::from_str(&fs::read_to_string(agent.folder.path.join(".claude/settings.json")).unwrap()).unwrap();
    let model = json!({"claude-opus-5-5": {"effortLevel": "high"}});
    assert_eq!(file, json!({"theme": "dark", "modelSettings": model}));
    agent.lines(&["hello"]);
    let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
    assert_eq!(body["output_config"]["effort"], "high");
}

#[test]
fn settings_of_a_flag_take_effect_at_once() {
    let agent = ScriptedAgent::new("touch.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    let settings = json!({"model": "haiku", "permissions": {"deny": ["Bash(touch:*)"]}});
    assert_eq!(
        request(&mut process, json!({"subtype": "apply_flag_settings", "settings": settings}))["subtype"],
        "success"
    );
    process.send_prompt("touch it");
    assert_eq!(process.read_result()["permission_denials"].as_array().unwrap().len(), 1);
    let (_, heard) = process.end();
    let init = heard.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "claude-haiku-5-5");
    assert!(!agent.folder.path.join("made").exists());
}

#[test]
fn rules_that_change_while_a_request_is_open_apply_to_its_call() {
    let deny = json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"deny": ["Bash(touch:*)"]}}});
    let plan = json!({"subtype": "set_permission_mode", "mode": "plan"});
    let deny_with_answer = json!([{"type": "addRules", "behavior": "deny", "destination": "session",
                                   "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]}]);
    for (change, updates) in [(Some(deny), json!([])), (Some(plan), json!([])), (None, deny_with_answer)] {
        let agent = ScriptedAgent::new("touch.yaml");
        let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
        process.send_prompt("touch it");
        let asked = process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
        if let Some(change) = &change {
            assert_eq!(request(&mut process, change.clone())["subtype"], "success");
        }
        let allow =
            json!({"behavior": "allow", "updatedInput": asked["request"]["input"], "updatedPermissions": updates});
        process.send(json!({"type": "control_response", "response":
            {"subtype": "success", "request_id": asked["request_id"], "response": allow}}));
        assert_eq!(process.read_result()["permission_denials"].as_array().unwrap().len(), 1, "{change:?}");
        process.end();
        assert!(!agent.folder.path.join("made").exists(), "{change:?}");
    }
}

#[test]
fn only_a_folder_below_the_sessions_own_is_opened_and_only_once() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("repo/CLAUDE.md", "The inner rules.");
    agent.write("repo/.claude/commands/inner.md", "hello from inside");
    let mut process = agent.spawn(&[]);
    let open = |directory: &str| json!({"subtype": "register_repo_root", "directory": directory, "reload_claude_md": true, "reload_skills": true});
    for refused in [".", "..", "/tmp", "missing"] {
        assert_eq!(request(&mut process, open(refused))["subtype"], "error", "{refused}");
    }
    assert_eq!(request(&mut process, open("repo"))["subtype"], "success");
    assert_eq!(request(&mut process, open("repo"))["subtype"], "error");
    process.send_prompt("/inner");
    process.read_result();
    process.end();
    let seen = agent.server.requests();
    let body = &seen.last().unwrap().body;
    assert!(body.contains("The inner rules.") && body.contains("hello from inside"), "{body}");
}

#[test]
fn a_resource_of_a_server_is_read_for_the_host() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&["--mcp-config", &mcp_server(&agent)]);
    request(&mut process, json!({"subtype": "initialize"}));
    let read = |name: &str, uri: &str| json!({"subtype": "mcp_read_resource", "serverName": name, "uri": uri});
    assert_eq!(
        request(&mut process, read("far", "file:///x"))["error"],
        "mcp_read_resource: uri must use the ui:// scheme"
    );
    assert_eq!(request(&mut process, read("near", "ui://x"))["error"], "Server not found: near");
    let page = request(&mut process, read("far", "ui://page"));
    assert_eq!(
        page["response"]["contents"][0],
        json!({"uri": "ui://page", "mimeType": "text/html", "text": "<p>far</p>"})
    );
    process.end();
}

#[test]
fn a_host_that_reconnects_gets_the_running_tasks() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&[]);
    request(&mut process, json!({"subtype": "initialize"}));
    request(&mut process, json!({"subtype": "initialize"}));
    let line = process.read_until(|line| line["type"] == "system");
    assert_eq!((&line["subtype"], &line["tasks"]), (&json!("background_tasks_changed"), &json!([])));
    process.end();
}

#[test]
fn a_server_of_the_host_whose_tools_changed_is_listed_again() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&[]);
    let says = |name: &str| {
        let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        json!({"subtype": "mcp_message", "server_name": name, "message": message})
    };
    assert_eq!(request(&mut process, says("sums"))["error"], "Server not found: sums");
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "sums", "version": "1"}});
    let manifest = json!({"initializeResult": hello, "toolsListResult": {"tools": []}});
    let servers =
        json!({"subtype": "initialize", "sdkMcpServers": ["sums"], "sdkMcpServerManifests": {"sums": manifest}});
    assert_eq!(request(&mut process, servers)["subtype"], "success");
    process.send_request("2", says("sums"));
    let question = process.read_until(|line| line["type"] == "control_request");
    assert_eq!(question["request"]["message"]["method"], "initialize");
    process.end();
}

#[test]
fn settings_of_a_flag_keep_files_from_searches() {
    let script = "- {when: {result_of: Grep}, reply: Done.}\n\
                  - reply:\n    - {tool: Grep, input: {pattern: needle, output_mode: content}}";
    let agent = ScriptedAgent::from_script_text(script);
    agent.write("open.txt", "needle in the open");
    agent.write("kept.txt", "needle in the dark");
    let mut process = agent.spawn(&[]);
    let settings = json!({"permissions": {"deny": ["Read(./kept.txt)"]}});
    assert_eq!(
        request(&mut process, json!({"subtype": "apply_flag_settings", "settings": settings}))["subtype"],
        "success"
    );
    process.send_prompt("look");
    process.read_result();
    process.end();
    let body = agent.server.requests().last().unwrap().body.clone();
    assert!(body.contains("in the open") && !body.contains("in the dark"), "{body}");
}

#[test]
fn local_settings_are_written_where_they_are_read() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("checkout/.claude/settings.json", "{}");
    let mut process = agent.spawn(&["--project-config-root", "checkout", "--trust-folder"]);
    let settings = json!({"outputStyle": "Explanatory"});
    let update = json!({"subtype": "update_settings", "source": "localSettings", "settings": settings});
    assert_eq!(request(&mut process, update)["subtype"], "success");
    process.end();
    let read = |name: &str| fs::read_to_string(agent.folder.path.join(name)).ok();
    assert!(read("checkout/.claude/settings.local.json").unwrap().contains("Explanatory"));
    assert_eq!(read(".claude/settings.local.json"), None);
}

#[test]
fn a_denied_server_of_the_host_is_not_used() {
    let agent = ScriptedAgent::new("hello.yaml");
    let lists = r#"{"deniedMcpServers": [{"serverName": "refused"}], "allowedMcpServers": []}"#;
    let mut process = agent.spawn(&["--managed-settings", lists]);
    process.send_request("1", json!({"subtype": "initialize", "sdkMcpServers": ["good", "refused"]}));
    // The other one is asked for its tools.
    let asked = process.read_until(|line| line["type"] == "control_request");
    assert_eq!(
        (&asked["request"]["subtype"], &asked["request"]["server_name"]),
        (&json!("mcp_message"), &json!("good"))
    );
    process.send_response(json!({"mcp_response": {"jsonrpc": "2.0", "id": asked["request"]["message"]["id"],
                                                  "error": {"code": -1, "message": "no"}}}));
    process.read_until(|line| line["type"] == "control_response");
    let warning = process.lines.iter().find(|line| line["subtype"] == "informational").unwrap();
    assert_eq!(warning["content"], "the MCP server refused: settings do not allow it");
    let (_, lines) = process.end();
    assert!(!lines.iter().any(|line| line["request"]["server_name"] == "refused"), "{lines:?}");
}

#[test]
fn servers_of_a_request_are_read_and_allowed_like_those_of_flags() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("server.py", super::work_folder::MCP_SERVER);
    let server = json!({"command": "${PROGRAM:-python3}", "args": ["server.py"]});
    let set = |servers: Value| json!({"subtype": "mcp_set_servers", "servers": servers});
    let denied = r#"{"deniedMcpServers": [{"serverName": "refused"}]}"#;
    let mut process = agent.spawn(&["--managed-settings", denied]);
    let answer = request(&mut process, set(json!({"good": server, "refused": server})))["response"].clone();
    assert_eq!(answer["added"], json!(["good"]), "{answer}");
    assert_eq!(answer["errors"], json!({"refused": "settings do not allow it"}));
    let status = request(&mut process, json!({"subtype": "mcp_status"}))["response"]["mcpServers"].clone();
    let rows: Vec<(&Value, &Value)> =
        status.as_array().unwrap().iter().map(|row| (&row["name"], &row["status"])).collect();
    assert_eq!(rows, [(&json!("good"), &json!("connected"))]);
    // One that cannot be read leaves everything as it was.
    let refused = request(&mut process, set(json!({"another": server, "broken": {"type": "carrier pigeon"}})));
    assert!(refused["error"].as_str().unwrap().contains("broken"), "{refused}");
    let status = request(&mut process, json!({"subtype": "mcp_status"}))["response"]["mcpServers"].clone();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    process.end();
    let mut process = agent.spawn(&["--safe-mode"]);
    let answer = request(&mut process, set(json!({"good": server})))["response"].clone();
    assert_eq!((&answer["added"], &answer["errors"]["good"]), (&json!([]), &json!("not used with --safe-mode")));
    process.end();
}

#[test]
fn only_regular_files_are_read_for_the_host() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("notes", "text");
    agent.write(".env", "secret");
    std::os::unix::fs::symlink(".env", agent.folder.path.join("link")).unwrap();
    let pipe = agent.folder.path.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut process = agent.spawn(&["--disallowedTools", "Read(.env)"]);
    for name in ["pipe", ".", "missing", "/etc/passwd", ".env", "link"] {
        let response = request(&mut process, json!({"subtype": "read_file", "path": name}));
        assert_eq!(response["error"], format!("read denied: {name}"));
    }
    let file = request(&mut process, json!({"subtype": "read_file", "path": "notes"}));
    assert_eq!(file["response"]["contents"], "text");
    process.end();
}

#[test]
fn the_list_of_rules_says_whether_only_managed_ones_count() {
    let agent = ScriptedAgent::new("hello.yaml");
    let managed = r#"{"allowManagedPermissionRulesOnly": true}"#;
    for (flags, expected) in [(&[][..], false), (&["--managed-settings", managed], true)] {
        let mut process = agent.spawn(flags);
        let rules = request(&mut process, json!({"subtype": "list_permission_rules"}));
        assert_eq!(rules["response"]["state"]["managedOnly"], expected, "{rules}");
        process.end();
    }
}
