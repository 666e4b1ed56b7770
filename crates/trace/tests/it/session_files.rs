//! Requests rebuilt from session files, against the calls that were recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use quipu_testkit as kit;
use quipu_trace::{Breakpoint, Call, CaptureFormat, Endpoint, PartKey, Trace};

/// JSON of each part, and its breakpoint.
type Parts = Vec<(String, Option<Breakpoint>)>;

/// What a request consists of: everything but the billing line, the metadata and `stream`,
/// which session files do not record.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    model: String,
    system: Parts,
    tools: Parts,
    /// Role and content of each.
    messages: Vec<(String, Parts)>,
    params: Vec<Option<String>>,
    max_tokens: Option<u64>,
    session_id: Option<String>,
    agent_id: Option<String>,
}

fn request_of(trace: &Trace, call: &Call) -> Request {
    let request = call.request.as_ref().unwrap();
    let text = |part: &PartKey| (sorted(trace.prompts.text(part.text)), part.breakpoint);
    let params = [request.tool_choice, request.thinking, request.output_config, request.context_management];
    Request {
        model: request.model.clone(),
        system: request.system.iter().map(text).collect(),
        tools: request.tools.iter().map(text).collect(),
        messages: request
            .messages
            .iter()
            .map(|key| trace.prompts.message(*key))
            .map(|message| (message.role.as_str().to_owned(), message.blocks.iter().map(text).collect()))
            .collect(),
        params: params.iter().map(|param| param.map(|id| trace.prompts.text(id).to_owned())).collect(),
        max_tokens: request.max_tokens,
        session_id: call.identity.session_id.clone(),
        agent_id: call.identity.agent_id.clone(),
    }
}

/// Compared without the order of keys, which a rebuilt message need not have.
fn sorted(json: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(json).unwrap();
    value.sort_all_objects();
    value.to_string()
}

fn recordings() -> Vec<PathBuf> {
    let Some(shared) = kit::shared_dir() else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        fs::read_dir(shared.join("recordings")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|folder| folder.join("api.jsonl").is_file());
    folders.sort();
    folders
}

fn session_files(folder: &Path) -> Vec<PathBuf> {
    kit::files_under(folder, |path| {
        let name = path.file_name().unwrap().to_string_lossy();
        (name.starts_with("transcript") || name.starts_with("agent-")) && name.ends_with(".jsonl")
    })
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_recorded_call_is_imported() {
    let mut calls = 0;
    for folder in recordings() {
        let path = folder.join("api.jsonl");
        let trace = Trace::open(&[&path]).unwrap();
        assert_eq!(trace.sources[0].format, CaptureFormat::Recording);
        assert_eq!(trace.problems, [], "{}", path.display());
        assert_eq!(trace.calls.len(), fs::read_to_string(&path).unwrap().lines().count());
        for call in &trace.calls {
            assert!(call.started_at.is_some() && call.response.status.is_some());
            assert_eq!(call.request.is_some(), call.endpoint != Endpoint::Other, "{}:{}", path.display(), call.line);
        }
        calls += trace.calls.len();
    }
    assert!(calls == 0 || calls == 334, "{calls}");
}

/// Calls beside the conversation, for which no line is written: how many in which recording.
const CALLS_WITHOUT_A_LINE: [(&str, usize); 10] = [
    ("22_compact_manual", 2),
    ("23_compact_auto", 1),
    ("24_slash_commands", 1),
    ("33_session_id", 1),
    ("34_side_requests", 1),
    ("44_sdk_control_methods", 1),
    ("50_control_all_subtypes", 2),
    ("58_sdk_session_store_mirror", 1),
    ("60_prompt_suggestion_title", 3),
    ("68_websearch", 2),
];

#[test]
fn every_logged_request_is_one_that_was_sent() {
    let mut compared = 0;
    let mut without_line: BTreeMap<String, usize> = BTreeMap::new();
    let mut different = String::new();
    for folder in recordings().into_iter().filter(|folder| !name_of(folder).contains("old_cli")) {
        let recorded = Trace::open(&[folder.join("api.jsonl")]).unwrap();
        let mut sent: Vec<(Request, bool)> = recorded
            .calls
            .iter()
            .filter(|call| call.endpoint == Endpoint::Messages)
            .map(|call| (request_of(&recorded, call), false))
            .collect();
        let session = Trace::open(&session_files(&folder)).unwrap();
        assert_eq!(session.problems, [], "{}", folder.display());
        for call in &session.calls {
            assert!(!call.is_reconstructed, "{}: {call:?}", folder.display());
            let request = request_of(&session, call);
            compared += 1;
            // Several calls may have the same request: each line takes one of them.
            match sent.iter_mut().find(|(sent, used)| !used && *sent == request) {
                Some((_, used)) => *used = true,
                None => {
                    let nearest = sent.iter().find(|(sent, _)| sent.messages == request.messages);
                    different += &format!("{} line {}\n{request:#?}\n{nearest:#?}\n", folder.display(), call.line);
                }
            }
        }
        let unused = sent.iter().filter(|(_, used)| !used).count();
        if unused > 0 {
            without_line.insert(name_of(&folder), unused);
        }
    }
    assert_eq!(different, "");
    if compared > 0 {
        assert_eq!(compared, 222);
        let without_line: Vec<(&str, usize)> = without_line.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(without_line, CALLS_WITHOUT_A_LINE);
    }
}

#[test]
fn no_request_is_reconstructed_that_the_api_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let text = "x".repeat(17 << 20);
    let mut lines = String::new();
    for turn in 1..=3 {
        let parent = if turn == 1 { "null".to_owned() } else { format!("\"a{}\"", turn - 1) };
        lines += &format!(
            r#"{{"type":"user","uuid":"u{turn}","parentUuid":{parent},"message":{{"role":"user","content":"{turn}{text}"}}}}
{{"type":"assistant","uuid":"a{turn}","parentUuid":"u{turn}","message":{{"id":"msg_{turn}","role":"assistant","model":"m","content":[{{"type":"text","text":"{turn}"}}]}}}}
"#
        );
    }
    fs::write(&path, lines).unwrap();
    let trace = Trace::open(&[&path]).unwrap();
    let sent: Vec<Option<usize>> =
        trace.calls.iter().map(|call| call.request.as_ref().map(|request| request.messages.len())).collect();
    assert_eq!(sent, [Some(1), None, None]);
    let problems: Vec<(u64, &str)> = trace.problems.iter().map(|found| (found.line, found.message.as_str())).collect();
    let reason = "messages before this response and later ones: more than the 32 MB that the API accepts";
    assert_eq!(problems, [(4, reason)]);
}
