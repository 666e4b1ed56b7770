//! One API call as an importer found it, before it is split into parts.

use std::borrow::Cow;

use jiff::Timestamp;
use quipu_message::Message;

use crate::call::{CallEnd, CallIdentity};

/// One HTTP exchange as a capture file holds it. Importers fill in what their format knows.
#[derive(Debug, Clone, Default)]
pub struct RawCall<'a> {
    /// When the request was sent.
    pub started_at: Option<Timestamp>,
    /// When the first byte or event of the response arrived.
    pub first_event_at: Option<Timestamp>,
    /// When the response ended.
    pub ended_at: Option<Timestamp>,
    /// HTTP method; `POST` if the format does not record it.
    pub method: Cow<'a, str>,
    /// Path of the URL with its query, or the whole URL.
    pub url: Cow<'a, str>,
    /// Request headers. Credentials among them are hashed and dropped by the builder.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Headers of the response.
    pub response_headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Body of the request; empty if there was none or it was not recorded.
    pub request_body: Cow<'a, str>,
    /// HTTP status; `None` if no response arrived.
    pub status: Option<u16>,
    /// Body of the response.
    pub response: RawResponse<'a>,
    /// Type of the API's error, if the source records it without the body.
    pub error: Option<String>,
    /// How the exchange ended.
    pub end: CallEnd,
    /// Whether the call was derived from entries of a session file and not recorded.
    pub is_reconstructed: bool,
    /// Session and agent as the source records them beside the headers. Headers take
    /// precedence.
    pub identity: CallIdentity,
    /// Purpose of the call as Claude Code records it, for example `sdk` or
    /// `agent:builtin:general-purpose`.
    pub query_source: Option<String>,
    /// Id that the source gives the call, for example a request id; empty if none.
    pub source_id: Cow<'a, str>,
    /// Line of the source, from 1; 0 if the format has no lines.
    pub line: u64,
}

/// Body of a response, in the form in which it was recorded.
#[derive(Debug, Clone, Default)]
pub enum RawResponse<'a> {
    /// Nothing was recorded.
    #[default]
    None,
    /// JSON: a whole message or an error.
    Json(Cow<'a, str>),
    /// Text of an event stream.
    Sse(Cow<'a, str>),
    /// Events of a stream, each as JSON.
    Events(Vec<Cow<'a, str>>),
    /// A message that was already read.
    Message(Box<Message>),
}

impl RawCall<'_> {
    /// The same call without references to the file it was read from.
    pub(crate) fn to_owned_call(&self) -> RawCall<'static> {
        let text = |text: &Cow<'_, str>| Cow::Owned(text.to_string());
        let headers = |headers: &[(Cow<'_, str>, Cow<'_, str>)]| {
            headers.iter().map(|(name, value)| (text(name), text(value))).collect()
        };
        RawCall {
            started_at: self.started_at,
            first_event_at: self.first_event_at,
            ended_at: self.ended_at,
            method: text(&self.method),
            url: text(&self.url),
            headers: headers(&self.headers),
            response_headers: headers(&self.response_headers),
            request_body: text(&self.request_body),
            status: self.status,
            response: match &self.response {
                RawResponse::None => RawResponse::None,
                RawResponse::Json(body) => RawResponse::Json(text(body)),
                RawResponse::Sse(body) => RawResponse::Sse(text(body)),
                RawResponse::Events(events) => RawResponse::Events(events.iter().map(text).collect()),
                RawResponse::Message(message) => RawResponse::Message(message.clone()),
            },
            error: self.error.clone(),
            end: self.end,
            is_reconstructed: self.is_reconstructed,
            identity: self.identity.clone(),
            query_source: self.query_source.clone(),
            source_id: text(&self.source_id),
            line: self.line,
        }
    }
}
