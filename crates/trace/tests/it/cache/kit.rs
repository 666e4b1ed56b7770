//! Constructed calls for tests of the prompt cache.

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_trace::cache::{CacheAnalysis, CallVerdict};
use quipu_trace::{RawCall, RawResponse, Structure, Trace, TraceBuilder};
use serde_json::{Value, json};

/// Model with a published price and a minimum length, which keeps thinking.
pub(super) const MODEL: &str = "claude-sonnet-4-6";

/// One call: when it was sent, its request, and what its response counted.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) seconds: i64,
    pub(super) body: Value,
    pub(super) headers: Vec<(&'static str, String)>,
    /// Input, written for five minutes, written for one hour, read.
    pub(super) usage: Option<[u64; 4]>,
    pub(super) content: Value,
    pub(super) extra: Value,
    pub(super) first_event_ms: i64,
}

impl Exchange {
    pub(super) fn new(seconds: i64, body: Value, usage: [u64; 4]) -> Self {
        let headers = vec![("x-claude-code-session-id", "5e55".to_owned()), ("x-api-key", "key-a".to_owned())];
        let content = json!([{ "type": "text", "text": "done" }]);
        Self { seconds, body, headers, usage: Some(usage), content, extra: json!({}), first_event_ms: 800 }
    }

    pub(super) fn answered(mut self, content: Value) -> Self {
        self.content = content;
        self
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Changes the request at a JSON pointer.
    pub(super) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = self.body.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            other => other[key] = value,
        }
        self
    }

    fn response(&self) -> RawResponse<'static> {
        let Some([input, five, hour, read]) = self.usage else {
            return RawResponse::Json(
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#.into(),
            );
        };
        let mut message = json!({
            "id": format!("msg_{}", self.seconds), "type": "message", "role": "assistant",
            "model": self.body["model"], "content": self.content, "stop_reason": "tool_use",
            "usage": {
                "input_tokens": input, "output_tokens": 100, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": five + hour,
                "cache_creation": { "ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour },
            },
        });
        message.as_object_mut().unwrap().extend(self.extra.as_object().unwrap().clone());
        RawResponse::Json(message.to_string().into())
    }
}

pub(super) fn trace_of(exchanges: &[Exchange]) -> Trace {
    let mut builder = TraceBuilder::default();
    let time = |seconds: i64, ms: i64| Timestamp::from_millisecond(1_790_000_000_000 + seconds * 1000 + ms).ok();
    for exchange in exchanges {
        builder.push(&RawCall {
            started_at: time(exchange.seconds, 0),
            first_event_at: time(exchange.seconds, exchange.first_event_ms),
            ended_at: time(exchange.seconds, exchange.first_event_ms + 1000),
            method: "POST".into(),
            url: "/v1/messages".into(),
            headers: exchange.headers.iter().map(|(name, value)| ((*name).into(), value.clone().into())).collect(),
            request_body: exchange.body.to_string().into(),
            status: Some(if exchange.usage.is_some() { 200 } else { 529 }),
            response: exchange.response(),
            ..RawCall::default()
        });
    }
    builder.finish()
}

pub(super) fn verdicts_of(exchanges: &[Exchange]) -> Vec<CallVerdict> {
    let trace = trace_of(exchanges);
    let structure = Structure::new(&trace);
    CacheAnalysis::new(&trace, &structure).verdicts(&Prices::bundled())
}

pub(super) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("{name} {}", "does something useful. ".repeat(30)), "input_schema": { "type": "object" } })
}

/// A request with three tools, a system prompt and these messages. Cached prefixes end after
/// the system prompt and after the last message.
pub(super) fn request(messages: Value) -> Value {
    let mut messages = messages;
    let last = messages.as_array_mut().unwrap().last_mut().unwrap();
    if let Value::String(text) = &last["content"] {
        last["content"] = json!([{ "type": "text", "text": text }]);
    }
    let block = last["content"].as_array_mut().unwrap().last_mut().unwrap();
    block["cache_control"] = json!({ "type": "ephemeral" });
    json!({
        "model": MODEL, "max_tokens": 1000, "stream": false,
        "tools": [tool("Read"), tool("Bash"), tool("Grep")],
        "system": [
            { "type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=1;" },
            { "type": "text", "text": "You are a careful engineer. ".repeat(40), "cache_control": { "type": "ephemeral" } },
        ],
        "messages": messages,
    })
}

/// Sets the lifetime of all breakpoints to one hour.
pub(super) fn with_one_hour(mut body: Value) -> Value {
    fn visit(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(control) = fields.get_mut("cache_control") {
                    control["ttl"] = json!("1h");
                }
                fields.values_mut().for_each(visit);
            }
            Value::Array(items) => items.iter_mut().for_each(visit),
            _ => {}
        }
    }
    visit(&mut body);
    body
}

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(super) fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

pub(super) fn tool_use(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": "ls", "timeout": 5 } })
}

pub(super) fn calls_tool(id: &str) -> Value {
    json!({ "role": "assistant", "content": [tool_use(id)] })
}

pub(super) fn tool_result(id: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "a.rs b.rs ".repeat(40) }] })
}
