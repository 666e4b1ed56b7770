//! Cases of our own, on scripts of our own: they need no recordings.

use std::fs;
use std::io::{BufReader, Write};
use std::process::Stdio;

use quipu_message::Role;
use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, STREAM, ScriptedAgent, every_call_is_answered, kinds};

#[test]
fn text_is_the_answer_alone() {
    let stage = ScriptedAgent::new("hello.yaml");
    let out = stage.run(&["-p", "hello"]);
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
    let stage = ScriptedAgent::new("hello.yaml");
    let out = stage.run(&["-p", "broken", "--output-format", "json"]);
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!(result["api_error_status"], 400);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn what_is_piped_in_follows_the_prompt() {
    let stage = ScriptedAgent::new("hello.yaml");
    let mut child = stage.command(&["-p", "say"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), "Good day.\n");
}

#[test]
fn an_unknown_flag_is_an_error_with_a_hint() {
    let stage = ScriptedAgent::new("hello.yaml");
    let out = stage.run(&["-p", "hi", "--max-turn", "2"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--max-turns"));
    assert!(stage.answerer.requests().is_empty());
}

#[test]
fn a_session_goes_on_with_what_was_said_and_done() {
    let stage = ScriptedAgent::new("notes.yaml");
    let lines = stage.lines(&["read the notes"]);
    assert_eq!(kinds(&lines), ["system/init", "assistant", "assistant", "user", "assistant", "result/success"]);
    let id = lines[0]["session_id"].as_str().unwrap().to_owned();
    let lines = stage.lines(&["and now?", "--resume", &id]);
    assert_eq!(lines.last().unwrap()["result"], "We spoke of the notes.");
    let seen = stage.answerer.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let roles: Vec<&Role> = messages.iter().map(|message| &message.role).collect();
    assert_eq!(roles, [&Role::User, &Role::Assistant, &Role::User, &Role::Assistant, &Role::User]);
    assert_eq!(stage.folder.transcripts().len(), 1);
    let lines = stage.lines(&["and now?", "--resume", &id, "--fork-session"]);
    assert_ne!(lines[0]["session_id"], Value::from(id));
    assert_eq!(stage.folder.transcripts().len(), 2);
}

#[test]
fn pieces_come_before_the_whole_and_the_whole_before_its_end() {
    let stage = ScriptedAgent::new("hello.yaml");
    let lines = stage.lines(&["hello", "--include-partial-messages"]);
    let told: Vec<String> =
        lines.iter().map(|line| line["event"]["type"].as_str().or(line["type"].as_str()).unwrap().to_owned()).collect();
    let start = told.iter().position(|kind| kind == "content_block_start").unwrap();
    assert_eq!(told[start + 1..start + 4], ["content_block_delta", "assistant", "content_block_stop"]);
}

#[test]
fn only_a_clear_allowance_lets_a_tool_run() {
    for (answer, ran) in [
        (json!({"behavior": "allow"}), true),
        (json!({"behavior": "deny", "message": "no"}), false),
        (json!({"behavior": "allowed"}), false),
        (json!("allow"), false),
    ] {
        let stage = ScriptedAgent::new("touch.yaml");
        let mut talk = stage.spawn(&["--permission-prompt-tool", "stdio"]);
        talk.send_prompt("touch it");
        talk.read_until(|line| line["type"] == "control_request");
        talk.send_response(answer.clone());
        let result = talk.read_result();
        assert_eq!(stage.folder.path.join("made").exists(), ran, "{answer}");
        assert_eq!(result["permission_denials"].as_array().unwrap().is_empty(), ran, "{answer}");
        assert_eq!(talk.end().0, 0);
    }
}

#[test]
fn a_host_that_leaves_while_it_is_asked_has_said_no() {
    let stage = ScriptedAgent::new("touch.yaml");
    let mut talk = stage.spawn(&["--permission-prompt-tool", "stdio"]);
    talk.send_prompt("touch it");
    talk.read_until(|line| line["type"] == "control_request");
    let (code, heard) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(heard.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!stage.folder.path.join("made").exists());
}

#[test]
fn an_interrupted_call_has_a_result_and_the_next_prompt_is_answered() {
    let stage = ScriptedAgent::new("slow.yaml");
    let mut talk = stage.spawn(&["--allowedTools", "Bash"]);
    talk.send_prompt("sleep");
    talk.read_until(|line| line["type"] == "assistant");
    talk.send_request("1", json!({"subtype": "interrupt"}));
    assert_eq!(talk.read_result()["terminal_reason"], "aborted_tools");
    talk.send_prompt("go on");
    assert_eq!(talk.read_result()["is_error"], false);
    assert_eq!(talk.end().0, 0);
    every_call_is_answered(&stage);
}

#[test]
fn words_that_come_while_a_tool_runs_join_the_turn() {
    let stage = ScriptedAgent::new("slow.yaml");
    let mut talk = stage.spawn(&["--allowedTools", "Bash"]);
    talk.send_prompt("nap");
    talk.read_until(|line| line["type"] == "assistant");
    talk.send_prompt("and tell me");
    let (code, heard) = talk.end();
    assert_eq!((code, heard.iter().filter(|line| line["type"] == "result").count()), (0, 1));
    let seen = stage.answerer.requests();
    let last = &seen.last().unwrap().request.as_ref().unwrap().messages;
    assert!(last.last().unwrap().content.to_text().contains("and tell me"));
}

#[test]
fn an_overloaded_model_is_replaced() {
    let stage = ScriptedAgent::new("fallback.yaml");
    let lines = stage.lines(&["hi", "--fallback-model", "haiku"]);
    let kinds = kinds(&lines);
    assert!(kinds.contains(&"system/model_fallback".to_owned()), "{kinds:?}");
    assert_eq!(lines.last().unwrap()["result"], "I take over.");
}

#[test]
fn what_was_said_of_a_broken_answer_is_withdrawn() {
    let stage = ScriptedAgent::new("cut.yaml");
    let lines = stage.lines(&["hi"]);
    let shown = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    let tombstone = lines.iter().find(|line| line["type"] == "tombstone").unwrap();
    assert_eq!(tombstone["message"]["uuid"], shown["uuid"]);
    assert_eq!(lines.last().unwrap()["result"], "Whole.");
    let file = fs::read_to_string(stage.session_file()).unwrap();
    assert!(!file.contains("First thought"), "{file}");
}

#[test]
fn a_full_context_is_compacted_before_the_next_call() {
    let stage = ScriptedAgent::new("full.yaml");
    stage.write("CLAUDE.md", "Count in English.");
    let mut talk = stage.spawn(&[]);
    for text in ["zero", "begin at one", "two"] {
        talk.send_prompt(text);
        talk.read_result();
    }
    let (_, heard) = talk.end();
    let kinds = kinds(&heard);
    assert!(kinds.contains(&"system/compact_boundary".to_owned()), "{kinds:?}");
    let seen = stage.answerer.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let text: String = messages.iter().map(|message| message.content.to_text()).collect();
    assert!(text.contains("The person counts to three.") && text.contains("two") && !text.contains("zero"), "{text}");
    assert_eq!(text.matches("Count in English.").count(), 1, "instructions are told again");
    // One boundary, in the file and on the stream.
    let boundary = heard.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    let file = fs::read_to_string(stage.session_file()).unwrap();
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
    stage.lines(&["three", "--resume", &id]);
    let seen = stage.answerer.requests();
    let messages = &seen.last().unwrap().request.as_ref().unwrap().messages;
    let text: String = messages.iter().map(|message| message.content.to_text()).collect();
    assert!(text.contains("The person counts to three.") && text.contains("three") && !text.contains("zero"), "{text}");
}

#[test]
fn a_compaction_that_fails_is_tried_again_in_the_next_turn() {
    let stage = ScriptedAgent::from_script_text(
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
    let mut talk = stage.spawn(&[]);
    let mut compactions = Vec::new();
    for text in ["one", "two", "three", "four"] {
        talk.send_prompt(text);
        assert_eq!(talk.read_result()["is_error"], false);
        let told = talk.heard.drain(..).filter_map(|line| line["compact_result"].as_str().map(str::to_owned));
        compactions.push(told.collect::<Vec<_>>());
    }
    talk.end();
    // Before the second answer there is too little to sum up; the third turn makes two
    // calls, but tries once.
    let expected: [&[&str]; 4] = [&[], &["failed"], &["failed"], &["success"]];
    assert_eq!(compactions, expected);
}

#[test]
fn a_conversation_that_is_too_long_is_compacted_once_and_goes_on() {
    let stage = ScriptedAgent::new("too_long.yaml");
    let mut talk = stage.spawn(&[]);
    talk.send_prompt("begin at one");
    talk.read_result();
    talk.send_prompt("two");
    let result = talk.read_result();
    assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("Counted on.")), "{result}");
    let (_, heard) = talk.end();
    assert_eq!(kinds(&heard).iter().filter(|kind| *kind == "system/compact_boundary").count(), 1);
    let seen = stage.answerer.requests();
    let last = &seen.last().unwrap().body;
    assert!(last.contains("The person counts to two.") && !last.contains("Counted one."), "{last}");
}

#[test]
fn a_conversation_that_is_too_long_fails_when_nobody_may_compact_it() {
    let stage = ScriptedAgent::new("too_long.yaml");
    let mut talk = stage.spawn(&["--settings", r#"{"autoCompactEnabled":false}"#]);
    talk.send_prompt("two");
    let result = talk.read_result();
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(400)));
    talk.end();
    assert_eq!(stage.answerer.requests().len(), 1);
}

#[test]
fn an_answer_that_never_fits_its_form_fails() {
    let stage = ScriptedAgent::new("form.yaml");
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let lines = stage.lines(&["give", "--json-schema", schema]);
    let result = lines.last().unwrap();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["is_error"], true);
}

#[test]
fn a_subagents_words_are_passed_on_when_asked_for() {
    let stage = ScriptedAgent::new("helper.yaml");
    let words = |lines: &[Value]| -> Vec<String> {
        let theirs = lines.iter().filter(|line| line["parent_tool_use_id"].is_string() && line["type"] == "assistant");
        theirs.flat_map(|line| line["message"]["content"][0]["text"].as_str().map(str::to_owned)).collect()
    };
    assert!(words(&stage.lines(&["go"])).is_empty());
    let lines = stage.lines(&["go", "--forward-subagent-text"]);
    assert_eq!(words(&lines), ["I look into it.", "The helper's report."]);
    assert_eq!(lines.last().unwrap()["result"], "The helper is done.");
    let file = stage.folder.subagents().pop().unwrap();
    let meta: Value = serde_json::from_str(&fs::read_to_string(file.with_extension("meta.json")).unwrap()).unwrap();
    assert_eq!((&meta["agentType"], &meta["finished"]), (&json!("general-purpose"), &json!(true)));
}

#[test]
fn a_hook_may_refuse_a_prompt_and_instructions_are_told_once() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write("CLAUDE.md", "Be kind.");
    stage.write(
        "hooks.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"grep -q secret && { echo not that >&2; exit 2; } || true"}]}]}}"#,
    );
    let mut talk = stage.spawn(&["--settings", "hooks.json"]);
    talk.send_prompt("the secret");
    talk.read_result();
    assert!(stage.answerer.requests().is_empty());
    talk.send_prompt("hello");
    talk.send_prompt("hello again");
    talk.read_result();
    talk.read_result();
    talk.end();
    let seen = stage.answerer.requests();
    let last = seen.last().unwrap();
    assert_eq!(last.body.matches("Be kind.").count(), 1);
    assert!(!last.body.contains("the secret"));
}

