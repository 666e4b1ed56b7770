//! The second reading tier: what does the line say? Borrowed from the line, with
//! the line kept beside it; for counting, searching and reading along.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::{Scalar, Str, TimeStr};

/// Reads a value of another type than expected as none: the same key may hold words
/// on one type of line and a message on another, and what one line says of its cost
/// must not hide what it says of its tokens.
pub(crate) trait Lenient<'de>: Sized {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error>;
}

/// Plain values come through [`Scalar`].
macro_rules! lenient_scalar {
    ($( $ty:ty: $pattern:pat => $value:expr ),+ $(,)?) => { $(
        impl<'de> Lenient<'de> for $ty {
            fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                Ok(match map.next_value()? {
                    $pattern => Some($value),
                    _ => None,
                })
            }
        }
    )+ };
}

lenient_scalar! {
    Str<'de>: Scalar::Text(text) => text,
    bool: Scalar::Bool(value) => value,
    u64: Scalar::Unsigned(count) => count,
}

impl<'de> Lenient<'de> for f64 {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        Ok(match map.next_value()? {
            Scalar::Float(number) => Some(number),
            Scalar::Unsigned(count) => Some(count as f64),
            _ => None,
        })
    }
}

impl<'de> Lenient<'de> for TimeStr<'de> {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        Ok(match map.next_value()? {
            Scalar::Text(text) => Some(Self(text)),
            Scalar::Unsigned(count) => Some(Self(Str(count.to_string().into()))),
            _ => None,
        })
    }
}

impl<'de> Lenient<'de> for &'de RawValue {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value()
    }
}

/// Looks a key up without keeping it.
pub(crate) struct KeyVisitor<F>(pub(crate) F);

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for KeyVisitor<F> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<T, E> {
        Ok(self.0(key))
    }
}

/// Declares a borrowed struct in which every field is optional, the last of
/// duplicate keys wins, `null` and values of another type are none, and other keys
/// are passed over.
macro_rules! borrowed {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(<$lt:lifetime>)? {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ty $(= $key:literal)? $(| $alt:literal)* ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        pub struct $name $(<$lt>)? {
            $( $(#[$fmeta])* pub $field: Option<$ty>, )*
        }

        impl<'de $(: $lt, $lt)?> serde::Deserialize<'de> for $name $(<$lt>)? {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types, reason = "a key for each field")]
                enum Key { $($field,)* Other }
                impl<'de> serde::Deserialize<'de> for Key {
                    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                        d.deserialize_identifier($crate::view::KeyVisitor(|key: &str| match key {
                            $( $crate::macros::key!($field $($key)?) $(| $alt)* => Self::$field, )*
                            _ => Self::Other,
                        }))
                    }
                }

                // Filled in place: a struct this wide is dear to move.
                struct Fields<'x, T>(&'x mut T);
                impl<'de $(: $lt, $lt)?> serde::de::Visitor<'de> for Fields<'_, $name $(<$lt>)?> {
                    type Value = ();
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_str<E>(self, _: &str) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_unit<E>(self) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
                        Ok(())
                    }
                    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
                        while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                        Ok(())
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                        while let Some(key) = map.next_key()? {
                            match key {
                                $( Key::$field => self.0.$field = $crate::view::Lenient::read_next(&mut map)?, )*
                                Key::Other => { map.next_value::<serde::de::IgnoredAny>()?; }
                            }
                        }
                        Ok(())
                    }
                }
                let mut out = Self::default();
                d.deserialize_any(Fields(&mut out))?;
                Ok(out)
            }
        }

        impl<'de $(: $lt, $lt)?> $crate::view::Lenient<'de> for $name $(<$lt>)? {
            fn read_next<A: serde::de::MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                map.next_value()
            }
        }
    };
}
pub(crate) use borrowed;

