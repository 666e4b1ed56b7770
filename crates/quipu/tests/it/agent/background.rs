//! Background tasks: which notifications are sent, and when.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::{ScriptedAgent, kinds};

fn of<'a>(lines: &'a [Value], subtype: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["subtype"] == subtype).collect()
}

#[test]
fn the_end_of_a_command_in_the_background_begins_a_turn() {
    let agent = ScriptedAgent::new("background.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("build");
    assert_eq!(process.read_result()["result"], "It builds.");
    agent.write("go", "");
    let result = process.read_result();
    assert_eq!(
        (&result["result"], &result["origin"]["kind"]),
        (&json!("The build is done."), &json!("task-notification"))
    );
    let (code, lines) = process.end();
    assert_eq!(code, 0);
    let started = of(&lines, "task_started")[0];
    assert_eq!((&started["is_backgrounded"], &started["task_type"]), (&json!(true), &json!("local_bash")));
    let notification = of(&lines, "task_notification")[0];
    assert_eq!(
        (&notification["status"], &notification["task_id"], &notification["run_id"]),
        (&json!("completed"), &started["task_id"], &started["run_id"])
    );
    assert_eq!(fs::read_to_string(notification["output_file"].as_str().unwrap()).unwrap(), "built\n");
    let sizes: Vec<usize> =
        of(&lines, "background_tasks_changed").iter().map(|line| line["tasks"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [1, 0]);
    let file = fs::read_to_string(agent.session_file()).unwrap();
    let entries: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let notice = entries.iter().find(|entry| entry["origin"]["kind"] == "task-notification").unwrap();
    assert_eq!((&notice["type"], &notice["origin"]["runId"]), (&json!("user"), &started["run_id"]));
    assert!(entries.iter().any(|entry| entry["type"] == "last-prompt" && entry["lastPrompt"] == "build"));
}

#[test]
fn a_command_in_the_background_is_waited_for_after_the_last_prompt() {
    let agent = ScriptedAgent::from_script_text(
        r#"
- when: {says: "<task-notification>"}
  reply: Noted.
- when: {result_of: Bash}
  reply: Started.
- reply: [{tool: Bash, input: {command: "sleep 1; echo done", description: bg, run_in_background: true}}]
"#,
    );
    let lines = agent.lines(&["go", "--allowedTools", "Bash"]);
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "result").collect();
    let result_and_origin = |line: &Value| (line["result"].clone(), line["origin"]["kind"].clone());
    assert_eq!(
        results.into_iter().map(result_and_origin).collect::<Vec<_>>(),
        [(json!("Started."), Value::Null), (json!("Noted."), json!("task-notification"))]
    );
}

#[test]
fn a_command_in_the_background_ends_with_the_session() {
    let agent = ScriptedAgent::new("background.yaml");
    let lines = agent.lines(&["build", "--allowedTools", "Bash"]);
    assert_eq!(lines.last().unwrap()["result"], "It builds.");
}

#[test]
fn a_background_subagent_is_waited_for_and_its_report_is_sent() {
    let agent = ScriptedAgent::new("background.yaml");
    let lines = agent.lines(&["help"]);
    let kinds = kinds(&lines);
    assert_eq!(kinds[kinds.len() - 2..], ["result/success", "result/success"], "{kinds:?}");
    let [.., first, second] = &lines[..] else { panic!("{kinds:?}") };
    assert_eq!((&first["result"], &first["origin"]), (&json!("The helper is on its way."), &Value::Null));
    assert_eq!(
        (&second["result"], &second["origin"]["kind"]),
        (&json!("The helper is done."), &json!("task-notification"))
    );
    let started = of(&lines, "task_started")[0];
    assert_eq!((&started["is_backgrounded"], &started["task_type"]), (&json!(true), &json!("local_agent")));
    let words = lines.iter().find(|line| line["type"] == "assistant" && line["agent_id"].is_string()).unwrap();
    assert_eq!(words["message"]["content"][0]["text"], "The helper's report.");
    let launched = lines.iter().find(|line| line["tool_use_result"]["status"] == "async_launched").unwrap();
    assert_eq!(launched["tool_use_result"]["agentId"], started["task_id"]);
    let report = launched["tool_use_result"]["outputFile"].as_str().unwrap();
    assert_eq!(fs::read_to_string(report).unwrap(), "The helper's report.");
    assert!(agent.server.requests().last().unwrap().body.contains("<result>The helper's report.</result>"));
}

#[test]
fn a_task_that_ends_during_a_turn_is_announced_in_it() {
    let agent = ScriptedAgent::new("background.yaml");
    let lines = agent.lines(&["both", "--allowedTools", "Bash"]);
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1);
    let seen = agent.server.requests();
    assert!(seen.last().unwrap().body.contains("Background command \\\"Quick\\\" completed (exit code 0)"));
}

