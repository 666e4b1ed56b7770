//! Drives an agent process: `claude`, `quipu-agent`, or any program with the same protocol.
//!
//! ```text
//!   query(prompt, options) ──┐                            ┌── can_use_tool, hooks, MCP tools
//!   Client::connect(options) ┴─ Transport ⇄ agent process ┤      (your closures)
//!        send · next · handle   (a process, memory)       └── messages, as they arrive
//!
//!   sessions ── the sessions on disk: list, read, rename, fork
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), quipu_sdk::Error> {
//! let result = quipu_sdk::query_result("What is 2 + 2?", quipu_sdk::Options::new()).await?;
//! println!("{}", result.result.text().unwrap_or_default());
//! # Ok(())
//! # }
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | send one prompt and read the messages | [`query()`], [`query_result`] |
//! | hold a conversation of several turns | [`Client`] |
//! | interrupt, change model or mode, from any task | [`Handle`] |
//! | choose model, tools, folder, session | [`Options`] |
//! | decide about tool calls | [`Options::can_use_tool`], [`Decision`] |
//! | react to events of the agent | [`Hook`] |
//! | offer tools to the model | [`mcp::Server`] |
//! | manage sessions on disk | [`sessions::Sessions`] |
//! | connect in another way than by a process | [`transport::Transport`] |
//!
//! Messages are the types of [`quipu_message`]; those without a type in this version are
//! [`Entry::Unknown`]. Whatever the agent does (exits, stalls, floods, writes garbage), you
//! get a typed [`Error`] or the conversation continues: no request waits for ever, and memory
//! is bounded.
//!
//! Deliberately absent: HTTP and models, which are up to the agent.

// Tests may unwrap.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

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
pub use program::find_agent;
pub use prompt::{Prompt, user_message};
pub use query::{Query, query, query_over, query_result};
pub use received::Received;

/// Derive `JsonSchema` for tool arguments and output types with this version; add
/// `#[schemars(crate = "quipu_sdk::schemars")]` if schemars is not your own dependency.
pub use schemars;

pub use quipu_message::context_ref::{ContextKind, ContextRef};
pub use quipu_message::control::setup::{AgentDefinition, McpHttp, McpServerConfig, McpSse, McpStdio};
pub use quipu_message::values::{Effort, PermissionMode, SettingSource, ThinkingDisplay};
pub use quipu_message::{self as message, Block, Content, Entry, Json, ToolName, control, hook};

/// `Debug` of types that hold closures or tasks shows only their name.
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

/// Compiles the Rust examples of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../README.zh.md")]
    struct ReadmeZh;
    #[doc = include_str!("../../../docs/sdk.md")]
    struct SdkGuide;
}
