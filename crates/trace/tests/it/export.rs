//! Exports: an HTTP archive reads back as the same calls, and spans agree with the structure.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use quipu_otlp::{AttributeValue, Span};
use quipu_testkit as kit;
use quipu_trace::{Call, ForkReason, Structure, Trace, export_spans, write_har};

/// Everything of a call but the hash of its credential and its place in the file.
fn describe(trace: &Trace, call: &Call) -> String {
    let request = call.request.as_ref().map(|request| {
        let text = |id: &quipu_trace::TextId| trace.prompts.text(*id).to_owned();
        let parts = |parts: &[quipu_trace::PartKey]| -> Vec<_> {
            parts.iter().map(|part| (text(&part.text), part.breakpoint)).collect()
        };
        let messages = request.messages.iter().map(|key| trace.prompts.message(*key));
        let messages: Vec<_> =
            messages.map(|message| (message.role.clone(), parts(&message.blocks), message.extra.clone())).collect();
        let optional = [request.tool_choice, request.thinking, request.output_config, request.context_management];
        let optional: Vec<_> = optional.iter().map(|id| id.as_ref().map(text)).collect();
        let head = (&request.model, request.max_tokens, request.is_stream, &request.speed);
        let prefix = (request.billing_line.as_ref().map(text), parts(&request.system), parts(&request.tools));
        format!("{head:?} {prefix:?} {messages:?} {optional:?} {:?}", request.automatic_breakpoint)
    });
    let response = &call.response;
    let blocks: Vec<&str> = response.blocks.iter().map(|block| trace.prompts.text(block.text)).collect();
    let answer = (response.status, response.end, &response.message_id, &response.request_id, &response.model);
    let times = (call.started_at, call.duration_ms, call.first_event_ms);
    let identity = (&call.identity.session_id, &call.identity.agent_id, &call.identity.parent_agent_id);
    format!(
        "{} {times:?} {identity:?} {:?} {:?} {} {request:?} {answer:?} {:?} {:?} {:?} {blocks:?} {:?}",
        call.id,
        call.query_source,
        call.betas,
        call.is_reconstructed,
        response.stop_reason,
        response.tokens,
        response.error,
        response.tool_calls
    )
}

/// Exports files as an HTTP archive, reads it back and compares every call.
fn check_round_trip(path: &Path) {
    let (trace, raw) = Trace::open_with_raw_calls(&[path]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let har = folder.path().join("calls.har");
    write_har(&trace, &raw, fs::File::create(&har).unwrap()).unwrap();
    let read = Trace::open(&[&har]).unwrap();
    let describe = |trace: &Trace| trace.calls.iter().map(|call| describe(trace, call)).collect::<Vec<_>>();
    let (before, after) = (describe(&trace), describe(&read));
    assert_eq!(before.len(), after.len(), "{}", path.display());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after, "{}", path.display());
    }
}

#[test]
fn an_exported_archive_reads_back_as_the_same_calls() {
    let fixtures = fs::read_dir(kit::fixture("traces")).unwrap();
    let mut paths: Vec<PathBuf> = fixtures.map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 9);
    if let Some(shared) = kit::shared_dir() {
        let is_source = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == "api.jsonl" || name.starts_with("transcript") && name.ends_with(".jsonl")
        };
        paths.extend(kit::files_under(&shared.join("recordings"), is_source));
    }
    paths.iter().for_each(|path| check_round_trip(path));
}

#[test]
fn an_exported_archive_contains_no_credential() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("browser.har");
    let text = fs::read_to_string(kit::fixture("traces/browser.har")).unwrap();
    let mut archive: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in ["X-Api-Key", "authorization", "Cookie"] {
        let header = serde_json::json!({"name": name, "value": "secret-value"});
        archive["log"]["entries"][0]["request"]["headers"].as_array_mut().unwrap().push(header);
    }
    let mut login = archive["log"]["entries"][0].clone();
    login["request"]["url"] = "https://example.org/v1/oauth/token".into();
    login["request"]["postData"]["text"] = "secret-value".into();
    login["response"]["content"]["text"] = "secret-value".into();
    archive["log"]["entries"].as_array_mut().unwrap().push(login);
    fs::write(&source, archive.to_string()).unwrap();
    let (trace, raw) = Trace::open_with_raw_calls(&[&source]).unwrap();
    let mut written = Vec::new();
    write_har(&trace, &raw, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(!written.contains("secret-value") && written.contains("hash:"), "{written}");
}

