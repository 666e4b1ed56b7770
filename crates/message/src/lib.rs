//! Types for the messages of Claude-Code-style agents: session files, the live stream,
//! the API, control requests and hooks.
//!
//! ```text
//!   bytes ── Line ──┬── Head     which entry is this?        borrowed, fastest
//!                   ├── View     fields for reading          borrowed
//!                   └── Entry    everything, for editing     owned, nothing lost
//! ```
//!
//! ```
//! use quipu_message::Entry;
//! let line = r#"{"type":"user","message":{"role":"user","content":"hi"},"new_field":1}"#;
//! let entry = Entry::read(line)?;
//! let Entry::User(user) = &entry else { unreachable!() };
//! assert_eq!(user.message.content.to_text(), "hi");
//! assert_eq!(serde_json::to_string(&entry)?, line);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Session files (camelCase) and the live stream (snake_case) share one set of types.
//! Unknown types, subtypes, blocks, strings and fields are kept and written back as they
//! were read.
//!
//! | I have … | look at |
//! |---|---|
//! | a line of a session file or of the stream | [`Entry`], [`Head`], [`View`] |
//! | a prompt, an answer, the end of a turn | [`User`], [`Assistant`], [`TurnResult`] |
//! | message content | [`Content`], [`Block`] |
//! | a tool call or its result | [`tool`], [`ToolName`], [`Block::tool_call`], [`Block::tool_call_result`] |
//! | a `system` entry | [`system::System`] |
//! | an attachment | [`attachment::Attachment`] |
//! | another entry of a session file | [`bookkeeping`] |
//! | another entry of the stream | [`stream`] |
//! | a control request or response | [`control`] |
//! | the input or output of a hook | [`hook`] |
//! | an API request or streamed event | [`api`], [`sse`] |
//! | many API requests to compare | [`request_view`] |
//! | a field with one of a few string values | [`values`] |
//! | an entry to create | [`factory`] |
//!
//! This crate does no I/O, reads no clock and is not async. What several entries mean
//! together is in `quipu-conversation`.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

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

pub mod added_context;
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
pub mod request_view;
pub mod sse;
pub mod stream;
pub mod structure_view;
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
pub use entry::{Entry, ReadError, TranscriptMirror};
pub use envelope::Envelope;
pub use head::Head;
pub use ids::{AgentId, MessageId, RequestId, SessionId, StampSource, ToolUseId, Uuid};
pub use json::{Extra, Json, Maybe, Spelling, is_same_json};
pub use line::Line;
pub use listing_view::ListingView;
pub use message::{Message, Role};
pub use stream::{TurnOutcome, TurnResult};
pub use tool::ToolName;
pub use unknown::Unknown;
pub use usage::Usage;
pub use user_assistant::{Assistant, User};
pub use values::{Effort, PermissionMode, StopReason};
pub use view::View;
