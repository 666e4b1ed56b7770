//! What a session file from someone else cannot do when it is resumed.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, STREAM, ScriptedAgent};

const PROMPT: &str = "22222222-2222-4333-8444-666666666001";

/// The text of a session file: a prompt, the entries, an answer.
fn session_text(entries: &[Value]) -> String {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    let answer = json!({"type": "assistant", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Good day."}], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let lines = std::iter::once(&prompt).chain(entries).chain([&answer]).enumerate().map(|(index, entry)| {
        let uuid = |index: usize| format!("22222222-2222-4333-8444-666666666{:03}", index + 1);
        let mut line = json!({"uuid": uuid(index), "parentUuid": index.checked_sub(1).map(uuid), "sessionId": "x",
                              "isSidechain": false, "timestamp": "2026-01-01T00:00:00.000Z"});
        line.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        format!("{line}\n")
    });
    lines.collect()
}

fn last_request(agent: &ScriptedAgent) -> Value {
    serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap()
}

#[test]
fn it_adds_no_tools_to_requests() {
    let record = json!({"type": "attachment", "attachment": {"type": "deferred_tools_record", "entries": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 50},
        {"name": "NoSuch", "description": "EVIL", "input_schema": {"type": "object"}, "defer_loading": true},
    ]}});
    let search = json!({"type": "assistant", "message": {
        "id": "msg_0", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "x"}}]}});
    let reference = json!({"type": "tool_reference", "tool_name": "mcp__gone__x"});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]});
    let result = json!({"type": "user", "message": {"role": "user", "content": [result]}});
    for flags in [&[][..], &["--fork-session"], &["--tools", ""]] {
        let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
        agent.write("x.jsonl", &session_text(&[search.clone(), result.clone(), record.clone()]));
        let out = agent.run(&[&["-p", "go", "--resume", "x.jsonl"], flags].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let tools = last_request(&agent)["tools"].clone();
        for tool in tools.as_array().unwrap() {
            assert!(tool["type"].is_null() && tool["name"] != "NoSuch" && tool["name"] != "web_search", "{tool}");
        }
        // A conversation that refers to a tool is refused without a definition of it.
        let gone = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__gone__x").unwrap();
        assert!(gone["description"].as_str().unwrap().contains("not available"), "{gone}");
    }
}

#[test]
fn it_is_not_written_through_a_link() {
    let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
    let outside = tempfile::tempdir().unwrap();
    let text = session_text(&[]);
    let target = outside.path().join("target.jsonl");
    fs::write(&target, &text).unwrap();
    let folder = &agent.folder.path;
    symlink(&target, folder.join("link.jsonl")).unwrap();
    symlink(outside.path(), folder.join("folder")).unwrap();
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder, outside.path().join("work")).unwrap();
    symlink(&target, outside.path().join("alias.jsonl")).unwrap();
    let absolute = |name: &str| folder.join(name).display().to_string();
    let given = |name: &str| outside.path().join(name).display().to_string();
    let linked = [
        "link.jsonl".to_owned(),
        "./link.jsonl".to_owned(),
        "folder/target.jsonl".to_owned(),
        "real/../folder/target.jsonl".to_owned(),
        absolute("link.jsonl"),
        absolute("folder/target.jsonl"),
        given("work/folder/target.jsonl"),
        given("alias.jsonl"),
    ];
    for path in &linked {
        let out = agent.run(&["-p", "go", "--resume", path]);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{path}");
        assert!(error.contains("leads through one") && error.contains("--fork-session"), "{error}");
        assert!(agent.run(&["-p", "go", "--resume", path, "--fork-session"]).status.success(), "{path}");
    }
    // Without its ending it is not a path.
    assert!(!agent.run(&["-p", "go", "--resume", &absolute("link")]).status.success());
    assert_eq!(fs::read_to_string(&target).unwrap(), text);

    // Links outside of the working folder are the user's.
    for path in ["x.jsonl".to_owned(), absolute("x.jsonl"), given("work/x.jsonl"), "real/../x.jsonl".to_owned()] {
        agent.write("x.jsonl", &text);
        let out = agent.run(&["-p", "go", "--resume", &path]);
        assert!(out.status.success(), "{path}: {}", String::from_utf8_lossy(&out.stderr));
        assert!(fs::read_to_string(folder.join("x.jsonl")).unwrap().len() > text.len(), "{path}");
    }
}

#[test]
fn a_rewind_changes_only_what_the_session_may_change() {
    let backup = json!({"backupFileName": null, "version": 1, "backupTime": "2026-01-01T00:00:00.000Z"});
    let snapshot = json!({"messageId": PROMPT, "trackedFileBackups": {"kept": backup},
                          "timestamp": "2026-01-01T00:00:00.000Z"});
    let snapshot = json!({"type": "file-history-snapshot", "messageId": PROMPT, "snapshot": snapshot,
                          "isSnapshotUpdate": false});
    for (flags, is_removed) in [
        (&[][..], true),
        (&["--permission-mode", "acceptEdits"], true),
        (&["--permission-mode", "plan"], false),
        (&["--permission-mode", "dontAsk"], false),
        (&["--disallowedTools", "Edit"], false),
        (&["--disallowedTools", "Write,Edit,NotebookEdit"], false),
        (&["--disallowedTools", "Edit(kept)"], false),
        (&["--tools", "Read"], false),
    ] {
        let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
        agent.write("kept", "kept");
        agent.write("x.jsonl", &format!("{}{snapshot}\n", session_text(&[])));
        let mut command = agent.command(&[&STREAM[..], &["--resume", "x.jsonl"], flags].concat());
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let mut process = AgentProcess::start(command);
        process.send_request("r1", json!({"subtype": "rewind_files", "user_message_id": PROMPT}));
        let answer = process.read_until(|line| line["type"] == "control_response");
        process.end();
        assert_eq!(agent.folder.path.join("kept").exists(), !is_removed, "{flags:?} {answer}");
    }
}
