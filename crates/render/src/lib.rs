//! Renders conversations for a terminal, as Markdown and as self-contained HTML pages.
//!
//! All outputs take the [`ScreenItem`](quipu_conversation::ScreenItem)s of a conversation. Text in
//! them is untrusted: [`sanitize`] removes every escape sequence, control character and invisible
//! character, whatever the output.
//!
//! ```
//! use quipu_conversation::Conversation;
//! use quipu_render::Markdown;
//! let mut conversation = Conversation::default();
//! conversation.push_line(1, r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#);
//! assert_eq!(Markdown::default().render(&conversation.for_ui()), "# Conversation\n\n## you\n\nhi\n");
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | print a conversation on a terminal | [`Terminal`] |
//! | print items as they arrive | [`TerminalRenderer`] |
//! | redraw the last rows of a terminal while items arrive | [`LiveScreen`] |
//! | write a document to share | [`Markdown`], [`Html`] |
//! | write a session to share, as one document | [`ExportedSession`] |
//! | write the index of many documents | [`archive_html`], [`archive_markdown`] |
//! | describe a tool call in one line | [`ToolCallView`] |
//! | mask credentials, addresses and home folders | [`Redactor`] |
//! | find credentials | [`find_secrets`], [`find_secrets_in_line`] |
//! | get the files that a session changed, as diffs | [`file_changes`] |
//! | format numbers, costs and names for users | [`mod@format`] |
//! | make untrusted text safe to print | [`sanitize`] |
//!
//! Not in this crate: files, clocks, time zones and paging. The caller passes them in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod archive;
mod diff;
mod export;
mod file_changes;
pub mod format;
mod highlight;
mod html;
mod live_screen;
mod markdown;
mod redact;
mod sanitize;
mod secret;
mod session_details;
mod speaker;
mod terminal;
mod thinking;
mod tool_call;

pub use archive::{ArchiveItem, archive_html, archive_markdown};
pub use diff::{DiffLine, DiffLineKind};
pub use export::{ExportFormat, ExportedSession};
pub use file_changes::{ChangeStatus, FileChange, file_changes};
pub use html::{Html, escape_html};
pub use live_screen::{Cursor, LiveScreen, ScreenSize, SessionContext};
pub use markdown::Markdown;
pub use redact::Redactor;
pub use sanitize::sanitize;
pub use secret::{FoundSecret, find_secrets, find_secrets_in_line};
pub use session_details::{SessionDetails, hidden_summary};
pub use terminal::{Terminal, TerminalRenderer};
pub use thinking::ThinkingDisplay;
pub use tool_call::{ToolCallPart, ToolCallView};

pub use speaker::context_label;

pub(crate) use speaker::format_time_as_written;