borrowed! {
    /// What a line says, borrowed from it. Files and stream alike.
    ///
    /// Read it from [`mend`](crate::line::replace_lone_surrogates)ed text.
    pub struct View<'a> {
        /// The type.
        kind: Str<'a> = "type",
        /// The subtype.
        subtype: Str<'a>,
        /// The line's id.
        uuid: Str<'a>,
        /// The line before it.
        parent_uuid: Str<'a> = "parentUuid",
        /// The line before it where a compaction begins a new tree.
        logical_parent_uuid: Str<'a> = "logicalParentUuid",
        /// The session.
        session_id: Str<'a> = "sessionId" | "session_id",
        /// When.
        timestamp: TimeStr<'a>,
        /// The subagent.
        agent_id: Str<'a> = "agentId" | "agent_id",
        /// The tool call whose subagent said it.
        parent_tool_use_id: Str<'a> | "parentToolUseID",
        /// Type of the subagent that said it, such as `Explore`.
        attribution_agent: Str<'a> = "attributionAgent",
        /// The call of the API.
        request_id: Str<'a> = "requestId" | "request_id",
        /// The working directory.
        cwd: Str<'a>,
        /// The program's version.
        version: Str<'a>,
        /// The git branch.
        git_branch: Str<'a> = "gitBranch",
        /// Whether a subagent said it.
        is_sidechain: bool = "isSidechain",
        /// Whether it is hidden from the user.
        is_meta: bool = "isMeta",
        /// Whether it sums up what was compacted.
        is_compact_summary: bool = "isCompactSummary",
        /// Whether it reports a failed call.
        is_api_error: bool = "isApiErrorMessage" | "is_api_error_message",
        /// Whether it echoes what was sent.
        is_replay: bool = "isReplay",
        /// Whether the program made it up.
        is_synthetic: bool = "isSynthetic",
        /// Whether it is there for the screen alone.
        is_virtual: bool = "isVirtual",
        /// The message.
        message: MessageView<'a>,
        /// Usage beside the message.
        usage: UsageView,
        /// What the call cost, in old files.
        cost_usd: f64 = "costUSD" | "cost",
        /// What the session has cost so far, on `result` lines.
        total_cost_usd: f64,
        /// Words of a `system` or `queue-operation` line.
        content: &'a RawValue,
        /// The last line of what a `summary` line sums up.
        leaf_uuid: Str<'a> = "leafUuid",
        /// The session it was copied from, when it has an id of its own there.
        forked_from: ForkView<'a> = "forkedFrom",
        /// A title the user gave.
        custom_title: Str<'a> = "customTitle",
        /// A title the model made up.
        ai_title: Str<'a> = "aiTitle",
        /// Words of a `summary` line.
        summary: Str<'a>,
        /// What the tool gave, in its own form.
        tool_use_result: &'a RawValue = "toolUseResult" | "tool_use_result",
        /// What a `progress` line reports.
        data: ProgressView<'a>,
    }
}

borrowed! {
    /// What a `progress` line reports.
    pub struct ProgressView<'a> {
        /// The type of progress, such as `agent_progress`.
        kind: Str<'a> = "type",
        /// The entry of the subagent that an `agent_progress` repeats.
        message: &'a RawValue,
        /// The subagent.
        agent_id: Str<'a> = "agentId",
    }
}

impl<'a> ProgressView<'a> {
    /// The entry of a subagent that the line repeats; `None` for other progress.
    pub fn repeated_entry(&self) -> Option<View<'a>> {
        let message = self.message.filter(|_| self.kind.as_deref() == Some("agent_progress"))?;
        serde_json::from_str(message.get()).ok()
    }
}

borrowed! {
    /// What the tool result of an agent call says of its subagent.
    pub struct AgentResultView<'a> {
        /// The subagent.
        agent_id: Str<'a> = "agentId",
        /// Its type.
        agent_type: Str<'a> = "agentType",
    }
}

borrowed! {
    /// What an agent call asks for.
    pub struct AgentInputView<'a> {
        /// The type of subagent.
        subagent_type: Str<'a>,
    }
}

impl<'a> AgentInputView<'a> {
    /// Reads the `input` of an agent call.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

impl<'a> AgentResultView<'a> {
    /// Reads a `toolUseResult`.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

borrowed! {
    /// What a line of a fork is a copy of.
    pub struct ForkView<'a> {
        /// The session.
        session_id: Str<'a> = "sessionId",
    }
}

impl<'a> View<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Whether the model answers in it.
    pub fn is_assistant(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
    }
}

