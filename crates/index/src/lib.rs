//! How lines are counted and found over gigabytes.
//!
//! ```text
//!   session files ─┬─ Catalogue ── what is new, folded and kept ─┬─ Counter ── Report
//!                  │                    └── words ── search      │
//!                  └─ scan ── Ledger ── the same, nothing kept ──┘
//! ```
//!
//! Deliberately absent: writing session files, and the price table, which is passed in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod catalogue;
mod counter;
mod hashing;
mod ledger;
mod line_text;
mod listed_session;
mod message_copies;
mod packed_messages;
mod scan;
mod search;
mod store;
mod terms;
mod tokenizer;
mod usage;
mod usage_archive;

pub use catalogue::{Catalogue, ProgressCallback, SessionStatus};
pub use counter::UsageCounter;
pub use ledger::{SessionUsage, UsageLedger};
pub use listed_session::ListedSession;
pub use scan::scan_session;
pub use search::{Hit, MatchingLine, Pattern, Query, SearchHits, SearchRole, SessionKey, hits_in_line, matching_lines};
pub use store::IndexError;
pub use terms::{PatternError, SearchTerms};
pub use usage::{
    GroupBy, TimeWindow, UnpricedCount, UnpricedKind, UsageAmounts, UsageBlock, UsageRecord, UsageReport, UsageRow,
};
pub use usage_archive::archived_usage;
