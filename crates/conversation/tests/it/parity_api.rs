//! What `for_api` makes of the entries up to each call, against the request that
//! the real program sent.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use quipu_conversation::{Conversation, RequestLog};
use quipu_message::hash::message_hash;
use quipu_message::{Block, Entry, Message, Role};
use serde_json::Value;

/// What is compared of a message: its role, the calls it makes, the results it
/// holds and the words in it; context that the program injects is left out.
fn essence(messages: &[Message]) -> Vec<(Role, Vec<String>)> {
    let mut out: Vec<(Role, Vec<String>)> = Vec::new();
    for message in messages.iter().filter(|message| message.role != Role::System) {
        let parts: Vec<String> = message.content.clone().into_blocks().iter().filter_map(part).collect();
        match out.last_mut() {
            Some((role, earlier)) if *role == message.role => earlier.extend(parts),
            _ => out.push((message.role.clone(), parts)),
        }
    }
    out.retain(|(_, parts)| !parts.is_empty());
    out
}

fn part(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => {
            let words = without_reminders(&text.text);
            let words = words.trim();
            (!words.is_empty()).then(|| format!("text {}", wildcard(words)))
        }
        Block::ToolUse(call) => Some(format!("call {} {}", call.id, call.name)),
        Block::ToolResult(result) => {
            let text = wildcard(without_reminders(&result.text()).trim());
            Some(format!("result {} {text}", result.tool_use_id))
        }
        Block::Image(_) => Some("image".to_owned()),
        Block::Document(_) => Some("document".to_owned()),
        _ => None,
    }
}

fn without_reminders(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(start) = out.find("<system-reminder>") {
        let end = out[start..].find("</system-reminder>").map_or(out.len(), |e| start + e + "</system-reminder>".len());
        out.replace_range(start..end, "");
    }
    out
}

/// Equal texts have equal markers, but a marker may stand for a text with a line
/// break more.
fn wildcard(text: &str) -> String {
    match (text.find("<elided "), text.rfind('>')) {
        (Some(start), Some(end)) if start < end => format!("{}*{}", &text[..start], &text[end + 1..]),
        _ => text.to_owned(),
    }
}

struct Call {
    messages: Vec<Message>,
    hashes: Vec<String>,
    answer: Option<String>,
    used: bool,
}

fn calls(folder: &Path) -> Vec<Call> {
    let text = fs::read_to_string(folder.join("api.jsonl")).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|call| {
            call["path"].as_str().is_some_and(|path| path.starts_with("/v1/messages") && !path.contains("count_tokens"))
        })
        .filter_map(|call| {
            let messages: Vec<Message> = serde_json::from_str(&call["body"]["messages"].to_string()).ok()?;
            let hashes = messages.iter().map(message_hash).collect();
            let text = call.to_string();
            let answer = text.find("\"id\":\"msg_").map(|at| text[at + 6..].split('"').next().unwrap().to_owned());
            Some(Call { messages, hashes, answer, used: false })
        })
        .collect()
}

fn entries(path: &Path) -> Vec<(u64, Entry)> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().enumerate().filter_map(|(i, line)| Some((i as u64 + 1, Entry::read(line).ok()?))).collect()
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    quipu_testkit::files_under(folder, |path| {
        let name = path.file_name().unwrap().to_string_lossy();
        (name.starts_with("transcript") || name.starts_with("agent-")) && name.ends_with(".jsonl")
    })
}

