//! Settings of the machine's administrator. The agent reads them from the system's own
//! folder, so these tests run the engine itself, with another one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use quipu_engine::{EngineError, run};
use quipu_engine::{Format, Options};
use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the engine with managed settings in a folder; returns what it says.
fn lines(agent: &ScriptedAgent, managed: PathBuf, options: Options) -> Result<Vec<Value>, EngineError> {
    let out = Written::default();
    let env: BTreeMap<String, String> = [
        ("HOME", agent.folder.path.to_str().unwrap()),
        ("ANTHROPIC_BASE_URL", &agent.server.url()),
        ("ANTHROPIC_API_KEY", "any"),
        ("PATH", &std::env::var("PATH").unwrap()),
        ("IS_SANDBOX", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let options = Options { format: Format::StreamJson, managed_folder: Some(managed), ..options };
    let cwd = agent.folder.path.canonicalize().unwrap();
    agent.runtime.block_on(run(options, env, cwd, out.clone(), std::io::sink()))?;
    let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn prompt(text: &str) -> Options {
    Options { prompt: Some(text.to_owned()), ..Options::default() }
}

#[test]
fn managed_settings_win_over_files_and_flags() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(
        "managed/managed-settings.json",
        r#"{"model": "claude-haiku-4-5", "env": {"ANTHROPIC_API_KEY": "theirs"}}"#,
    );
    agent.write("managed/managed-settings.d/20-mode.json", r#"{"permissions": {"defaultMode": "plan"}}"#);
    agent.write("managed/managed-settings.d/10-mode.json", r#"{"permissions": {"defaultMode": "acceptEdits"}}"#);
    agent.write("managed/managed-settings.d/notes.txt", "not settings");
    agent.write(".claude/settings.json", r#"{"model": "opus", "permissions": {"defaultMode": "default"}}"#);
    let options = Options {
        model: Some("sonnet".into()),
        permission_mode: Some("acceptEdits".into()),
        settings: Some(r#"{"model": "opus"}"#.into()),
        ..prompt("hello")
    };
    let lines = lines(&agent, agent.folder.path.join("managed"), options).unwrap();
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!((init["model"].as_str(), init["permissionMode"].as_str()), (Some("claude-haiku-4-5"), Some("plan")));
    let seen = agent.server.requests();
    let key = seen[0].headers.iter().find(|(name, _)| name == "x-api-key").unwrap();
    assert_eq!(key.1, "theirs".into());
}

#[test]
fn a_mode_that_is_disabled_cannot_be_used() {
    let agent = ScriptedAgent::new("hello.yaml");
    let managed = agent.folder.path.join("managed");
    // A misspelled value counts too.
    for (word, value, mode) in [
        ("disableBypassPermissionsMode", "disable", "bypassPermissions"),
        ("disableBypassPermissionsMode", "Disable", "bypassPermissions"),
        ("disableAutoMode", "disable", "auto"),
    ] {
        agent.write("managed/managed-settings.json", &format!(r#"{{"permissions": {{"{word}": "{value}"}}}}"#));
        let options = Options {
            permission_mode: Some(mode.into()),
            settings: Some(format!(r#"{{"permissions": {{"{word}": "enable"}}}}"#)),
            may_skip_permissions: true,
            ..prompt("hello")
        };
        let lines = lines(&agent, managed.clone(), options).unwrap();
        let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
        assert_eq!(init["permissionMode"], "default");
        let contents: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
        let expect = format!("left out: the permission mode {mode}, which settings disable; the mode is default");
        assert_eq!(contents, [expect]);
    }
}

#[test]
fn managed_rules_and_hooks_apply_and_others_can_be_excluded() {
    let agent = ScriptedAgent::new("touch.yaml");
    let managed = agent.folder.path.join("managed");
    let hooks = |file: &str| {
        format!(r#""hooks": {{"UserPromptSubmit": [{{"hooks": [{{"type": "command", "command": "touch {file}"}}]}}]}}"#)
    };
    let text =
        format!(r#"{{"allowManagedHooksOnly": true, "allowManagedPermissionRulesOnly": true, {}}}"#, hooks("theirs"));
    agent.write("managed/managed-settings.json", &text);
    agent.write(".claude/settings.json", &format!(r#"{{"disableAllHooks": true, {}}}"#, hooks("mine")));
    let options = Options { allowed_tools: vec!["Bash".into()], ..prompt("touch a file") };
    let lines = lines(&agent, managed, options).unwrap();
    let denials = lines.last().unwrap()["permission_denials"].as_array().unwrap().len();
    assert_eq!(denials, 1, "{:?}", lines.last());
    let exists = |name: &str| agent.folder.path.join(name).exists();
    assert_eq!((exists("theirs"), exists("mine")), (true, false), "{lines:#?}");
}

#[test]
fn managed_settings_that_cannot_be_read_are_an_error() {
    let agent = ScriptedAgent::new("hello.yaml");
    let managed = agent.folder.path.join("managed");
    fs::create_dir_all(&managed).unwrap();
    assert!(lines(&agent, managed.clone(), prompt("hello")).is_ok());
    agent.write("managed/managed-settings.json", "{broken");
    assert_eq!(lines(&agent, managed, prompt("hello")).unwrap_err().code(), "settings.invalid");
}

#[test]
fn of_a_hosts_managed_settings_only_what_restricts_counts() {
    let agent = ScriptedAgent::new("touch.yaml");
    let settings = r#"{"permissions": {"allow": ["Bash"], "deny": ["Write"], "defaultMode": "bypassPermissions"},
                       "model": "haiku"}"#;
    let lines = agent.lines(&["touch a file", "--managed-settings", settings, "--model", "claude-opus-5-5"]);
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!((init["model"].as_str(), init["permissionMode"].as_str()), (Some("claude-opus-5-5"), Some("default")));
    assert!(!init["tools"].as_array().unwrap().contains(&"Write".into()));
    assert_eq!(lines.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1);
}

#[test]
fn the_mode_of_a_hosts_managed_settings_only_restricts() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mode = |managed: &str, flag: &str| {
        let managed = json!({"permissions": {"defaultMode": managed}}).to_string();
        let lines = agent.lines(&["hello", "--managed-settings", &managed, "--permission-mode", flag]);
        let init = lines.into_iter().find(|line| line["subtype"] == "init").unwrap();
        init["permissionMode"].as_str().unwrap().to_owned()
    };
    assert_eq!(mode("plan", "acceptEdits"), "plan");
    assert_eq!(mode("dontAsk", "auto"), "dontAsk");
    assert_eq!(mode("acceptEdits", "plan"), "plan");
    let unknown = r#"{"permissions": {"defaultMode": "careful"}}"#;
    let output = agent.run(&["hello", "--managed-settings", unknown]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("there is no mode 'careful'"), "{stderr}");
}

#[test]
fn where_only_managed_rules_allow_a_hosts_answer_may_still_deny() {
    let agent = ScriptedAgent::new("touch.yaml");
    let managed = r#"{"allowManagedPermissionRulesOnly": true}"#;
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio", "--managed-settings", managed]);
    let add = |behavior: &str, tool: &str| json!({"type": "addRules", "behavior": behavior, "destination": "session", "rules": [{"toolName": tool}]});
    for update in [add("allow", "Bash"), add("deny", "Bash")] {
        process.send_prompt("touch a file");
        process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
        process.send_response(
            json!({"behavior": "allow", "updatedInput": {"command": "true"}, "updatedPermissions": [update]}),
        );
        process.read_result();
    }
    process.send_prompt("anything else");
    process.read_result();
    let (_, heard) = process.end();
    // The rule that denies takes the tool away.
    let inits: Vec<bool> = heard
        .iter()
        .filter(|line| line["subtype"] == "init")
        .map(|line| line["tools"].as_array().unwrap().contains(&"Bash".into()))
        .collect();
    assert_eq!(inits, [true, true, false]);
}

#[test]
fn rules_of_a_hosts_answer_are_stored_where_they_belong() {
    let agent = ScriptedAgent::new("touch.yaml");
    agent.write(".claude/settings.local.json", r#"{"env": {"A": "b"}}"#);
    let rule = json!({"toolName": "Bash", "ruleContent": "true"});
    for destination in ["session", "localSettings", "userSettings"] {
        let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
        process.send_prompt("touch a file");
        process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
        let add = json!({"type": "addRules", "behavior": "allow", "destination": destination, "rules": [rule]});
        process.send_response(
            json!({"behavior": "allow", "updatedInput": {"command": "true"}, "updatedPermissions": [add]}),
        );
        process.read_result();
        process.end();
    }
    let read = |path: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(agent.folder.path.join(path)).unwrap()).unwrap()
    };
    let stored = json!({"allow": ["Bash(true)"]});
    assert_eq!(read(".claude/settings.local.json"), json!({"env": {"A": "b"}, "permissions": stored}));
    assert_eq!(read(".claude/settings.json"), json!({"permissions": stored}));
}

#[test]
fn deny_rules_apply_to_the_input_that_a_host_changed() {
    let agent = ScriptedAgent::new("touch.yaml");
    let managed = r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#;
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio", "--managed-settings", managed]);
    agent.write("kept", "x");
    process.send_prompt("touch a file");
    process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    process.send_response(json!({"behavior": "allow", "updatedInput": {"command": "rm kept"}}));
    let result = process.read_result();
    process.end();
    assert!(agent.folder.path.join("kept").exists());
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
}

#[test]
fn a_hosts_managed_settings_do_not_open_the_sandbox() {
    let agent = ScriptedAgent::new("touch.yaml");
    let managed = r#"{"sandbox": {"enabled": true, "allowUnsandboxedCommands": false}}"#;
    let denials = |flag: &str| {
        let lines = agent.lines(&["touch a file", flag, managed]);
        lines.last().unwrap()["permission_denials"].as_array().unwrap().len()
    };
    // The same settings of a flag approve what runs in the sandbox.
    assert_eq!((denials("--settings"), denials("--managed-settings")), (0, 1));
}