#[test]
fn a_host_moves_a_running_command_to_the_background() {
    let agent = ScriptedAgent::new("background.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("wait");
    while !agent.folder.path.join("begun").exists() {
        std::thread::yield_now();
    }
    process.send_request("1", json!({"subtype": "background_tasks"}));
    let answer = process.read_until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["response"], json!({}));
    assert_eq!(process.read_result()["result"], "It builds.");
    agent.write("go", "");
    assert_eq!(process.read_result()["result"], "The build is done.");
    let (_, heard) = process.end();
    let file = of(&heard, "task_notification").pop().unwrap()["output_file"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(file).unwrap(), "built\n");
}

#[test]
fn an_interrupt_loses_no_result_that_was_held_back() {
    let agent = ScriptedAgent::new("background.yaml");
    let mut process = agent.spawn(&[]);
    process.send_prompt("help");
    process.read_until(|line| line["message"]["content"][0]["text"] == "The helper is on its way.");
    process.send_request("1", json!({"subtype": "interrupt"}));
    let (_, heard) = process.end();
    let results = heard.iter().filter(|line| line["type"] == "result").count();
    assert_eq!(results, 2, "{:?}", kinds(&heard));
}

#[test]
fn an_interrupt_refuses_what_a_subagent_in_the_background_asks_for() {
    let agent = ScriptedAgent::new("aside.yaml");
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio", "--allowedTools", "Bash(sleep:*)"]);
    process.send_prompt("help");
    process.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    process.send_request("1", json!({"subtype": "interrupt"}));
    assert_eq!(process.read_result()["terminal_reason"], "aborted_tools");
    let result = process.read_result();
    assert_eq!((&result["result"], &result["is_error"]), (&json!("The helper is done."), &json!(false)));
    let (code, heard) = process.end();
    assert_eq!((code, kinds(&heard).iter().filter(|kind| *kind == "control_cancel_request").count()), (0, 1));
    assert!(!agent.folder.path.join("made").exists());
}

#[test]
fn a_remote_host_gets_the_run_time_of_a_command() {
    let agent = ScriptedAgent::from_script_text(
        r#"
- when: {result_of: Bash}
  reply: Slept.
- reply: [{tool: Bash, input: {command: sleep 2.5}}]
"#,
    );
    let args = ["-p", "nap", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"];
    let run_lines = |remote: &str| {
        let out = agent.command(&args).env("CLAUDE_CODE_REMOTE", remote).output().unwrap();
        let lines: Vec<Value> = out.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
        assert_eq!(lines.last().unwrap()["result"], "Slept.");
        lines.into_iter().filter(|line| line["type"] == "tool_progress").collect::<Vec<_>>()
    };
    let remote_lines = run_lines("1");
    let first = remote_lines.first().unwrap();
    assert_eq!((&first["tool_name"], &first["parent_tool_use_id"]), (&json!("Bash"), &Value::Null));
    assert!(first["elapsed_time_seconds"].is_u64() && first["tool_use_id"].is_string(), "{first}");
    assert!(run_lines("").is_empty());
}

#[test]
fn a_subagent_that_waits_for_its_turn_can_be_stopped() {
    let call = "{tool: Agent, input: {description: d, prompt: p, run_in_background: true}}";
    let script = format!(
        "- {{when: {{subagent: true}}, delay_ms: 5000, reply: Late.}}\n- {{when: {{result_of: Agent}}, reply: Begun.}}\n\
         - {{when: {{says: go}}, reply: [{}]}}\n- reply: Noted.",
        [call; 11].join(", ")
    );
    let agent = ScriptedAgent::from_script_text(&script);
    let mut process = agent.spawn(&[]);
    process.send_prompt("go");
    process.read_until(|line| line["message"]["content"][0]["text"] == "Begun.");
    let started: Vec<Value> =
        of(&process.lines, "task_started").into_iter().map(|line| line["task_id"].clone()).collect();
    let launched = process.lines.iter().filter_map(|line| line["tool_use_result"]["agentId"].as_str());
    // Ten work at once.
    let waiting = launched.map(|id| json!(id)).find(|id| !started.contains(id)).unwrap();
    process.send_request("1", json!({"subtype": "stop_task", "task_id": waiting}));
    process.read_until(|line| line["subtype"] == "task_notification");
    let (_, told) = (process.child.kill(), of(&process.lines, "task_notification")[0]);
    assert_eq!((&told["task_id"], &told["status"]), (&waiting, &json!("stopped")));
}
