//! What a line says of its session, for lists of sessions: titles, tags, places.

use crate::text::{Str, TimeStr};
use crate::view::borrowed;

borrowed! {
    /// The fields by which sessions are listed; message content is skipped.
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
        /// The type.
        kind: Str<'a> = "type",
        /// The line's id.
        uuid: Str<'a>,
        /// When.
        timestamp: TimeStr<'a>,
        /// The working directory.
        cwd: Str<'a>,
        /// The git branch.
        git_branch: Str<'a> = "gitBranch",
        /// Whether a subagent said it.
        is_sidechain: bool = "isSidechain",
        /// Whether a `summary` line sums up what was compacted.
        is_compact_summary: bool = "isCompactSummary",
        /// A title the user gave.
        custom_title: Str<'a> = "customTitle",
        /// A title the model made up.
        ai_title: Str<'a> = "aiTitle",
        /// The last prompt.
        last_prompt: Str<'a> = "lastPrompt",
        /// Words of a `summary` line.
        summary: Str<'a>,
        /// A label the user gave.
        tag: Str<'a>,
    }
}

impl<'a> ListingView<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}
