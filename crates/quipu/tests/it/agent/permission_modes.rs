//! Permission modes, and who answers permission requests.

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// Runs one tool call and returns whether it was allowed, with the lines of the run.
fn run_call(script: &str, args: &[&str]) -> (bool, Vec<Value>) {
    let agent = ScriptedAgent::from_script_text(script);
    let lines = agent.lines(&[&["go"], args].concat());
    (lines.last().unwrap()["permission_denials"].as_array().unwrap().is_empty(), lines)
}

fn script_calling(tool: &str, input: &Value) -> String {
    json!([{"when": {"result_of": tool}, "reply": "done"}, {"reply": [{"tool": tool, "input": input}]}]).to_string()
}

fn contents(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["content"].as_str()).collect()
}

#[test]
fn manual_is_default() {
    let lines = ScriptedAgent::new("hello.yaml").lines(&["hello", "--permission-mode", "manual"]);
    assert_eq!(lines[0]["permissionMode"], "default");
}

#[test]
fn auto_runs_commands_in_the_sandbox_and_announces_it_once() {
    let auto = ["--permission-mode", "auto"];
    let (ok, lines) = run_call(&script_calling("Bash", &json!({"command": "touch made; uname"})), &auto);
    assert!(ok, "{lines:#?}");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["permissionMode"], "auto");
    let texts = contents(&lines);
    assert!(texts.len() == 1 && texts[0].starts_with("Mode auto: commands run in the workspace sandbox"), "{texts:?}");
    assert!(run_call(&script_calling("Write", &json!({"file_path": "made.txt", "content": "x"})), &auto).0);
    // Outside the sandbox everything needs a permission request, and no host answers one.
    assert!(
        !run_call(&script_calling("Bash", &json!({"command": "touch x", "dangerouslyDisableSandbox": true})), &auto).0
    );
    assert!(!run_call(&script_calling("Write", &json!({"file_path": ".git/config", "content": "x"})), &auto).0);
    assert!(!run_call(&script_calling("Write", &json!({"file_path": "/etc/made.txt", "content": "x"})), &auto).0);
    assert!(!run_call(&script_calling("WebFetch", &json!({"url": "http://127.0.0.1/", "prompt": "x"})), &auto).0);
    let ask = [&auto[..], &["--settings", r#"{"permissions": {"ask": ["Bash(touch:*)"]}}"#]].concat();
    assert!(!run_call(&script_calling("Bash", &json!({"command": "touch made"})), &ask).0);
}

#[test]
fn auto_asks_where_there_is_no_sandbox() {
    let agent = ScriptedAgent::from_script_text(&script_calling("Bash", &json!({"command": "touch made; uname"})));
    let out = agent
        .command(&["-p", "go", "--permission-mode", "auto", "--output-format", "json"])
        .env("QUIPU_SANDBOX", "off")
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!agent.folder.path.join("made").exists());
}

#[test]
fn hosts_choose_auto_and_manual_too() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&["--settings", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#]);
    let mut set = |mode: &str| {
        process.send_request("1", json!({"subtype": "set_permission_mode", "mode": mode}));
        process.read_until(|line| line["type"] == "control_response")["response"].clone()
    };
    assert_eq!(set("auto")["response"]["mode"], "auto");
    assert_eq!(set("manual")["response"]["mode"], "default");
    assert_eq!(set("auto")["response"]["mode"], "auto");
    assert_eq!(set("bypassPermissions")["subtype"], "error");
    let (_, lines) = process.end();
    assert_eq!(contents(&lines).len(), 1);
}

#[test]
fn a_project_that_is_not_trusted_cannot_choose_auto() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("repo/.claude/settings.json", r#"{"permissions": {"defaultMode": "auto"}}"#);
    let mut command = agent.command(&["-p", "hello", "--output-format", "stream-json"]);
    let out = command.current_dir(agent.folder.path.join("repo")).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains(r#""permissionMode":"default""#), "{text}");
}

#[test]
fn a_flag_turns_permission_requests_into_denials() {
    let agent = ScriptedAgent::new("touch.yaml");
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio", "--permission-prompts", "none"]);
    process.send_prompt("touch a file");
    process.read_result();
    let (code, lines) = process.end();
    assert_eq!(code, 0);
    assert!(lines.iter().all(|line| line["type"] != "control_request"));
    let denied = lines.iter().find(|line| line["subtype"] == "permission_denied").unwrap();
    assert_eq!(denied["decision_reason_type"], "asyncAgent");
    assert!(!agent.folder.path.join("made").exists());
}
