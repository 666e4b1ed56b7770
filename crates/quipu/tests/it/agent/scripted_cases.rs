//! Cases of our own, on scripts of our own: they need no recordings.

use std::fs;
use std::io::{BufReader, Write};
use std::process::Stdio;

use quipu_message::Role;
use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, STREAM, ScriptedAgent, every_call_is_answered, kinds};

#[test]
fn text_is_the_answer_alone() {
    let agent = ScriptedAgent::new("hello.yaml");
    let out = agent.run(&["-p", "hello"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "Good day.\n");
    assert!(out.status.success());
}

#[test]
fn the_example_of_the_readme_prints_the_answer() {
    let agent = ScriptedAgent::new("folder.yaml");
    let out = agent.run(&["-p", "what is in this folder?", "--allowedTools", "Read", "Glob"]);
    let answer = String::from_utf8(out.stdout).unwrap();
    for page in ["README.md", "README.zh.md"] {
        let text = std::fs::read_to_string(quipu_testkit::repository_root().join(page)).unwrap();
        assert!(text.contains(&format!("--allowedTools Read Glob\n{answer}```")), "{page}: {answer}");
    }
}

#[test]
fn json_is_the_result_and_a_failed_call_fails() {
    let agent = ScriptedAgent::new("hello.yaml");
    let out = agent.run(&["-p", "broken", "--output-format", "json"]);
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!(result["api_error_status"], 400);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn what_is_piped_in_follows_the_prompt() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut child = agent.command(&["-p", "say"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), "Good day.\n");
}

#[test]
fn an_unknown_flag_is_an_error_with_a_hint() {
    let agent = ScriptedAgent::new("hello.yaml");
    let out = agent.run(&["-p", "hi", "--max-turn", "2"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--max-turns"));
    assert!(agent.server.requests().is_empty());
}

#[test]
fn a_resumed_session_has_its_messages_and_tool_calls() {
    let agent = ScriptedAgent::new("notes.yaml");
    let lines = agent.lines(&["read the notes"]);
    assert_eq!(kinds(&lines), ["system/init", "assistant", "assistant", "user", "assistant", "result/success"]);
    let id = lines[0]["session_id"].as_str().unwrap().to_owned();
    let lines = agent.lines(&["and now?", "--resume", &id]);
    assert_eq!(lines.last().unwrap()["result"], "We spoke of the notes.");
    let seen = agent.server.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let roles: Vec<&Role> = messages.iter().map(|message| &message.role).collect();
    assert_eq!(roles, [&Role::User, &Role::Assistant, &Role::User, &Role::Assistant, &Role::User]);
    assert_eq!(agent.folder.transcripts().len(), 1);
    let lines = agent.lines(&["and now?", "--resume", &id, "--fork-session"]);
    assert_ne!(lines[0]["session_id"], Value::from(id));
    assert_eq!(agent.folder.transcripts().len(), 2);
}

#[test]
fn pieces_come_before_the_whole_and_the_whole_before_its_end() {
    let agent = ScriptedAgent::new("hello.yaml");
    let lines = agent.lines(&["hello", "--include-partial-messages"]);
    let kinds_seen: Vec<String> =
        lines.iter().map(|line| line["event"]["type"].as_str().or(line["type"].as_str()).unwrap().to_owned()).collect();
    let start = kinds_seen.iter().position(|kind| kind == "content_block_start").unwrap();
    assert_eq!(kinds_seen[start + 1..start + 4], ["content_block_delta", "assistant", "content_block_stop"]);
}

#[test]
fn only_a_clear_allowance_lets_a_tool_run() {
    for (answer, ran) in [
        (json!({"behavior": "allow"}), true),
        (json!({"behavior": "deny", "message": "no"}), false),
        (json!({"behavior": "allowed"}), false),
        (json!("allow"), false),
    ] {
        let agent = ScriptedAgent::new("touch.yaml");
        let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
        process.send_prompt("touch it");
        process.read_until(|line| line["type"] == "control_request");
        process.send_response(answer.clone());
        let result = process.read_result();
        assert_eq!(agent.folder.path.join("made").exists(), ran, "{answer}");
        assert_eq!(result["permission_denials"].as_array().unwrap().is_empty(), ran, "{answer}");
        assert_eq!(process.end().0, 0);
    }
}

#[test]
fn a_host_that_disconnects_during_a_permission_request_denies_it() {
    let agent = ScriptedAgent::new("touch.yaml");
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
    process.send_prompt("touch it");
    process.read_until(|line| line["type"] == "control_request");
    let (code, heard) = process.end();
    assert_eq!(code, 0);
    assert_eq!(heard.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!agent.folder.path.join("made").exists());
}

#[test]
fn an_interrupted_call_has_a_result_and_the_next_prompt_is_answered() {
    let agent = ScriptedAgent::new("slow.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("sleep");
    process.read_until(|line| line["type"] == "assistant");
    process.send_request("1", json!({"subtype": "interrupt"}));
    assert_eq!(process.read_result()["terminal_reason"], "aborted_tools");
    process.send_prompt("go on");
    assert_eq!(process.read_result()["is_error"], false);
    assert_eq!(process.end().0, 0);
    every_call_is_answered(&agent);
}

#[test]
fn prompts_that_arrive_while_a_tool_runs_join_the_turn() {
    let agent = ScriptedAgent::new("slow.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("nap");
    process.read_until(|line| line["type"] == "assistant");
    process.send_prompt("and tell me");
    let (code, heard) = process.end();
    assert_eq!((code, heard.iter().filter(|line| line["type"] == "result").count()), (0, 1));
    let seen = agent.server.requests();
    let last = &seen.last().unwrap().request.as_ref().unwrap().messages;
    assert!(last.last().unwrap().content.to_text().contains("and tell me"));
}

#[test]
fn an_overloaded_model_is_replaced() {
    let agent = ScriptedAgent::new("fallback.yaml");
    let lines = agent.lines(&["hi", "--fallback-model", "haiku"]);
    let kinds = kinds(&lines);
    assert!(kinds.contains(&"system/model_fallback".to_owned()), "{kinds:?}");
    assert_eq!(lines.last().unwrap()["result"], "I take over.");
}

#[test]
fn events_of_a_broken_response_are_withdrawn() {
    let agent = ScriptedAgent::new("cut.yaml");
    let lines = agent.lines(&["hi"]);
    let shown = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    let tombstone = lines.iter().find(|line| line["type"] == "tombstone").unwrap();
    assert_eq!(tombstone["message"]["uuid"], shown["uuid"]);
    assert_eq!(lines.last().unwrap()["result"], "Whole.");
    let file = fs::read_to_string(agent.session_file()).unwrap();
    assert!(!file.contains("First thought"), "{file}");
}

#[test]
fn a_full_context_is_compacted_before_the_next_call() {
    let agent = ScriptedAgent::new("full.yaml");
    agent.write("CLAUDE.md", "Count in English.");
    let mut process = agent.spawn(&[]);
    for text in ["zero", "begin at one", "two"] {
        process.send_prompt(text);
        process.read_result();
    }
    let (_, heard) = process.end();
    let kinds = kinds(&heard);
    assert!(kinds.contains(&"system/compact_boundary".to_owned()), "{kinds:?}");
    let seen = agent.server.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let text: String = messages.iter().map(|message| message.content.to_text()).collect();
    assert!(text.contains("The person counts to three.") && text.contains("two") && !text.contains("zero"), "{text}");
    assert_eq!(text.matches("Count in English.").count(), 1, "instructions are told again");
    // One boundary, in the file and on the stream.
    let boundary = heard.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    let file = fs::read_to_string(agent.session_file()).unwrap();
    let mut entries = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kept = entries.find(|line| line["subtype"] == "compact_boundary").unwrap();
    assert_eq!((&boundary["uuid"], &boundary["logical_parent_uuid"]), (&kept["uuid"], &kept["logicalParentUuid"]));
    let segment = |line: &Value, data: &str, segment: &str, head: &str| line[data][segment][head].clone();
    assert_eq!(
        segment(boundary, "compact_metadata", "preserved_segment", "head_uuid"),
        segment(&kept, "compactMetadata", "preservedSegment", "headUuid")
    );
    // A resumed session reads the same from the file.
    let id = heard[0]["session_id"].as_str().unwrap().to_owned();
    agent.lines(&["three", "--resume", &id]);
    let seen = agent.server.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let text: String = messages.iter().map(|message| message.content.to_text()).collect();
    assert!(text.contains("The person counts to three.") && text.contains("three") && !text.contains("zero"), "{text}");
}

#[test]
fn a_compaction_that_fails_is_tried_again_in_the_next_turn() {
    let agent = ScriptedAgent::from_script_text(
        r#"
- {times: 1, when: {says: about to be replaced}, error: {status: 400, type: invalid_request_error, message: bad}}
- when: {says: about to be replaced}
  reply: "<summary>The person counts.</summary>"
- when: {result_of: "*"}
  reply: Read.
  usage: {input_tokens: 990000, output_tokens: 5}
- when: {says: three}
  reply: [{tool: Read, input: {file_path: none}}]
  usage: {input_tokens: 990000, output_tokens: 5}
- reply: Counted.
  usage: {input_tokens: 990000, output_tokens: 5}
"#,
    );
    let mut process = agent.spawn(&[]);
    let mut compactions = Vec::new();
    for text in ["one", "two", "three", "four"] {
        process.send_prompt(text);
        assert_eq!(process.read_result()["is_error"], false);
        let results = process.lines.drain(..).filter_map(|line| line["compact_result"].as_str().map(str::to_owned));
        compactions.push(results.collect::<Vec<_>>());
    }
    process.end();
    // Before the second answer there is too little to sum up; the third turn makes two
    // calls, but tries once.
    let expected: [&[&str]; 4] = [&[], &["failed"], &["failed"], &["success"]];
    assert_eq!(compactions, expected);
}

#[test]
fn a_conversation_that_is_too_long_is_compacted_once_and_continues() {
    let agent = ScriptedAgent::new("too_long.yaml");
    let mut process = agent.spawn(&[]);
    process.send_prompt("begin at one");
    process.read_result();
    process.send_prompt("two");
    let result = process.read_result();
    assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("Counted on.")), "{result}");
    let (_, heard) = process.end();
    assert_eq!(kinds(&heard).iter().filter(|kind| *kind == "system/compact_boundary").count(), 1);
    let seen = agent.server.requests();
    let last = &seen.last().unwrap().body;
    assert!(last.contains("The person counts to two.") && !last.contains("Counted one."), "{last}");
}

#[test]
fn a_conversation_that_is_too_long_fails_if_compaction_is_off() {
    let agent = ScriptedAgent::new("too_long.yaml");
    let mut process = agent.spawn(&["--settings", r#"{"autoCompactEnabled":false}"#]);
    process.send_prompt("two");
    let result = process.read_result();
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(400)));
    process.end();
    assert_eq!(agent.server.requests().len(), 1);
}

#[test]
fn an_answer_that_never_fits_its_form_fails() {
    let agent = ScriptedAgent::new("form.yaml");
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let lines = agent.lines(&["give", "--json-schema", schema]);
    let result = lines.last().unwrap();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["is_error"], true);
}

#[test]
fn the_text_of_a_subagent_is_forwarded_on_request() {
    let agent = ScriptedAgent::new("helper.yaml");
    let words = |lines: &[Value]| -> Vec<String> {
        let theirs = lines.iter().filter(|line| line["parent_tool_use_id"].is_string() && line["type"] == "assistant");
        theirs.flat_map(|line| line["message"]["content"][0]["text"].as_str().map(str::to_owned)).collect()
    };
    assert!(words(&agent.lines(&["go"])).is_empty());
    let lines = agent.lines(&["go", "--forward-subagent-text"]);
    assert_eq!(words(&lines), ["I look into it.", "The helper's report."]);
    assert_eq!(lines.last().unwrap()["result"], "The helper is done.");
    let file = agent.folder.subagents().pop().unwrap();
    let meta: Value = serde_json::from_str(&fs::read_to_string(file.with_extension("meta.json")).unwrap()).unwrap();
    assert_eq!((&meta["agentType"], &meta["finished"]), (&json!("general-purpose"), &json!(true)));
}

#[test]
fn a_hook_may_block_a_prompt_and_instructions_are_sent_once() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("CLAUDE.md", "Be kind.");
    agent.write(
        "hooks.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"grep -q secret && { echo not that >&2; exit 2; } || true"}]}]}}"#,
    );
    let mut process = agent.spawn(&["--settings", "hooks.json"]);
    process.send_prompt("the secret");
    process.read_result();
    assert!(agent.server.requests().is_empty());
    process.send_prompt("hello");
    process.send_prompt("hello again");
    process.read_result();
    process.read_result();
    process.end();
    let seen = agent.server.requests();
    let last = seen.last().unwrap();
    assert_eq!(last.body.matches("Be kind.").count(), 1);
    assert!(!last.body.contains("the secret"));
}

#[test]
fn the_mode_that_asks_for_nothing_needs_a_flag() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&[]);
    process.send_request("1", json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}));
    let answer = process.read_until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["error_code"], "bypass_not_launched");
    process.end();
}

