//! The first reading tier: which line is this? For the index and the chain.

use serde_json::value::RawValue;

use crate::text::{Str, TimeStr};
use crate::view::borrowed;

borrowed! {
    /// Type and ids of a line; everything else is passed over unread.
    ///
    /// Read it from [`mend`](crate::line::replace_lone_surrogates)ed text.
    ///
    /// ```
    /// use quipu_message::Head;
    /// let head = Head::read(r#"{"type":"user","uuid":"u","parentUuid":null,"message":{}}"#)?;
    /// assert_eq!(head.uuid.as_deref(), Some("u"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub struct Head<'a> {
        /// The type.
        kind: Str<'a> = "type",
        /// The subtype.
        subtype: Str<'a>,
        /// The line's id.
        uuid: Str<'a>,
        /// The line before it.
        parent_uuid: Str<'a> = "parentUuid",
        /// The session.
        session_id: Str<'a> = "sessionId" | "session_id",
        /// When.
        timestamp: TimeStr<'a>,
        /// Whether a subagent said it.
        is_sidechain: bool = "isSidechain",
        /// The prompt that the line belongs to.
        prompt_id: Str<'a> = "promptId",
        /// The message, unread.
        message: &'a RawValue,
    }
}

impl<'a> Head<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Whether later lines may hang on this one: what is said and told, not the
    /// progress of tools.
    pub fn is_chain_entry(&self) -> bool {
        self.uuid.is_some() && matches!(self.kind.as_deref(), Some("user" | "assistant" | "system" | "attachment"))
    }

    /// Whether the line changes what the chain says without being part of it: lines
    /// withdrawn, contents replaced, what came before summed up. A program that copies the
    /// conversation needs it too.
    pub fn is_chain_amendment(&self) -> bool {
        matches!(self.kind.as_deref(), Some("tombstone" | "content-replacement" | "summary"))
    }
}
