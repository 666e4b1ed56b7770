//! Responses of a session file: the entries of each API message joined, and the errors.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use jiff::Timestamp;
use quipu_conversation::parse_timestamp;
use quipu_message::line::readable_text;
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::system::System;
use quipu_message::{Assistant, Content, Entry, Head, Message, Uuid};
use quipu_transcript::{LineReader, RawLine};

use crate::call::{CallEnd, CallIdentity};
use crate::raw_call::{RawCall, RawResponse};

/// A message of the API, or an error.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) message_id: String,
    /// Line of its first entry.
    pub(super) line: u64,
    /// Id of the logged request.
    pub(super) request_ref: Option<String>,
    message: Option<Message>,
    requested_model: Option<String>,
    request_id: Option<String>,
    identity: CallIdentity,
    status: Option<u16>,
    error: Option<String>,
    was_aborted: bool,
    ended_at: Option<Timestamp>,
}

/// All responses of a file.
#[derive(Debug, Default)]
pub(super) struct Responses {
    responses: Vec<Response>,
    by_message: HashMap<String, usize>,
    by_request: HashMap<String, usize>,
    /// Whether the file logs its requests.
    pub(super) has_request_log: bool,
    /// Entries may be written again, with a stop reason.
    uuids: HashSet<Uuid>,
    /// The latest logged request, if it has no response yet: its id.
    open_request: Option<String>,
}

impl Responses {
    /// Reads the responses of a file. Skips lines that cannot be read.
    pub(super) fn read(input: impl Read) -> io::Result<Self> {
        let mut responses = Self::default();
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next()? {
            let RawLine::Line { number, bytes, .. } = line else { continue };
            let text = readable_text(bytes);
            // Whole entries take longer, and most lines are of other types.
            let head = Head::read(&text).ok();
            let kind = head.as_ref().and_then(|head| head.kind.as_deref());
            if matches!(kind, Some("assistant" | "system" | "api-request"))
                && let Ok(entry) = Entry::read(&text)
            {
                responses.push(number, &entry);
            }
        }
        Ok(responses)
    }

    fn push(&mut self, line: u64, entry: &Entry) {
        match entry {
            Entry::ApiRequest(request) => {
                self.has_request_log = true;
                self.open_request = Some(request.id.clone());
            }
            Entry::Assistant(entry) if entry.is_api_error() => {
                let error = entry.api_error_type.text().map(str::to_owned);
                let status = entry.api_error_status.get().and_then(|status| u16::try_from(status.as_u64()?).ok());
                if let Some(status) = status {
                    self.push_error(line, status, error, entry.envelope.timestamp.text());
                }
            }
            Entry::Assistant(entry) => self.push_message(line, entry),
            Entry::System(system) => {
                if let System::ApiError(error) = system.as_ref()
                    && let Some(status) = error.status()
                {
                    self.push_error(line, status, None, error.envelope.timestamp.text());
                }
            }
            _ => {}
        }
    }

    /// The messages of the API, without errors.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Response> {
        self.responses.iter().filter(|response| response.message.is_some())
    }

    /// The response to a logged request.
    pub(super) fn of_request(&self, id: &str) -> Option<&Response> {
        self.by_request.get(id).map(|&i| &self.responses[i])
    }

    fn push_message(&mut self, line: u64, entry: &Assistant) {
        let Some(id) = entry.message.id.text().filter(|_| entry.message.model.text() != Some(SYNTHETIC_MODEL)) else {
            return;
        };
        let index = *self.by_message.entry(id.to_owned()).or_insert_with(|| {
            self.responses.push(Response { message_id: id.to_owned(), line, ..Response::default() });
            self.responses.len() - 1
        });
        let request_ref = entry.request_ref.text().map(str::to_owned);
        if let Some(request) = &request_ref {
            self.by_request.insert(request.clone(), index);
            self.open_request.take_if(|open| open == request);
        }
        let is_new = entry.envelope.uuid.get().is_none_or(|uuid| self.uuids.insert(uuid.clone()));
        self.responses[index].add(entry, request_ref, is_new);
    }

    /// An error belongs to the latest request that has no response.
    fn push_error(&mut self, line: u64, status: u16, error: Option<String>, time: Option<&str>) {
        let Some(request) = self.open_request.take() else { return };
        self.by_request.insert(request, self.responses.len());
        let ended_at = time.and_then(parse_timestamp);
        self.responses.push(Response { line, status: Some(status), error, ended_at, ..Response::default() });
    }
}

impl Response {
    /// Adds one entry of the message.
    fn add(&mut self, entry: &Assistant, request_ref: Option<String>, is_new: bool) {
        self.status = Some(200);
        self.request_ref = self.request_ref.take().or(request_ref);
        self.was_aborted |= entry.is_aborted_mid_stream.is_true() || entry.aborted.is_true();
        self.request_id = self.request_id.take().or_else(|| entry.request_id.get().map(ToString::to_string));
        self.requested_model = self.requested_model.take().or_else(|| entry.requested_model.text().map(str::to_owned));
        let envelope = &entry.envelope;
        self.identity.session_id = envelope.session_id.get().map(ToString::to_string);
        self.identity.agent_id = envelope.agent_id.get().map(ToString::to_string);
        self.ended_at = envelope.timestamp.text().and_then(parse_timestamp).or(self.ended_at);
        let Some(message) = &mut self.message else {
            self.message = Some(entry.message.clone());
            return;
        };
        let output = |message: &Message| message.usage.get().and_then(|usage| usage.output_tokens.get().copied());
        if output(&entry.message) >= output(message) {
            message.usage = entry.message.usage.clone();
        }
        if entry.message.stop_reason.is_value() {
            message.stop_reason = entry.message.stop_reason.clone();
        }
        if is_new {
            let mut blocks = std::mem::take(&mut message.content).into_blocks();
            blocks.extend(entry.message.content.clone().into_blocks());
            message.content = Content::Blocks(blocks);
        }
    }

    /// Model of the request: the requested one if another answered.
    pub(super) fn requested_model(&self) -> String {
        let answered = self.message.as_ref().and_then(|message| message.model.text());
        self.requested_model.as_deref().or(answered).unwrap_or_default().to_owned()
    }

    /// Fills in what the response tells about a call.
    pub(super) fn fill(&self, raw: &mut RawCall<'_>) {
        raw.ended_at = self.ended_at;
        raw.status = self.status;
        if self.was_aborted {
            raw.end = CallEnd::ClientAborted;
        }
        raw.error = self.error.clone();
        if let Some(id) = &self.request_id {
            raw.response_headers.push(("request-id".into(), id.clone().into()));
        }
        let known = std::mem::take(&mut raw.identity);
        raw.identity = CallIdentity {
            session_id: known.session_id.or_else(|| self.identity.session_id.clone()),
            agent_id: known.agent_id.or_else(|| self.identity.agent_id.clone()),
            ..known
        };
        if let Some(message) = &self.message {
            raw.response = RawResponse::Message(Box::new(message.clone()));
        }
    }
}