#[test]
fn secrets_of_the_agent_are_not_in_the_environment_of_tools() {
    let agent = ScriptedAgent::new("slow.yaml");
    agent.write(".claude/commands/env.md", "nap");
    let out = agent.run(&["-p", "/env", "--allowedTools", "Bash", "--output-format", "stream-json"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("rested"));
    assert!(!fs::read_to_string(agent.session_file()).unwrap().contains("ANTHROPIC_API_KEY\":"));
}

#[test]
fn files_are_put_back_also_after_a_resume() {
    let agent = ScriptedAgent::new("write.yaml");
    let id = "11111111-2222-4333-8444-666666666666";
    let prompt = "22222222-2222-4333-8444-666666666666";
    let start = |flag: &str| {
        let args = [&STREAM[..], &["--permission-mode", "acceptEdits", flag, id]].concat();
        let mut command = agent.command(&args);
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        AgentProcess { stdin: child.stdin.take(), child, stdout, lines: Vec::new() }
    };
    let mut process = start("--session-id");
    process.send(json!({"type": "user", "uuid": prompt, "message": {"role": "user", "content": "write"}}));
    process.read_result();
    process.end();
    let file = agent.folder.path.join("made.txt");
    assert!(file.exists());
    let mut process = start("--resume");
    process.send_request("1", json!({"subtype": "rewind_files", "user_message_id": prompt, "dry_run": true}));
    let answer = process.read_until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["response"]["deletions"], 1);
    assert!(file.exists());
    process.send_request("2", json!({"subtype": "rewind_files", "user_message_id": prompt}));
    process.read_until(|line| line["type"] == "control_response");
    assert!(!file.exists());
    process.end();
}

