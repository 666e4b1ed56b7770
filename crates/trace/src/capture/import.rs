//! Reads capture files into a trace.

use std::borrow::Cow;
use std::io::{self, Read};

use super::reader::{CaptureItem, CaptureReader, CapturedCall};
use crate::builder::TraceBuilder;
use crate::content_encoding::decode;
use crate::raw_call::{RawCall, RawResponse};

/// First bytes of every capture file.
pub(crate) const MAGIC: &[u8] = b"@capture 0 ";

impl TraceBuilder {
    /// Adds the calls of a capture file, in the order of their requests. What is damaged or
    /// missing becomes a problem of the trace.
    pub fn push_capture(&mut self, input: impl Read) -> io::Result<()> {
        let mut reader = CaptureReader::new(input);
        while let Some(item) = reader.next_item()? {
            match item {
                CaptureItem::Problem(problem) => self.push_problem(0, problem),
                CaptureItem::Call(call) => {
                    let (raw, problem) = raw_call(&call);
                    self.push(&raw);
                    if let Some(problem) = problem {
                        self.push_problem(0, format!("call {}: {problem}", call.number));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The call for the builder, and why one of its bodies cannot be read.
fn raw_call(call: &CapturedCall) -> (RawCall<'_>, Option<String>) {
    let borrowed = |headers: &'_ [(String, String)]| -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        headers.iter().map(|(name, value)| (Cow::Owned(name.clone()), Cow::Owned(value.clone()))).collect()
    };
    let response_head = call.response.as_ref();
    let header = |name: &str| response_head.and_then(|head| head.header(name)).unwrap_or_default();
    let (body, problem) = decode(header("content-encoding"), &call.response_body);
    let request_encoding = call.request.header("content-encoding").unwrap_or_default();
    let (request_body, request_problem) = decode(request_encoding, call.request_body.as_deref().unwrap_or_default());
    let problem = problem.or(request_problem);
    let is_stream = header("content-type").contains("text/event-stream");
    let response = match body {
        _ if response_head.is_none() => RawResponse::None,
        body if is_stream => RawResponse::Sse(body),
        body => RawResponse::Json(body),
    };
    let raw = RawCall {
        started_at: call.started_at,
        first_event_at: call.first_frame_at,
        ended_at: call.ended_at,
        method: call.request.word(0).into(),
        url: call.request.word(1).into(),
        headers: borrowed(&call.request.headers),
        response_headers: response_head.map(|head| borrowed(&head.headers)).unwrap_or_default(),
        request_body,
        status: response_head.and_then(|head| head.word(1).parse().ok()),
        response,
        end: call.end,
        source_id: format!("call-{}", call.number).into(),
        ..RawCall::default()
    };
    (raw, problem)
}
