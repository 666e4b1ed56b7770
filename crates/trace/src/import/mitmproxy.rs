//! Flow files of mitmproxy.

use std::borrow::Cow;
use std::io::{self, BufReader, ErrorKind, Read};

use super::fields::{response_of, time_from_seconds};
use super::tnetstring::{Value, read_bytes};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::content_encoding::decode;
use crate::raw_call::RawCall;

/// Imports the HTTP flows, one of them in memory at a time.
pub(super) fn import(input: impl Read, builder: &mut TraceBuilder) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let (mut buffer, mut number) = (Vec::new(), 0);
    loop {
        match read_bytes(&mut input, &mut buffer) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            // The rest cannot be read, because the end of the flow is unknown.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                builder.push_problem(number + 1, "not a flow; the rest of the file is not read");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        number += 1;
        match Value::read(&buffer) {
            Some((flow, _)) => import_flow(&flow, number, builder),
            None => builder.push_problem(number, "the flow is cut off or malformed"),
        }
    }
}

fn import_flow(flow: &Value<'_>, number: u64, builder: &mut TraceBuilder) {
    // TCP, UDP and DNS flows have no request of this form.
    let Some(request) = flow.field("request") else { return };
    let path = request.field("path").and_then(Value::text).unwrap_or_default();
    let time = |message: &Value<'_>, name: &str| message.field(name)?.number().and_then(time_from_seconds);
    let mut call = RawCall {
        started_at: time(request, "timestamp_start"),
        method: request.field("method").and_then(Value::text).unwrap_or_default(),
        headers: headers_of(request),
        request_body: content_of(request, "request", number, builder),
        url: path,
        end: CallEnd::Failed,
        line: number,
        ..RawCall::default()
    };
    if let Some(response) = flow.field("response") {
        call.end = if flow.field("error").is_some() { CallEnd::UpstreamClosed } else { CallEnd::Unknown };
        call.status = response.field("status_code").and_then(Value::number).map(|status| status as u16);
        call.first_event_at = time(response, "timestamp_start");
        call.ended_at = time(response, "timestamp_end");
        call.response_headers = headers_of(response);
        call.response = response_of(content_of(response, "response", number, builder));
    }
    builder.push(&call);
}

fn headers_of<'a>(message: &Value<'a>) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let pairs = message.field("headers").map(Value::items).unwrap_or_default().iter();
    let pair = |pair: &Value<'a>| match pair.items() {
        [name, value] => Some((name.text()?, value.text()?)),
        _ => None,
    };
    pairs.filter_map(pair).collect()
}

/// Body of a message, decompressed.
fn content_of<'a>(message: &Value<'a>, which: &str, number: u64, builder: &mut TraceBuilder) -> Cow<'a, str> {
    let Some(content) = message.field("content").and_then(Value::bytes) else { return Cow::default() };
    let headers = headers_of(message);
    let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let (text, problem) = decode(encoding.map(|(_, value)| &**value).unwrap_or_default(), content);
    if let Some(problem) = problem {
        builder.push_problem(number, format!("{which}: {problem}"));
    }
    text
}