#[test]
fn the_mode_that_asks_for_nothing_needs_a_flag() {
    let stage = ScriptedAgent::new("hello.yaml");
    let mut talk = stage.spawn(&[]);
    talk.send_request("1", json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}));
    let answer = talk.read_until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["error_code"], "bypass_not_launched");
    talk.end();
}

#[test]
fn secrets_of_the_agent_are_not_in_the_environment_of_tools() {
    let stage = ScriptedAgent::new("slow.yaml");
    stage.write(".claude/commands/env.md", "nap");
    let out = stage.run(&["-p", "/env", "--allowedTools", "Bash", "--output-format", "stream-json"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("rested"));
    assert!(!fs::read_to_string(stage.session_file()).unwrap().contains("ANTHROPIC_API_KEY\":"));
}

#[test]
fn files_are_put_back_also_after_a_resume() {
    let stage = ScriptedAgent::new("write.yaml");
    let id = "11111111-2222-4333-8444-666666666666";
    let prompt = "22222222-2222-4333-8444-666666666666";
    let start = |flag: &str| {
        let args = [&STREAM[..], &["--permission-mode", "acceptEdits", flag, id]].concat();
        let mut command = stage.command(&args);
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        AgentProcess { stdin: child.stdin.take(), child, stdout, heard: Vec::new() }
    };
    let mut talk = start("--session-id");
    talk.send(json!({"type": "user", "uuid": prompt, "message": {"role": "user", "content": "write"}}));
    talk.read_result();
    talk.end();
    let file = stage.folder.path.join("made.txt");
    assert!(file.exists());
    let mut talk = start("--resume");
    talk.send_request("1", json!({"subtype": "rewind_files", "user_message_id": prompt, "dry_run": true}));
    let answer = talk.read_until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["response"]["deletions"], 1);
    assert!(file.exists());
    talk.send_request("2", json!({"subtype": "rewind_files", "user_message_id": prompt}));
    talk.read_until(|line| line["type"] == "control_response");
    assert!(!file.exists());
    talk.end();
}

