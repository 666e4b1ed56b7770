use super::*;
use crate::span::{SpanId, TraceId};

fn place() -> SpanPlace {
    let trace = TraceId::from_parts(&["session", "turn"]);
    SpanPlace { trace, id: trace.span_id(&["call"]), parent: None }
}

fn attribute<'s>(span: &'s Span, name: &str) -> Option<&'s AttributeValue> {
    span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[test]
fn input_tokens_include_what_the_cache_read_and_wrote() {
    let tokens = Tokens { input: 3, output: 20, cache_write_5m: 100, cache_write_1h: 10, cache_read: 1000 };
    let span = ChatCall { tokens: Some(tokens), ..ChatCall::default() }.span(place(), SpanTimes::default());
    let number = |name: &str| match attribute(&span, name) {
        Some(AttributeValue::Integer(number)) => *number,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(number("gen_ai.usage.input_tokens"), 1113);
    assert_eq!(number("gen_ai.usage.output_tokens"), 20);
    assert_eq!(number("gen_ai.usage.cache_read.input_tokens"), 1000);
    assert_eq!(number("gen_ai.usage.cache_creation.input_tokens"), 110);
}

#[test]
fn a_call_without_usage_has_no_token_counts() {
    let span = ChatCall { error: Some("overloaded_error"), ..ChatCall::default() }.span(place(), SpanTimes::default());
    assert!(span.attributes.iter().all(|(name, _)| !name.starts_with("gen_ai.usage")));
    assert_eq!(attribute(&span, "error.type"), Some(&"overloaded_error".into()));
    assert_eq!((span.name.as_str(), span.error.as_deref()), ("chat", Some("overloaded_error")));
}

#[test]
fn unknown_values_have_no_attribute() {
    let run = AgentRun { session_id: Some(""), agent_name: "claude", ..AgentRun::default() };
    let span = run.span(place(), SpanTimes::default());
    let names: Vec<&str> = span.attributes.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name"]);
}

#[test]
fn ids_depend_on_every_part_and_on_the_trace() {
    let trace = |parts: &[&str]| TraceId::from_parts(parts);
    assert_eq!(trace(&["a", "b"]), trace(&["a", "b"]));
    assert_ne!(trace(&["ab", "c"]), trace(&["a", "bc"]));
    let ids: [SpanId; 2] = [trace(&["a"]), trace(&["b"])].map(|trace| trace.span_id(&["x"]));
    assert_ne!(ids[0], ids[1]);
}
