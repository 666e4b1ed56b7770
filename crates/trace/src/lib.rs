//! API calls of agents: which requests were sent, which of them belong together, and what
//! the prompt cache did.
//!
//! ```text
//!   capture files, session files ── import ── TraceBuilder ── Trace ──┬── structure: branches, turns
//!   (RawCall each)                                                   ├── cache: verdicts, what-if
//!                                                                    └── export: OTLP, HAR, JSON
//! ```
//!
//! The API is stateless: each call repeats the whole conversation. A [`Trace`] therefore keeps
//! every text once ([`PromptStore`]) and a call as a list of ids, so that memory and time
//! follow the new content of each call and not its whole size.

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod anatomy;
mod builder;
pub mod cache;
mod call;
pub mod capture;
mod content_encoding;
mod credentials;
mod diff;
pub mod explain;
mod export;
mod import;
mod prompt_store;
mod raw_call;
mod replay;
mod request_body;
mod rows;
mod structure;
mod trace;

pub use anatomy::{AnatomyPart, anatomy};
pub use builder::TraceBuilder;
pub use call::{Call, CallEnd, CallIdentity, CallResponse, Endpoint, RequestParts, ToolCallRef};
pub use diff::{Change, Difference, diff_requests};
pub use export::{ExportedSpans, export_spans, write_har};
pub use import::{CallSource, CaptureFormat, ImportError};
pub use prompt_store::{BlockPart, Breakpoint, MessageKey, PartKey, PromptMessage, PromptStore, TextId};
pub use raw_call::{RawCall, RawResponse};
pub use replay::read_recorded_calls;
pub use rows::{BranchRow, CallDiff, CallRow, SessionCallRows, TraceRows, TurnRow, call_cost};
pub use structure::{Branch, BranchKind, ForkReason, SessionCalls, Structure, TurnCalls};
pub use trace::{Source, Trace, TraceProblem};
