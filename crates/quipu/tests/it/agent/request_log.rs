//! The log of API calls in session files: it says what was sent, message by message.

use std::collections::HashMap;
use std::path::Path;

use quipu_api::mock::ReceivedRequest;
use quipu_conversation::RequestLog;
use quipu_message::Entry;
use quipu_message::hash::message_hash;
use quipu_transcript::Entries;
use serde_json::json;

use super::scripted_agent::ScriptedAgent;

const SCRIPT: &str = r#"
- when: {says: about to be replaced}
  reply: "<summary>Much was asked.</summary>"
- when: {subagent: true, result_of: "*"}
  reply: The report.
- when: {subagent: true}
  reply: [{tool: Read, input: {file_path: notes.txt}}]
- {times: 1, when: {says: refused}, error: {status: 400, type: invalid_request_error, message: no}}
- when: {result_of: "*"}
  reply: [Done with it., Really.]
- when: {says: delegate}
  reply: [{tool: Agent, input: {description: d, prompt: look, subagent_type: general-purpose}}]
- when: {says: both}
  reply:
    - I look twice.
    - {tool: Read, input: {file_path: notes.txt}}
    - {tool: Glob, input: {pattern: "*.txt"}}
- reply: Good.
"#;

/// The messages of each call that a file logs, by hash; and what proves the log.
fn logged(path: &Path) -> Vec<Vec<String>> {
    let mut proof = RequestLog::default();
    let mut calls: HashMap<String, Vec<String>> = HashMap::new();
    let mut order = Vec::new();
    for (line, entry) in (1..).zip(Entries::open(path).unwrap()) {
        let entry = entry.unwrap().entry;
        proof.push(line, &entry);
        if let Entry::ApiRequest(request) = entry {
            let keep = usize::try_from(*request.keep.get().unwrap()).unwrap();
            let base = request.base.get().map_or(&[][..], |base| &calls[base][..keep]);
            let messages: Vec<String> = base.iter().chain(&request.tail).cloned().collect();
            order.push(messages.clone());
            calls.insert(request.id.clone(), messages);
        }
    }
    let proof = proof.verify();
    assert_eq!((&proof.missing[..], &proof.mismatched[..]), (&[][..], &[][..]), "{}", path.display());
    assert!(proof.rebuilt > 0 && proof.stored > 0, "{proof:?}");
    order
}

fn sent<'a>(seen: impl Iterator<Item = &'a ReceivedRequest>) -> Vec<Vec<String>> {
    let messages = |seen: &ReceivedRequest| seen.request.as_ref().unwrap().messages.iter().map(message_hash).collect();
    seen.filter(|seen| !seen.body.contains("about to be replaced")).map(messages).collect()
}

#[test]
fn a_session_records_the_messages_of_every_call() {
    let agent = ScriptedAgent::from_script_text(SCRIPT);
    agent.write("CLAUDE.md", "Be kind.");
    agent.write("notes.txt", "some notes");
    let id = "11111111-2222-4333-8444-aaaaaaaaaaaa";
    let mut process = agent.spawn(&["--session-id", id]);
    let turns = ["one", "both", "refused", "both again", "delegate", "six", "both", "/compact", "nine", "both", "last"];
    for text in turns {
        process.send_prompt(text);
        process.read_result();
    }
    process.end();
    let main = agent.session_file();
    for text in ["once more", "and both"] {
        agent.lines(&[text, "--resume", id]);
    }
    let seen = agent.server.requests();
    let is_sub = |seen: &&ReceivedRequest| seen.header("x-claude-code-agent-id").is_some();
    let calls = logged(&main);
    assert_eq!(calls, sent(seen.iter().filter(|seen| !is_sub(seen))));
    assert!(calls.len() > 15, "{}", calls.len());
    let folder = main.with_extension("").join("subagents");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let sub = files.into_iter().find(|path| path.extension().unwrap() == "jsonl").unwrap();
    assert_eq!(logged(&sub), sent(seen.iter().filter(is_sub)));
    // Answers name their calls, and a long session does not log everything again.
    let text = std::fs::read_to_string(&main).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers = lines.iter().filter(|line| line["requestId"].is_string());
    let is_logged =
        |id: &serde_json::Value| lines.iter().any(|line| line["type"] == "api-request" && line["id"] == *id);
    assert!(answers.clone().count() > 15 && answers.clone().all(|line| is_logged(&line["requestRef"])));
    let long = lines.iter().filter(|line| line["tail"].as_array().is_some_and(|tail| tail.len() > 4)).count();
    assert!(long <= 3, "only a resume and a compaction name everything: {long}");
    assert_eq!(lines.iter().filter(|line| line["type"] == "api-request-shape").count(), 1, "a resume knows it");
    assert_eq!(lines.iter().find(|line| line["type"] == "api-request").unwrap()["querySource"], json!("sdk"));
}
