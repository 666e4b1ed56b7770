//! Who answers: the headless agent of Claude-Code-style conversations.
//!
//! ```text
//!   Tool      what the model may do      tools/…   the tools themselves
//!   judge     whether it may, now        Rules     what was allowed and refused
//! ```
//!
//! Deliberately absent: sockets that listen, and JSON names of the wire.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod permission;
pub mod tool;
pub mod tools;