borrowed! {
    /// The message of a line.
    pub struct MessageView<'a> {
        /// The API's id.
        id: Str<'a>,
        /// `user` or `assistant`.
        role: Str<'a>,
        /// The model.
        model: Str<'a>,
        /// Why the model stopped.
        stop_reason: Str<'a>,
        /// What the call used.
        usage: UsageView,
        /// What is said.
        content: ContentView<'a>,
    }
}

/// Content: a string or a list of blocks.
#[derive(Debug, Clone)]
pub enum ContentView<'a> {
    /// Plain text.
    Text(Str<'a>),
    /// Blocks.
    Blocks(Vec<BlockView<'a>>),
}

impl ContentView<'_> {
    /// The blocks; empty if the content is plain text.
    pub fn blocks(&self) -> &[BlockView<'_>] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl<'de: 'a, 'a> Lenient<'de> for ContentView<'a> {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value()
    }
}

impl<'de> Lenient<'de> for UsageView {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentView<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ContentViewVisitor;
        impl<'de> Visitor<'de> for ContentViewVisitor {
            type Value = ContentView<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ContentView::Text(Str(text.into())))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ContentView::Text(Str(text.to_owned().into())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(ContentView::Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(ContentView::Blocks(Vec::new()))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(ContentView::Blocks(Vec::new()))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(ContentView::Blocks(Vec::new()))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(ContentView::Blocks(Vec::new()))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(ContentView::Blocks(Vec::new()))
            }
        }
        d.deserialize_any(ContentViewVisitor)
    }
}

borrowed! {
    /// One block, flat: which fields are there depends on its type.
    pub struct BlockView<'a> {
        /// The type.
        kind: Str<'a> = "type",
        /// Words, or reasoning.
        text: Str<'a> | "thinking",
        /// The id of a tool call.
        id: Str<'a>,
        /// The tool called.
        name: Str<'a>,
        /// What the tool is called with.
        input: &'a RawValue,
        /// The call a result answers.
        tool_use_id: Str<'a>,
        /// What a result says.
        content: &'a RawValue,
        /// Whether the tool failed.
        is_error: bool,
    }
}

/// What a call used, counts only.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageView {
    /// Uncached prompt tokens.
    pub input: u64,
    /// Tokens the model wrote.
    pub output: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Of those, kept five minutes.
    pub cache_write_5m: u64,
    /// Of those, kept one hour.
    pub cache_write_1h: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Number of web searches.
    pub web_searches: u64,
    /// `fast`, when the call ran at that speed.
    pub speed: Option<Box<str>>,
    /// Where the model ran.
    pub inference_geo: Option<Box<str>>,
}

impl<'de> Deserialize<'de> for UsageView {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let fields = UsageFields::deserialize(d)?;
        let split = fields.cache_creation.unwrap_or_default();
        Ok(Self {
            input: fields.input_tokens.unwrap_or_default(),
            output: fields.output_tokens.unwrap_or_default(),
            cache_write: fields.cache_creation_input_tokens.unwrap_or_default(),
            cache_write_5m: split.five_minutes.unwrap_or_default(),
            cache_write_1h: split.one_hour.unwrap_or_default(),
            cache_read: fields.cache_read_input_tokens.unwrap_or_default(),
            web_searches: fields.server_tool_use.and_then(|s| s.web_search_requests).unwrap_or_default(),
            speed: fields.speed.filter(|s| !s.is_empty() && **s != *"standard").map(|s| (*s).into()),
            inference_geo: fields.inference_geo.filter(|s| !s.is_empty()).map(|s| (*s).into()),
        })
    }
}

borrowed! {
    /// The least of a line that money depends on; what is said is passed over.
    pub struct UsageLineView<'a> {
        /// The type.
        kind: Str<'a> = "type",
        /// The line's id.
        uuid: Str<'a>,
        /// When.
        timestamp: TimeStr<'a>,
        /// The call of the API.
        request_id: Str<'a> = "requestId" | "request_id",
        /// The message without what it says.
        message: UsageMessageView<'a>,
        /// Usage beside the message.
        usage: UsageView,
        /// What the call cost, in old files.
        cost_usd: f64 = "costUSD" | "cost",
        /// What a `progress` line reports.
        data: UsageProgressView<'a>,
    }
}