#[test]
fn what_is_written_has_nothing_unknown_and_a_broken_line_is_told_of() {
    let stage = ScriptedAgent::new("helper.yaml");
    let lines = stage.lines(&["go"]);
    let config = stage.folder.path.join(".claude");
    let check = || {
        let mut check = super::super::quipu();
        check.args(["--claude-dir", config.to_str().unwrap(), "check", "--strict", "--roundtrip"]);
        check
    };
    check().assert().success();
    let mut file = fs::OpenOptions::new().append(true).open(stage.session_file()).unwrap();
    file.write_all(b"{broken\n").unwrap();
    let lines = stage.lines(&["go on", "--resume", lines[0]["session_id"].as_str().unwrap()]);
    assert!(lines[0]["content"].as_str().unwrap().contains("of the session file"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["is_error"], false);
}

#[test]
fn a_plugin_brings_commands_and_hooks() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write("kit/.claude-plugin/plugin.json", r#"{"name":"kit"}"#);
    stage.write("kit/commands/greet.md", "say hello to $ARGUMENTS");
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"touch ${CLAUDE_PLUGIN_ROOT}/stopped"}]}]}}"#;
    stage.write("kit/hooks/hooks.json", hook);
    let lines = stage.lines(&["/kit:greet Bob", "--plugin-dir", "kit"]);
    assert_eq!(lines[0]["plugins"][0]["name"], "kit");
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    assert!(stage.folder.path.join("kit/stopped").exists());
}

