//! Rough treatment: input that is no text, flags that are none, files that cannot be
//! written, answers that break, turns that are broken off.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::scripted_agent::{STREAM, ScriptedAgent, kinds};

#[test]
fn bytes_that_are_no_text_are_taken_all_the_same() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut child = agent.command(&["-p"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello \xff\0 \xe4\xbd\xa0").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), "Good day.\n");
    let seen = agent.server.requests();
    let prompt = seen[0].request.as_ref().unwrap().messages[0].content.to_text();
    assert!(prompt.contains("hello \u{fffd}\0 你"), "{prompt:?}");
}

#[test]
fn waiting_callers_get_the_error_of_a_failed_write() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("config", "no folder");
    let mut command = agent.command(&STREAM);
    command.env("CLAUDE_CONFIG_DIR", agent.folder.path.join("config")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let line = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    // Stdin stays open: its end must not be waited for.
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    let stdin = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    drop(stdin);
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&result["subtype"], out.status.code()), (&json!("error_during_execution"), Some(1)));
    assert!(result["errors"][0].as_str().unwrap().contains("config/projects"), "{result}");
    assert!(agent.server.requests().is_empty());
}

#[test]
fn a_missing_key_is_reported_without_a_call_of_the_public_api() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut command = agent.command(&["-p", "hello", "--output-format", "json"]);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    // If there is a call nevertheless, it stays on this machine.
    let out = command.env("HTTPS_PROXY", "http://127.0.0.1:1").output().unwrap();
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    let text = result["result"].as_str().unwrap();
    assert!(text.starts_with("Not logged in · set ANTHROPIC_API_KEY"), "{text}");
    assert_eq!((&result["is_error"], out.status.code()), (&json!(true), Some(1)));
    // Other servers may need no key.
    let out = agent.command(&["-p", "hello"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "Good day.\n");
}

#[test]
fn a_schema_that_is_none_is_refused() {
    let agent = ScriptedAgent::new("hello.yaml");
    for schema in ["{", "[1]", r#"{"type":"nonsense"}"#] {
        let out = agent.run(&["-p", "hello", "--json-schema", schema]);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(1) && stderr.contains("--json-schema: "), "{schema}: {stderr}");
    }
    assert!(agent.server.requests().is_empty());
}

#[test]
fn a_subagent_begins_when_the_answer_that_asks_for_it_is_whole() {
    let agent = ScriptedAgent::new("broken_off.yaml");
    let lines = agent.lines(&["cut"]);
    assert_eq!(lines.last().unwrap()["result"], "On second thought, no.");
    assert!(!kinds(&lines).contains(&"system/task_started".to_owned()), "{:?}", kinds(&lines));
    assert_eq!(agent.server.requests().len(), 2);
}

#[test]
fn a_subagent_that_is_broken_off_writes_down_its_end() {
    let agent = ScriptedAgent::new("broken_off.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("help");
    process.read_until(|line| line["message"]["content"][0]["name"] == "Bash");
    process.send_request("1", json!({"subtype": "interrupt"}));
    assert_eq!(process.read_result()["terminal_reason"], "aborted_tools");
    let (_, lines) = process.end();
    let notification = lines.iter().find(|line| line["subtype"] == "task_notification").unwrap();
    assert_eq!(notification["status"], "stopped");
    let folder = agent.session_file().with_extension("").join("subagents");
    let read = |ext| {
        let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        fs::read_to_string(paths.into_iter().find(|path| path.extension().unwrap() == ext).unwrap()).unwrap()
    };
    assert!(read("json").contains(r#""finished":true"#));
    let last: Vec<String> = read("jsonl").lines().rev().take(2).map(str::to_owned).collect();
    assert!(last[0].contains("[Request interrupted by user") && last[1].contains("tool_result"), "{last:?}");
}

/// Whether a process of this id runs.
fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_failed_hook_is_reported_and_a_hanging_one_ends_with_its_children() {
    let agent = ScriptedAgent::new("notes.yaml");
    agent.write("notes.txt", "x");
    let hang = r#"echo $CLAUDE_PROJECT_DIR > root; sleep 60 & echo $! > child; wait"#;
    let settings = json!({"hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": hang, "timeout": 0.5}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "echo oops >&2; exit 1"}]}],
        // What a hook leaves running is waited for no longer than what it says itself.
        "Stop": [{"hooks": [{"type": "command", "command": "sleep 60 & echo $! > left"}]}],
    }});
    let lines = agent.lines(&["read the notes", "--settings", &settings.to_string()]);
    let contents: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
    assert_eq!(
        contents,
        [
            format!("PreToolUse:Read hook [{hang}] failed, not done in 0.5 s"),
            "PostToolUse:Read hook [echo oops >&2; exit 1] failed, exit code 1: oops".to_owned(),
        ]
    );
    let read = |name: &str| fs::read_to_string(agent.folder.path.join(name)).unwrap();
    assert_eq!(read("root").trim(), agent.folder.path.canonicalize().unwrap().to_str().unwrap());
    // Elsewhere no file says what runs.
    assert!(!cfg!(target_os = "linux") || !runs(&read("child")) && runs(&read("left")));
    std::process::Command::new("kill").arg(read("left").trim()).status().unwrap();
    let file = fs::read_to_string(agent.session_file()).unwrap();
    assert_eq!(file.matches("hook_non_blocking_error").count(), 2);
}

