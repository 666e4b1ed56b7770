//! claude-tap: a record of a call in each line, or in a database.

use std::borrow::Cow;

use quipu_conversation::parse_timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Headers, body_text, events_of, response_of, time_after};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::raw_call::RawCall;

#[derive(Deserialize)]
struct Record<'a> {
    /// End of the response.
    #[serde(borrow, default)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Cow<'a, str>,
    duration_ms: Option<f64>,
    #[serde(borrow)]
    request: Request<'a>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    status: Option<u16>,
    #[serde(default)]
    headers: Headers,
    /// The whole message, also of a streamed response.
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(borrow, default)]
    sse_events: Option<Vec<&'a RawValue>>,
}

/// Imports one record. `line` is its line, or its number in a database.
pub(super) fn import_line(text: &str, line: u64, builder: &mut TraceBuilder) -> Result<(), serde_json::Error> {
    let record: Record<'_> = serde_json::from_str(text)?;
    let ended_at = parse_timestamp(&record.timestamp);
    let mut call = RawCall {
        started_at: time_after(ended_at, Some(-record.duration_ms.unwrap_or_default())),
        ended_at,
        method: record.request.method,
        url: record.request.path,
        headers: record.request.headers.0,
        request_body: body_text(record.request.body),
        end: if record.response.is_none() { CallEnd::Failed } else { CallEnd::Unknown },
        source_id: record.request_id,
        line,
        ..RawCall::default()
    };
    if let Some(response) = record.response {
        call.status = response.status;
        call.response_headers = response.headers.0;
        call.response = match &response.sse_events {
            Some(events) if !events.is_empty() => events_of(events),
            _ => response_of(body_text(response.body)),
        };
    }
    builder.push(&call);
    Ok(())
}