/// Answers as an MCP server with one tool does, over HTTP.
async fn mcp(body: String) -> axum::response::Response {
    use axum::response::IntoResponse;
    let asked: Value = serde_json::from_str(&body).unwrap();
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}),
        "resources/read" => {
            let uri = &asked["params"]["uri"];
            json!({"contents": [{"uri": uri, "mimeType": "text/html", "text": "<p>far</p>"}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "greetings from afar"}]}),
        _ => return axum::http::StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
    ([("content-type", "application/json")], answer).into_response()
}

/// Starts an MCP server and returns what names it to the agent.
pub(super) fn mcp_server(stage: &ScriptedAgent) -> String {
    let listener = stage.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/mcp", axum::routing::post(mcp));
    stage.runtime.spawn(async move { axum::serve(listener, router).await });
    json!({"mcpServers": {"far": {"type": "http", "url": format!("http://{address}/mcp")}}}).to_string()
}

#[test]
fn tools_of_an_mcp_server_over_http_are_used() {
    let stage = ScriptedAgent::new("afar.yaml");
    let servers = mcp_server(&stage);
    let lines = stage.lines(&["greet", "--mcp-config", &servers, "--allowedTools", "mcp__far"]);
    assert_eq!(lines[0]["mcp_servers"], json!([{"name": "far", "status": "connected", "source": "dynamic"}]));
    assert_eq!(lines.last().unwrap()["result"], "It greets.");
}

