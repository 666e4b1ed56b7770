//! The first reading tier: type and ids of a line. For the index and for building parent chains.

use serde_json::value::RawValue;

use crate::text::{Str, TimeStr};
use crate::view::borrowed;

borrowed! {
    /// Type and ids of a line; everything else is skipped.
    ///
    /// The text must have passed [`replace_lone_surrogates`](crate::line::replace_lone_surrogates).
    ///
    /// ```
    /// use quipu_message::Head;
    /// let head = Head::read(r#"{"type":"user","uuid":"u","parentUuid":null,"message":{}}"#)?;
    /// assert_eq!(head.uuid.as_deref(), Some("u"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub struct Head<'a> {
        /// Type of the line.
        kind: Str<'a> = "type",
        /// Subtype of the line.
        subtype: Str<'a>,
        /// UUID of the line.
        uuid: Str<'a>,
        /// UUID of the parent entry.
        parent_uuid: Str<'a> = "parentUuid",
        /// Id of the session.
        session_id: Str<'a> = "sessionId" | "session_id",
        /// Time of writing.
        timestamp: TimeStr<'a>,
        /// Whether the line belongs to a subagent's conversation.
        is_sidechain: bool = "isSidechain",
        /// Id of the prompt that the line belongs to.
        prompt_id: Str<'a> = "promptId",
        /// The message, not parsed.
        message: &'a RawValue,
    }
}

impl<'a> Head<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Whether the line can be the parent of later lines. Progress and bookkeeping lines cannot.
    pub fn is_chain_entry(&self) -> bool {
        self.uuid.is_some() && matches!(self.kind.as_deref(), Some("user" | "assistant" | "system" | "attachment"))
    }

    /// Whether the line changes entries of the chain without being part of it: it withdraws lines, replaces
    /// content, or is a summary. A program that copies a conversation must copy it too.
    pub fn is_chain_amendment(&self) -> bool {
        matches!(self.kind.as_deref(), Some("tombstone" | "content-replacement" | "summary"))
    }
}
