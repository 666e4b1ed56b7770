//! What the prompt cache did for each call, why it missed, and what other settings would cost.
//!
//! ```text
//!   call ── positions ── token counts ──┐
//!                                       ├─> store (documented rules) ──┬─> verdicts: cause, place, cost
//!   policy (lifetime, breakpoints, …) ──┘                              └─> what-if: tokens and cost
//! ```
//!
//! The server caches prefixes of tools, system and messages at breakpoints. A verdict compares
//! what a call read with what its predecessor had cached, and names the first difference
//! between the two. A what-if repeats all calls under another policy by the same rules.

mod analysis;
mod cause;
mod comparison;
mod expectation;
mod history;
mod links;
mod model_rules;
mod parameters;
mod policy;
mod positions;
mod rows;
mod stable_tools;
mod store;
mod token_counts;
mod verdict;
mod what_if;

pub use self::analysis::CacheAnalysis;
pub use self::cause::Cause;
pub use self::policy::Policy;
pub use self::rows::{CacheRow, DiagnosisRow, MissRow, PolicyRow, policy_rows};
pub use self::verdict::{CallVerdict, Miss, MissTotals};
pub use self::what_if::CostedTokens;