#[test]
fn a_projects_settings_cannot_send_the_key_elsewhere() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write(
        ".claude/settings.local.json",
        r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9","ANTHROPIC_MODEL":"m"}}"#,
    );
    let lines = stage.lines(&["hello"]);
    assert_eq!(lines[0]["model"], "claude-opus-5-5");
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
}

#[test]
fn a_saved_prompt_brings_what_its_commands_print_and_the_files_it_names() {
    let stage = ScriptedAgent::new("hello.yaml");
    let head = "---\nallowed-tools: Bash(echo:*)\n---\n";
    let body = "say hello: !`echo one $0` and !`touch made`, see @notes.txt, not @secret.txt";
    stage.write(".claude/commands/look.md", &format!("{head}{body}"));
    stage.write("secret.txt", "the hidden words");
    let lines = stage.lines(&["/look two", "--disallowedTools", "Read(secret.txt)"]);
    assert_eq!(lines.last().unwrap()["result"], "Good day.");
    let sent = stage.answerer.requests().last().unwrap().body.clone();
    assert!(sent.contains("say hello: one two and [`touch made` failed: "), "{sent}");
    assert!(sent.contains("second line") && !sent.contains("the hidden words"), "{sent}");
    assert!(!stage.folder.path.join("made").exists());
}

#[test]
fn words_that_were_never_begun_are_taken_up_by_a_resume() {
    let stage = ScriptedAgent::new("slow.yaml");
    let id = "11111111-2222-4333-8444-888888888888";
    let mut talk = stage.spawn(&["--allowedTools", "Bash", "--session-id", id]);
    talk.send_prompt("sleep");
    talk.read_until(|line| line["type"] == "assistant");
    let uuid = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    for (n, text) in [(1, "the first wish"), (2, "the second wish"), (3, "the withdrawn wish")] {
        let content = json!([{"type": "text", "text": text}]);
        talk.send(json!({"type": "user", "uuid": uuid(n), "message": {"role": "user", "content": content}}));
        talk.read_until(|line| line["type"] == "command_lifecycle" && line["state"] == "queued");
    }
    talk.send_request("1", json!({"subtype": "cancel_async_message", "message_uuid": uuid(3)}));
    talk.read_until(|line| line["type"] == "control_response");
    talk.child.kill().unwrap();
    talk.child.wait().unwrap();
    let lines = stage.lines(&["go on", "--resume", id]);
    let told: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
    assert!(told[0].ends_with("the first wish") && told[1].ends_with("the second wish"), "{told:?}");
    let sent = stage.answerer.requests().last().unwrap().body.clone();
    assert!(sent.contains("the first wish") && sent.contains("the second wish"), "{sent}");
    assert!(!sent.contains("the withdrawn wish"), "{sent}");
    // Once is enough.
    let lines = stage.lines(&["and on", "--resume", id]);
    assert!(lines.iter().all(|line| line["subtype"] != "informational"), "{lines:?}");
    assert_eq!(stage.answerer.requests().last().unwrap().body.matches("the first wish").count(), 1);
}
