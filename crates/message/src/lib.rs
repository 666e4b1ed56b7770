//! What one line is: the vocabulary of Claude-Code-style agents.
//!
//! ```text
//!   bytes ── Line ──┬── Head     which line is this?        borrowed, fastest
//!                   ├── View     what does it say?          borrowed
//!                   └── Entry    all of it, for editing     owned, nothing lost
//! ```
//!
//! A line of a session file (camelCase) and a line of the live stream
//! (snake_case) are one vocabulary here: [`Entry`], with the same [`Message`],
//! [`Block`] and [`Usage`] inside. The bytes are the truth and the types are a
//! view of them: unknown types, subtypes, blocks and fields survive, and a line
//! that was not changed is written back as it came.
//!
//! Deliberately absent: files, clocks, networks and async. What several lines
//! mean together is the business of `quipu-conversation`.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block;
mod entry;
mod envelope;
mod head;
mod ids;
mod json;
mod listing_view;
mod message;
mod unknown;

pub(crate) mod macros;

pub mod api;
pub mod attachment;
pub mod bookkeeping;
pub mod context_ref;
pub mod control;
pub mod factory;
pub mod hash;
pub mod hook;
pub mod line;
pub mod progress;
pub mod sse;
pub mod stream;
pub mod synthetic;
pub mod system;
pub mod tagged_text;
pub mod text;
pub mod tool;
pub mod usage;
pub mod user_assistant;
pub mod values;
pub mod view;

pub use block::{
    Block, CodeResult, ContainerUpload, Content, Document, EditorResult, Image, McpToolResult, McpToolUse, MediaSource,
    RedactedThinking, SearchResult, ServerToolUse, ShellResult, Text, Thinking, ToolCall, ToolCallResult,
    ToolReference, ToolResult, ToolResultContent, ToolSearchResult, ToolUse, WebFetchResult, WebSearchResult,
};
pub use entry::{Entry, ReadError};
pub use envelope::Envelope;
pub use head::Head;
pub use ids::{AgentId, MessageId, RequestId, SessionId, StampSource, ToolUseId, Uuid};
pub use json::{Extra, Json, Maybe, Spelling, is_same_json};
pub use line::Line;
pub use listing_view::ListingView;
pub use message::{Message, Role};
pub use unknown::Unknown;
pub use usage::Usage;
pub use view::View;
