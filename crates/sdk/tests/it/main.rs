//! The SDK, as programs use it.
#![allow(clippy::unwrap_used, reason = "a test says what must hold")]

mod sessions;
