//! Subagents: git worktrees of their own, and limits of their definitions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// An agent in a repository with one commit.
fn repository(script: &str) -> ScriptedAgent {
    let stage = ScriptedAgent::from_script_text(script);
    stage.write("a.txt", "first\n");
    for args in [&["init", "-q", "-b", "main"][..], &["add", "a.txt"], &["commit", "-q", "-m", "first"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
        assert!(git.current_dir(&stage.folder.path).env("HOME", &stage.folder.path).status().unwrap().success());
    }
    stage
}

fn worktrees(stage: &ScriptedAgent) -> Vec<PathBuf> {
    let folder = fs::read_dir(stage.folder.path.join(".claude/worktrees"));
    folder.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// The result of the call of Agent, as the model gets it.
fn agent_result(lines: &[Value]) -> String {
    let results = lines.iter().filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_null());
    let texts = results.map(|line| line["message"]["content"][0]["content"].clone());
    texts.map(|content| content.as_str().map_or_else(|| content.to_string(), str::to_owned)).collect()
}

const WRITES: &str = r#"
- when: {subagent: true, result_of: Write}
  reply: Written.
- when: {subagent: true}
  reply: [{tool: Write, input: {file_path: b.txt, content: "second\n"}}]
- when: {result_of: Agent}
  reply: Done.
- reply: [{tool: Agent, input: {description: write, prompt: "write b.txt", isolation: worktree}}]
"#;

#[test]
fn no_worktree_is_made_where_nothing_may_be_changed() {
    for args in [&["go", "--permission-mode", "plan"][..], &["go", "--restricted"]] {
        let stage = repository(WRITES);
        let branches = || fs::read_dir(stage.folder.path.join(".git/refs/heads")).unwrap().count();
        let exclude = || fs::read_to_string(stage.folder.path.join(".git/info/exclude")).unwrap_or_default();
        let before = exclude();
        let result = agent_result(&stage.lines(args));
        assert!(result.contains("no worktree is made in"), "{result}");
        assert_eq!((branches(), exclude(), worktrees(&stage).len()), (1, before, 0));
    }
}

#[test]
fn a_subagent_in_a_worktree_changes_files_there_alone() {
    let stage = repository(WRITES);
    let lines = stage.lines(&["go", "--permission-mode", "acceptEdits"]);
    let made = worktrees(&stage);
    assert_eq!(made.len(), 1, "{lines:?}");
    assert_eq!(fs::read_to_string(made[0].join("b.txt")).unwrap(), "second\n");
    assert!(!stage.folder.path.join("b.txt").exists());
    let result = agent_result(&lines);
    let name = made[0].file_name().unwrap().to_str().unwrap();
    assert!(
        result.contains("Written.") && result.contains(&format!("<worktreeBranch>worktree-{name}</worktreeBranch>")),
        "{result}"
    );
    assert!(result.contains(made[0].to_str().unwrap()), "{result}");
    let told = stage
        .server
        .requests()
        .iter()
        .any(|request| request.body.contains(&format!("Working directory: {}", made[0].display())));
    assert!(told, "the subagent is informed of its folder");
    let subagents = stage.session_file().with_extension("").join("subagents");
    let file = fs::read_dir(&subagents).unwrap().map(|entry| entry.unwrap().path());
    let text = fs::read_to_string(file.into_iter().find(|path| path.extension().unwrap() == "jsonl").unwrap()).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["cwd"], made[0].to_str().unwrap());
    assert_eq!(first["gitBranch"], format!("worktree-{name}"));
    let meta = fs::read_dir(subagents).unwrap().map(|entry| entry.unwrap().path());
    let meta = fs::read_to_string(meta.into_iter().find(|path| path.extension().unwrap() == "json").unwrap()).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!((&meta["worktreePath"], &meta["spawnedWithWorktree"]), (&first["cwd"], &Value::Bool(true)));
}

#[test]
#[cfg(target_os = "linux")]
fn no_worktree_is_made_beside_a_command_that_can_write() {
    // In a folder without git, such a command could make the repository that git then uses.
    let script = r#"
- when: {subagent: true}
  reply: Looked.
- when: {result_of: Agent}
  reply: Done.
- when: {result_of: Bash}
  reply: [{tool: Agent, input: {description: look, prompt: look, isolation: worktree}}]
- reply: [{tool: Bash, input: {command: "touch x; sleep 20", run_in_background: true}}]
"#;
    let stage = repository(script);
    let result = agent_result(&stage.lines(&["go", "--permission-mode", "acceptEdits"]));
    assert!(result.contains("running") && result.contains("can change files"), "{result}");
    assert!(worktrees(&stage).is_empty());
}

