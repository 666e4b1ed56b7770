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
mod crediting;
mod hashed;
mod kept;
mod ledger;
mod pack;
mod said;
mod scan;
mod search;
mod store;
mod terms;
mod usage;
mod words;

pub use catalogue::{Catalogue, Listed, Progress, SessionStatus};
pub use counter::Counter;
pub use kept::kept_usage;
pub use ledger::{Ledger, SessionUse};
pub use scan::scan;
pub use search::{Found, Hit, Pattern, PatternError, Place, Query, Role, SessionKey, hits_at, places};
pub use store::IndexError;
pub use terms::Terms;
pub use usage::{Block, By, Report, Row, Unknown, Unpriced, Used, Window};
