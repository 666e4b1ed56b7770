//! Usage reports and full-text search over many sessions.
//!
//! ```text
//!   session files ─┬─ Catalogue (SQLite) ─┬─ UsageCounter ── UsageReport
//!                  │                      └─ search, sessions
//!                  └─ scan_session ── UsageLedger ── UsageCounter   (without a database)
//! ```
//!
//! This crate does not write session files, and the price table is passed in.
//!
//! ```
//! use quipu_conversation::price::Prices;
//! use quipu_index::{Catalogue, GroupBy, TimeWindow, UsageCounter};
//! # let dir = std::env::temp_dir();
//! let mut catalogue = Catalogue::in_memory(&[dir], Prices::bundled())?;
//! catalogue.refresh(&|_, _| ())?;
//! let window = TimeWindow::default();
//! let mut counter = UsageCounter::new(GroupBy::Day, &window);
//! catalogue.for_each_usage(GroupBy::Day, &window, |record| counter.add(record))?;
//! let report = counter.report(jiff::Timestamp::UNIX_EPOCH);
//! assert_eq!(report.totals.messages, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | keep usage and text of all sessions up to date | [`Catalogue::refresh`], [`Catalogue::index_text`] |
//! | report usage | [`UsageCounter`], [`UsageReport`] |
//! | report usage without a database | [`scan_session`], [`UsageLedger`] |
//! | list sessions | [`Catalogue::sessions`] |
//! | show a part of a long session at once | [`SkeletonStore`] |
//! | search for words | [`SearchTerms`], [`Catalogue::search`] |
//! | search for exact text or a regex | [`Pattern`], [`matching_lines`] |

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

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
mod skeleton_store;
mod store;
mod terms;
mod tokenizer;
mod usage;
mod usage_archive;
mod usage_json;

pub use catalogue::{Catalogue, ProgressCallback, SessionStatus};
pub use counter::UsageCounter;
pub use ledger::{SessionUsage, UsageLedger};
pub use listed_session::ListedSession;
pub use scan::scan_session;
pub use search::{
    FileHits, Hit, MatchingLine, Pattern, Query, SearchHits, SearchRole, SessionKey, hits_in_line, matching_lines,
};
pub use skeleton_store::SkeletonStore;
pub use store::IndexError;
pub use terms::{PatternError, SearchTerms};
pub use usage::{
    GroupBy, TimeWindow, UnpricedCount, UnpricedKind, UsageAmounts, UsageBlock, UsageRecord, UsageReport, UsageRow,
};
pub use usage_archive::archived_usage;
pub use usage_json::usage_json;
