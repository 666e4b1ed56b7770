//! Spans of `quipu-agent`, sent to a collector on loopback.

use std::collections::HashMap;
use std::time::Instant;

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use super::scripted_agent::ScriptedAgent;
use crate::test_collector::{Behaviour, TestCollector, attribute, decode};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A turn with a subagent, a command and an attempt that fails.
const SCRIPT: &str = r#"
- when: {subagent: true, result_of: Bash}
  reply: The harbour is calm.
- when: {subagent: true}
  reply: [{tool: Bash, input: {command: "echo low-water"}}]
- when: {result_of: Agent}
  error: {status: 529, type: overloaded_error, message: busy}
  times: 1
- when: {result_of: Agent}
  reply: All is well.
- reply: [{tool: Agent, input: {description: look, prompt: "look at the harbour", subagent_type: general-purpose}}]
"#;

const ARGS: [&str; 4] = ["-p", "how is the harbour?", "--allowedTools", "Bash"];

#[test]
fn a_turn_is_a_tree_of_spans_without_texts() {
    let (agent, collector) = (ScriptedAgent::from_script_text(SCRIPT), TestCollector::start(Behaviour::Accept));
    let mut command = agent.command(&ARGS);
    command.env(ENDPOINT, &collector.url).env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret-key");
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "All is well.\n");
    let requests = collector.received();
    assert!(requests.iter().all(|request| request.headers["api-key"] == "secret-key"));
    for request in &requests {
        let bytes = String::from_utf8_lossy(&request.body);
        for text in ["harbour", "low-water", "All is well", "secret-key"] {
            assert!(!bytes.contains(text), "{text}");
        }
    }
    let (spans, services) = decode(&requests);
    assert!(services.iter().all(|name| name == "quipu-agent"));
    let by_id: HashMap<&[u8], &Span> = spans.iter().map(|span| (span.span_id.as_slice(), span)).collect();
    let mut paths: Vec<String> = spans.iter().map(|span| path(span, &by_id)).collect();
    paths.sort();
    let (main, tool, sub) = ("invoke_agent main", "execute_tool Agent", "invoke_agent general-purpose");
    let chat = paths.iter().find(|path| path.contains("chat")).unwrap().rsplit(" > ").next().unwrap().to_owned();
    let mut expected = vec![
        main.to_owned(),
        format!("{main} > {chat}"),
        format!("{main} > {chat}"),
        format!("{main} > {chat}"),
        format!("{main} > {tool}"),
        format!("{main} > {tool} > {sub}"),
        format!("{main} > {tool} > {sub} > {chat}"),
        format!("{main} > {tool} > {sub} > {chat}"),
        format!("{main} > {tool} > {sub} > execute_tool Bash"),
    ];
    expected.sort();
    assert_eq!(paths, expected);
    assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id));
    assert!(spans.iter().all(|span| span.start_time_unix_nano <= span.end_time_unix_nano));
    let session = agent.session_file().file_stem().unwrap().to_string_lossy().into_owned();
    assert!(spans.iter().all(|span| attribute(span, "session.id").as_ref() == Some(&session)));
    let errors: Vec<String> = spans.iter().filter_map(|span| attribute(span, "error.type")).collect();
    assert_eq!(errors, ["overloaded_error"]);
    let chats: Vec<&Span> = spans.iter().filter(|span| span.name == chat && span.status.is_none()).collect();
    assert!(chats.iter().all(|span| attribute(span, "gen_ai.usage.input_tokens").is_some()));
    assert!(chats.iter().all(|span| attribute(span, "gen_ai.response.id").is_some()));
}

/// Names of a span and of those above it.
fn path(span: &Span, by_id: &HashMap<&[u8], &Span>) -> String {
    match by_id.get(span.parent_span_id.as_slice()) {
        Some(parent) => format!("{} > {}", path(parent, by_id), span.name),
        None => {
            assert!(span.parent_span_id.is_empty(), "{} has no parent", span.name);
            span.name.clone()
        }
    }
}

#[test]
fn settings_cannot_name_a_collector() {
    let collector = TestCollector::start(Behaviour::Accept);
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        let agent = ScriptedAgent::from_script_text("- reply: Hello.");
        // The folder is the home folder too, so that these are the user's settings and trusted.
        agent.write(file, &json!({"env": {ENDPOINT: collector.url}}).to_string());
        assert_eq!(agent.run(&["-p", "hi"]).stdout, b"Hello.\n");
        let args = ["-p", "hi", "--settings", &json!({"env": {ENDPOINT: collector.url}}).to_string()];
        assert_eq!(agent.run(&args).stdout, b"Hello.\n");
    }
    assert_eq!(collector.received().len(), 0);
}

#[test]
fn commands_do_not_get_the_headers_of_the_collector() {
    let collector = TestCollector::start(Behaviour::Accept);
    let script = r#"
- when: {result_says: secret-key}
  reply: The headers are there.
- when: {result_of: Bash}
  reply: The headers are hidden.
- reply: [{tool: Bash, input: {command: "env"}}]
"#;
    let agent = ScriptedAgent::from_script_text(script);
    let mut command = agent.command(&["-p", "hi", "--allowedTools", "Bash"]);
    command.env(ENDPOINT, &collector.url).env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret-key");
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), "The headers are hidden.\n");
}

#[test]
fn a_dead_or_slow_collector_changes_nothing() {
    let agent = ScriptedAgent::from_script_text("- reply: Hello.");
    let timed_run = |endpoint: Option<&str>| {
        let mut command = agent.command(&["-p", "hi", "--debug"]);
        command.envs(endpoint.map(|url| (ENDPOINT, url))).env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret-key");
        let start = Instant::now();
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"Hello.\n".as_slice()));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!log.contains("secret-key"), "{log}");
        start.elapsed()
    };
    let slow = TestCollector::start(Behaviour::NeverAnswer);
    let usual = timed_run(None);
    timed_run(Some("http://127.0.0.1:9"));
    // A request has ten seconds, the end of the session half a second.
    let with_slow = timed_run(Some(&slow.url));
    assert!(with_slow.as_secs_f64() < usual.as_secs_f64() + 5.0, "{usual:?} {with_slow:?}");
    assert_eq!(slow.received().len(), 1);
}

#[test]
fn a_protocol_that_is_not_supported_is_named() {
    let agent = ScriptedAgent::from_script_text("- reply: Hello.");
    let mut command = agent.command(&["-p", "hi"]);
    command.env(ENDPOINT, "http://127.0.0.1:4317").env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = command.output().unwrap();
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.contains("OTEL_EXPORTER_OTLP_PROTOCOL is grpc"), "{warning}");
}
