//! What commands find in their environment: the user's shell, `CLAUDE_ENV_FILE`, and where long
//! output is kept.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::scripted_agent::ScriptedAgent;

/// The text of the result of a tool call.
fn result_text(lines: &[Value]) -> String {
    let results = lines.iter().filter(|line| line["type"] == "user");
    results.filter_map(|line| line["message"]["content"][0]["content"].as_str()).collect::<Vec<_>>().join("\n")
}

fn runs(command: &str) -> ScriptedAgent {
    let script = format!(
        "- when: {{result_of: Bash}}\n  reply: Done.\n- reply: [{{tool: Bash, input: {{command: {command:?}}}}}]\n"
    );
    ScriptedAgent::from_script_text(&script)
}

const START_HOOK: &str = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command",
    "command": "echo 'export FROM_HOOK=\"a b\"' >> \"$CLAUDE_ENV_FILE\"; echo 'greet() { echo hello $1; }' >> $CLAUDE_ENV_FILE"}]}]}}"#;

/// Commands that nothing else allows run in the sandbox.
const SANDBOX: &str = r#"{"sandbox": {"enabled": true}}"#;

#[test]
fn what_start_hooks_write_to_the_env_file_is_there_in_commands() {
    // One is held in the sandbox; a rule allows the other to run without it.
    for (command, args, expected) in [
        ("echo $FROM_HOOK", &["go", "--settings", SANDBOX][..], "a b"),
        ("greet $FROM_HOOK", &["go", "--allowedTools", "Bash(greet:*)"], "hello a"),
    ] {
        let stage = runs(command);
        stage.write(".claude/settings.json", START_HOOK);
        let text = result_text(&stage.lines(args));
        assert_eq!(text, expected, "{command}");
    }
}

