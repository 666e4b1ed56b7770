//! Tests of the public surface.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod anatomy;
mod builder;
mod cache;
mod capture;
mod diff;
mod explain;
mod export;
mod formats;
mod session_calls;
mod session_files;
mod structure;
