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
//! What the items hold is untrusted: [`clean`] takes every escape sequence,
//! control and invisible character out of it, whatever the output. Deliberately
//! absent: files, clocks, time zones and paging; what is shown is passed in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod about;
mod archive;
mod call;
mod changes;
mod clean;
mod code;
mod diff;
mod html;
mod markdown;
mod redact;
mod secret;
mod speaker;
mod terminal;

pub use about::About;
pub use archive::{Archived, archive_html, archive_markdown};
pub use call::{Call, Part, Progress};
pub use changes::{ChangeStatus, FileChange, file_changes};
pub use clean::clean;
pub use diff::{DiffLine, Sign};
pub use html::Html;
pub use markdown::Markdown;
pub use redact::Redactor;
pub use secret::{Secret, find_secrets, secrets_in_line};
pub use terminal::{Flow, Terminal, Thinking};

pub use speaker::context_label;

pub(crate) use speaker::as_written;