#[test]
fn the_users_own_env_file_is_read_at_the_start() {
    let stage = runs("echo \"[$MINE]\"; echo export MINE=changed > mine.sh");
    stage.write("mine.sh", "export MINE=own\necho this is not shown\n");
    let mut command = stage.command(&["-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json"]);
    let output = command.env("CLAUDE_ENV_FILE", "mine.sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(result_text(&lines), "[own]");
}

#[test]
fn a_mistake_in_the_env_file_is_reported_and_the_command_runs() {
    let stage = runs("echo still here");
    stage.write("mine.sh", "if then\n");
    let mut command = stage.command(&["-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json"]);
    let output = command.env("CLAUDE_ENV_FILE", "mine.sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("still here") && text.contains("syntax error"), "{text}");
}

const BASHRC: &str = "[ -z \"$PS1\" ] && return\nalias shout='echo LOUD'\nspeak() { echo \"it says $1\"; }\n\
                      export FROM_RC=yes PATH=\"$HOME/bin:$PATH\" ANTHROPIC_API_KEY=secret-of-the-user\necho noise\n";

#[test]
fn commands_outside_the_sandbox_have_the_users_shell() {
    let command = "shout; speak this; echo $FROM_RC; tool-of-mine; echo key=[$ANTHROPIC_API_KEY]";
    let stage = runs(command);
    let bin = tempfile::tempdir().unwrap();
    let bashrc = BASHRC.replace("$HOME/bin", bin.path().to_str().unwrap());
    stage.write(".bashrc", &bashrc);
    write_program(&bin.path().join("tool-of-mine"), "found");
    let text = result_text(&stage.lines(&["go", "--allowedTools", "Bash"]));
    assert_eq!(text, "LOUD\nit says this\nyes\nfound\nkey=[]");
}

/// Writes a program that prints a word.
fn write_program(path: &Path, word: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\necho {word}\n")).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn programs_in_the_session_are_run_only_from_guarded_folders() {
    // The folder that `~/.bashrc` adds is left out: it is known too late to be guarded.
    let stage = runs("uptime");
    stage.write(".bashrc", BASHRC);
    write_program(&stage.folder.path.join("bin/uptime"), "replaced");
    let text = result_text(&stage.lines(&["go", "--allowedTools", "Bash(uptime)"]));
    assert!(!text.contains("replaced"), "{text}");
    // The one that CLAUDE_ENV_FILE adds is guarded.
    let stage = ScriptedAgent::from_script_text(
        "- when: {result_of: Bash, result_says: replaced}\n  reply: Done.\n- when: {result_of: Bash}\n  reply: [{tool: Bash, input: \
         {command: tool-of-mine}}]\n- reply: [{tool: Bash, input: {command: 'echo echo replaced > bin/tool-of-mine'}}]\n",
    );
    write_program(&stage.folder.path.join("bin/tool-of-mine"), "found");
    stage.write("mine.sh", "export PATH=\"$PWD/bin:.:$PATH\"\n");
    let mut command = stage.command(&["-p", "go", "--output-format", "stream-json", "--verbose"]);
    command.args(["--allowedTools", "Bash(tool-of-mine)", "--permission-mode", "acceptEdits", "--max-turns", "3"]);
    let output = command.env("CLAUDE_ENV_FILE", "mine.sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results = result_text(&lines);
    assert!(results.contains("found") && !results.contains("replaced"), "{results}");
}

#[test]
fn commands_in_the_sandbox_do_not_have_the_users_shell() {
    let stage = runs("echo rc=$FROM_RC");
    stage.write(".bashrc", BASHRC);
    assert_eq!(result_text(&stage.lines(&["go", "--settings", SANDBOX])), "rc=");
}

#[test]
fn the_users_shell_does_not_change_what_was_checked() {
    let rule = ["go", "--allowedTools", "Bash(printenv:*)"];
    let rc = "export CDPATH=$HOME/above looped=x FROM_RC=yes\n";
    let stage = runs("for looped in PWN; do printenv looped; done; printenv FROM_RC");
    stage.write(".bashrc", rc);
    assert_eq!(result_text(&stage.lines(&rule)), "yes");
    let stage = runs("cd out; cat secret; printenv FROM_RC");
    stage.write("above/out/secret", "SECRET");
    stage.write(".bashrc", rc);
    let text = result_text(&stage.lines(&rule));
    assert!(text.ends_with("yes") && !text.contains("SECRET"), "{text}");
    fs::remove_file(stage.folder.path.join(".bashrc")).unwrap();
    stage.write("mine.sh", "CDPATH=$HOME/above FROM_RC=yes\nexport FROM_RC\n");
    let mut command = stage.command(&["-p", "--output-format", "stream-json", "--verbose"]);
    let output = command.args(rule).env("CLAUDE_ENV_FILE", "mine.sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("nyes") && !text.contains("SECRET"), "{text}");
}

#[test]
fn a_start_file_that_fails_holds_nothing_up() {
    let stage = runs("echo on");
    stage.write(".bashrc", "exit 3\n");
    assert_eq!(result_text(&stage.lines(&["go", "--allowedTools", "Bash"])), "on");
}

#[test]
fn long_output_is_kept_beside_the_session_and_may_be_read() {
    let stage = ScriptedAgent::from_script_text(
        "- when: {result_of: Read}\n  reply: Done.\n- when: {result_of: Bash}\n  reply: [{tool: Read, input: \
         {file_path: \"FILE\", limit: 2}}]\n- reply: [{tool: Bash, input: {command: seq 1 20000}}]\n",
    );
    let lines = stage.lines(&["go"]);
    let folder = stage.session_file().with_extension("").join("tool-results");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].extension().unwrap(), "txt");
    let text = fs::read_to_string(&files[0]).unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n20000\n"));
    let path = files[0].to_str().unwrap();
    assert!(result_text(&lines).contains(&format!("Full output saved to: {path}\n\nPreview (first 2KB):\n1\n2")));
    let raw = lines.iter().find_map(|line| line["tool_use_result"]["persistedOutputPath"].as_str()).unwrap();
    assert_eq!(raw, path);
    // A later session reads it where it is, without a question.
    let id = lines[0]["session_id"].as_str().unwrap();
    let script = format!(
        "- when: {{result_of: Read}}\n  reply: Done.\n- reply: [{{tool: Read, input: {{file_path: {path:?}, limit: 2}}}}]\n"
    );
    let later = ScriptedAgent { folder: stage.folder, ..ScriptedAgent::from_script_text(&script) };
    let lines = later.lines(&["again", "--resume", id]);
    assert!(result_text(&lines).contains("1\t1\n2\t2"), "{lines:?}");
}

#[test]
fn long_output_of_a_session_that_is_not_kept_is_not_kept_either() {
    let stage = runs("seq 1 20000");
    let text = result_text(&stage.lines(&["go", "--no-session-persistence"]));
    assert!(text.contains("Full output saved to: ") && !text.contains("tool-results"), "{text}");
}
