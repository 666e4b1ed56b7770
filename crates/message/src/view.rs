//! The second reading tier: the content of a line, borrowed from it. For counting, searching and following.

mod fast_read;
mod usage;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use self::usage::{
    COST_MARKERS, CacheCreationFields, JsonText, ServerToolUseFields, UsageFields, UsageLineView, UsageMessageView,
    UsageProgressView, UsageView,
};
use crate::text::{Scalar, Str, TimeStr};

/// Reads a value, or `None` if it has another type than expected. The same key may be text on one type of
/// line and a message on another, and one unusual field must not make the whole line unreadable.
pub(crate) trait Lenient<'de>: Sized {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error>;
}

/// Scalar values are read through [`Scalar`].
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

/// Passes a key to a function without keeping it.
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

/// Declares a borrowed struct in which every field is optional. Of duplicate keys the last counts; `null` and
/// values of another type are `None`; other keys are skipped.
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

                // Filled in place, because moving a struct with this many fields is slow.
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
    /// The content of a line, borrowed from it; for files and stream.
    ///
    /// The text must have passed [`replace_lone_surrogates`](crate::line::replace_lone_surrogates).
    pub struct View<'a> {
        /// Type of the line.
        kind: Str<'a> = "type",
        /// Subtype of the line.
        subtype: Str<'a>,
        /// UUID of the line.
        uuid: Str<'a>,
        /// UUID of the parent entry.
        parent_uuid: Str<'a> = "parentUuid",
        /// UUID of the entry before a compaction boundary.
        logical_parent_uuid: Str<'a> = "logicalParentUuid",
        /// Id of the session.
        session_id: Str<'a> = "sessionId" | "session_id",
        /// Time of writing.
        timestamp: TimeStr<'a>,
        /// Id of the subagent that wrote the line.
        agent_id: Str<'a> = "agentId" | "agent_id",
        /// Id of the tool call that started the subagent of this line.
        parent_tool_use_id: Str<'a> | "parentToolUseID",
        /// Type of the subagent of this line, such as `Explore`.
        attribution_agent: Str<'a> = "attributionAgent",
        /// Id of the API call.
        request_id: Str<'a> = "requestId" | "request_id",
        /// Working directory.
        cwd: Str<'a>,
        /// Version of the agent that wrote the line.
        version: Str<'a>,
        /// Git branch of the working directory.
        git_branch: Str<'a> = "gitBranch",
        /// Whether the line belongs to a subagent's conversation.
        is_sidechain: bool = "isSidechain",
        /// Whether the line is hidden from the user.
        is_meta: bool = "isMeta",
        /// Whether the line is the summary of a compaction.
        is_compact_summary: bool = "isCompactSummary",
        /// Whether the line reports a failed API call.
        is_api_error: bool = "isApiErrorMessage" | "is_api_error_message",
        /// Whether the line repeats a prompt that the host sent.
        is_replay: bool = "isReplay",
        /// Whether the agent wrote the text instead of the user or the model.
        is_synthetic: bool = "isSynthetic",
        /// Whether the line is only for the screen.
        is_virtual: bool = "isVirtual",
        /// The message of a `user` or `assistant` line.
        message: MessageView<'a>,
        /// Usage outside the message.
        usage: UsageView,
        /// Cost of the API call in US dollars, in old files.
        cost_usd: f64 = "costUSD" | "cost",
        /// Cost of the session so far in US dollars, on `result` lines.
        total_cost_usd: f64,
        /// Text of a `system` or `queue-operation` line.
        content: &'a RawValue,
        /// UUID of the last entry that a `summary` line covers.
        leaf_uuid: Str<'a> = "leafUuid",
        /// The session from which a fork copied the line.
        forked_from: ForkView<'a> = "forkedFrom",
        /// Title from the user.
        custom_title: Str<'a> = "customTitle",
        /// Tag from the user, on `tag` lines.
        tag: Str<'a>,
        /// Title from the model.
        ai_title: Str<'a> = "aiTitle",
        /// Text of a `summary` line.
        summary: Str<'a>,
        /// Result of the tool in the tool's own form.
        tool_use_result: &'a RawValue = "toolUseResult" | "tool_use_result",
        /// The report of a `progress` line.
        data: ProgressView<'a>,
    }
}

borrowed! {
    /// The report of a `progress` line.
    pub struct ProgressView<'a> {
        /// Type of progress, such as `agent_progress`.
        kind: Str<'a> = "type",
        /// The subagent's entry that an `agent_progress` repeats.
        message: &'a RawValue,
        /// Id of the subagent.
        agent_id: Str<'a> = "agentId",
    }
}

impl<'a> ProgressView<'a> {
    /// The subagent's entry that the line repeats; `None` for other progress.
    pub fn repeated_entry(&self) -> Option<View<'a>> {
        let message = self.message.filter(|_| self.kind.as_deref() == Some("agent_progress"))?;
        serde_json::from_str(message.get()).ok()
    }
}

borrowed! {
    /// The subagent in the tool result of an agent call.
    pub struct AgentResultView<'a> {
        /// Id of the subagent.
        agent_id: Str<'a> = "agentId",
        /// Type of the subagent.
        agent_type: Str<'a> = "agentType",
    }
}

borrowed! {
    /// The input of an agent call.
    pub struct AgentInputView<'a> {
        /// Type of the subagent to start.
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
    /// Origin of a line in a fork.
    pub struct ForkView<'a> {
        /// Id of the original session.
        session_id: Str<'a> = "sessionId",
    }
}

impl<'a> View<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Whether it is a line of type `assistant`.
    pub fn is_assistant(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
    }
}

borrowed! {
    /// The message of a line.
    pub struct MessageView<'a> {
        /// Id that the API gave the message.
        id: Str<'a>,
        /// `user` or `assistant`.
        role: Str<'a>,
        /// Model that wrote the message.
        model: Str<'a>,
        /// Why the model stopped.
        stop_reason: Str<'a>,
        /// Usage of the API call.
        usage: UsageView,
        /// Content of the message.
        content: ContentView<'a>,
    }
}

/// Message content: a string or a list of blocks.
#[derive(Debug, Clone)]
pub enum ContentView<'a, B = BlockView<'a>> {
    /// Plain text.
    Text(Str<'a>),
    /// A list of blocks.
    Blocks(Vec<B>),
}

impl<B> ContentView<'_, B> {
    /// The blocks; empty if the content is plain text.
    pub fn blocks(&self) -> &[B] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl<'de: 'a, 'a, B: Deserialize<'de>> Lenient<'de> for ContentView<'a, B> {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value()
    }
}

impl<'de: 'a, 'a, B: Deserialize<'de>> Deserialize<'de> for ContentView<'a, B> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ContentViewVisitor<B>(PhantomData<B>);
        impl<'de, B: Deserialize<'de>> Visitor<'de> for ContentViewVisitor<B> {
            type Value = ContentView<'de, B>;
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
        d.deserialize_any(ContentViewVisitor(PhantomData))
    }
}

borrowed! {
    /// One block with the fields of all block types; each type has some of them.
    pub struct BlockView<'a> {
        /// Type of the block.
        kind: Str<'a> = "type",
        /// Text or thinking.
        text: Str<'a> | "thinking",
        /// Id of the tool call.
        id: Str<'a>,
        /// Name of the tool.
        name: Str<'a>,
        /// Input of the tool call.
        input: &'a RawValue,
        /// Id of the tool call that a result belongs to.
        tool_use_id: Str<'a>,
        /// Content of a tool result.
        content: &'a RawValue,
        /// Whether the tool failed.
        is_error: bool,
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
