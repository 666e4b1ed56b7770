//! What runs and what asks, with the sandbox and without it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// The user that has no rights anywhere.
const NOBODY: u32 = 65534;

/// A system to run on: its name, the commands in front of the agent, `QUIPU_SANDBOX`.
struct System {
    name: &'static str,
    wrapper: &'static [&'static str],
    switch: &'static str,
}

const ORDINARY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
/// A user namespace in which no other can be made.
const NO_NAMESPACES: &[&str] =
    &["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"];

const SYSTEMS: [System; 4] = [
    System { name: "ordinary user", wrapper: ORDINARY, switch: "auto" },
    System { name: "root", wrapper: &[], switch: "auto" },
    System { name: "no user namespaces", wrapper: NO_NAMESPACES, switch: "auto" },
    System { name: "`QUIPU_SANDBOX=off`", wrapper: &[], switch: "off" },
];

/// What is tried: how the table calls it, the prompt, and flags.
const CASES: [(&str, &str, &[&str]); 7] = [
    ("only reads", "read", &[]),
    ("only reads, and a rule refuses a file there", "read", &["--disallowedTools", "Read(./.env)"]),
    ("changes files in `acceptEdits`", "change", &["--permission-mode", "acceptEdits"]),
    ("a rule allows it", "approved", &["--allowedTools", "Bash(touch:*)"]),
    ("nothing allows it", "unknown", &[]),
    ("nothing allows it, `sandbox.enabled`", "unknown", &["--settings", r#"{"sandbox":{"enabled":true}}"#]),
    ("only reads, `dangerouslyDisableSandbox`", "outside", &[]),
];

/// The agent's command with others in front of it.
fn wrapped(agent: &Command, wrapper: &[&str]) -> Command {
    let words = wrapper.iter().map(OsStr::new).chain([agent.get_program()]).chain(agent.get_args());
    let words: Vec<&OsStr> = words.collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(agent.get_current_dir().unwrap()).env_clear();
    command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Gives a folder and all in it to a user.
fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path(), user);
        } else {
            chown(entry.path(), Some(user), Some(user)).unwrap();
        }
    }
}

/// How a call went: its result in the session file, in a word.
fn outcome(agent: &ScriptedAgent) -> &'static str {
    let text = fs::read_to_string(agent.session_file()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.iter().find(|line| line["toolUseResult"] != Value::Null).unwrap();
    let failed = result["message"]["content"][0]["is_error"] == true;
    match (result["sandboxed"].as_bool(), failed) {
        (Some(true), false) => "runs in the sandbox",
        (Some(false), false) => "runs",
        (None, true) => "asks",
        other => panic!("{other:?}: {result}"),
    }
}

fn run_prompt(system: &System, prompt: &str, flags: &[&str]) -> &'static str {
    let agent = ScriptedAgent::new("sandbox.yaml");
    agent.write(".env", "SECRET\n");
    if system.wrapper == ORDINARY {
        give(&agent.folder.path, NOBODY);
        fs::set_permissions(agent.folder.path.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let args = [&["-p", prompt], flags].concat();
    let mut command = wrapped(&agent.command(&args), system.wrapper);
    let out = command.env("QUIPU_SANDBOX", system.switch).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}: {}", system.name, String::from_utf8_lossy(&out.stderr));
    outcome(&agent)
}

#[test]
#[allow(clippy::print_stderr, reason = "skipped tests are reported")]
fn commands_run_or_ask_as_documented() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let has = |wrapper: &[&str]| {
        let probe = [wrapper, &["unshare", "-Ur", "true"]].concat();
        Command::new(probe[0]).args(&probe[1..]).output().is_ok_and(|out| out.status.success())
    };
    if !is_root || !has(&[]) || !has(ORDINARY) {
        eprintln!("\n*** NOT TESTED: this needs root, setpriv and user namespaces ***\n");
        return;
    }
    let mut table = String::from("| command |");
    SYSTEMS.iter().for_each(|system| table.push_str(&format!(" {} |", system.name)));
    table.push_str(&format!("\n|---|{}\n", "---|".repeat(SYSTEMS.len())));
    for (name, prompt, flags) in CASES {
        table.push_str(&format!("| {name} |"));
        SYSTEMS.iter().for_each(|system| table.push_str(&format!(" {} |", run_prompt(system, prompt, flags))));
        table.push('\n');
    }
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");
    assert!(fs::read_to_string(docs).unwrap().contains(&table), "docs/permissions.md must hold:\n{table}");
}

#[test]
fn an_agent_that_requires_a_sandbox_does_not_start_without_one() {
    let agent = ScriptedAgent::new("hello.yaml");
    let run = |switch: &str, flags: &[&str]| {
        let args = [&["-p", "hello"], flags].concat();
        let out = agent.command(&args).env("QUIPU_SANDBOX", switch).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let required = ["--settings", r#"{"sandbox":{"enabled":true,"failIfUnavailable":true}}"#];
    let (code, text) = run("off", &required);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("QUIPU_SANDBOX is off"), "{text}");
    // As the TypeScript SDK's `managedSettings` pass it.
    assert_eq!(run("off", &["--managed-settings", required[1]]).0, Some(1));
    let (code, text) = run("sometimes", &[]);
    assert_eq!((code, text.contains("auto, require and off")), (Some(1), true), "{text}");
    assert_eq!(run("off", &[]).0, Some(0));
}

#[test]
fn domains_in_the_settings_are_answered_with_a_warning() {
    let agent = ScriptedAgent::new("hello.yaml");
    let settings = json!({"sandbox": {"enabled": true, "network": {"allowedDomains": ["a.example"]}}}).to_string();
    let out = agent.run(&["-p", "hello", "--settings", &settings]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("cannot filter by domain"), "{text}");
}
