//! The tools give what the recordings of the real program show.

use std::collections::BTreeMap;

use quipu_engine::testing::tool::WorkspaceOptions;
use quipu_engine::testing::tools;
use serde_json::Value;

use crate::TestWorkspace;

/// Tools whose results do not depend on who was asked.
const COMPARED: [&str; 4] = ["Bash", "Edit", "Read", "Write"];

/// Folders whose calls all ran, and take no time.
const FOLDERS: [&str; 8] = [
    "02_thinking_multiblock",
    "03_tools_file",
    "04_parallel_tools",
    "05_tool_error",
    "11_partial",
    "16_max_turns",
    "34_side_requests",
    "45_sdk_rewind",
];

fn lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn blocks<'a>(line: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let content = line["message"]["content"].as_array().into_iter().flatten();
    content.filter(move |block| block["type"] == kind)
}

#[tokio::test]
async fn calls_of_the_recordings_give_the_recorded_results() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut compared = 0;
    for folder in FOLDERS {
        let text = std::fs::read_to_string(shared.join("recordings").join(folder).join("transcript.jsonl")).unwrap();
        let there = format!("/home/dev/{folder}");
        let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
        let workspace = TestWorkspace::with_options(WorkspaceOptions { env, ..WorkspaceOptions::default() });
        let here = workspace.inner.root().to_str().unwrap().to_owned();
        let moved = |value: &Value| serde_json::from_str::<Value>(&value.to_string().replace(&there, &here)).unwrap();
        let mut calls: BTreeMap<String, Value> = BTreeMap::new();
        for line in lines(&text) {
            for call in blocks(&line, "tool_use") {
                calls.insert(call["id"].to_string(), moved(call));
            }
            let result = blocks(&line, "tool_result").next();
            let Some((result, call)) =
                result.and_then(|result| Some((result, calls.get(&result["tool_use_id"].to_string())?)))
            else {
                continue;
            };
            let name = call["name"].as_str().unwrap();
            let (content, raw) = (moved(&result["content"]), moved(&line["toolUseResult"]));
            if !COMPARED.contains(&name) {
                let known = tools::builtin_tools().iter().any(|tool| tool.name() == name);
                assert!(known || content.to_string().contains("No such tool"), "{folder} {name}");
                continue;
            }
            // What a file held before the session is known from what was read.
            if let (Some(path), Some(text)) = (raw["file"]["filePath"].as_str(), raw["file"]["content"].as_str()) {
                std::fs::write(path, text).unwrap();
            }
            let output = workspace.run_tool(name, call["input"].clone()).await;
            assert_eq!(output.is_error, result["is_error"].as_bool().unwrap_or(false), "{folder} {call}");
            let elided = |value: &Value| value.to_string().contains("<elided ");
            if !elided(&content) {
                assert_eq!(serde_json::to_value(&output.content).unwrap(), content, "{folder} {call}");
                compared += 1;
            }
            if !elided(&raw) {
                assert_eq!(output.raw.unwrap().to_string(), raw.to_string(), "{folder} {call}");
            }
        }
    }
    assert!(compared >= 15, "only {compared} results were compared");
}
