//! Entries as other programs read them: times that rise, parents that lead to every call.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use super::stage::Stage;

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

fn entries(stage: &Stage) -> Vec<Value> {
    let text = fs::read_to_string(stage.session_file()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_chain_of_parents_leads_to_every_call_though_results_come_out_of_order() {
    let stage = Stage::playing(PARALLEL);
    stage.lines(&["go"]);
    let entries = entries(&stage);
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
    let stage = Stage::playing(PARALLEL);
    stage.lines(&["go"]);
    let entries = entries(&stage);
    let times: Vec<&str> = entries
        .iter()
        .filter(|line| line["uuid"].is_string())
        .map(|line| line["timestamp"].as_str().unwrap())
        .collect();
    assert!(times.len() >= 6 && times.is_sorted_by(|a, b| a < b), "{times:?}");
}
