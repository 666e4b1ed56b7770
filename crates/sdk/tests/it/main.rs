//! The SDK, as programs use it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod agent_failures;
mod callbacks;
mod cancellation;
mod query;
mod replay;
mod scripted_agent;
mod sessions;
mod shutdown;
