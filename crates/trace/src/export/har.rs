//! HTTP archives (HAR 1.2). What HAR has no field for is in fields that begin with `_`, as the
//! format allows; the importer reads them back.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};

use jiff::Timestamp;
use quipu_message::sse;
use serde::Serialize;

use crate::builder::{AGENT_HEADER, PARENT_AGENT_HEADER, SESSION_HEADER};
use crate::call::{Call, CallEnd};
use crate::capture::DEFAULT_UPSTREAM;
use crate::credentials::{exchanges_credentials, is_credential_header};
use crate::raw_call::{RawCall, RawResponse};
use crate::trace::Trace;

/// Headers that describe the encoding of a body, which is written decoded.
const ENCODING_HEADERS: [&str; 3] = ["content-encoding", "content-length", "transfer-encoding"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    started_date_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    request: Request<'a>,
    response: Response<'a>,
    cache: Empty,
    timings: Timings,
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(rename = "_end")]
    end: CallEnd,
    #[serde(rename = "_error", skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(rename = "_querySource", skip_serializing_if = "Option::is_none")]
    query_source: Option<&'a str>,
    #[serde(rename = "_reconstructed")]
    is_reconstructed: bool,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    method: &'a str,
    url: String,
    http_version: &'static str,
    cookies: [(); 0],
    headers: Vec<Header>,
    query_string: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    post_data: Option<PostData<'a>>,
    headers_size: i64,
    body_size: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PostData<'a> {
    mime_type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    /// 0 if no response arrived, or the status is not known.
    status: u16,
    status_text: &'static str,
    http_version: &'static str,
    cookies: [(); 0],
    headers: Vec<Header>,
    content: Content<'a>,
    #[serde(rename = "redirectURL")]
    redirect_url: &'static str,
    headers_size: i64,
    body_size: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    size: usize,
    mime_type: &'static str,
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct Header {
    name: String,
    value: String,
}

/// Milliseconds of each phase; -1 if it is not known.
#[derive(Serialize)]
struct Timings {
    send: f64,
    wait: f64,
    receive: f64,
}

/// Writes the calls of a trace as an HTTP archive. `raw` are the same calls as they were read.
///
/// Headers that hold a credential are written as a hash, and bodies of paths that exchange
/// credentials are left out. Everything else is written, texts of prompts and answers included.
pub fn write_har(trace: &Trace, raw: &[RawCall<'_>], mut out: impl Write) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    write!(
        out,
        r#"{{"log":{{"version":"1.2","creator":{{"name":"quipu","version":"{version}"}},"pages":[],"entries":["#
    )?;
    let hasher = RandomState::new();
    for (i, (call, raw)) in trace.calls.iter().zip(raw).enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut out, &entry(call, raw, &hasher))?;
    }
    out.write_all(b"\n]}}\n")?;
    out.flush()
}

fn entry<'a>(call: &'a Call, raw: &'a RawCall<'_>, hasher: &RandomState) -> Entry<'a> {
    let has_secret_body = exchanges_credentials(&raw.url);
    let body = if has_secret_body { "" } else { &*raw.request_body };
    let (mime_type, text) = if has_secret_body { ("", Cow::Borrowed("")) } else { response_text(&raw.response) };
    let total = milliseconds(raw.started_at, raw.ended_at);
    let wait = milliseconds(raw.started_at, raw.first_event_at);
    Entry {
        started_date_time: raw.started_at.map(|time| time.to_string()),
        time: total,
        request: Request {
            method: if raw.method.is_empty() { "POST" } else { &raw.method },
            // Some sources record only the path.
            url: if raw.url.contains("://") { raw.url.to_string() } else { format!("{DEFAULT_UPSTREAM}{}", raw.url) },
            http_version: "HTTP/1.1",
            cookies: [],
            headers: request_headers(call, raw, hasher),
            query_string: [],
            headers_size: -1,
            body_size: body.len(),
            post_data: (!body.is_empty()).then_some(PostData { mime_type: "application/json", text: body }),
        },
        response: Response {
            status: raw.status.unwrap_or_default(),
            status_text: "",
            http_version: "HTTP/1.1",
            cookies: [],
            headers: headers(&raw.response_headers, hasher),
            redirect_url: "",
            headers_size: -1,
            body_size: text.len(),
            content: Content { size: text.len(), mime_type, text },
        },
        cache: Empty {},
        timings: Timings {
            send: 0.0,
            wait: wait.unwrap_or(-1.0),
            receive: total.map_or(-1.0, |total| total - wait.unwrap_or_default()),
        },
        id: &call.id,
        end: call.response.end,
        error: call.response.error.as_deref(),
        query_source: call.query_source.as_deref(),
        is_reconstructed: call.is_reconstructed,
    }
}

/// Headers as recorded, and those that name session and agent if the source records them elsewhere.
fn request_headers(call: &Call, raw: &RawCall<'_>, hasher: &RandomState) -> Vec<Header> {
    let mut headers = headers(&raw.headers, hasher);
    let identity = &call.identity;
    for (name, value) in [
        (SESSION_HEADER, &identity.session_id),
        (AGENT_HEADER, &identity.agent_id),
        (PARENT_AGENT_HEADER, &identity.parent_agent_id),
    ] {
        if let Some(value) = value
            && !headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
        {
            headers.push(Header { name: name.to_owned(), value: value.clone() });
        }
    }
    headers
}

fn headers(headers: &[(Cow<'_, str>, Cow<'_, str>)], hasher: &RandomState) -> Vec<Header> {
    let is_written = |name: &str| !ENCODING_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let headers = headers.iter().filter(|(name, value)| is_written(name) && !value.is_empty());
    let value_of = |name: &str, value: &str| {
        if !is_credential_header(name) {
            return value.to_owned();
        }
        let mut hasher = hasher.build_hasher();
        hasher.write(value.as_bytes());
        format!("hash:{:016x}", hasher.finish())
    };
    headers.map(|(name, value)| Header { name: name.to_string(), value: value_of(name, value) }).collect()
}

/// Type and text of a response body.
fn response_text<'a>(response: &'a RawResponse<'_>) -> (&'static str, Cow<'a, str>) {
    const JSON: &str = "application/json";
    const STREAM: &str = "text/event-stream";
    match response {
        RawResponse::None => ("", Cow::Borrowed("")),
        RawResponse::Json(body) => (JSON, Cow::Borrowed(body)),
        RawResponse::Message(message) => (JSON, serde_json::to_string(message).unwrap_or_default().into()),
        RawResponse::Sse(text) => (STREAM, Cow::Borrowed(text)),
        RawResponse::Events(events) => {
            let mut text = String::new();
            for data in events {
                sse::write_event(&sse::Event { data: data.to_string(), ..sse::Event::default() }, &mut text);
            }
            (STREAM, text.into())
        }
    }
}

fn milliseconds(start: Option<Timestamp>, end: Option<Timestamp>) -> Option<f64> {
    Some(end?.duration_since(start?).as_secs_f64() * 1e3)
}
