//! The HTTP API, over a socket.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod access;
mod client;
mod corpus;
mod events;
mod reports;
mod schema;
mod scratch;
mod session;
mod sessions;
