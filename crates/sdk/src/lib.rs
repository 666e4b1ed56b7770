//! Drive an agent process: `claude`, `quipu-agent`, or anything that speaks like them.
//!
//! ```text
//!   query(prompt, options) ──┐                        ┌── can_use_tool, hooks, MCP tools
//!   Client::connect(options) ┴─ Transport ⇄ the agent ┤      (closures of yours)
//!        send · next · ask      (a process, memory)   └── messages, as they come
//!
//!   sessions ── the conversations on disk: listed, read, renamed, forked
//! ```
//!
//! [`query()`] asks one thing and gives every message until it is answered; [`Client`] talks
//! for as long as you like. Messages are the types of [`quipu_message`]: what this build
//! does not know comes as it is. Whatever the other side does (dies, stalls, floods, talks
//! nonsense), you get a typed [`Error`] or the work goes on: nothing waits for ever, and
//! memory is bounded.
//!
//! Deliberately absent: HTTP and models. Whoever answers is the agent's business.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod callbacks;
mod choices;
mod client;
mod conversation_state;
mod driver;
mod error;
mod flags;
mod handle;
mod hooks;
mod lines;
mod mailbox;
mod options;
mod permission;
mod program;
mod prompt;
mod query;
mod received;

pub mod mcp;
pub mod sessions;
pub mod transport;

pub use callbacks::CallbackContext;
pub use choices::{Skills, SystemPrompt, ThinkingMode};
pub use client::Client;
pub use conversation_state::BadLine;
pub use error::{Error, Exit};
pub use handle::Handle;
pub use hooks::Hook;
pub use options::Options;
pub use permission::Decision;
pub use prompt::{Prompt, user_message};
pub use query::{Query, query, query_over, query_result};
pub use received::Received;

/// For the types of tools' arguments and of answers: derive `JsonSchema` of this version,
/// with `#[schemars(crate = "quipu_sdk::schemars")]` when it is no dependency of yours.
pub use schemars;

pub use quipu_message::context_ref::{ContextKind, ContextRef};
pub use quipu_message::control::setup::{AgentDefinition, McpHttp, McpServerConfig, McpSse, McpStdio};
pub use quipu_message::values::{Effort, PermissionMode, SettingSource};
pub use quipu_message::{self as message, Block, Content, Entry, Json, control, hook};

/// What holds closures and tasks is shown by its name alone.
macro_rules! opaque {
    ($($path:path),+ $(,)?) => { $(
        impl std::fmt::Debug for $path {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($path))
            }
        }
    )+ };
}

opaque! {
    Client, CallbackContext, Handle, Hook, Options, Prompt, Query,
    mcp::Server, mcp::ToolOutput, transport::Connection, transport::MemoryPeer, transport::MemoryTransport,
}

/// Target of the spans and events of this crate.
const LOG_TARGET: &str = "quipu::sdk";
