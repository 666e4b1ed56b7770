//! Reads capture files into a trace.

use std::borrow::Cow;
use std::io::{self, Read};

use super::reader::{CaptureItem, CaptureReader, CapturedCall};
use crate::builder::TraceBuilder;
use crate::raw_call::{RawCall, RawResponse};

/// First bytes of every capture file.
pub(crate) const MAGIC: &[u8] = b"@capture 0 ";

/// Longest body that is decompressed.
const MAX_DECODED_BYTES: u64 = 256 << 20;

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

/// The call for the builder, and why its response body cannot be read.
fn raw_call(call: &CapturedCall) -> (RawCall<'_>, Option<String>) {
    let borrowed = |headers: &'_ [(String, String)]| -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        headers.iter().map(|(name, value)| (Cow::Owned(name.clone()), Cow::Owned(value.clone()))).collect()
    };
    let response_head = call.response.as_ref();
    let header = |name: &str| response_head.and_then(|head| head.header(name)).unwrap_or_default();
    let (body, problem) = decode(header("content-encoding"), &call.response_body);
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
        request_body: String::from_utf8_lossy(call.request_body.as_deref().unwrap_or_default()),
        status: response_head.and_then(|head| head.word(1).parse().ok()),
        response,
        end: call.end,
        source_id: format!("call-{}", call.number).into(),
        ..RawCall::default()
    };
    (raw, problem)
}

/// The text of a body, and why it is missing or incomplete.
fn decode<'a>(encoding: &str, body: &'a [u8]) -> (Cow<'a, str>, Option<String>) {
    let mut decoded = Vec::new();
    let read = match encoding {
        "" | "identity" => return (String::from_utf8_lossy(body), None),
        "gzip" | "x-gzip" => flate2::read::MultiGzDecoder::new(body).take(MAX_DECODED_BYTES).read_to_end(&mut decoded),
        "deflate" => flate2::read::ZlibDecoder::new(body).take(MAX_DECODED_BYTES).read_to_end(&mut decoded),
        other => {
            return (Cow::Borrowed(""), Some(format!("the response is compressed with `{other}`, which is not read")));
        }
    };
    // A stream that broke off is read as far as it came.
    let problem = read.err().map(|error| format!("cannot decompress the response: {error}"));
    (String::from_utf8_lossy(&decoded).into_owned().into(), problem)
}
