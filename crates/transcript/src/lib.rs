//! Where lines live: session files, found, read and checked.
//!
//! ```text
//!   a file, stdin ── Lines ── bytes, line by line, bounded memory
//!                      └───── Entries ── entry or problem
//!   a folder ─────── find ─── session files and their subagents
//!   files ────────── Check ── what is in them and what is wrong with them
//! ```
//!
//! Reading never fails as a whole: one bad line costs one line and is named with
//! its place. Deliberately absent: HTTP and prices.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod lines;
mod problem;
mod read;

pub mod find;

pub use check::{Check, Report};
pub use lines::{Ending, LONGEST, Lines, Piece};
pub use problem::{FileError, Problem};
pub use read::{Entries, Located, load, load_reader};
