//! Recorded calls, played again in their order.

use quipu_conversation::Accumulator;
use quipu_message::api::{Exchange, StreamEvent};
use quipu_message::{Json, Message};

use super::message::CHUNK;
use super::play::{Finish, Play};
use super::question::{Asked, Question};

/// The calls of a recording, each answered once.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Call {
    exchange: Exchange,
    question: Question,
    used: bool,
}

impl Recording {
    /// The calls of an `api.jsonl`; a line that is none is an error with its number.
    pub(crate) fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut calls = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |e: serde_json::Error| (index + 1, e.to_string());
            let exchange: Exchange = serde_json::from_str(line).map_err(bad)?;
            let (Some(method), Some(path)) = (exchange.method.text(), exchange.path.text()) else {
                return Err((index + 1, "a recorded call has a method and a path".to_owned()));
            };
            // Calls of other methods, such as a look whether the host is there, are answered anyway.
            let Some(asked) = Asked::of(method, path) else { continue };
            let headers = exchange.headers.get().map(Vec::as_slice).unwrap_or_default();
            let subagent = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(SUBAGENT));
            let question =
                Question::read(asked, exchange.body.get().map_or("null", Json::text), subagent).map_err(bad)?;
            calls.push(Call { exchange, question, used: false });
        }
        if calls.is_empty() {
            Err((1, "no call of /v1/messages is recorded here".to_owned()))
        } else {
            Ok(Self { calls })
        }
    }

    /// Answers with the first call not played yet that asked for the same: first one
    /// whose last words or results are the same, then any of its kind (with or without
    /// tools, of a subagent or not). Gives its number in the recording.
    pub(crate) fn play(&mut self, question: &Question) -> Option<(usize, Play)> {
        let kind = |call: &Call| {
            let recorded = &call.question;
            recorded.asked == question.asked
                && recorded.has_tools() == question.has_tools()
                && recorded.subagent == question.subagent
        };
        let mut free = self.calls.iter().enumerate().filter(|(_, call)| !call.used && kind(call));
        let same = free.clone().find(|(_, call)| same_end(&call.question, question));
        let (index, _) = same.or_else(|| free.next())?;
        let call = &mut self.calls[index];
        call.used = true;
        Some((index + 1, play(&call.exchange, question.streams())))
    }
}

/// The header that a subagent's calls carry.
pub(crate) const SUBAGENT: &str = "x-claude-code-agent-id";

fn same_end(a: &Question, b: &Question) -> bool {
    let calls = |question: &Question| -> Vec<String> {
        let mut ids: Vec<_> = question.results.iter().map(|(_, id, _)| id.clone()).collect();
        ids.sort();
        ids
    };
    if a.results.is_empty() && b.results.is_empty() { a.last_text == b.last_text } else { calls(a) == calls(b) }
}

fn play(exchange: &Exchange, stream: bool) -> Play {
    let status = exchange.status.get().copied().unwrap_or(200);
    let Some(events) = exchange.sse.get() else {
        let body = exchange.response.get().cloned().unwrap_or_default();
        // A message recorded in one piece is streamed when that is asked for.
        let message = body.read::<Message>().ok().filter(|_| stream && status == 200);
        return message.map_or_else(|| Play::json(status, &body), |message| Play::message(&message, true, CHUNK));
    };
    if !stream && let Some(message) = accumulate(events) {
        return Play::message(&message, false, CHUNK);
    }
    let tag = |event: &Json| event.read::<StreamEvent>().map(|event| event.tag().to_owned()).unwrap_or_default();
    let finish = match (exchange.cut.is_true(), exchange.client_gone.is_value()) {
        (true, _) => Finish::Cut,
        (_, true) => Finish::Hang,
        _ => Finish::End,
    };
    Play { finish, status, ..Play::stream(events, tag) }
}

fn accumulate(events: &[Json]) -> Option<Message> {
    let mut message = Accumulator::default();
    for event in events {
        message.push(&event.read().ok()?).ok()?;
    }
    message.finish().ok()
}
