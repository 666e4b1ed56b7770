//! The SDK, as programs use it.
#![allow(clippy::unwrap_used, reason = "a test says what must hold")]

mod adversary;
mod callbacks;
mod ending;
mod query;
mod replay;
mod sessions;
mod stage;
mod trouble;
