//! The reading tier between head and view: how a `user` or `assistant` line is linked to others,
//! without decoding its texts.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::AgentId;
use crate::text::{Scalar, Str};
use crate::tool::AgentOutput;
use crate::view::{ContentView, Lenient, borrowed};

borrowed! {
    /// Ids, flags and block types of a line. Texts and results are skipped, not decoded.
    ///
    /// Read it from text in which [lone surrogates are replaced](crate::line::replace_lone_surrogates).
    ///
    /// ```
    /// use quipu_message::structure_view::{BlockLink, StructureView};
    /// let line = r#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}}"#;
    /// let view = StructureView::read(line)?;
    /// let message = view.message.unwrap();
    /// let block = &message.content.as_ref().unwrap().blocks()[0];
    /// assert!(matches!(block.link(), Some(BlockLink::ToolResult("t"))));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub struct StructureView<'a> {
        /// Type of the line.
        kind: Str<'a> = "type",
        /// UUID of the entry.
        uuid: Str<'a>,
        /// UUID of the parent entry; `null` starts a tree.
        parent_uuid: NullableStr<'a> = "parentUuid",
        /// UUID of the entry before a compaction boundary, which has no parent.
        logical_parent_uuid: Str<'a> = "logicalParentUuid" | "logical_parent_uuid",
        /// Session the entry belongs to.
        session_id: Str<'a> = "sessionId" | "session_id",
        /// Subagent that wrote the entry.
        agent_id: Str<'a> = "agentId" | "agent_id",
        /// Tool call that started the subagent (stream).
        parent_tool_use_id: Str<'a>,
        /// Whether a subagent wrote the entry.
        is_sidechain: bool = "isSidechain",
        /// Whether the text is for the model only.
        is_meta: bool = "isMeta",
        /// Whether it is the summary that replaces compacted entries.
        is_compact_summary: bool = "isCompactSummary",
        /// Whether the text is for the user only.
        is_virtual: bool = "isVirtual",
        /// Whether the program wrote the text.
        is_synthetic: bool = "isSynthetic",
        /// The message.
        message: StructureMessage<'a>,
        /// Result in the tool's own form, not read.
        tool_use_result: &'a RawValue = "toolUseResult" | "tool_use_result",
    }
}

borrowed! {
    /// The message of a line, without its texts.
    pub struct StructureMessage<'a> {
        /// Id given by the API.
        id: Str<'a>,
        /// Author of the message.
        role: Str<'a>,
        /// Model that wrote it.
        model: Str<'a>,
        /// Why the model stopped; `null` while it is still writing.
        stop_reason: NullableStr<'a>,
        /// Text or blocks.
        content: ContentView<'a, StructureBlock<'a>>,
    }
}

borrowed! {
    /// One block, without its text, input or result.
    pub struct StructureBlock<'a> {
        /// Type of the block.
        kind: Str<'a> = "type",
        /// Id of a tool call.
        id: Str<'a>,
        /// Name of the called tool.
        name: Str<'a>,
        /// Id of the tool call that a result belongs to.
        tool_use_id: Str<'a>,
        /// Text, not decoded.
        text: &'a RawValue,
        /// Reasoning, not decoded.
        thinking: &'a RawValue,
        /// Input of a tool call, not read.
        input: &'a RawValue,
    }
}

/// A string field in which `null` has a meaning of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NullableStr<'a> {
    /// `null`.
    Null,
    /// A string.
    Text(Str<'a>),
    /// A value of another type.
    Other,
}

impl NullableStr<'_> {
    /// The string; `None` for `null` and other values.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Other => None,
        }
    }
}

impl<'de> Lenient<'de> for NullableStr<'de> {
    fn read_next<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        Ok(Some(match map.next_value::<Option<Scalar<'de>>>()? {
            None => Self::Null,
            Some(Scalar::Text(text)) => Self::Text(text),
            Some(_) => Self::Other,
        }))
    }
}

impl<'a> StructureView<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The subagent that the tool result names; `None` if the result is not one of an agent call.
    pub fn result_agent(&self) -> Option<AgentId> {
        let result = self.tool_use_result?.get();
        // Nearly all results are of other tools; looking for the key is faster than reading them.
        memmem::find(result.as_bytes(), b"\"agentId\"")?;
        serde_json::from_str::<AgentOutput>(result).ok()?.agent_id.into_option()
    }
}

/// What a block links to.
#[derive(Debug, Clone, Copy)]
pub enum BlockLink<'a> {
    /// A text.
    Text(RawText<'a>),
    /// Reasoning.
    Thinking,
    /// A tool call with this id.
    ToolUse(&'a str),
    /// The result of the tool call with this id.
    ToolResult(&'a str),
}

/// A JSON string that is not decoded yet.
#[derive(Debug, Clone, Copy)]
pub struct RawText<'a>(&'a RawValue);

impl<'a> RawText<'a> {
    /// The decoded text.
    pub fn decode(self) -> Cow<'a, str> {
        serde_json::from_str::<Str<'a>>(self.0.get()).unwrap_or_default().0
    }
}

impl StructureBlock<'_> {
    /// What the block links to; `None` if it is of another type or lacks a required field, so that
    /// the whole entry must be read.
    pub fn link(&self) -> Option<BlockLink<'_>> {
        let is_string = |raw: &&RawValue| raw.get().starts_with('"');
        match self.kind.as_deref()? {
            "text" => self.text.filter(is_string).map(|raw| BlockLink::Text(RawText(raw))),
            "thinking" => self.thinking.filter(is_string).map(|_| BlockLink::Thinking),
            "tool_use" => {
                self.name.as_ref().and(self.input)?;
                self.id.as_deref().map(BlockLink::ToolUse)
            }
            "tool_result" => self.tool_use_id.as_deref().map(BlockLink::ToolResult),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(content: &str) -> usize {
        let line = format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#);
        let view = StructureView::read(&line).unwrap();
        let message = view.message.unwrap();
        message.content.unwrap().blocks().iter().filter(|block| block.link().is_some()).count()
    }

    #[test]
    fn a_block_without_a_required_field_has_no_link() {
        assert_eq!(blocks(r#"[{"type":"text","text":"a"},{"type":"text","text":7},{"type":"text"}]"#), 1);
        assert_eq!(blocks(r#"[{"type":"tool_use","id":"t","name":"n","input":{}},{"type":"tool_use","id":"t"}]"#), 1);
        assert_eq!(blocks(r#"[{"type":"thinking","thinking":""},{"type":"hologram"},null]"#), 1);
    }

    #[test]
    fn a_parent_may_be_absent_null_or_a_uuid() {
        let parent = |line: &str| StructureView::read(line).unwrap().parent_uuid.map(|parent| format!("{parent:?}"));
        assert_eq!(parent("{}"), None);
        assert_eq!(parent(r#"{"parentUuid":null}"#).as_deref(), Some("Null"));
        assert!(parent(r#"{"parentUuid":"p"}"#).unwrap().starts_with("Text"));
        assert_eq!(parent(r#"{"parentUuid":7}"#).as_deref(), Some("Other"));
    }

    #[test]
    fn texts_are_decoded_on_request() {
        let line = r#"{"message":{"content":[{"type":"text","text":"a\nb"}]}}"#;
        let view = StructureView::read(line).unwrap();
        let content = view.message.unwrap().content.unwrap();
        let Some(BlockLink::Text(text)) = content.blocks()[0].link() else { panic!("not a text") };
        assert_eq!(text.decode(), "a\nb");
    }
}
