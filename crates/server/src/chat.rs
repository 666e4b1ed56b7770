//! Conversations with agents that this server starts.
//!
//! ```text
//!   POST /api/chats ─ Chats ── ActiveChat ── runner (one task) ── quipu_sdk::Client ── agent process
//!                                  │                                    │
//!          events ── EventCursor ──┘ ChatState ◄── entries, prompts ────┘
//! ```
//!
//! The agent writes the session file, and the page shows that file. A [`ChatState`] has what is not
//! in the file: the response that is being streamed, prompts that wait for the user, the queue. Each
//! client gets the difference between the state and what it was sent last, so that a slow client
//! costs no memory and a new one misses nothing.

mod active_chat;
mod agents;
mod capture;
mod chats;
mod entries;
mod event_cursor;
mod launch;
mod pages;
mod partial;
mod prompts;
mod runner;
mod settings;
mod state;
mod trust;
mod view;

pub(crate) use active_chat::{ActiveChat, ViewerGuard};
pub(crate) use agents::AgentInfo;
pub use agents::ChatAgent;
pub(crate) use chats::{Chats, StartRequest, Started, find_folder};
pub(crate) use event_cursor::{EventCursor, ping_line};
pub(crate) use pages::PageCount;
pub(crate) use prompts::PromptReply;
pub(crate) use settings::ChatSettings;
pub(crate) use trust::is_trusted;
pub(crate) use view::{Chat, ChatEvent};

/// Target of the log events of chats.
const LOG_TARGET: &str = "quipu::server";
