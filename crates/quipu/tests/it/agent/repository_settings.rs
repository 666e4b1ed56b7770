//! Local settings of the repository's root, for an agent that starts in a folder below.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, STREAM, ScriptedAgent};

const ROOT: &str = "repo/.claude/settings.local.json";
const FOLDER: &str = "repo/sub/.claude/settings.local.json";

/// An agent with a repository in its home folder.
fn agent_with_repository() -> ScriptedAgent {
    let agent = ScriptedAgent::new("touch.yaml");
    agent.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    agent.write("repo/sub/notes.txt", "x\n");
    agent
}

fn command_in_sub(agent: &ScriptedAgent, args: &[&str]) -> Command {
    let mut command = agent.command(args);
    command.current_dir(agent.folder.path.join("repo/sub"));
    command
}

/// Whether `touch made` ran in a session with these flags, and the warnings.
fn run(agent: &ScriptedAgent, args: &[&str]) -> (bool, String) {
    let made = agent.folder.path.join("repo/sub/made");
    let _ = fs::remove_file(&made);
    let output = command_in_sub(agent, &[&["-p", "touch a file"], args].concat()).output().unwrap();
    (made.exists(), String::from_utf8(output.stderr).unwrap())
}

fn read(agent: &ScriptedAgent, path: &str) -> Value {
    let text = fs::read_to_string(agent.folder.path.join(path)).unwrap_or_else(|_| "null".to_owned());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_deny_rule_of_the_repository_applies_in_its_folders() {
    let agent = agent_with_repository();
    agent.write(ROOT, r#"{"permissions": {"deny": ["Bash(touch:*)"]}}"#);
    agent.write(FOLDER, r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#);
    assert!(!run(&agent, &["--allowedTools", "Bash(touch:*)"]).0);
    assert!(!run(&agent, &["--trust-folder"]).0);
    assert!(run(&agent, &["--setting-sources", "user,project", "--allowedTools", "Bash(touch:*)"]).0);
}

#[test]
fn an_allow_rule_of_the_repository_applies_if_the_repository_is_trusted() {
    let agent = agent_with_repository();
    agent.write(ROOT, r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#);
    let trust = |folder: &str| {
        let folder = agent.folder.path.join(folder);
        let state = json!({"projects": {folder.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        agent.write(".claude.json", &state.to_string());
    };
    let warning = format!("settings.local.json: {} is not trusted", agent.folder.path.join("repo").display());
    let (ran, warnings) = run(&agent, &[]);
    assert!(!ran && warnings.contains(&warning), "{warnings}");
    trust("repo/sub");
    let (ran, warnings) = run(&agent, &[]);
    assert!(!ran && warnings.contains(&warning), "{warnings}");
    trust("repo");
    assert_eq!(run(&agent, &[]), (true, String::new()));
    // A project file of the root is for sessions that start there.
    fs::rename(agent.folder.path.join(ROOT), agent.folder.path.join("repo/.claude/settings.json")).unwrap();
    assert!(!run(&agent, &[]).0);
}

#[test]
fn trust_in_a_folder_does_not_cover_files_of_the_folders_above() {
    let agent = agent_with_repository();
    let exists = |name: &str| agent.folder.path.join(name).exists();
    agent.write("repo/.claude/commands/go.md", "---\nallowed-tools: Bash\n---\nGo !`touch inline`");
    agent.write("repo/.mcp.json", r#"{"mcpServers": {"evil": {"command": "touch", "args": ["served"]}}}"#);
    agent.write(".claude/settings.json", r#"{"enableAllProjectMcpServers": true}"#);
    let trust = |folder: &str| {
        let folder = agent.folder.path.join(folder);
        let state = json!({"projects": {folder.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        agent.write(".claude.json", &state.to_string());
        let output = command_in_sub(&agent, &["-p", "/go"]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let warnings = trust("repo/sub");
    assert!(!exists("repo/sub/inline") && !exists("repo/sub/served"), "{warnings}");
    assert!(warnings.contains("ignoring allowed-tools of /go: its folder is not trusted"), "{warnings}");
    assert!(warnings.contains("not approved: evil"), "{warnings}");
    let warnings = trust("repo");
    assert!(exists("repo/sub/inline") && exists("repo/sub/served"), "{warnings}");
}

/// Answers the permission request of a session with updates for `localSettings`.
fn answer_with(agent: &ScriptedAgent, args: &[&str], updates: &[Value]) {
    let args = [&STREAM[..], &["--permission-prompt-tool", "stdio"], args].concat();
    let mut process = AgentProcess::start(command_in_sub(agent, &args));
    process.send_prompt("touch a file");
    process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    process.send_response(
        json!({"behavior": "allow", "updatedInput": {"command": "true"}, "updatedPermissions": updates}),
    );
    process.read_result();
    process.end();
}

fn rule_update(kind: &str, content: &str) -> Value {
    let rule = json!({"toolName": "Bash", "ruleContent": content});
    json!({"type": kind, "behavior": "allow", "destination": "localSettings", "rules": [rule]})
}

#[test]
fn rules_for_local_settings_are_added_to_the_repository_and_removed_from_both_files() {
    let agent = agent_with_repository();
    let trust = ["--trust-folder"];
    answer_with(&agent, &trust, &[rule_update("addRules", "touch made")]);
    assert_eq!(read(&agent, ROOT), json!({"permissions": {"allow": ["Bash(touch made)"]}}));
    assert_eq!(read(&agent, FOLDER), Value::Null);
    assert!(run(&agent, &trust).0);
    let two = r#"{"permissions": {"allow": ["Bash(a)", "Bash(b)"]}, "env": {"A": "b"}}"#;
    agent.write(ROOT, two);
    agent.write(FOLDER, two);
    answer_with(&agent, &trust, &[rule_update("removeRules", "a"), rule_update("addRules", "c")]);
    assert_eq!(read(&agent, ROOT)["permissions"]["allow"], json!(["Bash(b)", "Bash(c)"]));
    let left = json!({"permissions": {"allow": ["Bash(b)"]}, "env": {"A": "b"}});
    assert_eq!(read(&agent, FOLDER), left);
    answer_with(&agent, &trust, &[rule_update("replaceRules", "b")]);
    assert_eq!(read(&agent, ROOT)["permissions"]["allow"], json!(["Bash(b)"]));
    assert_eq!(read(&agent, FOLDER), left);
    answer_with(&agent, &trust, &[rule_update("replaceRules", "d")]);
    assert_eq!(read(&agent, ROOT)["permissions"]["allow"], json!(["Bash(d)"]));
    assert_eq!(read(&agent, FOLDER)["permissions"]["allow"], json!([]));
}

#[test]
fn rules_are_written_where_they_have_an_effect() {
    let agent = agent_with_repository();
    let folder = agent.folder.path.join("repo/sub");
    let state = json!({"projects": {folder.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    agent.write(".claude.json", &state.to_string());
    answer_with(&agent, &[], &[rule_update("addRules", "touch made")]);
    assert_eq!((read(&agent, ROOT), run(&agent, &[]).0), (Value::Null, true));
}

#[test]
fn the_output_style_is_written_to_the_repository() {
    let agent = agent_with_repository();
    agent.write(FOLDER, r#"{"outputStyle": "default"}"#);
    let mut process = AgentProcess::start(command_in_sub(&agent, &STREAM));
    let settings = json!({"outputStyle": "Explanatory"});
    let update = json!({"subtype": "update_settings", "source": "localSettings", "settings": settings});
    process.send_request("r1", update);
    let response = process.read_until(|line| line["type"] == "control_response");
    assert_eq!(response["response"]["subtype"], "success", "{response}");
    process.end();
    assert_eq!(read(&agent, ROOT), settings);
    assert_eq!(read(&agent, FOLDER), json!({"outputStyle": "default"}));
}

#[test]
fn a_worktree_has_the_local_settings_of_its_repository() {
    let agent = ScriptedAgent::new("touch.yaml");
    agent.folder.make_repository();
    let settings = ".claude/settings.local.json";
    agent.write(settings, r#"{"permissions": {"deny": ["Bash(touch:*)"]}}"#);
    let home = tempfile::tempdir().unwrap();
    let has_run = || {
        let args = ["-p", "touch a file", "--worktree=w", "--allowedTools", "Bash(touch:*)"];
        let output = agent.command(&args).env("HOME", home.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        agent.folder.path.join(".claude/worktrees/w/made").exists()
    };
    assert!(!has_run());
    fs::remove_file(agent.folder.path.join(settings)).unwrap();
    assert!(has_run());
}
