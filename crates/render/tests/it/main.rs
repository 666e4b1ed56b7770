//! Laws that hold for any items, and for every session we have.
#![allow(clippy::unwrap_used, reason = "unwrapping is how a test says what must hold")]

mod corpus;
mod secret_rules;
mod untrusted_input;
