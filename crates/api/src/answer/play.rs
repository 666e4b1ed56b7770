//! An answer ready to be sent: status, headers, pieces of the body, and its end.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_message::api::{ApiFailure, StreamError, StreamEvent, TokenCount};
use quipu_message::{Block, Content, Maybe, Message, RequestId, Role, Usage, sse};
use serde::Serialize;

use super::message::{CHUNK, events};
use super::question::Question;
use super::rule::{Does, Ends, Failure, Refusal, Reply, Rule};

/// An answer ready to be sent.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) pieces: Vec<String>,
    pub(crate) pause: Duration,
    pub(crate) finish: Finish,
}

/// What comes after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The proper end.
    End,
    /// A broken connection.
    Cut,
    /// Nothing, until the other side leaves.
    Hang,
}

/// Makes ids that no other answerer makes.
#[derive(Debug)]
pub(crate) struct Ids {
    seed: u64,
    next: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(0), next: AtomicU64::new(1) }
    }
}

impl Ids {
    pub(crate) fn make(&self, prefix: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}_01{:016x}{number:06}", self.seed)
    }
}

impl Play {
    /// A body in one piece.
    pub(crate) fn whole(status: u16, kind: &'static str, body: String) -> Self {
        Self {
            status,
            kind,
            headers: Vec::new(),
            delay: Duration::ZERO,
            pieces: vec![body],
            pause: Duration::ZERO,
            finish: Finish::End,
        }
    }

    /// JSON in one piece.
    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        Self::whole(status, "application/json", quipu_message::Json::of(body).text().to_owned())
    }

    /// The API's error object.
    pub(crate) fn error(status: u16, kind: &str, message: &str, request_id: &str) -> Self {
        let error = failure(kind, message);
        let body =
            StreamError { error, request_id: Maybe::Value(RequestId::from(request_id)), ..StreamError::default() };
        Self::json(status, &body)
    }

    /// The size of a prompt.
    pub(crate) fn count(input_tokens: u64) -> Self {
        Self::json(200, &TokenCount { input_tokens, ..TokenCount::default() })
    }

    /// A stream of events.
    pub(crate) fn stream<T: Serialize>(events: &[T], tag: impl Fn(&T) -> String) -> Self {
        let write = |event: &T| {
            let data = quipu_message::Json::of(event).text().to_owned();
            let mut text = String::new();
            sse::write(&sse::Event { event: Some(tag(event)), data, ..sse::Event::default() }, &mut text);
            text
        };
        let pieces = events.iter().map(write).collect();
        Self { pieces, ..Self::whole(200, "text/event-stream; charset=utf-8", String::new()) }
    }

    /// A message, streamed or not as it was asked for.
    pub(crate) fn message(message: &Message, stream: bool, chunk: usize) -> Self {
        if stream {
            Self::stream(&events(message, chunk), |event| event.tag().to_owned())
        } else {
            Self::json(200, message)
        }
    }

    /// What a rule answers to a question.
    pub(crate) fn rule(rule: &Rule, question: &Question, ids: &Ids, request_id: &str) -> Self {
        let mut play = match &rule.does {
            Does::Reply(reply) => reply.play(question, ids, request_id),
            Does::Error(refusal) => refusal.play(request_id),
            Does::Count(tokens) => Self::count(*tokens),
        };
        play.headers.extend(rule.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        play.delay = Duration::from_millis(rule.delay_ms);
        play
    }
}

