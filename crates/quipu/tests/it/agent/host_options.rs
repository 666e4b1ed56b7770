//! What hosts promise their users with an option, kept by the flag, variable or file that it
//! becomes. docs/interop.md lists every option of the Python SDK with its test.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::{ScriptedAgent, kinds};

const WRITES: &str = "
- {when: {result_of: Write}, reply: Done.}
- {when: {says: write}, reply: [{tool: Write, input: {file_path: FOLDER/new.txt, content: x}}]}
- {reply: Good day.}";

#[test]
fn limits_end_a_turn() {
    let script = "
- {when: {result_of: Bash}, reply: Done.}
- {reply: [{tool: Bash, input: {command: 'true'}}]}";
    for (flag, value, subtype) in
        [("--max-turns", "1", "error_max_turns"), ("--max-budget-usd", "0.0000001", "error_max_budget_usd")]
    {
        let agent = ScriptedAgent::from_script_text(script);
        let lines = agent.lines(&["go", "--allowedTools", "Bash", flag, value]);
        assert_eq!(lines.last().unwrap()["subtype"], subtype);
    }
}

#[test]
fn a_folder_that_is_added_is_worked_in() {
    let other = tempfile::tempdir().unwrap();
    let agent = ScriptedAgent::from_script_text(&WRITES.replace("FOLDER", &other.path().display().to_string()));
    let folder = other.path().display().to_string();
    agent.lines(&["write", "--permission-mode", "acceptEdits"]);
    assert!(!other.path().join("new.txt").exists());
    agent.lines(&["write", "--permission-mode", "acceptEdits", "--add-dir", &folder]);
    assert!(other.path().join("new.txt").exists());
}

#[test]
fn setting_sources_choose_the_files_that_count() {
    let agent = ScriptedAgent::from_script_text(&WRITES.replace("FOLDER/", ""));
    agent.write(".claude/settings.json", r#"{"permissions": {"allow": ["Write"]}}"#);
    let made = agent.folder.path.join("new.txt");
    agent.lines(&["write", "--setting-sources", "local"]);
    assert!(!made.exists());
    agent.lines(&["write", "--setting-sources", "user"]);
    assert!(made.exists());
}

#[test]
fn a_strict_configuration_has_no_other_servers() {
    let agent = ScriptedAgent::from_script_text("- reply: Good day.");
    let servers = |names: &[&str]| {
        let all: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"command": "/no/such/program"}))).collect();
        json!({ "mcpServers": all }).to_string()
    };
    agent.write(".claude.json", &servers(&["mine"]));
    let connected = |args: &[&str]| {
        let lines = agent.lines(&[&["hi", "--mcp-config", &servers(&["given"])], args].concat());
        let servers = lines[0]["mcp_servers"].as_array().unwrap().clone();
        servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(connected(&["--strict-mcp-config"]), ["given"]);
    let mut both = connected(&[]);
    both.sort();
    assert_eq!(both, ["given", "mine"]);
}

#[test]
fn hooks_of_settings_are_reported_to_hosts_that_ask() {
    let agent = ScriptedAgent::from_script_text("- reply: Good day.");
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}).to_string();
    let stderr = |args: &[&str]| {
        let kinds = kinds(&agent.lines(&[&["hi", "--settings", &hooks], args].concat()));
        kinds.into_iter().filter(|kind| kind.starts_with("system/hook_")).collect::<Vec<_>>()
    };
    assert_eq!(stderr(&["--include-hook-events"]), ["system/hook_started", "system/hook_response"]);
    assert!(stderr(&[]).is_empty());
}

#[test]
fn a_skill_of_a_plugin_is_offered() {
    let agent = ScriptedAgent::from_script_text("- reply: Good day.");
    agent.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    agent.write("kit/skills/tides/SKILL.md", "---\nname: tides\ndescription: Knows tides\n---\nSpeak of tides.");
    let lines = agent.lines(&["hi", "--plugin-dir", "kit"]);
    let has = |key: &str, name: &str| lines[0][key].as_array().unwrap().iter().any(|known| known == name);
    assert!(has("slash_commands", "kit:tides"), "{}", lines[0]);
    assert_eq!(lines[0]["plugins"][0]["name"], "kit");
}

#[test]
fn a_host_asks_what_fills_the_context_and_turns_servers_off() {
    let agent = ScriptedAgent::from_script_text("- reply: Good day.");
    let servers = json!({"mcpServers": {"lost": {"command": "/no/such/program"}}}).to_string();
    let mut process = agent.spawn(&["--mcp-config", &servers]);
    process.send_prompt("hi");
    process.read_result();
    let mut answer = |request: Value| {
        process.send_request("1", request);
        process.read_until(|line| line["type"] == "control_response")["response"]["response"].clone()
    };
    assert!(answer(json!({"subtype": "get_context_usage"}))["totalTokens"].as_u64().unwrap() > 0);
    let status = json!({"subtype": "mcp_status"});
    assert_eq!(answer(status.clone())["mcpServers"][0]["status"], "failed");
    answer(json!({"subtype": "mcp_toggle", "serverName": "lost", "enabled": false}));
    assert_eq!(answer(status)["mcpServers"][0]["status"], "disabled");
    process.end();
}

/// Every row of the table names tests that are there.
#[test]
fn every_option_of_the_python_sdk_has_a_test() {
    let root = quipu_testkit::fixture("").join("..");
    let docs = fs::read_to_string(root.join("docs/interop.md")).unwrap();
    let rows: Vec<&str> = docs.lines().skip_while(|line| !line.starts_with("| field or method")).skip(2).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 30, "{}", rows.len());
    let sources =
        quipu_testkit::files_under(&root.join("crates"), |path| path.extension().is_some_and(|ext| ext == "rs"));
    let sources: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test in {row}");
        for test in named {
            assert!(sources.contains(&format!("fn {test}(")), "{test}, which {row} names, is no test");
        }
    }
}
