//! The same three calls in every format: a tool call, an error, and the answer.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use quipu_testkit as kit;
use quipu_testkit::generate_calls::{CaptureSize, generate_capture};
use quipu_trace::{Call, CallEnd, CaptureFormat, ImportError, Trace, TraceBuilder};
use rusqlite::Connection;
use serde_json::{Value, json};

/// What must be the same of a call in every format.
fn describe(trace: &Trace, call: &Call) -> String {
    let request = call.request.as_ref().unwrap();
    let messages: Vec<String> = request
        .messages
        .iter()
        .map(|key| trace.prompts.message(*key))
        .map(|message| {
            let blocks = message.blocks.iter().map(|block| {
                let kind = &trace.prompts.part(block.text).kind;
                format!("{kind}{}", if block.breakpoint.is_some() { "*" } else { "" })
            });
            format!("{}({})", message.role.as_str(), blocks.collect::<Vec<_>>().join(" "))
        })
        .collect();
    let response = &call.response;
    let tokens = response.tokens.map(|tokens| (tokens.input, tokens.cache_write(), tokens.cache_read, tokens.output));
    let tools: Vec<&str> = response.tool_calls.iter().map(|call| call.name.as_str()).collect();
    format!(
        "{} {} {:?} | {} system, {} tools, {} | {tokens:?} {tools:?} {}",
        request.model,
        response.status.unwrap_or_default(),
        response.end,
        request.system.len(),
        request.tools.len(),
        messages.join(" "),
        response.error.as_deref().unwrap_or("-"),
    )
}

const FIRST: &str =
    "claude-opus-5-5 200 Completed | 1 system, 1 tools, user(text*) | Some((3, 40, 0, 21)) [\"Bash\"] -";
const FAILED: &str = "claude-opus-5-5 529 Unknown | 1 system, 1 tools, user(text) assistant(text tool_use) user(tool_result*) | None [] overloaded_error";
const LAST: &str = "claude-opus-5-5 200 Completed | 1 system, 1 tools, user(text) assistant(text tool_use) user(tool_result*) | Some((4, 25, 40, 9)) [] -";

const SESSION: &str = "5e55107d-0000-4000-8000-000000000001";

fn descriptions(trace: &Trace) -> Vec<String> {
    trace.calls.iter().map(|call| describe(trace, call)).collect()
}

fn open(name: &str) -> Trace {
    Trace::open(&[kit::fixture("traces").join(name)]).unwrap()
}

/// Checks everything that a capture of the three calls tells.
fn check_capture(trace: &Trace, format: CaptureFormat) {
    assert_eq!(trace.problems, []);
    assert_eq!(trace.sources[0].format, format);
    assert_eq!(descriptions(trace), [FIRST, FAILED, LAST], "{format:?}");
    for call in &trace.calls {
        assert_eq!(call.identity.session_id.as_deref(), Some(SESSION));
        assert!(call.identity.account.is_some() && !call.is_reconstructed);
        assert_eq!(call.betas, ["one-2026-01-01", "two-2026-02-02"]);
        assert_eq!(call.path, "/v1/messages");
        assert!(call.request.as_ref().unwrap().billing_line.is_some());
    }
    let starts: Vec<String> = trace.calls.iter().map(|call| call.started_at.unwrap().to_string()).collect();
    assert_eq!(starts, ["2026-11-15T00:00:00Z", "2026-11-15T00:00:03Z", "2026-11-15T00:00:05Z"]);
}

fn durations(trace: &Trace) -> Vec<Option<u64>> {
    trace.calls.iter().map(|call| call.duration_ms).collect()
}

#[test]
fn recordings_are_read() {
    check_capture(&open("recording.jsonl"), CaptureFormat::Recording);
}

#[test]
fn claude_trace_is_read() {
    let trace = open("claude-trace.jsonl");
    check_capture(&trace, CaptureFormat::ClaudeTrace);
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[2].response.request_id.as_deref(), Some("req_3"));
}

#[test]
fn claude_tap_is_read() {
    let trace = open("claude-tap.jsonl");
    check_capture(&trace, CaptureFormat::ClaudeTap);
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[0].id, "req_1");
}

#[test]
fn cc_viewer_is_read_and_its_deltas_are_replayed() {
    let trace = open("cc-viewer.jsonl");
    check_capture(&trace, CaptureFormat::CcViewer);
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[0].id, "cc-1");
}

#[test]
fn http_archives_are_read() {
    let trace = open("browser.har");
    check_capture(&trace, CaptureFormat::Har);
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[0].first_event_ms, Some(100));
}

