//! The flags.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scripted_agent::{STREAM, ScriptedAgent};

/// The rows of the table of flags in `docs/compat.md`: the flag, its example, its effect.
fn table() -> Vec<[String; 3]> {
    let page = fs::read_to_string(quipu_testkit::repository_root().join("docs/compat.md")).unwrap();
    let section = page.split("\n## Flags\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `-"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`').to_owned());
        [cells.next().unwrap(), cells.next().unwrap(), cells.collect::<Vec<_>>().join(" | ")]
    })
    .collect()
}

/// A flag and its value, or several flags.
fn words(example: &str) -> Vec<&str> {
    match example.split_once(' ') {
        Some((flag, rest)) if rest.starts_with("--") => [vec![flag], words(rest)].concat(),
        Some((flag, value)) => vec![flag, value],
        None => vec![example],
    }
}

#[test]
fn every_flag_of_the_table_is_accepted() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("kit/commands/x.md", "x");
    let id = "11111111-2222-4333-8444-555555555555";
    assert!(agent.run(&["-p", "hello", "--session-id", id]).status.success());
    let stderr = |args: &[&str]| {
        let out = agent.command(&[&["-p", "hello"], args].concat()).env("IS_SANDBOX", "1").output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{args:?}: {stderr}");
        stderr
    };
    let rows = table();
    let (mut ignored, mut untried) = (Vec::new(), Vec::new());
    for [flag, example, effect] in &rows {
        assert!(example == "–" || example.contains(flag), "{example} does not show {flag}");
        match effect.split([':', ' ']).next() {
            _ if example == "–" => untried.push(flag.as_str()),
            Some("ignored") => ignored.extend(words(example)),
            _ => assert!(!stderr(&words(example)).contains("ignored: --"), "{example}"),
        }
    }
    let stderr = stderr(&ignored);
    let warning = stderr.lines().find_map(|line| line.strip_prefix("warning: not supported here, ignored: ")).unwrap();
    let named: Vec<&str> = warning.split(", ").collect();
    let given = ignored.iter().map(|flag| flag.split('=').next().unwrap());
    let has_long_name = |flag: &&str| flag.starts_with("--") && !["--background", "--rc"].contains(flag);
    let given: Vec<&str> = given.filter(has_long_name).collect();
    assert_eq!(named, given);
    // Those have tests of their own.
    let own = [
        "--await-initialize",
        "--managed-settings-in-initialize",
        "--resume-drops-turn",
        "--resume-session-at",
        "--worktree",
        "-w",
    ];
    assert_eq!(untried, own);
}

#[test]
fn the_table_has_every_flag_of_the_help() {
    let known: BTreeSet<String> = table().into_iter().map(|[flag, ..]| flag).collect();
    let help = String::from_utf8(ScriptedAgent::new("hello.yaml").run(&["--help"]).stdout).unwrap();
    let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let flags = options.filter_map(|line| line.trim_start().split("  ").next());
    let flags = flags.flat_map(|line| line.split([' ', ',', '[']).filter(|word| word.starts_with('-')));
    let missing: Vec<&str> = flags.filter(|flag| flag.len() > 1 && !known.contains(*flag)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn the_last_of_a_flag_counts_and_lists_are_joined() {
    let agent = ScriptedAgent::new("hello.yaml");
    let args = ["hello", "there", "-p", "--verbose", "--verbose", "--model", "a", "--model", "claude-haiku-4-5"];
    let more = ["--output-format", "text", "--output-format", "json", "--tools", "Read", "--tools", "Bash"];
    let out = agent.run(&[&args[..], &more].concat());
    let lines: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(lines[0]["model"], "claude-haiku-4-5");
    assert_eq!(lines[0]["tools"], json!(["Bash", "Read"]));
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("only the first word of the command line is the prompt"), "{stderr}");
}

#[test]
fn stdin_that_cannot_be_read_is_an_error() {
    let agent = ScriptedAgent::new("hello.yaml");
    let folder = fs::File::open(&agent.folder.path).unwrap();
    let out = agent.command(&["-p", "hello"]).stdin(folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && stderr.contains("stdin"), "{stderr}");
    assert_eq!(agent.server.requests().len(), 0);
}

#[test]
fn what_is_piped_in_follows_the_prompt_after_a_newline() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("piped", "first\nsecond\n");
    let file = fs::File::open(agent.folder.path.join("piped")).unwrap();
    assert!(agent.command(&["-p", "hello"]).stdin(file).status().unwrap().success());
    let text = fs::read_to_string(agent.session_file()).unwrap();
    assert!(text.contains(r#""content":"hello\nfirst\nsecond\n""#), "{text}");
}

#[test]
fn without_a_prompt_a_silent_stdin_is_an_error() {
    let agent = ScriptedAgent::new("hello.yaml");
    let began = Instant::now();
    let mut child = agent.command(&["-p"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let silent = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    drop(silent);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("no prompt: give one after -p"));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_session_is_resumed_by_its_title() {
    let agent = ScriptedAgent::new("hello.yaml");
    assert!(agent.run(&["-p", "hello", "--name", "My title"]).status.success());
    assert!(agent.run(&["-p", "hello", "--name", "Another"]).status.success());
    assert!(agent.run(&["-p", "hello again", "--resume", "My title"]).status.success());
    assert_eq!(agent.folder.transcripts().len(), 2);
    let out = agent.run(&["-p", "hello", "--resume", "No title"]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("no session of this directory has the id or title 'No title'"), "{stderr}");
    // A host gets a result, too.
    let lines = agent.lines(&["hello", "--resume", "11111111-2222-4333-8444-555555555555"]);
    let error = "No conversation found with session ID: 11111111-2222-4333-8444-555555555555";
    assert_eq!((lines.len(), &lines[0]["errors"]), (1, &json!([error])));
}

#[test]
fn an_empty_system_prompt_leaves_one_line() {
    let agent = ScriptedAgent::new("hello.yaml");
    let system = |args: &[&str]| -> Vec<String> {
        assert!(agent.run(&[&["-p", "hello"], args].concat()).status.success());
        let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
        let texts = body["system"].as_array().unwrap().iter();
        texts.map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    };
    for args in [&["--system-prompt", ""][..], &["--bare"]] {
        let parts = system(args);
        assert_eq!(parts, ["You are quipu-agent, an agent that works for the user through tools."]);
    }
    assert!(system(&[]).concat().len() > 500);
    let parts = system(&["--exclude-dynamic-system-prompt-sections"]);
    assert!(!parts.concat().contains("Working directory: "), "{parts:?}");
    let seen = agent.server.requests();
    let body: Value = serde_json::from_str(&seen.last().unwrap().body).unwrap();
    assert!(body["messages"].to_string().contains("Working directory: "), "{}", body["messages"]);
}

#[test]
fn a_session_runs_as_an_agent() {
    let agent = ScriptedAgent::new("hello.yaml");
    let file =
        "---\nname: reviewer\ndescription: reviews\ntools: Read, Bash\nmodel: claude-haiku-4-5\n---\nYou review.";
    agent.write(".claude/agents/reviewer.md", file);
    let lines = agent.lines(&["hello", "--agent", "reviewer"]);
    assert_eq!((&lines[0]["model"], &lines[0]["tools"]), (&json!("claude-haiku-4-5"), &json!(["Bash", "Read"])));
    let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
    assert_eq!(body["system"][1]["text"], "You review.");
    let text = fs::read_to_string(agent.session_file()).unwrap();
    let noted: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.contains("agentSetting")).map(|(at, _)| at).collect();
    assert!(noted.len() == 2 && noted[0] == 0, "{text}");
    let lines = agent.lines(&["hello", "--agent", "reviewer", "--model", "claude-opus-5-5"]);
    assert_eq!(lines[0]["model"], "claude-opus-5-5");
    // A setting does the same, of a project only where it is trusted.
    agent.write(".claude/settings.local.json", r#"{"agent": "reviewer"}"#);
    assert_eq!(agent.lines(&["hello", "--trust-folder"])[0]["tools"], json!(["Bash", "Read"]));
    assert_eq!(agent.lines(&["hello"])[0]["model"], "claude-opus-5-5");
    fs::remove_file(agent.folder.path.join(".claude/settings.local.json")).unwrap();
    let lines = agent.lines(&["hello", "--settings", r#"{"agent": "nobody"}"#]);
    assert!(
        lines.iter().any(|line| line["content"].as_str().is_some_and(|text| text.contains("agent: no agent 'nobody'")))
    );
    let out = agent.run(&["-p", "hello", "--agent", "nobody"]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(1) && stderr.contains("--agent: no agent 'nobody'; there are Explore"),
        "{stderr}"
    );
}

#[test]
fn an_agent_may_be_defined_by_initialize() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&["--agent", "reviewer"]);
    let agents = json!({"reviewer": {"description": "d", "prompt": "You review.", "tools": ["Read"]}});
    process.send_request("1", json!({"subtype": "initialize", "agents": agents}));
    process.read_until(|line| line["type"] == "control_response");
    process.send_prompt("hello");
    process.read_result();
    let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
    assert_eq!((&body["system"][1]["text"], &body["tools"][0]["name"]), (&json!("You review."), &json!("Read")));
}

#[test]
fn modes_without_customisation_omit_what_is_documented() {
    let agent = ScriptedAgent::new("hello.yaml");
    let hook = r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]},
                   "permissions": {"deny": ["WebFetch"]}}"#;
    agent.write(".claude/settings.json", hook);
    agent.write("CLAUDE.md", "MARKER-MEMORY");
    agent.write(".claude/agents/reviewer.md", "---\ndescription: reviews\n---\nYou review.");
    // What is there: the hook, the instructions, the agent, Bash, WebFetch.
    let check = |args: &[&str], expect: [bool; 5]| {
        let _ = fs::remove_file(agent.folder.path.join("ran"));
        let lines = agent.lines(&[&["hello", "--trust-folder"], args].concat());
        let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
        let has = |list: &str, name: &str| init[list].as_array().unwrap().contains(&name.into());
        let body = agent.server.requests().last().unwrap().body.clone();
        let ran = agent.folder.path.join("ran").exists();
        let found = [
            ran,
            body.contains("MARKER-MEMORY"),
            has("agents", "reviewer"),
            has("tools", "Bash"),
            has("tools", "WebFetch"),
        ];
        assert_eq!(found, expect, "{args:?}");
    };
    check(&[], [true, true, true, true, false]);
    check(&["--bare"], [false, false, true, true, false]);
    check(&["--safe-mode"], [false, false, false, true, false]);
    check(&["--restricted"], [false, false, false, false, false]);
    check(&["--restricted", "--tools", "Bash,WebFetch"], [false, false, false, true, true]);
    let out = agent.run(&["-p", "hello", "--restricted", "--permission-mode", "bypassPermissions"]);
    assert_eq!(out.status.code(), Some(1));
    let out = agent.command(&["-p", "hello", "--output-format", "stream-json"]).env("CLAUDE_CODE_SIMPLE", "1").output();
    let text = String::from_utf8(out.unwrap().stdout).unwrap();
    assert!(text.contains(r#""tools":["Bash","Edit","Read"]"#), "{text}");
}

#[test]
fn a_restricted_session_reads_nothing_outside_its_folders() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("secret.txt");
    fs::write(&path, "MARKER-SECRET").unwrap();
    let script = json!([{"when": {"result_of": "Read"}, "reply": "done"},
                        {"reply": [{"tool": "Read", "input": {"file_path": path}}]}]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let read = |args: &[&str]| {
        agent.lines(&[&["go", "--allowedTools", "Read"], args].concat());
        agent.server.requests().last().unwrap().body.contains("MARKER-SECRET")
    };
    assert!(read(&[]) && !read(&["--restricted"]));
    assert!(read(&["--restricted", "--add-dir", outside.path().to_str().unwrap()]));
}

#[test]
fn the_first_line_brings_plugins_and_managed_settings() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("kit/commands/greet.md", "Say hello.");
    let flags = ["--await-initialize", "--managed-settings-in-initialize"];
    let mut process = agent.spawn(&flags);
    process.send_request(
        "1",
        json!({"subtype": "initialize", "plugins": [{"type": "local", "path": "kit"}],
               "managedSettings": {"permissions": {"deny": ["Bash"]}}}),
    );
    process.read_until(|line| line["type"] == "control_response");
    process.send_prompt("hello");
    let init = process.read_until(|line| line["subtype"] == "init");
    assert!(init["slash_commands"].as_array().unwrap().contains(&"kit:greet".into()), "{init}");
    assert!(!init["tools"].as_array().unwrap().contains(&"Bash".into()));
    process.read_result();
    assert_eq!(process.end().0, 0);
    let mut process = agent.spawn(&flags);
    process.send_request("1", json!({"subtype": "initialize"}));
    assert_eq!(process.end(), (1, Vec::new()));
    let out = agent.command(&[&STREAM[..], &flags[..1]].concat()).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(1) && stderr.contains("the first line on stdin must be the initialize"),
        "{stderr}"
    );
}

#[test]
fn a_project_is_configured_by_another_checkout() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("trusted/.claude/agents/theirs.md", "---\ndescription: d\n---\nx");
    agent.write(".claude/agents/own.md", "---\ndescription: d\n---\nx");
    let hook = r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo $CLAUDE_PROJECT_DIR > dir"}]}]}}"#;
    agent.write("trusted/.claude/settings.json", hook);
    let agents =
        agent.lines(&["hello", "--project-config-root", "trusted", "--setting-sources", "project"])[0]["agents"]
            .clone();
    let has = |name: &str| agents.as_array().unwrap().contains(&name.into());
    assert!(has("theirs") && !has("own"), "{agents}");
    let printed = fs::read_to_string(agent.folder.path.join("dir")).unwrap();
    assert_eq!(printed.trim(), agent.folder.path.canonicalize().unwrap().join("trusted").to_str().unwrap());
}

#[test]
fn debug_shows_requests_decisions_hooks_and_servers() {
    let agent = ScriptedAgent::new("touch.yaml");
    let settings = r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let servers = r#"{"mcpServers": {"gone": {"command": "no-such-program"}}}"#;
    let args = ["-p", "touch a file", "--settings", settings, "--mcp-config", servers, "--allowedTools", "Bash"];
    let run = |more: &[&str]| {
        let out = agent.run(&[&args[..], more].concat());
        assert!(out.status.success());
        String::from_utf8(out.stderr).unwrap()
    };
    let quiet = run(&[]);
    assert!(!quiet.contains("[api]"), "{quiet}");
    let all = run(&["--debug"]);
    for part in [
        "[api] request model=claude-opus-5-5 attempt=1",
        "[permission] allowed tool=Bash",
        "[hooks] hook event=UserPromptSubmit",
        "[mcp] failed name=gone",
    ] {
        assert!(all.contains(part), "no {part} in {all}");
    }
    let some = run(&["--debug=!api,!hooks"]);
    assert!(some.contains("[permission] ") && !some.contains("[api] ") && !some.contains("[hooks] "), "{some}");
    let none = run(&["--debug-file", "debug.txt"]);
    assert!(!none.contains("[api]"), "{none}");
    assert!(fs::read_to_string(agent.folder.path.join("debug.txt")).unwrap().contains("[api] response "));
    assert!(!all.contains("any"), "the key is in the log");
}

/// Every flag that the Python SDK puts on the command line for a new session.
const NEW: &[&str] = &[
    "--output-format",
    "stream-json",
    "--verbose",
    "--system-prompt",
    "- Be kind.",
    "--tools",
    "Bash,Read",
    "--allowedTools",
    "Bash(ls:*),Read",
    "--max-turns",
    "5",
    "--max-budget-usd",
    "2.5",
    "--disallowedTools",
    "Write",
    "--task-budget",
    "50000",
    "--model",
    "claude-opus-5-5",
    "--fallback-model",
    "haiku",
    "--betas",
    "one-beta,two-beta",
    "--permission-prompt-tool",
    "stdio",
    "--permission-mode",
    "default",
    "--session-id=11111111-2222-4333-8444-777777777777",
    "--settings",
    "{}",
    "--add-dir",
    "/tmp",
    "--mcp-config",
    r#"{"mcpServers":{}}"#,
    "--include-partial-messages",
    "--include-hook-events",
    "--strict-mcp-config",
    "--session-mirror",
    "--setting-sources=project",
    "--plugin-dir",
    "kit",
    "--thinking",
    "adaptive",
    "--thinking-display",
    "summarized",
    "--effort",
    "low",
    "--input-format",
    "stream-json",
];

#[test]
fn every_flag_of_the_python_sdk_is_taken_and_reaches_the_request() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn_initialized(NEW);
    process.send_prompt("hello");
    assert_eq!(process.read_result()["result"], "Good day.");
    assert_eq!(process.end().0, 0);
    let seen = agent.server.requests();
    let sent = seen.last().unwrap();
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(body["system"][1]["text"], "- Be kind.");
    assert_eq!(body["output_config"], json!({"effort": "low", "task_budget": {"type": "tokens", "total": 50000}}));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Bash", "Read"]);
}

#[test]
fn how_thinking_is_shown_changes_with_a_request_of_the_host() {
    let agent = ScriptedAgent::new("hello.yaml");
    let model = ["--model", "claude-sonnet-4-5"];
    let flags = ["--thinking-display", "omitted", "--max-thinking-tokens", "3000"];
    let mut process = agent.spawn(&[&model[..], &flags].concat());
    let mut shown = |request: Option<Value>| {
        if let Some(request) = request {
            process.send_request("1", request);
            process.read_until(|line| line["type"] == "control_response");
        }
        process.send_prompt("hello");
        process.read_result();
        let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
        body["thinking"].clone()
    };
    let set = |fields: Value| {
        let mut request = json!({"subtype": "set_max_thinking_tokens"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Some(request)
    };
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "omitted"});
    assert_eq!(shown(None), enabled(3000));
    assert_eq!(shown(set(json!({"max_thinking_tokens": 2000}))), enabled(2000));
    assert_eq!(shown(set(json!({"max_thinking_tokens": null}))), enabled(3000));
    let cleared = json!({"type": "enabled", "budget_tokens": 3000, "display": "updates"});
    assert_eq!(shown(set(json!({"thinking_display": null}))), cleared);
}

#[test]
fn a_resume_that_would_drop_more_than_the_named_turn_is_refused() {
    let agent = ScriptedAgent::new("hello.yaml");
    let id = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    let mut process = agent.spawn(&["--session-id", &id(0)]);
    let mut ends = Vec::new();
    for n in 1..=3 {
        let message = json!({"role": "user", "content": "hello"});
        process.send(json!({"type": "user", "uuid": id(n), "message": message}));
        ends.push(process.read_until(|line| line["type"] == "assistant")["uuid"].as_str().unwrap().to_owned());
        process.read_result();
    }
    process.end();
    let resume = |turn: u32, prompt: u32| {
        let at = format!("--resume-session-at={}", ends[turn as usize - 1]);
        let drops = format!("--resume-drops-turn={}", id(prompt));
        agent.run(&["-p", "hello", "--resume", &id(0), &at, &drops, "--fork-session"])
    };
    let refused = resume(1, 2);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Resume rejected by --resume-drops-turn:"));
    assert_eq!(agent.folder.transcripts().len(), 1);
    assert!(resume(2, 3).status.success());
    assert_eq!(agent.folder.transcripts().len(), 2);
}
