//! cc-viewer: JSON documents separated by a line `---`.
//!
//! A document of the main agent may hold only the messages that are new since the one before
//! it. A call is written when it starts and again when it ends, under the same id.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};

use quipu_conversation::parse_timestamp;
use quipu_message::line::replace_lone_surrogates;
use quipu_transcript::{LineReader, MAX_LINE_BYTES, RawLine};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Headers, body_text, response_of, time_after};
use crate::builder::TraceBuilder;
use crate::prompt_store::MessageKey;
use crate::raw_call::RawCall;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    /// Start of the call.
    #[serde(borrow, default)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    /// Milliseconds.
    duration: Option<f64>,
    #[serde(borrow, default)]
    request_id: Option<Cow<'a, str>>,
    #[serde(default)]
    main_agent: bool,
    /// Whether the call had not ended when the document was written. Its body has no messages.
    #[serde(default)]
    in_progress: bool,
    /// Set if the body has only the last messages of the request.
    #[serde(rename = "_deltaFormat")]
    delta_format: Option<u64>,
    /// Number of messages of the whole request.
    #[serde(rename = "_totalMessageCount")]
    total_message_count: Option<usize>,
    #[serde(borrow, default, rename = "_conversationId")]
    conversation_id: Option<Cow<'a, str>>,
    /// Whether the body has all messages although deltas are written.
    #[serde(default, rename = "_isCheckpoint")]
    is_checkpoint: bool,
    /// Number of the request in the order of sending. Documents are in the order of ending.
    #[serde(rename = "_seq")]
    sequence: Option<u64>,
}

#[derive(Deserialize)]
struct Response<'a> {
    status: Option<u16>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

/// Imports documents, one of them in memory at a time.
pub(super) fn import(input: impl Read, builder: &mut TraceBuilder) -> io::Result<()> {
    let mut importer = Importer { builder, calls: HashMap::new(), conversations: HashMap::new() };
    let mut lines = LineReader::new(input);
    let (mut document, mut first_line) = (Vec::new(), 1);
    while let Some(line) = lines.next()? {
        match line {
            RawLine::Line { number, bytes: b"---", .. } => {
                importer.import_document(&document, first_line);
                document.clear();
                first_line = number + 1;
            }
            RawLine::Line { bytes, .. } if document.len() + bytes.len() <= MAX_LINE_BYTES => {
                document.extend_from_slice(bytes);
                document.push(b'\n');
            }
            RawLine::Line { number, .. } | RawLine::TooLong { number, .. } => {
                importer.builder.push_problem(number, "a document of more than 256 MiB");
                document.clear();
            }
        }
    }
    importer.import_document(&document, first_line);
    Ok(())
}

struct Importer<'b> {
    builder: &'b mut TraceBuilder,
    /// Position of the call with each id, which a later document replaces.
    calls: HashMap<String, usize>,
    conversations: HashMap<String, DeltaState>,
}

/// Messages of the latest request of a conversation.
#[derive(Default)]
struct DeltaState {
    messages: Vec<MessageKey>,
    sequence: Option<u64>,
}

impl Importer<'_> {
    fn import_document(&mut self, document: &[u8], line: u64) {
        if document.trim_ascii().is_empty() {
            return;
        }
        let imported = match std::str::from_utf8(document) {
            Ok(text) => self.import_text(&replace_lone_surrogates(text), line).map_err(|error| error.to_string()),
            Err(error) => Err(format!("not UTF-8 after byte {} of the document", error.valid_up_to())),
        };
        if let Err(message) = imported {
            self.builder.push_problem(line, message);
        }
    }

    fn import_text(&mut self, text: &str, line: u64) -> Result<(), serde_json::Error> {
        let mut document: Document<'_> = serde_json::from_str(text)?;
        let started_at = parse_timestamp(&document.timestamp);
        let mut call = RawCall {
            started_at,
            ended_at: if document.in_progress { None } else { time_after(started_at, document.duration) },
            method: std::mem::take(&mut document.method),
            url: std::mem::take(&mut document.url),
            headers: std::mem::take(&mut document.headers.0),
            request_body: body_text(document.body),
            source_id: document.request_id.clone().unwrap_or_default(),
            line,
            ..RawCall::default()
        };
        if let Some(response) = document.response.take() {
            call.status = response.status;
            call.response_headers = response.headers.0;
            call.response = response_of(body_text(response.body));
        }
        let (mut request, session_id) = self.builder.read_request(&call);
        if let Some(request) = &mut request
            && document.main_agent
            && !document.in_progress
        {
            let own = request.messages.len();
            self.replay_delta(&document, line, &mut request.messages);
            if request.messages.len() > own {
                // The recorded body is not the one that was sent.
                call.request_body = Cow::Borrowed("");
            }
        }
        let next = self.builder.call_count();
        let index = match &document.request_id {
            Some(id) if !id.is_empty() => *self.calls.entry(id.to_string()).or_insert(next),
            _ => next,
        };
        self.builder.set_call_parts(index, &call, request, session_id);
        Ok(())
    }

    /// Puts the messages that a delta leaves out before its own. The delta holds the last of
    /// `_totalMessageCount` messages, so that the rest is known even if documents are not in
    /// the order of their requests.
    fn replay_delta(&mut self, document: &Document<'_>, line: u64, messages: &mut Vec<MessageKey>) {
        let conversation = document.conversation_id.as_deref().unwrap_or_default().to_owned();
        let state = self.conversations.entry(conversation).or_default();
        let total = document.total_message_count.unwrap_or(messages.len());
        let left_out = total.saturating_sub(messages.len());
        if document.delta_format.is_some() && !document.is_checkpoint && left_out > 0 {
            let Some(earlier) = state.messages.get(..left_out) else {
                let known = state.messages.len();
                self.builder
                    .push_problem(line, format!("{left_out} messages are left out, but only {known} are known"));
                return;
            };
            // Claude Code moves its breakpoints to the last messages of each request.
            let prompts = self.builder.prompts();
            messages.splice(0..0, earlier.iter().map(|key| prompts.without_breakpoints(*key)));
        }
        if document.sequence >= state.sequence {
            *state = DeltaState { messages: messages.clone(), sequence: document.sequence };
        }
    }
}