#[test]
fn mitmproxy_flows_are_read() {
    let trace = open("flows.mitm");
    check_capture(&trace, CaptureFormat::Mitmproxy);
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[0].first_event_ms, Some(100));
}

/// Writes the records of the JSON lines into a database, with body and messages stored apart.
fn write_tap_database(path: &Path) {
    let database = Connection::open(path).unwrap();
    database
        .execute_batch(
            "PRAGMA user_version = 4;
             CREATE TABLE sessions (id TEXT PRIMARY KEY);
             CREATE TABLE records (session_id TEXT, record_index INTEGER, turn INTEGER, timestamp TEXT, payload_json TEXT);
             CREATE TABLE record_blobs (session_id TEXT, hash TEXT, kind TEXT, payload_json TEXT);",
        )
        .unwrap();
    let text = fs::read_to_string(kit::fixture("traces/claude-tap.jsonl")).unwrap();
    for (i, line) in (0u32..).zip(text.lines()) {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let time = record["timestamp"].clone();
        let payload = if i == 0 {
            record
        } else {
            let tools = record["request"]["body"]["tools"].take();
            let hash = format!("sha256:{i}");
            let blob = [&"s1" as &dyn rusqlite::ToSql, &hash, &"json", &tools.to_string()];
            database.execute("INSERT INTO record_blobs VALUES (?1, ?2, ?3, ?4)", blob).unwrap();
            let refs = json!([{"path": "/request/body/tools", "hash": hash, "bytes": 100}]);
            json!({"__claude_tap_compact_record__": {"version": 1, "refs": refs}, "record": record})
        };
        let row = [&"s1" as &dyn rusqlite::ToSql, &i, &i, &time.as_str(), &payload.to_string()];
        database.execute("INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5)", row).unwrap();
    }
}

#[test]
fn the_database_of_claude_tap_is_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces.sqlite3");
    write_tap_database(&path);
    let before = fs::read(&path).unwrap();
    check_capture(&Trace::open(&[&path]).unwrap(), CaptureFormat::ClaudeTapDatabase);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_record_whose_part_is_missing_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces.sqlite3");
    write_tap_database(&path);
    Connection::open(&path).unwrap().execute("DELETE FROM record_blobs WHERE hash = 'sha256:2'", []).unwrap();
    let trace = Trace::open(&[&path]).unwrap();
    assert_eq!((trace.calls.len(), trace.problems[0].line), (2, 3));
    assert_eq!(trace.problems[0].message, "/request/body/tools refers to sha256:2, which is not in the database");
}

#[test]
fn raw_bodies_are_paired_by_time_and_model() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str, seconds: u64| {
        let path = folder.path().join(name);
        fs::copy(kit::fixture("traces/raw-bodies").join(name), &path).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_700_800 + seconds);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    copy("00000001-0000-4000-8000-000000000000.request.json", 0);
    copy("req_1.response.json", 2);
    copy("00000003-0000-4000-8000-000000000000.request.json", 5);
    copy("req_3.response.json", 6);
    copy("00000002-0000-4000-8000-000000000000.request.json", 9);
    let trace = Trace::open(&[folder.path()]).unwrap();
    assert_eq!(trace.problems, []);
    let unanswered = FAILED.replace("529", "0").replace("overloaded_error", "-");
    let last = [FIRST, LAST].map(|call| call.replace("200", "0"));
    assert_eq!(descriptions(&trace), [last[0].as_str(), &last[1], &unanswered]);
    assert_eq!(durations(&trace), [Some(2000), Some(1000), None]);
    assert_eq!(trace.calls[0].response.request_id.as_deref(), Some("req_1"));
}

#[test]
fn a_session_file_with_a_request_log_gives_the_requests() {
    let trace = open("session.jsonl");
    assert_eq!(trace.problems, []);
    // The file has the status of the error, and not its type.
    assert_eq!(descriptions(&trace), [FIRST.to_owned(), FAILED.replace("overloaded_error", "-"), LAST.to_owned()]);
    let captured = open("recording.jsonl");
    for (call, sent) in trace.calls.iter().zip(&captured.calls) {
        assert_eq!(call.betas, sent.betas);
        assert_eq!(call.identity.session_id, sent.identity.session_id);
        assert_eq!(call.query_source.as_deref(), Some("repl_main_thread"));
        assert!(!call.is_reconstructed);
        let texts = |trace: &Trace, call: &Call| -> Vec<String> {
            let request = call.request.as_ref().unwrap();
            let parts = request.system.iter().chain(&request.tools).copied();
            let messages = request.messages.iter().flat_map(|key| trace.prompts.message(*key).blocks.clone());
            parts.chain(messages).map(|part| trace.prompts.text(part.text).to_owned()).collect()
        };
        assert_eq!(texts(&trace, call), texts(&captured, sent));
    }
    assert_eq!(durations(&trace), [Some(2000), Some(250), Some(1500)]);
    assert_eq!(trace.calls[2].id, "r3");
}

