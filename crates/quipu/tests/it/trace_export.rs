//! `quipu trace export`: spans to a collector, HTTP archives and JSON.

use std::fs;

use quipu_testkit::fixture;
use serde_json::Value;

use crate::quipu;
use crate::test_collector::{Behaviour, TestCollector, attribute, decode};

#[test]
fn spans_reach_the_collector_with_the_headers_of_the_environment() {
    let collector = TestCollector::start(Behaviour::Accept);
    let export = |args: &[&str]| {
        let to = format!("otlp:{}", collector.url);
        let path = fixture("traces/recording.jsonl");
        let mut command = quipu();
        command.args(["trace", "export", "--to", &to]).args(args).arg(path);
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%20key,x-team=core");
        let output = command.assert().success().get_output().clone();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(export(&[]), (String::new(), "sent 5 spans\n".to_owned()));
    let requests = collector.received();
    assert_eq!(requests[0].headers["api-key"], "secret key");
    assert_eq!(requests[0].headers["x-team"], "core");
    let (spans, services) = decode(&requests);
    assert_eq!(services, ["quipu"]);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let chat = "chat claude-opus-5-5";
    assert_eq!(names, ["invoke_agent main", chat, "execute_tool Bash", chat, chat]);
    assert_eq!(attribute(&spans[4], "gen_ai.usage.input_tokens").as_deref(), Some("69"));
    assert_eq!(attribute(&spans[4], "gen_ai.usage.cache_read.input_tokens").as_deref(), Some("40"));
    assert_eq!(attribute(&spans[3], "error.type").as_deref(), Some("overloaded_error"));
    assert!(spans[1..].iter().all(|span| span.parent_span_id == spans[0].span_id));
    // The same file gives the same spans.
    let (printed, _) = export(&["--json"]);
    assert_eq!(printed, "{\"spans\":5,\"untimed_calls\":0}\n");
    assert_eq!(decode(&collector.received()).0, spans);
}

#[test]
fn a_collector_that_refuses_or_is_absent_is_an_error_without_the_headers() {
    let collector = TestCollector::start(Behaviour::Refuse);
    // Nothing listens on the discard port.
    for (url, code) in [
        (collector.url.as_str(), "otlp.refused"),
        ("http://127.0.0.1:9", "otlp.unreachable"),
        ("localhost:4318", "otlp.endpoint"),
    ] {
        let mut command = quipu();
        command.args(["trace", "export", "--json", "--to", &format!("otlp:{url}")]);
        command.arg(fixture("traces/recording.jsonl")).env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret-key");
        let output = command.assert().code(1).get_output().clone();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(code) && !error.contains("secret-key"), "{error}");
    }
}

#[test]
fn archives_and_json_are_written_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let source = fixture("traces/session.jsonl");
    let (har, json) = (folder.path().join("calls.har"), folder.path().join("calls.json"));
    for to in [&har, &json] {
        quipu().args(["trace", "export", "-q", "--to"]).arg(to).arg(&source).assert().success();
    }
    let stdout = |args: &[&str], file: &std::path::Path| {
        let output = quipu().args(args).arg(file).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    assert_eq!(fs::read_to_string(&json).unwrap(), stdout(&["trace", "show", "--json"], &source));
    let calls = |file| {
        let mut calls: Value = serde_json::from_str(&stdout(&["trace", "ls", "--json"], file)).unwrap();
        for call in calls.as_array_mut().unwrap() {
            call.as_object_mut().unwrap().retain(|key, _| key != "source" && key != "line");
        }
        calls
    };
    assert_eq!(calls(&har), calls(&source));
    let output = quipu().args(["trace", "export", "--to", "calls.txt"]).arg(&source).assert().code(2);
    let error = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(error.contains("ends in .har or .json"), "{error}");
}
