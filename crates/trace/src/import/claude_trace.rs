//! claude-trace: a request with its response in each line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Headers, body_text, events_of, response_of, time_from_seconds};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::raw_call::{RawCall, RawResponse};

#[derive(Deserialize)]
struct Pair<'a> {
    #[serde(borrow)]
    request: Request<'a>,
    /// `null` if no response arrived.
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    /// Seconds since 1970.
    timestamp: Option<f64>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    /// End of the response in seconds since 1970.
    timestamp: Option<f64>,
    status_code: Option<u16>,
    #[serde(default)]
    headers: Headers,
    /// Body as JSON; `null` if it was streamed.
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    /// Text of a streamed body.
    #[serde(borrow, default)]
    body_raw: Option<&'a RawValue>,
    #[serde(borrow, default)]
    events: Option<Vec<&'a RawValue>>,
}

pub(super) fn import_line(text: &str, line: u64, builder: &mut TraceBuilder) -> Result<(), serde_json::Error> {
    let Pair { request, response } = serde_json::from_str(text)?;
    let mut call = RawCall {
        started_at: request.timestamp.and_then(time_from_seconds),
        method: request.method,
        url: request.url,
        headers: request.headers.0,
        request_body: body_text(request.body),
        end: if response.is_none() { CallEnd::Failed } else { CallEnd::Unknown },
        line,
        ..RawCall::default()
    };
    if let Some(response) = response {
        call.ended_at = response.timestamp.and_then(time_from_seconds);
        call.status = response.status_code;
        call.response_headers = response.headers.0;
        call.response = match (response.body, &response.events) {
            (None, Some(events)) => events_of(events),
            (body, _) => response_of(body_text(body.or(response.body_raw))),
        };
        if matches!(call.response, RawResponse::None) && response.status_code.is_none() {
            call.end = CallEnd::Failed;
        }
    }
    builder.push(&call);
    Ok(())
}
