//! Where lines live: session files, found, read, followed, written and mended.
//!
//! ```text
//!   a folder ─────── find ─────── session files and their subagents
//!                      └───────── Outline  title, tag, first prompt
//!   a file, stdin ── Lines ────── bytes, line by line, bounded memory
//!                      ├───────── Entries   entry or problem
//!                      ├───────── Follower  lines as they are written; Changes says when
//!                      └───────── Check, repair
//!   entries ──────── Recorder ─── Journal ── whole lines, locked, synced
//!   a session ────── Fork ─────── the same history in a file of its own
//!                      ├───────── set_title, set_tag   one line appended
//!                      └───────── delete   the file and what belongs to it
//! ```
//!
//! Reading never fails as a whole: one bad line costs one line and is named with
//! its place. Deliberately absent: HTTP and prices.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod append;
mod backups;
mod check;
mod delete;
mod follow;
mod fork;
mod label;
mod lines;
mod measure;
mod outline;
mod problem;
mod read;
mod record;
mod repair;
mod resume;
mod writer;

pub mod find;

pub use append::{AppendError, Journal};
pub use backups::FileBackups;
pub use check::{Check, Report};
pub use delete::{DeleteError, delete};
pub use follow::{Changes, Followed, Follower, SessionFollower, Source};
pub use fork::Fork;
pub use label::{LabelError, set_tag, set_title};
pub use lines::{Ending, LONGEST, Lines, Piece};
pub use measure::{measure, measure_reader};
pub use outline::Outline;
pub use problem::{FileError, Problem};
pub use read::{Entries, Located, load, load_alone, load_reader};
pub use record::{Durability, Facts, Recorder};
pub use repair::{Change, Repair, RepairError, repair};
pub use resume::Resumed;
pub use writer::{Acknowledge, Queued, Watch};
