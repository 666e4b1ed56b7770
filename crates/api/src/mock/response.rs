//! A response ready to be sent: status, headers, chunks of the body, and how it ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_message::api::{ApiErrorBody, StreamError, StreamEvent, TokenCount};
use quipu_message::values::ApiErrorType;
use quipu_message::{Block, Content, Maybe, Message, RequestId, Role, Usage, sse};
use serde::Serialize;

use super::incoming::IncomingRequest;
use super::message_events::{DEFAULT_CHUNK_CHARS, message_events};
use super::rule::{Action, ErrorReply, Reply, ReplyEnd, Rule, StreamFailure};

/// A response ready to be sent.
#[derive(Debug)]
pub(crate) struct MockResponse {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) chunks: Vec<String>,
    pub(crate) chunk_delay: Duration,
    pub(crate) end: ResponseEnd,
}

/// What happens after the last chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseEnd {
    /// The body ends normally.
    Complete,
    /// The connection breaks.
    Cut,
    /// Nothing is sent until the client disconnects.
    Hang,
}

/// Makes ids that are unique, also across servers.
#[derive(Debug)]
pub(crate) struct IdGenerator {
    seed: u64,
    next_number: AtomicU64,
}

impl Default for IdGenerator {
    fn default() -> Self {
        Self { seed: fastrand::u64(..), next_number: AtomicU64::new(1) }
    }
}

impl IdGenerator {
    pub(crate) fn next_id(&self, prefix: &str) -> String {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}_01{:016x}{number:06}", self.seed)
    }
}

impl MockResponse {
    /// Makes a response with a complete body.
    pub(crate) fn from_body(status: u16, content_type: impl Into<String>, body: String) -> Self {
        Self {
            status,
            content_type: content_type.into(),
            headers: Vec::new(),
            delay: Duration::ZERO,
            chunks: vec![body],
            chunk_delay: Duration::ZERO,
            end: ResponseEnd::Complete,
        }
    }

    /// Makes a response with a JSON body.
    pub(crate) fn from_json(status: u16, body: &impl Serialize) -> Self {
        Self::from_body(status, "application/json", quipu_message::Json::from_serialize(body).text().to_owned())
    }

    /// Makes a response with the API's error object.
    pub(crate) fn from_error(status: u16, kind: &ApiErrorType, message: &str, request_id: &str) -> Self {
        let error = error_body(kind, message);
        let body =
            StreamError { error, request_id: Maybe::Value(RequestId::from(request_id)), ..StreamError::default() };
        Self::from_json(status, &body)
    }

    /// Makes the response to a token count.
    pub(crate) fn from_token_count(input_tokens: u64) -> Self {
        Self::from_json(200, &TokenCount { input_tokens, ..TokenCount::default() })
    }

    /// Makes a response with a stream of events.
    pub(crate) fn from_events<T: Serialize>(events: &[T], tag: impl Fn(&T) -> String) -> Self {
        let write = |event: &T| {
            let data = quipu_message::Json::from_serialize(event).text().to_owned();
            let mut text = String::new();
            sse::write_event(&sse::Event { event: Some(tag(event)), data, ..sse::Event::default() }, &mut text);
            text
        };
        let pieces = events.iter().map(write).collect();
        Self { chunks: pieces, ..Self::from_body(200, "text/event-stream; charset=utf-8", String::new()) }
    }

    /// Makes a response with a message, streamed or as one body.
    pub(crate) fn from_message(message: &Message, stream: bool, chunk: usize) -> Self {
        if stream {
            Self::from_events(&message_events(message, chunk), |event| event.tag().to_owned())
        } else {
            Self::from_json(200, message)
        }
    }

    /// Makes the response of a rule to a request.
    pub(crate) fn from_rule(rule: &Rule, request: &IncomingRequest, ids: &IdGenerator, request_id: &str) -> Self {
        let mut response = match &rule.action {
            Action::Reply(reply) => reply.to_response(request, ids, request_id),
            Action::Error(refusal) => refusal.to_response(request_id),
            Action::CountTokens(tokens) => Self::from_token_count(*tokens),
        };
        response.headers.extend(rule.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        response.delay = Duration::from_millis(rule.delay_ms);
        response
    }
}

impl Reply {
    fn to_response(&self, request: &IncomingRequest, ids: &IdGenerator, request_id: &str) -> MockResponse {
        let message = self.to_message(request, ids);
        let mut response = MockResponse::from_message(
            &message,
            request.wants_stream(),
            self.chunk_chars.unwrap_or(DEFAULT_CHUNK_CHARS),
        );
        response.chunk_delay = Duration::from_millis(self.chunk_delay_ms);
        let (after, end) = match &self.end {
            ReplyEnd::Complete => return response,
            ReplyEnd::Cut { after } => (*after, ResponseEnd::Cut),
            ReplyEnd::Hang { after } => (*after, ResponseEnd::Hang),
            ReplyEnd::Error(failure) if request.wants_stream() => return failure.insert_into(response),
            ReplyEnd::Error(StreamFailure { kind, message, .. }) => {
                return MockResponse::from_error(error_status(kind), kind, message, request_id);
            }
        };
        if request.wants_stream() {
            response.chunks.truncate(after);
        } else {
            // A body that is not streamed breaks off in its middle.
            response.chunks = response.chunks.iter().map(|body| body.chars().take(body.len() / 2).collect()).collect();
        }
        response.end = end;
        response
    }