fn text<'s>(span: &'s Span, name: &str) -> Option<&'s str> {
    span.attributes.iter().find_map(|(known, value)| match value {
        AttributeValue::Text(text) if *known == name => Some(text.as_str()),
        _ => None,
    })
}

/// The spans of a file, after checks that hold for every trace.
fn checked_spans(path: &Path) -> (Trace, Structure, Vec<Span>) {
    let trace = Trace::open(&[path]).unwrap();
    let structure = Structure::new(&trace);
    let exported = export_spans(&trace, &structure);
    let again = export_spans(&trace, &structure);
    assert_eq!(exported.spans, again.spans, "{}", path.display());
    let ids: HashMap<_, &Span> = exported.spans.iter().map(|span| (span.place.id, span)).collect();
    assert_eq!(ids.len(), exported.spans.len(), "{}", path.display());
    for span in &exported.spans {
        assert!(span.times.start <= span.times.end);
        if let Some(parent) = span.place.parent {
            assert_eq!(ids[&parent].place.trace, span.place.trace, "{}: {}", path.display(), span.name);
        } else {
            assert_eq!(span.name, "invoke_agent main");
        }
    }
    let chats = exported.spans.iter().filter(|span| span.name.starts_with("chat")).count();
    let calls = structure.branch_of.iter().filter(|branch| branch.is_some()).count();
    assert_eq!(chats + exported.untimed_calls, calls, "{}", path.display());
    let turns: usize = structure.sessions.iter().map(|session| session.turns.len()).sum();
    let traces: HashSet<_> = exported.spans.iter().map(|span| span.place.trace.0).collect();
    assert!(traces.len() <= turns, "{}", path.display());
    (trace, structure, exported.spans)
}

#[test]
fn spans_of_the_recordings_form_trees() {
    let Some(shared) = kit::shared_dir() else { return };
    let (mut subagents, mut tools, mut failed) = (0, 0, 0);
    for path in kit::files_under(&shared.join("recordings"), |path| path.ends_with("api.jsonl")) {
        let (_, structure, spans) = checked_spans(&path);
        let of_tool: HashMap<&str, &Span> =
            spans.iter().filter_map(|span| Some((text(span, "gen_ai.tool.call.id")?, span))).collect();
        tools += of_tool.len();
        failed += of_tool.values().filter(|span| span.error.is_some()).count();
        for branch in &structure.branches {
            let ForkReason::Subagent { tool_use_id: Some(id) } = &branch.reason else { continue };
            let run = spans.iter().find(|span| {
                span.name.starts_with("invoke_agent") && span.place.parent == Some(of_tool[id.as_str()].place.id)
            });
            assert!(run.is_some(), "{}: {id}", path.display());
            subagents += 1;
        }
    }
    assert!(subagents >= 5 && tools > 90 && failed > 5, "{subagents} {tools} {failed}");
}

#[test]
fn spans_contain_names_and_counts_but_no_text() {
    let (trace, _, spans) = checked_spans(&kit::fixture("traces/recording.jsonl"));
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let chat = "chat claude-opus-5-5";
    assert_eq!(names, ["invoke_agent main", chat, "execute_tool Bash", chat, chat]);
    assert_eq!(spans[3].error.as_deref(), Some("overloaded_error"));
    assert_eq!(text(&spans[2], "gen_ai.tool.name"), Some("Bash"));
    assert_eq!(text(&spans[1], "session.id"), trace.calls[0].identity.session_id.as_deref());
    assert_eq!((spans[2].times.start, spans[2].times.end), (spans[1].times.end, spans[3].times.start));
    let all = format!("{spans:?}");
    for call in &trace.calls {
        for message in &call.request.as_ref().unwrap().messages {
            for block in &trace.prompts.message(*message).blocks {
                let text = trace.prompts.plain_text(block.text).unwrap_or_default();
                assert!(text.is_empty() || !all.contains(&text), "{text}");
            }
        }
    }
}
