//! `api.jsonl` of recorded runs.

use quipu_message::Json;
use quipu_message::api::RecordedApiCall;
use serde_json::Number;

use super::fields::{response_of, time_from_seconds};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::raw_call::{RawCall, RawResponse};

pub(super) fn import_line(text: &str, line: u64, builder: &mut TraceBuilder) -> Result<(), serde_json::Error> {
    let call: RecordedApiCall = serde_json::from_str(text)?;
    let headers = call.headers.get().map(Vec::as_slice).unwrap_or_default();
    let body = |json: Option<&Json>| json.map(Json::text).filter(|text| *text != "null").unwrap_or_default().to_owned();
    builder.push(&RawCall {
        started_at: call.time.get().and_then(Number::as_f64).and_then(time_from_seconds),
        method: call.method.text().unwrap_or_default().into(),
        url: call.path.text().unwrap_or_default().into(),
        headers: headers.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        request_body: body(call.body.get()).into(),
        status: call.status.get().copied(),
        response: match call.sse.get() {
            Some(events) => RawResponse::Events(events.iter().map(|event| event.text().into()).collect()),
            None => response_of(body(call.response.get()).into()),
        },
        end: if call.client_gone.is_value() {
            CallEnd::ClientAborted
        } else if call.cut.is_true() {
            CallEnd::UpstreamClosed
        } else {
            CallEnd::Unknown
        },
        line,
        ..RawCall::default()
    });
    Ok(())
}
