//! A chat with an agent in the terminal.
//!
//! ```text
//!   keys ──→ Editor ──→ prompt ──→ quipu_sdk::Handle ──→ agent
//!              │                                           │
//!   Completion ┘    LiveScreen ←── LiveConversation ←── messages
//!                       ↑
//!   prompts for the user (permissions, questions, plans)
//! ```
//!
//! What was said scrolls away as ordinary text; only the rows at the bottom are redrawn: what is
//! being written, the status of the turn, the input. Text of the agent goes through
//! [`quipu_render`], which removes control characters.
//!
//! | I want to … | look at |
//! |---|---|
//! | chat on a terminal | [`run_chat`], [`ChatOptions`] |
//! | chat through pipes | [`run_plain_chat`] |
//!
//! Not in this crate: finding sessions, settings and the environment. The caller passes them in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod chat;
mod command;
mod completion;
mod editor;
mod error;
mod external_editor;
mod history;
mod options;
mod permission_prompt;
mod plain_chat;
mod prompt;
mod question_prompt;
mod queue;
mod terminal_mode;
mod turn_status;

pub use chat::{ChatOutcome, run_chat};
pub use error::ChatError;
pub use options::ChatOptions;
pub use plain_chat::{PlainOutcome, run_plain_chat};
