//! HTTP archives (HAR 1.2), as browsers and proxies export them.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_conversation::parse_timestamp;
use quipu_message::line::replace_lone_surrogates;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{Headers, response_of, time_after};
use crate::builder::TraceBuilder;
use crate::call::CallEnd;
use crate::raw_call::RawCall;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    started_date_time: Cow<'a, str>,
    /// Milliseconds from the start to the end of the response.
    time: Option<f64>,
    #[serde(default)]
    timings: Timings,
    #[serde(borrow)]
    request: Request<'a>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    /// This and the following fields are written by `quipu trace export`.
    #[serde(borrow, default, rename = "_id")]
    id: Cow<'a, str>,
    #[serde(default, rename = "_end")]
    end: Option<CallEnd>,
    #[serde(default, rename = "_error")]
    error: Option<String>,
    #[serde(default, rename = "_querySource")]
    query_source: Option<String>,
    #[serde(default, rename = "_reconstructed")]
    is_reconstructed: bool,
}

/// Milliseconds of each phase; negative if it did not occur.
#[derive(Default, Deserialize)]
struct Timings {
    blocked: Option<f64>,
    dns: Option<f64>,
    /// Includes the time for TLS.
    connect: Option<f64>,
    send: Option<f64>,
    wait: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    post_data: Option<PostData<'a>>,
}

#[derive(Deserialize)]
struct PostData<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Response<'a> {
    /// 0 if no response arrived, or the status is not known.
    #[serde(default)]
    status: u16,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    /// `base64` if the text is encoded.
    #[serde(borrow, default)]
    encoding: Option<Cow<'a, str>>,
}

/// Imports the entries, one of them in memory at a time.
pub(super) fn import(input: impl Read, builder: &mut TraceBuilder) -> io::Result<()> {
    let mut input = serde_json::Deserializer::from_reader(BufReader::new(input));
    let mut number = 0;
    let read = Walk { level: Level::Document, builder, number: &mut number }.deserialize(&mut input);
    match read {
        Err(error) if error.is_io() => Err(error.into()),
        Err(error) => {
            builder.push_problem(number, error.to_string());
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Where in the document the reader is.
#[derive(Clone, Copy)]
enum Level {
    Document,
    Log,
    Entries,
}

/// Walks to `log.entries` and imports each entry.
struct Walk<'b> {
    level: Level,
    builder: &'b mut TraceBuilder,
    /// Number of entries read so far.
    number: &'b mut u64,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.level {
            Level::Entries => deserializer.deserialize_seq(self),
            Level::Document | Level::Log => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an HTTP archive with log.entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let level = match (self.level, key.as_str()) {
                (Level::Document, "log") => Level::Log,
                (Level::Log, "entries") => Level::Entries,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(Walk { level, builder: &mut *self.builder, number: &mut *self.number })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Box<RawValue>>()? {
            *self.number += 1;
            let text = replace_lone_surrogates(entry.get());
            if let Err(error) = import_entry(&text, *self.number, self.builder) {
                self.builder.push_problem(*self.number, error.to_string());
            }
        }
        Ok(())
    }
}

fn import_entry(text: &str, number: u64, builder: &mut TraceBuilder) -> Result<(), serde_json::Error> {
    let entry: Entry<'_> = serde_json::from_str(text)?;
    let started_at = parse_timestamp(&entry.started_date_time);
    let Timings { blocked, dns, connect, send, wait } = entry.timings;
    let before_response = [blocked, dns, connect, send, wait].into_iter().flatten().filter(|phase| *phase > 0.0).sum();
    let mut call = RawCall {
        started_at,
        first_event_at: wait.filter(|wait| *wait >= 0.0).and_then(|_| time_after(started_at, Some(before_response))),
        ended_at: time_after(started_at, entry.time),
        method: entry.request.method,
        url: entry.request.url,
        headers: entry.request.headers.0,
        request_body: entry.request.post_data.map(|data| data.text).unwrap_or_default(),
        end: entry.end.unwrap_or(CallEnd::Failed),
        error: entry.error,
        query_source: entry.query_source,
        is_reconstructed: entry.is_reconstructed,
        source_id: entry.id,
        line: number,
        ..RawCall::default()
    };
    let arrived = |response: &Response<'_>| {
        response.status > 0 || response.content.as_ref().is_some_and(|content| !content.text.is_empty())
    };
    if let Some(response) = entry.response.filter(arrived) {
        call.end = entry.end.unwrap_or_default();
        call.status = Some(response.status).filter(|status| *status > 0);
        call.response_headers = response.headers.0;
        call.response = response.content.map(|content| response_of(content_text(content))).unwrap_or_default();
    }
    builder.push(&call);
    Ok(())
}

fn content_text(content: Content<'_>) -> Cow<'_, str> {
    if content.encoding.as_deref() != Some("base64") {
        return content.text;
    }
    let bytes = STANDARD.decode(content.text.as_bytes()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned().into()
}