#[test]
fn written_sessions_have_nothing_unknown_and_a_broken_line_is_reported() {
    let agent = ScriptedAgent::new("helper.yaml");
    let lines = agent.lines(&["go"]);
    let config = agent.folder.path.join(".claude");
    let check = || {
        let mut check = super::super::quipu();
        check.args(["--claude-dir", config.to_str().unwrap(), "check", "--strict", "--roundtrip"]);
        check
    };
    check().assert().success();
    let mut file = fs::OpenOptions::new().append(true).open(agent.session_file()).unwrap();
    file.write_all(b"{broken\n").unwrap();
    let lines = agent.lines(&["go on", "--resume", lines[0]["session_id"].as_str().unwrap()]);
    assert!(lines[0]["content"].as_str().unwrap().contains("of the session file"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["is_error"], false);
}

#[test]
fn a_plugin_brings_commands_and_hooks() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("kit/.claude-plugin/plugin.json", r#"{"name":"kit"}"#);
    agent.write("kit/commands/greet.md", "say hello to $ARGUMENTS");
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"touch ${CLAUDE_PLUGIN_ROOT}/stopped"}]}]}}"#;
    agent.write("kit/hooks/hooks.json", hook);
    let lines = agent.lines(&["/kit:greet Bob", "--plugin-dir", "kit"]);
    assert_eq!(lines[0]["plugins"][0]["name"], "kit");
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    assert!(agent.folder.path.join("kit/stopped").exists());
}

