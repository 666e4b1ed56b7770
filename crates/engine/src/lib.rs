//! Who answers: the headless agent of Claude-Code-style conversations.
//!
//! ```text
//!   stdin ── input ──┬── queue ── turn ──┬── ask       one call of the model
//!                    └── control         ├── work      its tools, judged and hooked
//!            host ◂──── questions ───────┘             (tool, tools, permission, mcp)
//!   stdout ◂ output ◂── everything said, in one order
//!   file   ◂ log ◂───── everything recorded, in one place
//! ```
//!
//! A turn is a person's request until its final answer; a talk is a conversation
//! with the model, the session's own or a subagent's.
//!
//! Deliberately absent: sockets that listen, and JSON names of the wire.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

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
mod git;
mod guarded_paths;
mod hooks;
mod host;
mod init;
mod instructions;
mod json_file;
mod main_context;
mod mcp;
mod mentions;
mod output;
mod output_style;
mod path;
mod permission_flow;
mod private_file;
mod queue;
mod queue_replay;
mod request;
mod request_env;
mod safe_file;
mod session;
mod settings;
mod setup;
mod side_calls;
mod state_file;
mod structured_output;
mod subagent;
mod system_prompt;
mod text_file;
mod tool_runs;
mod tool_search;
mod tool_selection;
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

pub mod flags;
pub mod input;
pub mod model;
pub mod options;
pub mod permission;
pub mod sandbox;
pub mod tool;
pub mod tools;

pub use agent::run;
pub use auth_status::{AuthStatus, auth_status};
pub use error::{EngineError, InputError};
pub use mcp::{McpFiles, McpScope, McpServerEntry, check_mcp_server};
pub use options::Options;
pub use settings::SettingsError;

/// The version of the protocol and the files that this agent speaks.
pub const VERSION: &str = "2.1.325";

/// What hosts may rely on.
const CAPABILITIES: [&str; 3] = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "mcp_read_resource_v1"];