borrowed! {
    /// The least of a `progress` line that money depends on.
    pub struct UsageProgressView<'a> {
        /// The type of progress.
        kind: Str<'a> = "type",
        /// The entry of the subagent that an `agent_progress` repeats.
        message: &'a RawValue,
    }
}

/// Bytes that a line must hold for what it says to cost anything, for those who
/// look before they read.
pub const COST_MARKERS: [&str; 2] = ["\"usage\"", "\"cost"];
/// Bytes that a line with a tool's result holds.
pub const TOOL_RESULT_MARKER: &str = "\"tool_result\"";

impl<'a> UsageLineView<'a> {
    /// Reads a line. It need not be [`mend`](crate::line::replace_lone_surrogates)ed, nor UTF-8 where it
    /// is passed over: only its ids and its usage are looked at.
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        match std::str::from_utf8(bytes) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(bytes),
        }
    }

    /// Whether the model answers in it.
    pub fn is_assistant(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
    }

    /// The answer of a subagent that a `progress` line repeats.
    pub fn repeated_assistant_line(&self) -> Option<UsageLineView<'a>> {
        let data = self.data.as_ref().filter(|data| data.kind.as_deref() == Some("agent_progress"))?;
        let line: UsageLineView<'a> = serde_json::from_str(data.message?.get()).ok()?;
        line.is_assistant().then_some(line)
    }
}

borrowed! {
    /// A message without what it says.
    pub struct UsageMessageView<'a> {
        /// The API's id.
        id: Str<'a>,
        /// The model.
        model: Str<'a>,
        /// What the call used.
        usage: UsageView,
    }
}

borrowed! {
    /// The fields of usage that money depends on.
    pub struct UsageFields<'a> {
        /// Uncached prompt tokens.
        input_tokens: u64,
        /// Tokens the model wrote.
        output_tokens: u64,
        /// Prompt tokens written to the cache.
        cache_creation_input_tokens: u64,
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: u64,
        /// The writes by lifetime.
        cache_creation: CacheCreationFields,
        /// Requests of server tools.
        server_tool_use: ServerToolUseFields,
        /// The speed.
        speed: Str<'a>,
        /// The place.
        inference_geo: Str<'a>,
    }
}

borrowed! {
    /// Cache writes by lifetime.
    pub struct CacheCreationFields {
        /// Kept five minutes.
        five_minutes: u64 = "ephemeral_5m_input_tokens",
        /// Kept one hour.
        one_hour: u64 = "ephemeral_1h_input_tokens",
    }
}

borrowed! {
    /// Requests of server tools.
    pub struct ServerToolUseFields {
        /// Number of web searches.
        web_search_requests: u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_hides_nothing_else() {
        let text = r#"{"type":"assistant","cost":{"usd":1},"isMeta":"yes","timestamp":[7],"summary":[1],
            "message":{"id":"m","content":{"odd":1},"usage":{"input_tokens":5,"output_tokens":-1,"speed":null}}}"#;
        let view = View::read(text).unwrap();
        let message = view.message.unwrap();
        assert_eq!((view.cost_usd, view.is_meta, view.timestamp, view.summary), (None, None, None, None));
        assert_eq!((message.id.as_deref(), message.usage.unwrap().input), (Some("m"), 5));
        for content in ["5", "-5", "0.5", "true", "null", "[null,7]"] {
            let text = format!(r#"{{"message":{{"content":{content},"id":"m"}}}}"#);
            assert_eq!(View::read(&text).unwrap().message.unwrap().id.as_deref(), Some("m"), "{content}");
        }
    }

    #[test]
    fn a_time_may_be_a_number() {
        let view = View::read(r#"{"type":"user","timestamp":1731600000000}"#).unwrap();
        assert_eq!(view.timestamp.as_deref(), Some("1731600000000"));
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let view = View::read(r#"{"type":"user","uuid":"a\n"}"#).unwrap();
        assert!(matches!(view.kind, Some(Str(std::borrow::Cow::Borrowed("user")))));
        assert!(matches!(view.uuid, Some(Str(std::borrow::Cow::Owned(_)))));
    }
}