/// The calls that a file names, each with the line up to which its entries count.
fn named(entries: &[(u64, Entry)], calls: &[Call]) -> Vec<(u64, Option<usize>)> {
    let mut full: HashMap<String, Vec<String>> = HashMap::new();
    let mut found = Vec::new();
    for (line, entry) in entries {
        let Entry::ApiRequest(request) = entry else { continue };
        let base = request.base.get().and_then(|base| full.get(base.as_str())).cloned().unwrap_or_default();
        let keep = request.keep.get().copied().unwrap_or_default() as usize;
        let mut hashes = base[..keep.min(base.len())].to_vec();
        hashes.extend(request.tail.iter().cloned());
        let call = calls.iter().position(|call| call.hashes == hashes);
        full.insert(request.id.clone(), hashes);
        found.push((*line, call));
    }
    if full.is_empty() {
        let mut seen = HashSet::new();
        for (line, entry) in entries {
            let Entry::Assistant(answer) = entry else { continue };
            let Some(id) = answer.message.id.text().filter(|id| seen.insert(id.to_string())) else { continue };
            found.extend(
                calls.iter().position(|call| call.answer.as_deref() == Some(id)).map(|call| (*line, Some(call))),
            );
        }
    }
    found
}

/// Calls beside the conversation, which no entry names: how many in which recording.
const SIDE_CALLS: [(&str, usize, &str); 11] = [
    ("22_compact_manual", 2, "summaries for the compaction"),
    ("23_compact_auto", 1, "summary for the compaction"),
    ("24_slash_commands", 1, "probe of a model"),
    ("33_session_id", 1, "a run that keeps no file"),
    ("34_side_requests", 1, "title"),
    ("37_old_cli_2.1.197", 1, "summary for the compaction"),
    ("44_sdk_control_methods", 1, "probe of a model"),
    ("50_control_all_subtypes", 2, "probe of a model, side question"),
    ("58_sdk_session_store_mirror", 1, "a session kept in the host's store"),
    ("60_prompt_suggestion_title", 3, "suggestions and title"),
    ("68_websearch", 2, "searches of the WebSearch tool"),
];

#[test]
fn for_api_gives_the_request_that_was_sent() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let (mut compared, mut same) = (0, 0);
    let mut side: BTreeMap<String, usize> = BTreeMap::new();
    let mut differ: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in fs::read_dir(shared.join("recordings")).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut calls = calls(&folder);
        for path in files_of(&folder) {
            let entries = entries(&path);
            for (line, call) in named(&entries, &calls) {
                let Some(call) = call else {
                    differ
                        .entry(name.clone())
                        .or_default()
                        .push(format!("line {line} names a call that was not recorded"));
                    continue;
                };
                let hashes = calls[call].hashes.clone();
                // A call that was tried again is the same call.
                calls.iter_mut().filter(|call| call.hashes == hashes).for_each(|call| call.used = true);
                compared += 1;
                let mut conversation = Conversation::default();
                entries.iter().filter(|(l, _)| *l < line).for_each(|(l, e)| conversation.push(*l, e.clone()));
                let (ours, theirs) = (essence(&conversation.for_api()), essence(&calls[call].messages));
                if ours == theirs {
                    same += 1;
                } else {
                    let file = path.file_name().unwrap().to_string_lossy().into_owned();
                    differ
                        .entry(name.clone())
                        .or_default()
                        .push(format!("{file}:{line}\n  ours   {ours:?}\n  theirs {theirs:?}"));
                }
            }
        }
        for _ in calls.iter().filter(|call| !call.used) {
            *side.entry(name.clone()).or_default() += 1;
        }
    }
    let report: String = differ.iter().map(|(name, list)| format!("--- {name}\n{}\n", list.join("\n"))).collect();
    assert_eq!(report, "");
    assert_eq!((compared, same), (230, 230));
    let side: Vec<(&str, usize)> = side.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(side, SIDE_CALLS.map(|(name, n, _)| (name, n)));
}

#[test]
fn every_message_that_a_file_names_is_stored_or_rebuilt() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let (mut stored, mut rebuilt) = (0, 0);
    for path in quipu_testkit::recorded_files(&shared) {
        let mut log = RequestLog::default();
        entries(&path).iter().for_each(|(line, entry)| log.push(*line, entry));
        let proof = log.verify();
        assert!(proof.missing.is_empty() && proof.mismatched.is_empty(), "{}: {proof:?}", path.display());
        stored += proof.stored;
        rebuilt += proof.rebuilt;
    }
    assert_eq!((stored, rebuilt), (221, 233));
}
