//! Fields that several capture formats have: headers, bodies, events and times.

use std::borrow::Cow;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::raw_call::RawResponse;

/// Headers in any of the forms that tools write: an object, a list of pairs, or a list of
/// objects with name and value.
#[derive(Debug, Default)]
pub(super) struct Headers(pub(super) Vec<(Cow<'static, str>, Cow<'static, str>)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeadersVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("headers as an object or a list")
    }

    fn visit_unit<E>(self) -> Result<Headers, E> {
        Ok(Headers::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut headers = Headers::default();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            headers.add(name, value);
        }
        Ok(headers)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
        let mut headers = Headers::default();
        while let Some(mut header) = list.next_element::<Value>()? {
            let (name, value) = match &mut header {
                Value::Array(pair) if pair.len() == 2 => (pair[0].take(), pair[1].take()),
                other => (other["name"].take(), other["value"].take()),
            };
            if let Value::String(name) = name {
                headers.add(name, value);
            }
        }
        Ok(headers)
    }
}

impl Headers {
    /// Adds a header; several values are joined by commas, as HTTP allows.
    fn add(&mut self, name: String, value: Value) {
        let value = match value {
            Value::String(text) => text,
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            Value::Null => return,
            other => other.to_string(),
        };
        self.0.push((name.into(), value.into()));
    }
}

/// Body of a request or response as text. Tools record JSON bodies as JSON or as a string.
pub(super) fn body_text(body: Option<&RawValue>) -> Cow<'_, str> {
    match body.map(RawValue::get) {
        None => Cow::Borrowed(""),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map_or(Cow::Borrowed(text), Cow::Owned),
        Some(text) => Cow::Borrowed(text),
    }
}

/// A response body as a message, an error or the text of a stream, by its first characters.
pub(super) fn response_of(text: Cow<'_, str>) -> RawResponse<'_> {
    let start = text.trim_start();
    if start.is_empty() {
        RawResponse::None
    } else if ["event:", "data:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field)) {
        RawResponse::Sse(text)
    } else {
        RawResponse::Json(text)
    }
}

/// Events of a stream. An element is an event, or an object that has the event as `data`,
/// as JSON or as a string.
pub(super) fn events_of<'a>(events: &[&'a RawValue]) -> RawResponse<'a> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let data = |event: &&'a RawValue| match serde_json::from_str::<Wrapped<'a>>(event.get()) {
        Ok(Wrapped { data: Some(data) }) => body_text(Some(data)),
        _ => body_text(Some(event)),
    };
    RawResponse::Events(events.iter().map(data).collect())
}

/// A time in seconds since 1970. `None` if it is out of range.
pub(super) fn time_from_seconds(seconds: f64) -> Option<Timestamp> {
    let microseconds = (seconds * 1e6).round();
    // Conversion from a float saturates, and the range of timestamps is smaller.
    Timestamp::from_microsecond(microseconds as i64).ok().filter(|_| microseconds.is_finite())
}

/// A time some milliseconds after another; before it if negative.
pub(super) fn time_after(time: Option<Timestamp>, milliseconds: Option<f64>) -> Option<Timestamp> {
    let nanoseconds = milliseconds.filter(|value| value.is_finite())? * 1e6;
    time?.checked_add(SignedDuration::from_nanos(nanoseconds as i64)).ok()
}
