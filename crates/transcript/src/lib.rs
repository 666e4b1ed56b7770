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
mod overview;
mod problem;
mod read;
mod record;
mod repair;
mod resume;
mod writer;

pub mod find;

pub use append::{AppendError, Journal};
pub use backups::FileBackups;
pub use check::{Check, CheckReport};
pub use delete::{DeleteError, delete_session};
pub use follow::{ChangeWatcher, FollowEvent, Follower, LineSource, SessionFollower};
pub use fork::{Fork, ForkError};
pub use label::{LabelError, set_tag, set_title};
pub use lines::{LineEnding, LineReader, MAX_LINE_BYTES, RawLine};
pub use measure::{measure, measure_reader};
pub use overview::SessionOverview;
pub use problem::{FileError, error_chain};
pub use quipu_conversation::{Problem, ProblemKind};
pub use read::{Entries, LocatedEntry, load_file, load_reader, load_session};
pub use record::{Durability, EnvelopeDefaults, Recorder};
pub use repair::{RepairChange, RepairError, RepairReport, repair};
pub use resume::TranscriptState;
pub use writer::{OnWritten, QueuedHandle, WriteObserver};