#[test]
fn an_older_session_file_gives_reconstructed_calls() {
    let trace = open("session-old.jsonl");
    assert_eq!(trace.problems, []);
    assert_eq!(
        descriptions(&trace),
        [
            "claude-opus-5-5 200 Completed | 0 system, 0 tools, user(text) | Some((3, 40, 0, 21)) [\"Bash\"] -",
            "claude-opus-5-5 200 Completed | 0 system, 0 tools, user(text) assistant(text tool_use) user(tool_result) | Some((4, 25, 40, 9)) [] -"
        ]
    );
    assert!(trace.calls.iter().all(|call| call.is_reconstructed));
    assert_eq!(trace.calls[0].identity.session_id.as_deref(), Some(SESSION));
    // From the entry before the response to its last entry.
    assert_eq!(durations(&trace), [Some(3000), Some(3250)]);
}

#[test]
fn subagent_files_belong_to_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{SESSION}.jsonl"));
    let subagents = folder.path().join(SESSION).join("subagents");
    fs::create_dir_all(&subagents).unwrap();
    let session = fs::read_to_string(kit::fixture("traces/session.jsonl")).unwrap();
    fs::write(&path, &session).unwrap();
    fs::write(subagents.join("agent-a1.jsonl"), &session).unwrap();
    let trace = Trace::open(&[&path]).unwrap();
    let agents: Vec<_> = trace.calls.iter().map(|call| (call.source, call.identity.agent_id.as_deref())).collect();
    assert_eq!(agents, [(0, None), (0, None), (0, None), (1, Some("a1")), (1, Some("a1")), (1, Some("a1"))]);
}

/// Imports text and returns the number of calls and the problems.
fn import_text(text: &str) -> (usize, Vec<(u64, String)>) {
    let mut builder = TraceBuilder::default();
    builder.import_reader(Path::new("-"), text.as_bytes()).unwrap();
    let trace = builder.finish();
    (trace.calls.len(), trace.problems.into_iter().map(|problem| (problem.line, problem.message)).collect())
}

#[test]
fn bad_lines_are_problems_and_the_rest_is_read() {
    let good = fs::read_to_string(kit::fixture("traces/claude-trace.jsonl")).unwrap();
    let good = good.lines().next().unwrap();
    let (calls, problems) = import_text(&format!("{{\"torn\n{good}\n\n{{\"request\":7}}\n{good}\n{}", &good[..200]));
    assert_eq!(calls, 2);
    let lines: Vec<u64> = problems.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 4, 6], "{problems:?}");
}

#[test]
fn a_cut_flow_file_gives_the_flows_before_the_cut() {
    let flows = fs::read(kit::fixture("traces/flows.mitm")).unwrap();
    for cut in [flows.len() - 1, flows.len() - 700] {
        let mut builder = TraceBuilder::default();
        builder.import_reader(Path::new("-"), &flows[..cut]).unwrap();
        let trace = builder.finish();
        assert_eq!((trace.calls.len(), trace.problems.len(), trace.problems[0].line), (2, 1, 3));
    }
}

#[test]
fn a_delta_without_the_messages_before_it_is_a_problem() {
    let text = fs::read_to_string(kit::fixture("traces/cc-viewer.jsonl")).unwrap();
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let (calls, problems) = import_text(&documents[3..].join("\n---\n"));
    assert_eq!(calls, 2);
    let message = "1 messages are left out, but only 0 are known".to_owned();
    assert_eq!(problems, [(1, message.clone()), (5, message)]);
}

#[test]
fn bodies_that_cannot_be_decompressed_are_problems() {
    let flows = fs::read(kit::fixture("traces/flows.mitm")).unwrap();
    let text = String::from_utf8(flows).unwrap();
    // Names of the same length keep the lengths of the flow right.
    let text = text.replace(
        "14:anthropic-beta,29:one-2026-01-01,two-2026-02-02,",
        "16:content-encoding,27:gzip                       ,",
    );
    let (calls, problems) = import_text(&text);
    assert_eq!(calls, 3);
    assert!(problems[0].0 == 1 && problems[0].1.starts_with("request: cannot decompress the body: "), "{problems:?}");
}

