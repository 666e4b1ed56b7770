//! The requests that the responses of a file imply, against `for_api` at each of them.

use std::collections::HashMap;
use std::fs;

use quipu_conversation::{Conversation, PastRequests, RequestLog};
use quipu_message::Entry;
use quipu_testkit as kit;

fn entries_of(text: &str) -> Vec<(u64, Entry)> {
    (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, Entry::read(text).ok()?))).collect()
}

fn conversation_of<'e>(entries: impl Iterator<Item = &'e (u64, Entry)>) -> Conversation {
    let mut conversation = Conversation::default();
    entries.for_each(|(line, entry)| conversation.push(*line, entry.clone()));
    conversation
}

#[test]
fn each_past_request_is_what_for_api_gave_before_its_response() {
    let Some(shared) = kit::shared_dir() else { return };
    let (mut compared, mut different) = (0, Vec::new());
    for path in kit::recorded_files(&shared).into_iter().filter(|path| !path.ends_with("stdout.jsonl")) {
        let entries = entries_of(&fs::read_to_string(&path).unwrap());
        let mut first_lines: HashMap<&str, u64> = HashMap::new();
        for (line, entry) in &entries {
            if let Entry::Assistant(response) = entry
                && let Some(id) = response.message.id.text()
            {
                first_lines.entry(id).or_insert(*line);
            }
        }
        for part in conversation_of(entries.iter()).past_requests() {
            for call in &part.calls {
                let line = first_lines[call.message_id.as_str()];
                let before = conversation_of(entries.iter().filter(|(l, _)| *l < line));
                compared += 1;
                if before.for_api() != part.messages[..call.sent] {
                    different.push(format!("{}:{line}", path.display()));
                }
            }
        }
    }
    assert_eq!(different, Vec::<String>::new());
    assert!(compared >= 200, "{compared}");
}

fn line(kind: &str, uuid: &str, parent: &str, text: &str) -> String {
    let role = if kind == "assistant" { "assistant" } else { "user" };
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"message":{{"id":"msg_{uuid}","role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn calls_of(parts: &[PastRequests]) -> Vec<(String, Vec<String>)> {
    let texts = |part: &PastRequests, sent: usize| part.messages[..sent].iter().map(|m| m.content.to_text()).collect();
    let calls = parts.iter().flat_map(|part| part.calls.iter().map(move |call| (part, call)));
    calls.map(|(part, call)| (call.message_id.clone(), texts(part, call.sent))).collect()
}

#[test]
fn a_rewound_branch_has_its_own_requests() {
    let lines = [
        line("user", "a", "", "one"),
        line("assistant", "b", "a", "first"),
        line("user", "c", "b", "left"),
        line("assistant", "d", "c", "left answer"),
        line("user", "e", "b", "kept"),
        line("assistant", "f", "e", "kept answer"),
    ];
    let parts = conversation_of(entries_of(&lines.join("\n")).iter()).past_requests();
    let call = |id: &str, texts: &[&str]| (id.to_owned(), texts.iter().map(|&text| text.to_owned()).collect());
    assert_eq!(
        calls_of(&parts),
        [call("msg_b", &["one"]), call("msg_f", &["one", "first", "kept"]), call("msg_d", &["one", "first", "left"])]
    );
}

#[test]
fn requests_before_and_after_a_compaction_are_in_parts() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"x","parentUuid":null,"logicalParentUuid":"b","content":"Conversation compacted"}"#;
    let lines = [
        line("user", "a", "", "one"),
        line("assistant", "b", "a", "first"),
        boundary.to_owned(),
        line("user", "c", "x", "summary"),
        line("assistant", "d", "c", "second"),
    ];
    let parts = conversation_of(entries_of(&lines.join("\n")).iter()).past_requests();
    assert_eq!(
        calls_of(&parts),
        [("msg_b".to_owned(), vec!["one".to_owned()]), ("msg_d".to_owned(), vec!["summary".to_owned()])]
    );
}

#[test]
fn a_request_whose_base_is_not_in_the_file_has_a_gap() {
    let request = r#"{"type":"api-request","id":"r2","base":"r1","keep":2,"tail":["7"]}"#;
    let mut log = RequestLog::with_messages();
    log.push(1, &Entry::read(request).unwrap());
    let rebuilt = log.rebuild();
    assert_eq!(rebuilt.messages_of(&rebuilt.requests[0]), [None, None]);
    assert!(rebuilt.messages.is_empty());
}

#[test]
fn messages_are_taken_from_every_request_of_the_chain() {
    let lines = [
        r#"{"type":"user","uuid":"a","message":{"role":"user","content":"one"}}"#.to_owned(),
        r#"{"type":"user","uuid":"b","message":{"role":"user","content":"two"}}"#.to_owned(),
    ];
    let mut log = RequestLog::with_messages();
    let entries = entries_of(&lines.join("\n"));
    let hashes: Vec<String> = entries
        .iter()
        .map(|(_, entry)| match entry {
            Entry::User(user) => quipu_message::hash::message_hash(&user.message),
            _ => unreachable!(),
        })
        .collect();
    entries.iter().for_each(|(line, entry)| log.push(*line, entry));
    let requests = [
        format!(r#"{{"type":"api-request","id":"r1","tail":["{}"]}}"#, hashes[0]),
        format!(r#"{{"type":"api-request","id":"r2","base":"r1","keep":1,"tail":["{}","{}"]}}"#, hashes[1], hashes[0]),
        r#"{"type":"api-request","id":"r3","base":"r2","keep":3,"tail":[]}"#.to_owned(),
        format!(r#"{{"type":"api-request","id":"r4","base":"r3","keep":2,"tail":["{}"]}}"#, hashes[1]),
    ];
    requests.iter().for_each(|request| log.push(9, &Entry::read(request).unwrap()));
    let rebuilt = log.rebuild();
    let texts: Vec<Vec<String>> = rebuilt
        .requests
        .iter()
        .map(|request| rebuilt.messages_of(request))
        .map(|list| list.into_iter().map(|i| rebuilt.messages[i.unwrap()].content.to_text()).collect())
        .collect();
    assert_eq!(texts, [vec!["one"], vec!["one", "two", "one"], vec!["one", "two", "one"], vec!["one", "two", "two"]]);
    assert_eq!(rebuilt.messages.len(), 2);
}
