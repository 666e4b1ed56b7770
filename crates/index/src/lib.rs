//! How lines are counted over gigabytes.
//!
//! ```text
//!   session files ── scan ──── what each API message used, per session
//!                      └────── Ledger ── copies in other sessions dropped
//!                                └────── Report ── by day, session, model …
//! ```
//!
//! Only lines that money depends on are parsed. Deliberately absent: writing session
//! files, and the price table, which is passed in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod catalogue;
mod hashed;
mod ledger;
mod pack;
mod scan;
mod store;
mod usage;

pub use catalogue::{Catalogue, Listed, Progress};
pub use ledger::{Ledger, SessionUse};
pub use scan::scan;
pub use store::IndexError;
pub use usage::{By, Counter, Report, Row, Used, Window};
