//! The fields of a line that a list of sessions needs: titles, tags, folders.

use crate::text::{Str, TimeStr};
use crate::view::borrowed;

borrowed! {
    /// The fields of a line that a list of sessions needs; message content is skipped.
    ///
    /// The text must have passed [`replace_lone_surrogates`](crate::line::replace_lone_surrogates).
    ///
    /// ```
    /// use quipu_message::ListingView;
    /// let label = ListingView::read(r#"{"type":"tag","tag":"release","sessionId":"s"}"#)?;
    /// assert_eq!((label.kind.as_deref(), label.tag.as_deref()), (Some("tag"), Some("release")));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub struct ListingView<'a> {
        /// Type of the line.
        kind: Str<'a> = "type",
        /// UUID of the line.
        uuid: Str<'a>,
        /// Time of writing.
        timestamp: TimeStr<'a>,
        /// Working directory.
        cwd: Str<'a>,
        /// Git branch of the working directory.
        git_branch: Str<'a> = "gitBranch",
        /// Whether the line belongs to a subagent's conversation.
        is_sidechain: bool = "isSidechain",
        /// Whether the line is the summary of a compaction.
        is_compact_summary: bool = "isCompactSummary",
        /// Title from the user.
        custom_title: Str<'a> = "customTitle",
        /// Title from the model.
        ai_title: Str<'a> = "aiTitle",
        /// The last prompt, on `last-prompt` lines.
        last_prompt: Str<'a> = "lastPrompt",
        /// Text of a `summary` line.
        summary: Str<'a>,
        /// Tag from the user.
        tag: Str<'a>,
    }
}

impl<'a> ListingView<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}
