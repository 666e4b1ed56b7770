//! Entries as other programs read them: times that rise, parents that lead to every call.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use super::scripted_agent::ScriptedAgent;

/// The first call takes longest, so its result comes last.
const PARALLEL: &str = r#"
- when: {result_of: "*"}
  reply: All read.
- when: {says: subagent one}
  reply: One.
  delay_ms: 500
- when: {subagent: true}
  reply: Two.
- reply:
    - {tool: Agent, id: toolu_slow, input: {description: one, prompt: subagent one, subagent_type: general-purpose}}
    - {tool: Agent, id: toolu_quick, input: {description: two, prompt: subagent two, subagent_type: general-purpose}}
"#;

/// The first answer breaks in its second block, long after the first one.
const BREAKS: &str = r#"
- when: {call: 1}
  reply: [Early words., Words that never end.]
  pause_ms: 150
  cut_after: 6
- when: {says: again}
  reply: Once more.
- reply: [The second, attempt.]
  usage: {output_tokens: 7}
"#;

#[test]
fn an_answer_that_broke_is_a_branch_that_was_left() {
    let agent = ScriptedAgent::from_script_text(BREAKS);
    let id = "11111111-2222-4333-8444-999999999999";
    let lines = agent.lines(&["go", "--session-id", id]);
    assert_eq!(lines.last().unwrap()["is_error"], false);
    let entries = entries(&agent);
    let find = |text: &str| entries.iter().find(|line| line["message"]["content"][0]["text"] == text).unwrap();
    // The reminders sent with the prompt are the last entries before the answer.
    let early = find("Early words.");
    let prompt = entries.iter().rfind(|line| line["type"] == "attachment").unwrap();
    assert_eq!((&early["parentUuid"], &early["message"]["stop_reason"]), (&prompt["uuid"], &Value::Null));
    // A line reports the retry, after the same prompt.
    let retry = entries.iter().find(|line| line["subtype"] == "api_error").unwrap();
    assert_eq!((&retry["parentUuid"], &find("The second")["parentUuid"]), (&prompt["uuid"], &retry["uuid"]));
    agent.lines(&["again", "--resume", id]);
    let sent = agent.server.requests().last().unwrap().body.clone();
    assert!(sent.contains("The second") && !sent.contains("Early words."), "{sent}");
    let conversation = quipu_transcript::load_session(&agent.session_file()).unwrap();
    let shown: Vec<String> = conversation.for_ui().into_iter().filter_map(|item| item.text).collect();
    assert!(shown.iter().all(|text| !text.contains("Early") && !text.contains("Branch")), "{shown:?}");
}

#[test]
fn the_stop_reason_is_on_every_line_of_a_fast_answer_and_the_last_of_a_slow_one() {
    let ends = |pause: &str| {
        let script = format!("- reply: [One., Two.]\n  pause_ms: {pause}\n  usage: {{output_tokens: 7}}\n");
        let agent = ScriptedAgent::from_script_text(&script);
        agent.lines(&["go"]);
        let end =
            |line: &Value| (line["message"]["stop_reason"].clone(), line["message"]["usage"]["output_tokens"].clone());
        let answers = entries(&agent).into_iter().filter(|line| line["type"] == "assistant");
        answers.map(|line| (line["uuid"].clone(), end(&line))).collect::<Vec<_>>()
    };
    let whole = (Value::from("end_turn"), Value::from(7));
    let quick = ends("0");
    assert_eq!(quick.iter().map(|(_, end)| end.clone()).collect::<Vec<_>>(), [whole.clone(), whole.clone()]);
    // The first one was written before the end was known; the last one waited for it.
    let slow = ends("150");
    assert_eq!((slow.len(), &slow[0].1.0, &slow[1].1), (2, &Value::Null, &whole));
}

fn entries(agent: &ScriptedAgent) -> Vec<Value> {
    let text = fs::read_to_string(agent.session_file()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_chain_of_parents_leads_to_every_call_though_results_come_out_of_order() {
    let agent = ScriptedAgent::from_script_text(PARALLEL);
    agent.lines(&["go"]);
    let entries = entries(&agent);
    let results: Vec<&str> =
        entries.iter().filter_map(|line| line["message"]["content"][0]["tool_use_id"].as_str()).collect();
    assert_eq!(results, ["toolu_quick", "toolu_slow"]);
    let by_id: HashMap<&str, &Value> = entries.iter().filter_map(|line| Some((line["uuid"].as_str()?, line))).collect();
    let mut at = entries.iter().rfind(|line| line["type"] == "assistant");
    let mut calls = Vec::new();
    while let Some(line) = at {
        calls.extend(line["message"]["content"][0]["id"].as_str());
        at = line["parentUuid"].as_str().map(|parent| by_id[parent]);
    }
    assert_eq!(calls, ["toolu_quick", "toolu_slow"]);
}

#[test]
fn no_two_entries_have_the_same_time() {
    let agent = ScriptedAgent::from_script_text(PARALLEL);
    agent.lines(&["go"]);
    let entries = entries(&agent);
    let times: Vec<&str> = entries
        .iter()
        .filter(|line| line["uuid"].is_string())
        .map(|line| line["timestamp"].as_str().unwrap())
        .collect();
    assert!(times.len() >= 6 && times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[test]
fn a_compaction_by_command_lies_between_the_times_of_the_command_and_its_output() {
    let agent = ScriptedAgent::from_script_text("- reply: Words.\n");
    let mut process = agent.spawn(&[]);
    for text in ["one", "two", "/compact", "three"] {
        process.send_prompt(text);
        process.read_result();
    }
    process.end();
    let entries = entries(&agent);
    let time = |words: &str| {
        let found = entries.iter().find(|line| {
            line["subtype"] == words || line["message"]["content"].as_str().is_some_and(|text| text.contains(words))
        });
        found.and_then(|line| line["timestamp"].as_str()).unwrap_or_else(|| panic!("no {words}: {entries:?}"))
    };
    let sorted = ["<local-command-caveat>", "/compact", "compact_boundary", "being continued", "Compacted"].map(time);
    assert!(sorted.is_sorted_by(|a, b| a < b), "{sorted:?}");
}