#[test]
fn errors_in_settings_are_reported_with_their_position_and_the_rest_is_used() {
    let agent = ScriptedAgent::new("hello.yaml");
    let settings = r#"{"permissions":{"allow":["Bash(rm"],"defaultMode":"silly"}}"#;
    agent.write(".claude/settings.json", settings);
    agent.write(".mcp.json", r#"{"mcpServers":{"a":{"comand":"x"},"b":{}}}"#);
    let lines = agent.lines(&["hello", "--settings", r#"{"enabledMcpjsonServers":["a"]}"#]);
    let contents: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
    let [rule, mode, server, unapproved] = contents[..] else { panic!("{contents:?}") };
    assert!(rule.contains(".claude/settings.json: permissions.allow: 'Bash(rm' is not a rule"), "{rule}");
    assert!(mode.contains("permissions.defaultMode: no mode 'silly'"), "{mode}");
    assert!(server.ends_with(".mcp.json: server a: missing field `command`"), "{server}");
    assert!(unapproved.contains(".mcp.json that you have not approved: b"), "{unapproved}");
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    let out = agent.run(&["-p", "hello", "--mcp-config", r#"{"mcpServers":{"a":{"comand":"x"}}}"#]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(stderr, "error: --mcp-config: server a: missing field `command`\n");
    // What was to be refused must not run because of a slip.
    agent.write(".claude/settings.json", r#"{"permissions":{"deny":["Bash(rm"]}}"#);
    let out = agent.run(&["-p", "hello"]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && stderr.contains("permissions.deny: 'Bash(rm' is not a rule"), "{stderr}");
}

#[test]
fn flags_that_cannot_be_meant_are_refused() {
    let agent = ScriptedAgent::new("hello.yaml");
    let check = |args: &[&str], expect: &str| {
        let out = agent.run(args);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && stderr.contains(expect), "{args:?}: {stderr}");
    };
    check(&["-p", "hello", "--max-turns", "0"], "0 is not in 1..");
    check(&["-p", "hello", "--max-turns", "-1"], "--max-turns");
    for amount in ["0", "-2", "NaN", "inf", "much"] {
        check(&["-p", "hello", "--max-budget-usd", amount], "must be an amount above 0");
    }
    check(&["-p", "hello", "--permission-mode", "yolo"], "no mode 'yolo'");
    check(&["-p", " "], "no prompt");
    assert!(agent.server.requests().is_empty());
}

#[test]
fn a_prompt_beside_those_of_stdin_is_ignored_with_a_warning() {
    let agent = ScriptedAgent::new("hello.yaml");
    let out = agent.run(&["-p", "hello", "--input-format", "stream-json", "--output-format", "stream-json"]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && stderr.contains("is not used"), "{stderr}");
    assert!(agent.server.requests().is_empty());
}

#[test]
fn help_has_examples_and_groups() {
    let out = ScriptedAgent::new("hello.yaml").run(&["--help"]);
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    for part in ["Examples:\n  quipu-agent -p", "\nSessions:\n", "\nTools and permissions:\n"] {
        assert!(help.contains(part), "{help}");
    }
}

#[test]
fn warnings_are_printed_on_stderr() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(".claude/settings.local.json", "{broken");
    let out = agent.run(&["-p", "hello"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "Good day.\n");
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        stderr.starts_with("warning: left out: ") && stderr.contains("settings.local.json: key must be a string"),
        "{stderr}"
    );
    // The folder is the home folder, so this is the user's file, whose restrictions would be lost.
    agent.write(".claude/settings.json", "{broken");
    let out = agent.run(&["-p", "hello"]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && stderr.contains("settings.json are not valid"), "{stderr}");
    let mut command = agent.command(&["-p", "hello", "--setting-sources", ""]);
    let out = command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1").output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(stderr.matches("trying again in ").count(), 2, "{stderr}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "API Error: cannot connect to 127.0.0.1:1\n");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let agent = ScriptedAgent::new("hello.yaml");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let out = agent.command(&["-p", "hello"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && stderr.contains("cannot write the output: No space left"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_terminated_session_runs_its_end_hooks_and_records_its_cost() {
    let agent = ScriptedAgent::new("hello.yaml");
    let settings = json!({"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "touch ended"}]}]}});
    let mut process = agent.spawn(&["--settings", &settings.to_string()]);
    process.send_prompt("hello");
    process.read_result();
    std::process::Command::new("kill").arg(process.child.id().to_string()).status().unwrap();
    assert_eq!(process.child.wait().unwrap().code(), Some(128 + 15));
    assert!(agent.folder.path.join("ended").exists());
    assert!(fs::read_to_string(agent.session_file()).unwrap().contains("cost-state"));
}

#[test]
fn an_empty_summary_replaces_nothing() {
    let agent = ScriptedAgent::new("silent.yaml");
    let mut process = agent.spawn(&[]);
    process.send_prompt("remember the number 7");
    process.read_result();
    process.send_prompt("and the number 8");
    process.read_result();
    process.send_prompt("/compact");
    assert_eq!(process.read_result()["result"], "Not compacted: the model wrote no summary");
    process.send_prompt("what was it?");
    process.read_result();
    process.end();
    assert!(agent.server.requests().last().unwrap().body.contains("remember the number 7"));
}

/// An MCP server in a few lines of shell: it says hello, offers one tool and, when that
/// is called, does what `then` says.
fn shell_server(then: &str) -> String {
    let script = r#"
        reply() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
        echo $$ > server
        while read -r line; do
            id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
                *'"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}';;
                *'"tools/list"'*) reply '{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}';;
                *'"tools/call"'*) THEN;;
            esac
        done"#;
    let args = json!(["-c", script.replace("THEN", then)]);
    json!({"mcpServers": {"far": {"command": "sh", "args": args}}}).to_string()
}

#[test]
fn a_server_that_stalls_dies_or_cannot_be_read_fails_the_call_and_ends_with_the_session() {
    let agent = ScriptedAgent::new("gone.yaml");
    let result = |then| {
        let mut command = agent.command(&["-p", "greet", "--output-format", "stream-json"]);
        command.args(["--mcp-config", &shell_server(then), "--allowedTools", "mcp__far"]);
        let out = command.env("MCP_TOOL_TIMEOUT", "300").output().unwrap();
        let lines = String::from_utf8(out.stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let result = lines.into_iter().find(|line| line["type"] == "user").unwrap();
        result["message"]["content"][0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(result("exit 3"), "The MCP server has ended; its tools cannot be used any more");
    let deep = format!("reply '{{\"content\":{}{}}}'", "[".repeat(200), "]".repeat(200));
    let unreadable = result(&deep);
    assert!(unreadable.contains("the answer of the server cannot be read: recursion limit"), "{unreadable}");
    assert_eq!(result("sleep 60"), "The MCP server did not answer within 0.3 s (MCP_TOOL_TIMEOUT)");
    let server = fs::read_to_string(agent.folder.path.join("server")).unwrap();
    // The kernel may take a moment to end a process that was killed.
    let ended = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        !runs(&server)
    });
    assert!(!cfg!(target_os = "linux") || ended);
}

#[test]
fn missing_servers_are_reported_on_stderr() {
    let agent = ScriptedAgent::new("hello.yaml");
    let servers =
        json!({"mcpServers": {"far": {"command": "/nonexistent"}, "late": {"command": "sleep", "args": ["60"]}}});
    let mut command = agent.command(&["-p", "hello", "--mcp-config", &servers.to_string()]);
    let out = command.env("MCP_TIMEOUT", "100").output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(stderr.contains("the MCP server far is not used: cannot start /nonexistent"), "{stderr}");
    assert!(stderr.contains("the MCP server late is not used: no answer in time"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "Good day.\n");
}
