//! How a conversation looks outside the page.
//!
//! ```text
//!   &[ScreenItem] ──┬── Terminal   rows for a terminal, whole or item by item
//!                   ├── Markdown   a document to share
//!                   └── Html       one self-contained page
//!   ToolCard ────────── Call       what a call is in one line, for all three
//!   &mut ScreenItem ─── Redactor   secrets masked and counted, before sharing
//!   text, lines ─────── find_secrets, secrets_in_line   what is masked, and where
//!   &[Archived] ─────── archive_html, archive_markdown   the list of many documents
//!   &[ScreenItem] ───── file_changes   the files a session changed, as diffs
//! ```
//!
//! What the items hold is untrusted: [`sanitize`] takes every escape sequence,
//! control and invisible character out of it, whatever the output. Deliberately
//! absent: files, clocks, time zones and paging; what is shown is passed in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;
mod diff;
mod file_changes;
mod highlight;
mod html;
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
pub use file_changes::{ChangeStatus, FileChange, file_changes};
pub use html::Html;
pub use markdown::Markdown;
pub use redact::Redactor;
pub use sanitize::sanitize;
pub use secret::{FoundSecret, find_secrets, find_secrets_in_line};
pub use session_details::SessionDetails;
pub use terminal::{Terminal, TerminalRenderer};
pub use thinking::ThinkingDisplay;
pub use tool_call::{TodoStatus, ToolCallPart, ToolCallView};

pub use speaker::context_label;

pub(crate) use speaker::format_time_as_written;
