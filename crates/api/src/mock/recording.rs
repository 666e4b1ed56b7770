//! Recorded API calls, replayed in their order.

use quipu_conversation::Accumulator;
use quipu_message::api::{RecordedApiCall, StreamEvent};
use quipu_message::{Json, Message};

use super::incoming::{IncomingRequest, RequestKind};
use super::message_events::DEFAULT_CHUNK_CHARS;
use super::response::{MockResponse, ResponseEnd};

/// The calls of a recording, each replayed once.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    calls: Vec<ReplayCall>,
}

#[derive(Debug, Clone)]
struct ReplayCall {
    exchange: RecordedApiCall,
    request: IncomingRequest,
    is_used: bool,
}

impl Recording {
    /// Reads the calls of an `api.jsonl`; an invalid line is an error with its number.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut calls = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |e: serde_json::Error| (index + 1, e.to_string());
            let exchange: RecordedApiCall = serde_json::from_str(line).map_err(bad)?;
            let (Some(method), Some(path)) = (exchange.method.text(), exchange.path.text()) else {
                return Err((index + 1, "a recorded call has a method and a path".to_owned()));
            };
            // Calls of other methods, such as connection checks, are not replayed.
            let Some(kind) = RequestKind::from_path(method, path) else { continue };
            let headers = exchange.headers.get().map(Vec::as_slice).unwrap_or_default();
            let subagent = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(SUBAGENT_HEADER));
            let body = exchange.body.get().map_or("null", Json::text);
            let request = IncomingRequest::parse(kind, body, subagent).map_err(bad)?;
            calls.push(ReplayCall { exchange, request, is_used: false });
        }
        if calls.is_empty() {
            Err((1, "no call of /v1/messages is recorded here".to_owned()))
        } else {
            Ok(Self { calls })
        }
    }

    /// The response of the first call not yet replayed that matches the request, with its number in
    /// the recording: a call of the same kind (with or without tools, of a subagent or not) that ends
    /// with the same text or tool results, or else any of the same kind. `None` if there is none.
    pub(crate) fn next_response(&mut self, incoming: &IncomingRequest) -> Option<(usize, MockResponse)> {
        let is_same_kind = |call: &ReplayCall| {
            let recorded = &call.request;
            recorded.kind == incoming.kind
                && recorded.has_tools() == incoming.has_tools()
                && recorded.is_subagent == incoming.is_subagent
        };
        let mut free = self.calls.iter().enumerate().filter(|(_, call)| !call.is_used && is_same_kind(call));
        let same = free.clone().find(|(_, call)| has_same_input(&call.request, incoming));
        let (index, _) = same.or_else(|| free.next())?;
        let call = &mut self.calls[index];
        call.is_used = true;
        Some((index + 1, recorded_response(&call.exchange, incoming.wants_stream())))
    }
}

/// Header of API calls that a subagent makes.
pub(crate) const SUBAGENT_HEADER: &str = "x-claude-code-agent-id";

fn has_same_input(a: &IncomingRequest, b: &IncomingRequest) -> bool {
    let calls = |incoming: &IncomingRequest| -> Vec<String> {
        let mut ids: Vec<_> = incoming.tool_results.iter().map(|(_, id, _)| id.clone()).collect();
        ids.sort();
        ids
    };
    if a.tool_results.is_empty() && b.tool_results.is_empty() {
        a.last_text == b.last_text
    } else {
        calls(a) == calls(b)
    }
}

fn recorded_response(exchange: &RecordedApiCall, stream: bool) -> MockResponse {
    let status = exchange.status.get().copied().unwrap_or(200);
    let Some(events) = exchange.sse.get() else {
        let body = exchange.response.get().cloned().unwrap_or_default();
        // A message that was recorded as one body is streamed if the request asks for it.
        let message = body.read::<Message>().ok().filter(|_| stream && status == 200);
        return message.map_or_else(
            || MockResponse::from_json(status, &body),
            |message| MockResponse::from_message(&message, true, DEFAULT_CHUNK_CHARS),
        );
    };
    if !stream && let Some(message) = accumulate_events(events) {
        return MockResponse::from_message(&message, false, DEFAULT_CHUNK_CHARS);
    }
    let tag = |event: &Json| event.read::<StreamEvent>().map(|event| event.tag().to_owned()).unwrap_or_default();
    let end = match (exchange.cut.is_true(), exchange.client_gone.is_value()) {
        (true, _) => ResponseEnd::Cut,
        (_, true) => ResponseEnd::Hang,
        _ => ResponseEnd::Complete,
    };
    MockResponse { end, status, ..MockResponse::from_events(events, tag) }
}

fn accumulate_events(events: &[Json]) -> Option<Message> {
    let mut message = Accumulator::default();
    for event in events {
        message.push(&event.read().ok()?).ok()?;
    }
    message.finish().ok()
}
