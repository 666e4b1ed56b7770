//! Reads, follows, checks and writes session files of Claude-Code-style agents.
//!
//! A session file has one JSON entry per line. Reading never fails as a whole: a bad line becomes
//! a [`Problem`] with its position, and the rest is still read.
//!
//! ```
//! let file = br#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}
//! not JSON
//! "#;
//! let conversation = quipu_transcript::load_reader(&file[..]);
//! assert_eq!(conversation.for_ui()[0].text.as_deref(), Some("hi"));
//! assert_eq!(conversation.problems()[0].line, 2);
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | list sessions, or find one by its id | [`find`] |
//! | show title, prompts and times of a session quickly | [`SessionOverview`] |
//! | load a conversation | [`load_session`], [`load_reader`] |
//! | show a part of a long session | [`SessionSkeleton`] |
//! | keep a session open while it grows | [`OpenSession`] |
//! | read entries or raw lines one at a time | [`Entries`], [`LineReader`] |
//! | count tokens and cost of a session | [`measure`] |
//! | read lines as they are written | [`SessionFollower`], [`ChangeWatcher`] |
//! | check or repair files | [`Check`], [`repair`] |
//! | write a session | [`Recorder`], [`Journal`] |
//! | fork, name, tag or delete a session | [`Fork`], [`set_title`], [`set_tag`], [`delete_session`] |
//! | get the command that resumes a session | [`ResumeCommand`] |
//! | get a file as it was before the session | [`FileBackups`] |
//!
//! Not in this crate: HTTP and prices.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

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
mod resume_command;
mod skeleton;
mod writer;

pub mod find;
pub mod trust;

pub use append::{AppendError, Journal};
pub use backups::FileBackups;
pub use check::{Check, CheckReport};
pub use delete::{DeleteError, delete_idle_session, delete_session};
pub use follow::{ChangeWatcher, FollowEvent, Follower, LineSource, LiveSession, NewSessions, SessionFollower};
pub use fork::{Fork, ForkError};
pub use label::{LabelError, set_tag, set_title};
pub use lines::{LineEnding, LineReader, MAX_LINE_BYTES, RawLine};
pub use measure::{for_each_view, measure, measure_reader};
pub use overview::SessionOverview;
pub use problem::{FileError, error_chain};
pub use quipu_conversation::{Problem, ProblemKind};
pub use read::{Entries, LocatedEntry, load_file, load_reader, load_session};
pub use record::{Durability, EnvelopeDefaults, Recorder};
pub use repair::{RepairChange, RepairError, RepairReport, repair};
pub use resume::TranscriptState;
pub use resume_command::{ResumeCommand, ResumeCommandError};
pub use skeleton::{FileSkeleton, OpenSession, SessionSkeleton};
pub use writer::{OnWritten, QueuedHandle, WriteObserver};
