//! What the cost of a line depends on.

use serde::de::{Deserialize, Deserializer, MapAccess};
use serde_json::value::RawValue;

use super::Lenient;
use super::fast_read::{FastRead, JsonCursor, fast_borrowed, fast_read_line};
use crate::text::{Str, TimeStr};

/// Usage of an API call: token counts, web searches and what else the price depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageView {
    /// Uncached prompt tokens.
    pub input: u64,
    /// Number of output tokens.
    pub output: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Of those, written with a lifetime of five minutes.
    pub cache_write_5m: u64,
    /// Of those, written with a lifetime of one hour.
    pub cache_write_1h: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Number of web searches.
    pub web_searches: u64,
    /// Speed, such as `fast`; `None` for the standard speed.
    pub speed: Option<Box<str>>,
    /// Region in which the model ran.
    pub inference_geo: Option<Box<str>>,
}

impl From<UsageFields<'_>> for UsageView {
    fn from(fields: UsageFields<'_>) -> Self {
        let split = fields.cache_creation.unwrap_or_default();
        Self {
            input: fields.input_tokens.unwrap_or_default(),
            output: fields.output_tokens.unwrap_or_default(),
            cache_write: fields.cache_creation_input_tokens.unwrap_or_default(),
            cache_write_5m: split.five_minutes.unwrap_or_default(),
            cache_write_1h: split.one_hour.unwrap_or_default(),
            cache_read: fields.cache_read_input_tokens.unwrap_or_default(),
            web_searches: fields.server_tool_use.and_then(|s| s.web_search_requests).unwrap_or_default(),
            speed: fields.speed.filter(|s| !s.is_empty() && **s != *"standard").map(|s| (*s).into()),
            inference_geo: fields.inference_geo.filter(|s| !s.is_empty()).map(|s| (*s).into()),
        }
    }
}

impl<'de> Deserialize<'de> for UsageView {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        UsageFields::deserialize(d).map(Self::from)
    }
}

impl<'a> FastRead<'a> for UsageView {
    fn fast_read(cursor: &mut JsonCursor<'a>, out: &mut Option<Self>) -> Option<()> {
        let mut fields = None;
        UsageFields::fast_read(cursor, &mut fields)?;
        *out = fields.map(Self::from);
        Some(())
    }
}

fast_borrowed! {
    /// The fields of a line that the cost depends on; message content is skipped.
    pub struct UsageLineView<'a> {
        /// Type of the line.
        kind: Str<'a> = "type",
        /// UUID of the line.
        uuid: Str<'a>,
        /// Time of writing.
        timestamp: TimeStr<'a>,
        /// Id of the API call.
        request_id: Str<'a> = "requestId" | "request_id",
        /// The message without its content.
        message: UsageMessageView<'a>,
        /// Usage outside the message.
        usage: UsageView,
        /// Cost of the API call in US dollars, in old files.
        cost_usd: f64 = "costUSD" | "cost",
        /// The report of a `progress` line.
        data: UsageProgressView<'a>,
    }
}

fast_borrowed! {
    /// The fields of a `progress` line that the cost depends on.
    pub struct UsageProgressView<'a> {
        /// The type of progress.
        kind: Str<'a> = "type",
        /// The subagent's entry that an `agent_progress` repeats.
        message: JsonText<'a>,
    }
}

/// A JSON value as written in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a>(pub &'a str);

impl<'de: 'a, 'a> Lenient<'de> for JsonText<'a> {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        Ok(map.next_value::<Option<&'de RawValue>>()?.map(|value| Self(value.get())))
    }
}

impl<'a> FastRead<'a> for JsonText<'a> {
    fn fast_read(cursor: &mut JsonCursor<'a>, out: &mut Option<Self>) -> Option<()> {
        *out = Some(Self(cursor.read_json_text()?));
        Some(())
    }
}

impl FastRead<'_> for f64 {
    /// Only old files have a cost.
    fn fast_read(_: &mut JsonCursor<'_>, _: &mut Option<Self>) -> Option<()> {
        None
    }
}

/// Texts of which a line with usage or cost contains at least one. Readers can skip other lines without
/// parsing them.
pub const COST_MARKERS: [&str; 2] = ["\"usage\"", "\"cost"];

impl<'a> UsageLineView<'a> {
    /// Reads a line. Only ids and usage are decoded, so lone surrogates and invalid UTF-8 in other fields are
    /// accepted.
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        fast_read_line(bytes).map_or_else(|| Self::read_with_serde(bytes), Ok)
    }

    pub(super) fn read_with_serde(bytes: &'a [u8]) -> serde_json::Result<Self> {
        match std::str::from_utf8(bytes) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(bytes),
        }
    }

    /// Whether it is a line of type `assistant`.
    pub fn is_assistant(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
    }

    /// The subagent's `assistant` line that a `progress` line repeats; `None` for other lines.
    pub fn repeated_assistant_line(&self) -> Option<UsageLineView<'a>> {
        let data = self.data.as_ref().filter(|data| data.kind.as_deref() == Some("agent_progress"))?;
        let line = UsageLineView::read(data.message?.0.as_bytes()).ok()?;
        line.is_assistant().then_some(line)
    }
}

fast_borrowed! {
    /// A message without its content.
    pub struct UsageMessageView<'a> {
        /// Id that the API gave the message.
        id: Str<'a>,
        /// Model that wrote the message.
        model: Str<'a>,
        /// Usage of the API call.
        usage: UsageView,
    }
}

fast_borrowed! {
    /// The fields of `usage` that the cost depends on.
    pub struct UsageFields<'a> {
        /// Uncached prompt tokens.
        input_tokens: u64,
        /// Output tokens.
        output_tokens: u64,
        /// Prompt tokens written to the cache.
        cache_creation_input_tokens: u64,
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: u64,
        /// Cache writes by lifetime.
        cache_creation: CacheCreationFields,
        /// Number of requests of server tools.
        server_tool_use: ServerToolUseFields,
        /// Speed, such as `fast` or `standard`.
        speed: Str<'a>,
        /// Region in which the model ran.
        inference_geo: Str<'a>,
    }
}

fast_borrowed! {
    /// Cache writes by lifetime.
    pub struct CacheCreationFields {
        /// Tokens written with a lifetime of five minutes.
        five_minutes: u64 = "ephemeral_5m_input_tokens",
        /// Tokens written with a lifetime of one hour.
        one_hour: u64 = "ephemeral_1h_input_tokens",
    }
}

fast_borrowed! {
    /// Number of requests of server tools.
    pub struct ServerToolUseFields {
        /// Number of web searches.
        web_search_requests: u64,
    }
}

impl<'de> Lenient<'de> for UsageView {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value()
    }
}
