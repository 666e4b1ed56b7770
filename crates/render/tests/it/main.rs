//! Laws that hold for any items, and for every session we have.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod corpus;
mod secret_rules;
mod untrusted_input;
