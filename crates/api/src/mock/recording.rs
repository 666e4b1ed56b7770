//! Recorded calls, played again.

use std::time::Duration;

use quipu_conversation::Accumulator;
use quipu_message::api::{RecordedApiCall, StreamEvent};
use quipu_message::sse::Parser;
use quipu_message::values::ApiErrorType;
use quipu_message::{Json, Message};

use super::incoming::{IncomingRequest, RequestKind};
use super::message_events::DEFAULT_CHUNK_CHARS;
use super::request_difference::{ComparableRequest, RequestDifference};
use super::response::{MockResponse, ResponseEnd};

/// A recorded API call that a [`MockServer`](super::MockServer) can play again.
#[derive(Debug, Clone, Default)]
pub struct RecordedCall {
    /// Name of the call in reports, for example `call 3`.
    pub name: String,
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request with its query.
    pub path: String,
    /// Headers of the request.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: String,
    /// HTTP status; `None` if no response arrived.
    pub status: Option<u16>,
    /// Headers of the response.
    pub response_headers: Vec<(String, String)>,
    /// Body of the response.
    pub response: RecordedBody,
    /// How the call ended.
    pub end: RecordedEnd,
}

/// Body of a recorded response.
#[derive(Debug, Clone)]
pub enum RecordedBody {
    /// A body in one piece.
    Whole(String),
    /// Text of an event stream.
    Stream(String),
    /// Events of a stream, each as JSON.
    Events(Vec<String>),
}

impl Default for RecordedBody {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// How a recorded call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordedEnd {
    /// The response was complete.
    #[default]
    Complete,
    /// The connection broke off.
    Cut,
    /// The client left. Nothing more is sent until the next client leaves, too.
    ClientLeft,
}

/// How a request finds its recorded call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// The requests are the same, apart from what differs in every run.
    Strict,
    /// The same request, or else the next call of its kind with the same last input, or else
    /// that with the same turn and step, or else the next of its kind.
    #[default]
    Lenient,
}

/// The calls of a recording, each played once.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    calls: Vec<ReplayCall>,
    mode: MatchMode,
}

#[derive(Debug, Clone)]
struct ReplayCall {
    call: RecordedCall,
    /// The request, if it is one for a message or a token count.
    request: Option<IncomingRequest>,
    comparable: ComparableRequest,
    is_used: bool,
}

/// The call that responds to a request.
#[derive(Debug)]
pub(crate) struct PlayedCall {
    pub(crate) name: String,
    pub(crate) response: MockResponse,
    /// Where the requests differ; `None` if they are the same.
    pub(crate) difference: Option<RequestDifference>,
}

impl Recording {
    /// The calls of an `api.jsonl`; a line that is none is an error with its number.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut calls = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |reason: String| (index + 1, reason);
            let exchange: RecordedApiCall = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
            let call = RecordedCall::from_exchange(index + 1, exchange)
                .ok_or_else(|| bad("a recorded call has a method and a path".to_owned()))?;
            calls.push(ReplayCall::new(call).map_err(|error| bad(error.to_string()))?);
        }
        if calls.iter().any(|call| call.request.is_some()) {
            Ok(Self { calls, mode: MatchMode::Lenient })
        } else {
            Err((1, "no call of /v1/messages is recorded here".to_owned()))
        }
    }

    /// Calls of another source. A call whose body cannot be read is left out.
    pub(crate) fn new(calls: Vec<RecordedCall>, mode: MatchMode) -> Self {
        Self { calls: calls.into_iter().filter_map(|call| ReplayCall::new(call).ok()).collect(), mode }
    }

    /// Names of the calls for messages that were not played.
    pub(crate) fn unplayed(&self) -> Vec<String> {
        let is_message = |call: &&ReplayCall| {
            call.request.as_ref().is_some_and(|request| request.kind == RequestKind::Message) && !call.is_used
        };
        self.calls.iter().filter(is_message).map(|call| call.call.name.clone()).collect()
    }

    /// Plays the call that fits a request for a message or a token count. The error is the
    /// difference to the call that was expected next; `None` if no call is left.
    pub(crate) fn play(
        &mut self,
        request: &IncomingRequest,
        comparable: &ComparableRequest,
    ) -> Result<PlayedCall, Option<RequestDifference>> {
        let is_kind = |call: &ReplayCall| {
            call.request.as_ref().is_some_and(|recorded| {
                recorded.kind == request.kind
                    && recorded.has_tools() == request.has_tools()
                    && recorded.is_subagent == request.is_subagent
            })
        };
        let free = || self.calls.iter().enumerate().filter(|(_, call)| !call.is_used && is_kind(call));
        let same_input =
            || free().find(|(_, call)| call.request.as_ref().is_some_and(|known| has_same_input(known, request)));
        // The same call of the conversation, if its input differs: those before it may not come again.
        let place = |request: &IncomingRequest| (request.turn, request.step);
        let same_place =
            || free().find(|(_, call)| call.request.as_ref().is_some_and(|known| place(known) == place(request)));
        let next = || same_input().or_else(same_place).or_else(|| free().next());
        let same = free().find(|(_, call)| call.comparable.difference(comparable).is_none());
        let found = match (same, self.mode) {
            (Some((index, _)), _) => index,
            (None, MatchMode::Lenient) => next().ok_or(None)?.0,
            (None, MatchMode::Strict) => {
                let expected = next().map(|(_, call)| call);
                return Err(expected.and_then(|call| call.difference(comparable)));
            }
        };
        let call = &mut self.calls[found];
        call.is_used = true;
        Ok(PlayedCall {
            name: call.call.name.clone(),
            response: call.call.to_response(request.wants_stream()),
            difference: call.difference(comparable),
        })
    }

    /// Plays a call of another method, found by method and path; the last one stays.
    pub(crate) fn play_other(&mut self, method: &str, path: &str) -> Option<PlayedCall> {
        let is_same = |call: &ReplayCall| {
            call.request.is_none() && call.call.method == method && call.call.path == path && call.call.status.is_some()
        };
        let unused = self.calls.iter().position(|call| is_same(call) && !call.is_used);
        let index = unused.or_else(|| self.calls.iter().rposition(is_same))?;
        let call = &mut self.calls[index];
        call.is_used = true;
        Some(PlayedCall { name: call.call.name.clone(), response: call.call.to_response(false), difference: None })
    }
}