#[test]
fn the_worktree_of_a_subagent_that_changes_nothing_is_removed() {
    let stage = repository(
        r#"
- when: {subagent: true, result_of: Bash}
  reply: It is there.
- when: {subagent: true}
  reply: [{tool: Bash, input: {command: cat a.txt}}]
- when: {result_of: Agent}
  reply: Done.
- reply: [{tool: Agent, input: {description: look, prompt: look, subagent_type: looker}}]
"#,
    );
    stage.write(".claude/agents/looker.md", "---\nname: looker\ndescription: looks\nisolation: worktree\n---\nLook.");
    let lines = stage.lines(&["go"]);
    let result = agent_result(&lines);
    assert!(result.contains("It is there.") && !result.contains("worktree"), "{result}");
    assert!(worktrees(&stage).is_empty());
    let ran = lines.iter().find(|line| {
        line["parent_tool_use_id"].is_string() && line["type"] == "user" && line.to_string().contains("tool_result")
    });
    assert!(ran.unwrap().to_string().contains("first"), "{lines:?}");
}

#[test]
fn a_subagent_that_cannot_have_its_worktree_is_not_started() {
    let script = WRITES.replace("isolation: worktree", "isolation: remote");
    let outside = ScriptedAgent::from_script_text(WRITES);
    let result = agent_result(&outside.lines(&["go", "--permission-mode", "acceptEdits"]));
    assert!(result.contains("was not started") && result.contains("not in a git repository"), "{result}");
    let other = repository(&script);
    let result = agent_result(&other.lines(&["go", "--permission-mode", "acceptEdits"]));
    assert!(result.contains("InputValidationError") && result.contains("isolation"), "{result}");
    for stage in [outside, other] {
        assert!(!stage.folder.path.join("b.txt").exists());
        assert!(stage.server.requests().iter().all(|request| !request.body.contains("Written.")));
    }
}

