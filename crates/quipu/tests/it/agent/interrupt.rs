//! Turns that are interrupted: how the stream of an answer is closed, and what is said of
//! tools that ran.

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

fn interrupt(talk: &mut AgentProcess) -> Value {
    talk.send_request("stop", json!({"subtype": "interrupt"}));
    talk.read_result()
}

/// The text of the last tool result on the stream.
fn told(talk: &AgentProcess) -> String {
    let contents = talk.heard.iter().rev().filter(|line| line["type"] == "user");
    let mut results =
        contents.map(|line| &line["message"]["content"][0]).filter(|block| block["type"] == "tool_result");
    results.next().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn an_interrupted_answer_is_closed_with_what_it_used() {
    let stage = ScriptedAgent::from_script_text(SLOW);
    let mut talk = stage.spawn(&["--include-partial-messages"]);
    talk.send_prompt("write");
    talk.read_until(|line| line["event"]["type"] == "content_block_delta" && line["event"]["index"] == 1);
    assert_eq!(interrupt(&mut talk)["terminal_reason"], "aborted_streaming");
    let kind = |line: &Value| line["event"]["type"].as_str().or(line["type"].as_str()).unwrap().to_owned();
    let aborted = talk.heard.iter().position(|line| line["aborted"] == true).unwrap();
    let end: Vec<String> = talk.heard[aborted..].iter().map(kind).filter(|kind| kind != "control_response").collect();
    assert_eq!(end, ["assistant", "user", "content_block_stop", "message_delta", "message_stop", "result"]);
    let [.., stop, delta, last, _] = &talk.heard[..] else { unreachable!("six lines at least") };
    assert_eq!(stop["event"]["index"], 1);
    let usage = &delta["event"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(1200), &json!(1000)));
    assert!(usage["output_tokens"].is_u64() && usage["cache_creation_input_tokens"].is_u64(), "{delta}");
    let id = &delta["api_message_id"];
    assert_eq!(last["abandoned_blocks"], json!({"api_message_id": id, "from_block_index": 2}));
    talk.end();
}

#[test]
fn a_tool_that_was_stopped_while_it_ran_may_have_run_in_part() {
    let stage = ScriptedAgent::from_script_text(SLOW);
    let mut talk = stage.spawn(&["--allowedTools", "Bash"]);
    talk.send_prompt("sleep");
    talk.read_until(|line| line["type"] == "assistant");
    while !stage.folder.path.join("step1").exists() {
        std::thread::yield_now();
    }
    assert_eq!(interrupt(&mut talk)["terminal_reason"], "aborted_tools");
    let text = told(&talk);
    assert!(text.contains("may have run in part") && !text.contains("did not run"), "{text}");
    assert!(fs::read_to_string(stage.session_file()).unwrap().contains("may have run in part"));
    talk.end();
}

#[test]
fn a_tool_that_was_stopped_before_it_ran_did_not_run() {
    let stage = ScriptedAgent::from_script_text(SLOW);
    let mut talk = stage.spawn(&["--permission-prompt-tool", "stdio"]);
    talk.send_prompt("sleep");
    talk.read_until(|line| line["type"] == "control_request");
    assert_eq!(interrupt(&mut talk)["terminal_reason"], "aborted_tools");
    let text = told(&talk);
    assert!(text.contains("did not run") && !text.contains("in part"), "{text}");
    talk.end();
}
