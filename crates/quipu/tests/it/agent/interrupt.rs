//! Interrupted turns: how the stream of an answer is closed, and the results of running tools.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, ScriptedAgent};

const SLOW: &str = r#"
- when: {says: sleep}
  reply:
    - {tool: Bash, input: {command: "echo first > step1; sleep 30; echo second > step2"}}
- when: {says: write}
  reply:
    - text: A first block that is whole.
    - text: A long text that comes in small pieces and takes its time.
  chunk: 4
  pause_ms: 40
  usage: {input_tokens: 1200, output_tokens: 7, cache_read_input_tokens: 1000}
- reply: Awake.
"#;

fn interrupt(process: &mut AgentProcess) -> Value {
    process.send_request("stop", json!({"subtype": "interrupt"}));
    process.read_result()
}

/// The text of the last tool result on the stream.
fn last_tool_result(process: &AgentProcess) -> String {
    let contents = process.lines.iter().rev().filter(|line| line["type"] == "user");
    let mut results =
        contents.map(|line| &line["message"]["content"][0]).filter(|block| block["type"] == "tool_result");
    results.next().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn an_interrupted_answer_is_closed_with_what_it_used() {
    let agent = ScriptedAgent::from_script_text(SLOW);
    let mut process = agent.spawn(&["--include-partial-messages"]);
    process.send_prompt("write");
    process.read_until(|line| line["event"]["type"] == "content_block_delta" && line["event"]["index"] == 1);
    assert_eq!(interrupt(&mut process)["terminal_reason"], "aborted_streaming");
    let kind = |line: &Value| line["event"]["type"].as_str().or(line["type"].as_str()).unwrap().to_owned();
    let aborted = process.lines.iter().position(|line| line["aborted"] == true).unwrap();
    let end: Vec<String> =
        process.lines[aborted..].iter().map(kind).filter(|kind| kind != "control_response").collect();
    assert_eq!(end, ["assistant", "user", "content_block_stop", "message_delta", "message_stop", "result"]);
    let [.., stop, delta, last, _] = &process.lines[..] else { unreachable!("six lines at least") };
    assert_eq!(stop["event"]["index"], 1);
    let usage = &delta["event"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(1200), &json!(1000)));
    assert!(usage["output_tokens"].is_u64() && usage["cache_creation_input_tokens"].is_u64(), "{delta}");
    let id = &delta["api_message_id"];
    assert_eq!(last["abandoned_blocks"], json!({"api_message_id": id, "from_block_index": 2}));
    process.end();
}

#[test]
fn a_tool_that_was_stopped_while_it_ran_may_have_run_in_part() {
    let agent = ScriptedAgent::from_script_text(SLOW);
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("sleep");
    process.read_until(|line| line["type"] == "assistant");
    while !agent.folder.path.join("step1").exists() {
        std::thread::yield_now();
    }
    assert_eq!(interrupt(&mut process)["terminal_reason"], "aborted_tools");
    let text = last_tool_result(&process);
    assert!(text.contains("may have run in part") && !text.contains("did not run"), "{text}");
    assert!(fs::read_to_string(agent.session_file()).unwrap().contains("may have run in part"));
    process.end();
}

#[test]
fn a_tool_that_was_stopped_before_it_ran_did_not_run() {
    let agent = ScriptedAgent::from_script_text(SLOW);
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
    process.send_prompt("sleep");
    process.read_until(|line| line["type"] == "control_request");
    assert_eq!(interrupt(&mut process)["terminal_reason"], "aborted_tools");
    let text = last_tool_result(&process);
    assert!(text.contains("did not run") && !text.contains("in part"), "{text}");
    process.end();
}

#[test]
fn a_saved_prompt_whose_command_waits_for_permission_can_be_interrupted() {
    let agent = ScriptedAgent::from_script_text(SLOW);
    agent.write(".claude/commands/go.md", "Go !`touch first` and !`touch second`");
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
    process.send_prompt("/go");
    process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    assert_eq!(interrupt(&mut process)["terminal_reason"], "aborted_streaming");
    let asked = |line: &&Value| line["request"]["subtype"] == "can_use_tool";
    assert_eq!(process.lines.iter().filter(asked).count(), 1);
    assert!(process.lines.iter().any(|line| line["type"] == "control_cancel_request"));
    assert!(agent.server.requests().is_empty());
    process.send_prompt("hello");
    assert_eq!(process.read_result()["result"], "Awake.");
    assert_eq!(process.end().0, 0);
    assert!(!agent.folder.path.join("first").exists() && !agent.folder.path.join("second").exists());
}