    fn to_message(&self, request: &IncomingRequest, ids: &IdGenerator) -> Message {
        let blocks: Vec<Block> = self.blocks.0.iter().map(|block| block.to_block(|| ids.next_id("toolu"))).collect();
        let calls = blocks.iter().any(|block| block.tool_use().is_some());
        let stop = self.stop_reason.clone().unwrap_or_else(|| if calls { "tool_use" } else { "end_turn" }.to_owned());
        let written: usize = blocks.iter().map(|block| quipu_message::Json::from_serialize(block).text().len()).sum();
        let counted = Usage {
            input_tokens: Maybe::Value(request.estimated_tokens),
            output_tokens: Maybe::Value((written as u64).div_ceil(4)),
            cache_creation_input_tokens: Maybe::Value(0),
            cache_read_input_tokens: Maybe::Value(0),
            ..Usage::default()
        };
        let mut usage = self.usage.clone().unwrap_or_default();
        fill_missing(&mut usage.input_tokens, counted.input_tokens);
        fill_missing(&mut usage.output_tokens, counted.output_tokens);
        fill_missing(&mut usage.cache_creation_input_tokens, counted.cache_creation_input_tokens);
        fill_missing(&mut usage.cache_read_input_tokens, counted.cache_read_input_tokens);
        Message {
            id: Maybe::Value(ids.next_id("msg").as_str().into()),
            kind: Maybe::Value("message".to_owned()),
            model: Maybe::Value(request.request.model.clone()),
            stop_reason: Maybe::Value(stop.as_str().into()),
            stop_sequence: Maybe::Null,
            usage: Maybe::Value(usage),
            ..Message::new(Role::Assistant, Content::Blocks(blocks))
        }
    }
}

impl StreamFailure {
    /// Keeps the first events of a response and appends the error event.
    fn insert_into(&self, mut response: MockResponse) -> MockResponse {
        let error = StreamError { error: error_body(&self.kind, &self.message), ..StreamError::default() };
        let event = MockResponse::from_events(&[StreamEvent::Error(Box::new(error))], |event| event.tag().to_owned());
        response.chunks.truncate(self.after);
        response.chunks.extend(event.chunks);
        response
    }
}

impl ErrorReply {
    fn to_response(&self, request_id: &str) -> MockResponse {
        if let Some(body) = &self.body {
            let kind = if body.trim_start().starts_with('<') { "text/html" } else { "text/plain" };
            return MockResponse::from_body(self.status, kind, body.clone());
        }
        let (kind, words) = default_error(self.status);
        let kind = self.kind.as_ref().unwrap_or(&kind);
        MockResponse::from_error(self.status, kind, self.message.as_deref().unwrap_or(words), request_id)
    }
}

fn error_body(kind: &ApiErrorType, message: &str) -> ApiErrorBody {
    ApiErrorBody {
        kind: Maybe::Value(kind.clone()),
        message: Maybe::Value(message.to_owned()),
        ..ApiErrorBody::default()
    }
}

fn fill_missing(slot: &mut Maybe<u64>, count: Maybe<u64>) {
    if !slot.is_value() {
        *slot = count;
    }
}

/// The API's error type and message for a status.
fn default_error(status: u16) -> (ApiErrorType, &'static str) {
    match status {
        401 => (ApiErrorType::Authentication, "invalid x-api-key"),
        403 => (ApiErrorType::Permission, "not allowed"),
        404 => (ApiErrorType::NotFound, "not found"),
        413 => (ApiErrorType::RequestTooLarge, "the request is too large"),
        429 => (ApiErrorType::RateLimit, "too many requests"),
        529 => (ApiErrorType::Overloaded, "Overloaded"),
        500.. => (ApiErrorType::Api, "Internal server error"),
        _ => (ApiErrorType::InvalidRequest, "the request is wrong"),
    }
}

fn error_status(kind: &ApiErrorType) -> u16 {
    match kind {
        ApiErrorType::InvalidRequest => 400,
        ApiErrorType::RateLimit => 429,
        ApiErrorType::Overloaded => 529,
        _ => 500,
    }
}