impl ReplayCall {
    fn new(call: RecordedCall) -> Result<Self, serde_json::Error> {
        let header = |name: &str| call.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let is_subagent = header(SUBAGENT_HEADER).is_some();
        let kind = RequestKind::from_path(&call.method, &call.path);
        let body = if call.body.is_empty() { "null" } else { &call.body };
        let request = kind.map(|kind| IncomingRequest::parse(kind, body, is_subagent)).transpose()?;
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let comparable = ComparableRequest::new(&call.path, headers, &call.body);
        Ok(Self { call, request, comparable, is_used: false })
    }

    fn difference(&self, request: &ComparableRequest) -> Option<RequestDifference> {
        let difference = self.comparable.difference(request)?;
        Some(RequestDifference { call: self.call.name.clone(), ..difference })
    }
}

/// The header that a subagent's calls carry.
pub(crate) const SUBAGENT_HEADER: &str = "x-claude-code-agent-id";

/// Headers that belong to the connection or to the encoding of the recorded bytes.
const LEFT_OUT_HEADERS: [&str; 6] =
    ["connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "content-type"];

impl RecordedCall {
    /// A line of an `api.jsonl`; `None` if it has no method or path.
    fn from_exchange(line: usize, exchange: RecordedApiCall) -> Option<Self> {
        let response = match exchange.sse.get() {
            Some(events) => RecordedBody::Events(events.iter().map(|event| event.text().to_owned()).collect()),
            None => RecordedBody::Whole(exchange.response.get().map(|body| body.text().to_owned()).unwrap_or_default()),
        };
        let end = match (exchange.cut.is_true(), exchange.client_gone.is_value()) {
            (true, _) => RecordedEnd::Cut,
            (_, true) => RecordedEnd::ClientLeft,
            _ => RecordedEnd::Complete,
        };
        Some(Self {
            name: format!("recorded call {line}"),
            method: exchange.method.text()?.to_owned(),
            path: exchange.path.text()?.to_owned(),
            headers: exchange.headers.get().cloned().unwrap_or_default(),
            body: exchange.body.get().map(|body| body.text().to_owned()).unwrap_or_default(),
            status: Some(exchange.status.get().copied().unwrap_or(200)),
            response_headers: Vec::new(),
            response,
            end,
        })
    }

    fn to_response(&self, stream: bool) -> MockResponse {
        let Some(status) = self.status else {
            let reason = "no response was recorded for this call";
            let response = MockResponse::from_error(502, &ApiErrorType::Api, reason, "");
            // The client did not wait for a response, so it does not get one.
            let delay = if self.end == RecordedEnd::ClientLeft { Duration::from_secs(86_400) } else { Duration::ZERO };
            return MockResponse { delay, ..response };
        };
        let mut response = self.body_response(status, stream);
        response.status = status;
        response.end = match self.end {
            RecordedEnd::Complete => ResponseEnd::Complete,
            RecordedEnd::Cut => ResponseEnd::Cut,
            RecordedEnd::ClientLeft => ResponseEnd::Hang,
        };
        let is_kept = |name: &str| !LEFT_OUT_HEADERS.iter().any(|left_out| name.eq_ignore_ascii_case(left_out));
        response.headers = self.response_headers.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        response
    }

    /// The body in the form that was asked for.
    fn body_response(&self, status: u16, stream: bool) -> MockResponse {
        let content_type = self.response_headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let content_type = content_type.map(|(_, value)| value.clone());
        match &self.response {
            RecordedBody::Whole(body) => {
                // A message recorded in one piece is streamed when that is asked for.
                let message = serde_json::from_str::<Message>(body).ok().filter(|_| stream && status == 200);
                match message {
                    Some(message) => MockResponse::from_message(&message, true, DEFAULT_CHUNK_CHARS),
                    None => {
                        let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
                        MockResponse::from_body(status, content_type, body.clone())
                    }
                }
            }
            RecordedBody::Stream(text) => {
                let whole = (!stream).then(|| accumulate_events(&stream_events(text))).flatten();
                match whole {
                    Some(message) => MockResponse::from_message(&message, false, DEFAULT_CHUNK_CHARS),
                    None => {
                        let content_type = content_type.unwrap_or_else(|| "text/event-stream".to_owned());
                        let chunks = text.split_inclusive("\n\n").map(str::to_owned).collect();
                        MockResponse { chunks, ..MockResponse::from_body(status, content_type, String::new()) }
                    }
                }
            }
            RecordedBody::Events(events) => {
                let events: Vec<Json> = events.iter().filter_map(|event| Json::parse(event).ok()).collect();
                let whole = (!stream).then(|| accumulate_events(&events)).flatten();
                match whole {
                    Some(message) => MockResponse::from_message(&message, false, DEFAULT_CHUNK_CHARS),
                    None => MockResponse::from_events(&events, |event| {
                        event.read::<StreamEvent>().map(|event| event.tag().to_owned()).unwrap_or_default()
                    }),
                }
            }
        }
    }
}

fn has_same_input(a: &IncomingRequest, b: &IncomingRequest) -> bool {
    let calls = |request: &IncomingRequest| -> Vec<String> {
        let mut ids: Vec<_> = request.tool_results.iter().map(|(_, id, _)| id.clone()).collect();
        ids.sort();
        ids
    };
    if a.tool_results.is_empty() && b.tool_results.is_empty() {
        a.last_text == b.last_text
    } else {
        calls(a) == calls(b)
    }
}

fn stream_events(text: &str) -> Vec<Json> {
    let mut parser = Parser::new();
    let events = parser.push(text.as_bytes());
    events.into_iter().flatten().filter_map(|event| Json::parse(&event.data).ok()).collect()
}

fn accumulate_events(events: &[Json]) -> Option<Message> {
    let mut message = Accumulator::default();
    for event in events {
        message.push(&event.read().ok()?).ok()?;
    }
    message.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(texts: &[&str]) -> String {
        let message = |(n, text): (usize, &&str)| {
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            format!(r#"{{"role":"{role}","content":"{text}"}}"#)
        };
        let messages: Vec<String> = texts.iter().enumerate().map(message).collect();
        format!(r#"{{"model":"m","max_tokens":1,"messages":[{}]}}"#, messages.join(","))
    }

    fn call(name: &str, texts: &[&str]) -> RecordedCall {
        RecordedCall {
            name: name.to_owned(),
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: Vec::new(),
            body: body(texts),
            status: Some(200),
            response_headers: Vec::new(),
            response: RecordedBody::default(),
            end: RecordedEnd::Complete,
        }
    }

    #[test]
    fn a_request_that_differs_gets_the_call_of_its_turn_and_step() {
        let calls = vec![
            call("first", &["hi"]),
            call("second", &["hi", "hello", "and now?"]),
            call("third", &["hi", "hello", "and now?", "later", "when?"]),
        ];
        let played = |texts: &[&str]| {
            let mut recording = Recording::new(calls.clone(), MatchMode::Lenient);
            let sent = ReplayCall::new(call("sent", texts)).unwrap();
            let request = sent.request.clone().unwrap();
            recording.play(&request, &sent.comparable).unwrap().name
        };
        assert_eq!(played(&["hi", "hello", "something else"]), "second");
        assert_eq!(played(&["hi", "hello", "something else", "later", "other"]), "third");
        assert_eq!(played(&["hi", "hello", "when?"]), "third", "the same input is found first");
        assert_eq!(played(&["a", "b", "c", "d", "e", "f", "g"]), "first", "no call has the same place");
    }
}
