//! `api.jsonl` of recorded runs: `{n,t,method,path,headers,body,status,sse|response,…}`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Headers, body_text, events_of, response_of, time_from_seconds};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::raw_call::RawCall;

#[derive(Deserialize)]
struct RecordedCall<'a> {
    /// Start of the call in seconds since 1970.
    t: Option<f64>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    status: Option<u16>,
    /// Events of a streamed response.
    #[serde(borrow, default)]
    sse: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    /// Whether the server closed the connection in the middle of the response.
    #[serde(default)]
    cut: bool,
    /// Error of the server when the client closed the connection first.
    #[serde(borrow, default)]
    client_gone: Option<Cow<'a, str>>,
}

pub(super) fn import_line(text: &str, line: u64, builder: &mut TraceBuilder) -> Result<(), serde_json::Error> {
    let call: RecordedCall<'_> = serde_json::from_str(text)?;
    builder.push(&RawCall {
        started_at: call.t.and_then(time_from_seconds),
        method: call.method,
        url: call.path,
        headers: call.headers.0,
        request_body: body_text(call.body),
        status: call.status,
        response: match &call.sse {
            Some(events) => events_of(events),
            None => response_of(body_text(call.response)),
        },
        end: if call.client_gone.is_some() {
            CallEnd::ClientAborted
        } else if call.cut {
            CallEnd::UpstreamClosed
        } else {
            CallEnd::Unknown
        },
        line,
        ..RawCall::default()
    });
    Ok(())
}