#[test]
fn deny_rules_count_in_the_worktree_and_in_the_folder_it_was_made_from() {
    let stage = repository(
        r#"
- when: {subagent: true, result_of: Read}
  reply: Refused.
- when: {subagent: true}
  reply:
    - {tool: Read, input: {file_path: a.txt}}
    - {tool: Read, input: {file_path: "FOLDER/a.txt"}}
    - {tool: Bash, input: {command: cat ./a.txt}}
- when: {result_of: Agent}
  reply: Done.
- reply: [{tool: Agent, input: {description: look, prompt: look, isolation: worktree}}]
"#
        .replace("FOLDER", "/nonexistent")
        .as_str(),
    );
    let lines = stage.lines(&["go", "--settings", r#"{"permissions":{"deny":["Read(./a.txt)"]}}"#]);
    let results: Vec<String> = lines
        .iter()
        .filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_string())
        .map(ToString::to_string)
        .filter(|line| line.contains("tool_result"))
        .collect();
    assert_eq!(results.len(), 3, "{lines:?}");
    assert!(results.iter().all(|line| !line.contains("first")), "{results:?}");
}

/// A repository with a hook that leaves a file, a rule that allows `touch`, and a committed folder `sub`, where
/// the agent starts. Only the folder `trusted` is trusted.
fn hostile_repository(script: &str, trusted: &str) -> ScriptedAgent {
    let stage = ScriptedAgent::from_script_text(script);
    let root = stage.folder.path.join("repo");
    for (name, text) in [("outside.txt", "OUTSIDE\n"), ("sub/a.txt", "INSIDE\n")] {
        stage.write(&format!("repo/{name}"), text);
    }
    stage.write("repo/.claude/settings.json", r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#);
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A", "."], &["commit", "-q", "-m", "first"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
        assert!(git.current_dir(&root).env("HOME", &stage.folder.path).status().unwrap().success());
    }
    let hook = root.join(".git/hooks/post-checkout");
    stage.write("repo/.git/hooks/post-checkout", &format!("#!/bin/sh\ntouch {}/ran\n", stage.folder.path.display()));
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let state =
        json!({"projects": {stage.folder.path.join(trusted).to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    stage.write(".claude.json", &state.to_string());
    stage
}

fn lines_in_sub(stage: &ScriptedAgent, args: &[&str]) -> Vec<Value> {
    let args = [&["-p", "--output-format", "stream-json", "--verbose"], args].concat();
    let out = stage.command(&args).current_dir(stage.folder.path.join("repo/sub")).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_rules_of_a_worktree_need_trust_in_its_repository_and_git_runs_no_hooks() {
    for (trusted, runs) in [("repo/sub", false), ("repo", true)] {
        let stage = hostile_repository(WRITES, trusted);
        let result = agent_result(&lines_in_sub(&stage, &["go", "--permission-mode", "acceptEdits"]));
        assert!(result.contains("Written."), "{result}");
        assert!(!stage.folder.path.join("ran").exists(), "{trusted}");
        let touch = "- when: {result_of: Bash}\n  reply: Done.\n- reply: [{tool: Bash, input: {command: touch made}}]";
        let stage = hostile_repository(touch, trusted);
        lines_in_sub(&stage, &["go", "--worktree=w"]);
        assert!(!stage.folder.path.join("ran").exists(), "{trusted}");
        assert_eq!(stage.folder.path.join("repo/.claude/worktrees/w/made").exists(), runs, "{trusted}");
        // The folder that settings are read from is not the one that git runs in.
        let stage = hostile_repository(touch, trusted);
        fs::create_dir_all(stage.folder.path.join("other/.claude")).unwrap();
        fs::copy(
            stage.folder.path.join("repo/.claude/settings.json"),
            stage.folder.path.join("other/.claude/settings.json"),
        )
        .unwrap();
        let other = stage.folder.path.join("other");
        lines_in_sub(&stage, &["go", "--worktree=w", "--project-config-root", other.to_str().unwrap()]);
        assert!(!stage.folder.path.join("ran").exists(), "{trusted}");
        assert!(!stage.folder.path.join("repo/.claude/worktrees/w/made").exists(), "{trusted}");
    }
}

#[test]
fn a_worktree_that_was_there_before_needs_trust_of_its_own() {
    let touch = "- when: {result_of: Bash}\n  reply: Done.\n- reply: [{tool: Bash, input: {command: touch made}}]";
    let made = "repo/.claude/worktrees/w/made";
    let stage = hostile_repository(touch, "repo");
    lines_in_sub(&stage, &["go", "--worktree=w"]);
    assert!(stage.folder.path.join(made).exists());
    fs::remove_file(stage.folder.path.join(made)).unwrap();
    lines_in_sub(&stage, &["go", "--worktree=w"]);
    assert!(!stage.folder.path.join(made).exists());
    // A branch of that name may have other files.
    let stage = hostile_repository(touch, "repo");
    let branch =
        Command::new("git").args(["branch", "worktree-w"]).current_dir(stage.folder.path.join("repo")).status();
    assert!(branch.unwrap().success());
    lines_in_sub(&stage, &["go", "--worktree=w"]);
    assert!(stage.folder.path.join("repo/.claude/worktrees/w").exists() && !stage.folder.path.join(made).exists());
}

#[test]
fn a_subagent_in_a_worktree_has_the_folder_of_the_session_alone() {
    let script = r#"
- when: {subagent: true, result_of: Bash}
  reply: Looked.
- when: {subagent: true}
  reply:
    - {tool: Read, input: {file_path: a.txt}}
    - {tool: Read, input: {file_path: ../outside.txt}}
    - {tool: Grep, input: {pattern: OUTSIDE, path: "..", output_mode: content}}
    - {tool: Bash, input: {command: "cat ../outside.txt a.txt"}}
    - {tool: Bash, input: {command: git status}}
- when: {result_of: Agent}
  reply: Done.
- reply: [{tool: Agent, input: {description: look, prompt: look, isolation: worktree}}]
"#;
    let stage = hostile_repository(script, "repo");
    let lines = lines_in_sub(&stage, &["go"]);
    let results = lines.iter().filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_string());
    let text: String = results.map(ToString::to_string).collect();
    assert!(text.contains("INSIDE") && !text.contains("OUTSIDE"), "{text}");
    assert!(text.contains("On branch worktree-agent-"), "{text}");
}

#[test]
fn a_definition_limits_the_calls_of_a_subagent_and_puts_it_in_the_background() {
    let script = r#"
- when: {subagent: true}
  reply: [{tool: Bash, input: {command: echo again}}]
- when: {step: 1}
  reply: [{tool: Agent, input: {description: work, prompt: work, subagent_type: worker}}]
- reply: Done.
"#;
    let stage = ScriptedAgent::from_script_text(script);
    stage.write(".claude/agents/worker.md", "---\nname: worker\ndescription: works\nmaxTurns: 2\n---\nWork.");
    let result = agent_result(&stage.lines(&["go"]));
    assert!(result.contains("did not finish within 2 calls"), "{result}");
    let calls = stage.server.requests().iter().filter(|request| request.body.contains("echo again")).count();
    assert!(calls <= 2, "{calls}");
    let agents = r#"{"worker": {"description": "works", "prompt": "Work.", "maxTurns": 1, "background": true}}"#;
    let result = agent_result(&stage.lines(&["go", "--agents", agents]));
    assert!(result.contains("works in the background"), "{result}");
}

/// The files that a rule names are those of the repository, also for a session that works in a worktree of it.
#[test]
fn rules_for_files_hold_in_the_repository_of_a_worktree() {
    let stage = repository(
        r#"
- when: {result_of: Bash}
  reply: Done.
- reply: [{tool: Bash, input: {command: "cat ../../../.env; cat ../../../sub/key; grep -r SECRET ../../..; true"}}]
"#,
    );
    stage.write(".env", "SECRET\n");
    stage.write("sub/key", "SECRET\n");
    for rules in [["Read(.env)", "Read(sub/key)"], ["Read(./.env)", "Read(./sub/key)"], ["Read(/.env)", "Read(**/key)"]]
    {
        let settings = json!({"sandbox": {"enabled": true}, "permissions": {"deny": rules}}).to_string();
        let lines = stage.lines(&["go", "--worktree=w", "--settings", &settings]);
        let shown = serde_json::to_string(&lines).unwrap();
        assert!(!shown.contains("SECRET\\n") && !shown.contains("env:SECRET"), "{rules:?}: {shown}");
    }
}
