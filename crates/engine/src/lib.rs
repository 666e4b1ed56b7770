//! The headless agent: runs the turns of a session with the model and its tools.
//!
//! ```text
//!   stdin ── input ──┬── queue ── turn ──┬── api_call    one API call
//!                    └── control         └── tool_runs   its tool calls: hooks, permission, sandbox
//!   stdout ◂ output ◂── everything the agent emits, in one order
//!   file   ◂ conversation_log ◂── everything it records, in one place
//! ```
//!
//! A turn is everything between a prompt and its `result` line. Its `AgentContext` is the main
//! agent's or a subagent's: a conversation, the tools and the model.
//!
//! | I want to … | look at |
//! |---|---|
//! | run an agent | [`run`], [`Options`] |
//! | know why it did not start | [`EngineError`] |
//! | follow a prompt | `agent`, `turn_start`, `turn`, `api_call`, `tool_runs`, `turn_result` |
//! | change what the model reads | `system_prompt`, `announce`, `instructions` |
//! | answer a control request | `control` |
//! | decide about a tool call | `permission_flow`, `permission`, `sandbox` |
//! | add a tool | `tool`, `tools`, `tool_selection` |
//! | change what a session remembers | `session` and the modules below it |
//!
//! ```no_run
//! use quipu_engine::{Format, Options, run};
//!
//! # async fn example() -> Result<(), quipu_engine::EngineError> {
//! let options = Options { prompt: Some("hi".to_owned()), format: Format::Json, ..Options::default() };
//! let exit_code = run(options, std::env::vars().collect(), "/work".into(), std::io::stdout(), std::io::stderr()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Modules are layered and do not use each other in a circle: definitions, instructions, hooks,
//! queue and MCP lie below `session`, that below `agent_context`, that below requests, permissions
//! and tool runs, those below `turn`, that below `subagent`, commands and `control`; `setup` and
//! `agent` are on top.
//!
//! Runs on Linux and macOS only. Deliberately absent: listening sockets, and JSON names of the wire.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

#[cfg(not(unix))]
compile_error!("quipu-engine needs Unix: it starts commands in process groups and handles signals");

mod absorb;
mod agent;
mod agent_context;
mod announce;
mod api_call;
mod attachments;
mod auth_status;
mod background;
mod checkpoint;
mod clock;
mod command_list;
mod commands;
mod compact;
mod context_usage;
mod control;
mod conversation_log;
mod credential;
mod definitions;
mod error;
mod flags;
mod git;
mod guarded_paths;
mod hooks;
mod host;
mod init;
mod input;
mod instructions;
mod json_file;
mod line_diff;
mod main_context;
mod mcp;
mod mcp_status;
mod mentions;
mod model;
mod options;
mod output;
mod output_style;
mod path;
mod pdf;
mod permission;
mod permission_flow;
mod permission_store;
mod private_file;
mod process_group;
mod queue;
mod queue_replay;
mod request;
mod request_env;
mod resume;
mod safe_file;
mod sandbox;
mod session;
mod settings;
mod setup;
mod side_calls;
mod spans;
mod state_file;
mod structured_output;
mod subagent;
mod system_prompt;
mod telemetry;
mod text_file;
mod tool;
mod tool_runs;
mod tool_search;
mod tool_selection;
mod tools;
mod trust;
mod turn;
mod turn_result;
mod turn_start;
mod turn_state;
mod typed_command;
mod usage;
mod user_agent;
mod user_tools;
mod web_search;
mod worktree;

pub use agent::run;
pub use auth_status::{AuthStatus, auth_status};
pub use error::{EngineError, InputError};
pub use flags::split_list;
pub use mcp::{McpFiles, McpScope, McpServerEntry, check_mcp_server};
pub use mcp_status::mcp_status;
pub use options::{Autocompact, Format, Options, PluginDir, ResumeMode, Worktree};
pub use sandbox::SandboxMode;
pub use settings::SettingsError;

/// The version of the stream and transcript formats that this agent implements.
pub const VERSION: &str = "2.1.325";

/// Runs a role that the agent starts its own program in: the launcher of the sandbox, or the reader
/// of PDF files. Returns `None` if the process was not started for one.
///
/// Must be called first in `main`: there must be no other thread yet.
pub fn run_internal_role() -> Option<std::process::ExitCode> {
    sandbox::launch().or_else(pdf::serve)
}

/// The capabilities that the agent reports to hosts.
const CAPABILITIES: [&str; 3] = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "mcp_read_resource_v1"];

/// What the integration tests and benches of this crate reach into; not for others.
#[doc(hidden)]
pub mod testing {
    pub mod permission {
        pub use crate::permission::EffectiveMode as PermissionMode;
        pub use crate::permission::*;
    }
    pub mod sandbox {
        pub use crate::sandbox::*;
    }
    pub mod tool {
        pub use crate::tool::*;
    }
    pub mod tools {
        pub use crate::tools::*;
    }
}
