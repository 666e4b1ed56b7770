//! The HTTP API and the web page of quipu, on this machine only.
//!
//! ```text
//!   browser ── access (host, origin, token) ─┬─ assets           the page
//!                                            └─ api ─┬─ OpenSessions   windows of sessions of any length
//!                                                    ├─ SessionList    all sessions, known at once
//!                                                    ├─ IndexWorker    the index, in the background
//!                                                    └─ Chats          agents, driven by quipu-sdk
//! ```
//!
//! [`Server::bind`] listens on a loopback address, [`Server::run`] answers until it is stopped. A
//! session is opened without the index: the index is brought up to date in the background, and
//! lists, usage and search have what it knows so far.
//!
//! Not in this crate: running a model, the names of the wire's JSON fields, and the terminal.

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod access;
mod api;
mod app;
mod assets;
mod change_worker;
mod chat;
mod config_file;
mod demo;
mod documents;
mod error;
mod event;
mod folder_files;
mod index_reader;
mod index_state;
mod index_worker;
mod json;
mod labels;
mod live_sessions;
mod long_texts;
mod open_sessions;
mod openapi;
mod period;
mod router;
mod server;
mod session_list;
mod token;

pub use chat::ChatAgent;
pub use config_file::{ConfigError, trust_folder};
pub use demo::write_demo_sessions;
pub use server::{RunGit, Server, ServerError, ServerOptions};
pub use token::Token;