/// Answers as an MCP server with one tool does, over HTTP.
async fn mcp(body: String) -> axum::response::Response {
    use axum::response::IntoResponse;
    let sent: Value = serde_json::from_str(&body).unwrap();
    let result = match sent["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": sent["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}),
        "resources/read" => {
            let uri = &sent["params"]["uri"];
            json!({"contents": [{"uri": uri, "mimeType": "text/html", "text": "<p>far</p>"}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "greetings from afar"}]}),
        _ => return axum::http::StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": sent["id"], "result": result}).to_string();
    ([("content-type", "application/json")], answer).into_response()
}

/// Starts an MCP server and returns what names it to the agent.
pub(super) fn mcp_server(agent: &ScriptedAgent) -> String {
    let listener = agent.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/mcp", axum::routing::post(mcp));
    agent.runtime.spawn(async move { axum::serve(listener, router).await });
    json!({"mcpServers": {"far": {"type": "http", "url": format!("http://{address}/mcp")}}}).to_string()
}

#[test]
fn tools_of_an_mcp_server_over_http_are_used() {
    let agent = ScriptedAgent::new("afar.yaml");
    let servers = mcp_server(&agent);
    let lines = agent.lines(&["greet", "--mcp-config", &servers, "--allowedTools", "mcp__far"]);
    assert_eq!(lines[0]["mcp_servers"], json!([{"name": "far", "status": "connected", "source": "dynamic"}]));
    assert_eq!(lines.last().unwrap()["result"], "It greets.");
}

#[test]
fn a_projects_settings_cannot_send_the_key_elsewhere() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(
        ".claude/settings.local.json",
        r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9","ANTHROPIC_MODEL":"m"}}"#,
    );
    let lines = agent.lines(&["hello"]);
    assert_eq!(lines[0]["model"], "claude-opus-5-5");
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
}

#[test]
fn a_saved_prompt_brings_what_its_commands_print_and_the_files_it_names() {
    let agent = ScriptedAgent::new("hello.yaml");
    let head = "---\nallowed-tools: Bash(echo:*)\n---\n";
    let body = "say hello: !`echo one $0` and !`touch made`, see @notes.txt, not @secret.txt";
    agent.write(".claude/commands/look.md", &format!("{head}{body}"));
    agent.write("secret.txt", "the hidden words");
    let lines = agent.lines(&["/look two", "--disallowedTools", "Read(secret.txt)"]);
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    let sent = agent.server.requests().last().unwrap().body.clone();
    assert!(sent.contains("say hello: one two and [`touch made` failed: "), "{sent}");
    assert!(sent.contains("second line") && !sent.contains("the hidden words"), "{sent}");
    assert!(!agent.folder.path.join("made").exists());
}

#[test]
fn prompts_that_never_started_are_replayed_by_a_resume() {
    let agent = ScriptedAgent::new("slow.yaml");
    let id = "11111111-2222-4333-8444-888888888888";
    let mut process = agent.spawn(&["--allowedTools", "Bash", "--session-id", id]);
    process.send_prompt("sleep");
    process.read_until(|line| line["type"] == "assistant");
    let uuid = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    for (n, text) in [(1, "the first wish"), (2, "the second wish"), (3, "the withdrawn wish")] {
        let content = json!([{"type": "text", "text": text}]);
        process.send(json!({"type": "user", "uuid": uuid(n), "message": {"role": "user", "content": content}}));
        process.read_until(|line| line["type"] == "command_lifecycle" && line["state"] == "queued");
    }
    process.send_request("1", json!({"subtype": "cancel_async_message", "message_uuid": uuid(3)}));
    process.read_until(|line| line["type"] == "control_response");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    let lines = agent.lines(&["go on", "--resume", id]);
    let contents: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
    assert!(contents[0].ends_with("the first wish") && contents[1].ends_with("the second wish"), "{contents:?}");
    let sent = agent.server.requests().last().unwrap().body.clone();
    assert!(sent.contains("the first wish") && sent.contains("the second wish"), "{sent}");
    assert!(!sent.contains("the withdrawn wish"), "{sent}");
    // Once is enough.
    let lines = agent.lines(&["and on", "--resume", id]);
    assert!(lines.iter().all(|line| line["subtype"] != "informational"), "{lines:?}");
    assert_eq!(agent.server.requests().last().unwrap().body.matches("the first wish").count(), 1);
}
