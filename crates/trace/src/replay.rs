//! Recorded calls as the mock server plays them.

use std::borrow::Cow;
use std::path::Path;

use quipu_api::mock::{RecordedBody, RecordedCall, RecordedEnd};

use crate::call::CallEnd;
use crate::import::ImportError;
use crate::raw_call::{RawCall, RawResponse};
use crate::trace::Trace;

/// Reads the recorded calls of a capture file of any format, to replay them. Calls that were
/// only reconstructed from a session file are left out.
pub fn read_recorded_calls(path: &Path) -> Result<Vec<RecordedCall>, ImportError> {
    let (_, calls) = Trace::open_with_raw_calls(&[path])?;
    let recorded = (1..).zip(&calls).filter(|(_, call)| !call.is_reconstructed);
    Ok(recorded.map(|(number, call)| call.to_recorded(format!("call {number}"))).collect())
}

impl RawCall<'_> {
    /// The call as a mock server plays it; `name` is its name in reports.
    pub fn to_recorded(&self, name: String) -> RecordedCall {
        let owned = |headers: &[(Cow<'_, str>, Cow<'_, str>)]| {
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let response = match &self.response {
            RawResponse::None => RecordedBody::default(),
            RawResponse::Json(body) => RecordedBody::Whole(body.to_string()),
            RawResponse::Message(message) => RecordedBody::Whole(serde_json::to_string(message).unwrap_or_default()),
            RawResponse::Sse(text) => RecordedBody::Stream(text.to_string()),
            RawResponse::Events(events) => RecordedBody::Events(events.iter().map(ToString::to_string).collect()),
        };
        RecordedCall {
            name,
            method: if self.method.is_empty() { "POST".to_owned() } else { self.method.to_string() },
            path: path_and_query(&self.url).to_owned(),
            headers: owned(&self.headers),
            body: self.request_body.to_string(),
            status: self.status,
            response_headers: owned(&self.response_headers),
            response,
            end: match self.end {
                CallEnd::ClientAborted => RecordedEnd::ClientLeft,
                CallEnd::UpstreamClosed => RecordedEnd::Cut,
                CallEnd::Completed | CallEnd::Failed | CallEnd::Unknown => RecordedEnd::Complete,
            },
        }
    }
}

/// Path and query of a URL, which may lack scheme and host.
fn path_and_query(url: &str) -> &str {
    match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => url,
    }
}