#[test]
fn lone_surrogates_do_not_hide_a_call() {
    let good = fs::read_to_string(kit::fixture("traces/recording.jsonl")).unwrap();
    let text = good.replace("When is high tide?", r"When is \ud83d high tide?");
    assert_eq!(import_text(&text), (3, Vec::new()));
}

#[test]
fn an_unknown_format_is_an_error() {
    for text in ["", "hello", "{\"a\":1}", "[1,2]"] {
        let error = TraceBuilder::default().import_reader(Path::new("x"), text.as_bytes()).unwrap_err();
        assert!(matches!(error, ImportError::UnknownFormat { .. }), "{error}");
        assert_eq!(error.code(), "trace.unknown_format");
    }
    let error = Trace::open(&[Path::new("no-such-file")]).unwrap_err();
    assert_eq!(error.code(), "trace.cannot_read");
}

#[test]
fn a_call_without_a_response_failed() {
    let text = r#"{"request":{"timestamp":1,"method":"POST","url":"https://a/v1/messages","headers":{},"body":{"model":"m","messages":[]}},"response":null,"logged_at":"x"}"#;
    let mut builder = TraceBuilder::default();
    builder.import_reader(Path::new("-"), text.as_bytes()).unwrap();
    let trace = builder.finish();
    assert_eq!((trace.calls[0].response.end, trace.calls[0].response.status), (CallEnd::Failed, None));
}

#[test]
fn the_published_capture_of_claude_trace_is_read_whole() {
    let Some(shared) = kit::shared_dir() else { return };
    let path = shared.join("corpus/data/badlogic+lemmy/bb5d89d016/apps/claude-trace/test/test-traffic.jsonl");
    let trace = Trace::open(&[path]).unwrap();
    assert_eq!(trace.problems, []);
    assert_eq!(trace.calls.len(), 64);
    assert!(trace.calls.iter().all(|call| call.is_message_call() && call.response.end == CallEnd::Completed));
    let sum = |field: fn(quipu_conversation::Tokens) -> u64| -> u64 {
        trace.calls.iter().filter_map(|call| call.response.tokens).map(field).sum()
    };
    assert_eq!(sum(|tokens| tokens.cache_write()), 45_598);
    assert_eq!(sum(|tokens| tokens.cache_read), 279_790);
    let sizes: Vec<usize> = trace.calls.iter().map(|call| call.request.as_ref().unwrap().messages.len()).collect();
    assert_eq!(sizes[32..35], [25, 1, 27]);
}

#[test]
fn damaged_files_are_read_without_a_panic() {
    let files = kit::files_under(&kit::fixture("traces"), |path| !path.to_string_lossy().contains("raw-bodies"));
    assert!(files.len() >= 8);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let whole = Trace::open(&[&path]).unwrap().calls.len();
        for step in 0..60 {
            let place = bytes.len() * step / 60;
            let mut changed = bytes.clone();
            changed[place] = b"0{}\"]\x00\xff:9"[step % 9];
            for damaged in [&bytes[..place], &bytes[place..], &changed] {
                // An error is fine: the format may not be recognised.
                let mut builder = TraceBuilder::default();
                let _ = builder.import_reader(&path, damaged);
                let trace = builder.finish();
                assert!(trace.calls.len() <= whole + 3, "{}: {}", path.display(), trace.calls.len());
            }
        }
    }
}

#[test]
fn a_long_capture_is_kept_in_the_size_of_its_new_content() {
    let size = CaptureSize { sessions: 2, calls: 60, bytes_per_call: 800 };
    let mut capture = Vec::new();
    generate_capture(size, &mut capture).unwrap();
    let mut builder = TraceBuilder::default();
    builder.import_reader(Path::new("capture"), capture.as_slice()).unwrap();
    let trace = builder.finish();
    assert_eq!((trace.calls.len(), trace.problems.len()), (120, 0));
    let new_content = 120 * size.bytes_per_call + 10_000;
    assert!(capture.len() > 30 * new_content, "{}", capture.len());
    // Each text once, with the JSON around it.
    assert!(trace.prompts.text_bytes() < 2 * new_content, "{}", trace.prompts.text_bytes());
    let tokens = trace.calls[119].response.tokens.unwrap();
    assert_eq!((tokens.output, trace.calls[119].identity.session_id.as_deref()), (120, Some("1")));
}
