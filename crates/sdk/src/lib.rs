//! Drive an agent process: `claude`, `quipu-agent`, or anything that speaks like them.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod sessions;