impl Reply {
    fn play(&self, question: &Question, ids: &Ids, request_id: &str) -> Play {
        let message = self.message(question, ids);
        let mut play = Play::message(&message, question.streams(), self.chunk.unwrap_or(CHUNK));
        play.pause = Duration::from_millis(self.pause_ms);
        let (after, finish) = match &self.ends {
            Ends::Well => return play,
            Ends::Cut { after } => (*after, Finish::Cut),
            Ends::Hang { after } => (*after, Finish::Hang),
            Ends::Fail(failure) if question.streams() => return failure.interrupt(play),
            Ends::Fail(Failure { kind, message, .. }) => {
                return Play::error(status_of(kind), kind, message, request_id);
            }
        };
        if question.streams() {
            play.pieces.truncate(after);
        } else {
            // A body in one piece breaks in its middle.
            play.pieces = play.pieces.iter().map(|body| body.chars().take(body.len() / 2).collect()).collect();
        }
        play.finish = finish;
        play
    }

    fn message(&self, question: &Question, ids: &Ids) -> Message {
        let blocks: Vec<Block> = self.pieces.0.iter().map(|piece| piece.block(|| ids.make("toolu"))).collect();
        let calls = blocks.iter().any(|block| block.tool_use().is_some());
        let stop = self.stop.clone().unwrap_or_else(|| if calls { "tool_use" } else { "end_turn" }.to_owned());
        let written: usize = blocks.iter().map(|block| quipu_message::Json::of(block).text().len()).sum();
        let counted = Usage {
            input_tokens: Maybe::Value(question.tokens),
            output_tokens: Maybe::Value((written as u64).div_ceil(4)),
            cache_creation_input_tokens: Maybe::Value(0),
            cache_read_input_tokens: Maybe::Value(0),
            ..Usage::default()
        };
        let mut usage = self.usage.clone().unwrap_or_default();
        fill(&mut usage.input_tokens, counted.input_tokens);
        fill(&mut usage.output_tokens, counted.output_tokens);
        fill(&mut usage.cache_creation_input_tokens, counted.cache_creation_input_tokens);
        fill(&mut usage.cache_read_input_tokens, counted.cache_read_input_tokens);
        Message {
            id: Maybe::Value(ids.make("msg").as_str().into()),
            kind: Maybe::Value("message".to_owned()),
            model: Maybe::Value(question.request.model.clone()),
            stop_reason: Maybe::Value(stop),
            stop_sequence: Maybe::Null,
            usage: Maybe::Value(usage),
            ..Message::new(Role::Assistant, Content::Blocks(blocks))
        }
    }
}

impl Failure {
    /// Puts the error event after some events; nothing comes after it.
    fn interrupt(&self, mut play: Play) -> Play {
        let error = StreamError { error: failure(&self.kind, &self.message), ..StreamError::default() };
        let event = Play::stream(&[StreamEvent::Error(Box::new(error))], |event| event.tag().to_owned());
        play.pieces.truncate(self.after);
        play.pieces.extend(event.pieces);
        play
    }
}

impl Refusal {
    fn play(&self, request_id: &str) -> Play {
        if let Some(body) = &self.body {
            let kind = if body.trim_start().starts_with('<') { "text/html" } else { "text/plain" };
            return Play::whole(self.status, kind, body.clone());
        }
        let (kind, words) = usual(self.status);
        let kind = self.kind.as_deref().unwrap_or(kind);
        Play::error(self.status, kind, self.message.as_deref().unwrap_or(words), request_id)
    }
}

fn failure(kind: &str, message: &str) -> ApiFailure {
    ApiFailure {
        kind: Maybe::Value(kind.to_owned()),
        message: Maybe::Value(message.to_owned()),
        ..ApiFailure::default()
    }
}

fn fill(slot: &mut Maybe<u64>, count: Maybe<u64>) {
    if !slot.is_value() {
        *slot = count;
    }
}

/// The API's words for a status.
fn usual(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "not allowed"),
        404 => ("not_found_error", "not found"),
        413 => ("request_too_large", "the request is too large"),
        429 => ("rate_limit_error", "too many requests"),
        529 => ("overloaded_error", "Overloaded"),
        500.. => ("api_error", "Internal server error"),
        _ => ("invalid_request_error", "the request is wrong"),
    }
}

fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "rate_limit_error" => 429,
        "overloaded_error" => 529,
        _ => 500,
    }
}
