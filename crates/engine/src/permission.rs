//! Whether a call may run: modes, rules, and the judge.
//!
//! Closed for decisions: a word that is not known allows nothing, a command that is
//! not understood is asked, and a path is judged by where it really leads.

mod bash;
mod files;
mod guarded;
mod judge;
mod mode;
mod path;
mod refused;
mod rule;
mod rules;
mod shell;
mod web;

pub(crate) use bash::{only_reads, programs};
pub use files::{hidden, target};
pub(crate) use guarded::{CONFIG_FOLDERS, has_guarded_name, is_in_repository};
pub use judge::{Question, Reason, Verdict, judge, judge_at};
pub use mode::Mode;
pub use refused::refused;
pub use rule::{Behavior, Rule, Source};
pub use rules::{Rules, Sourced, UpdateError};

use crate::tool::Place;

/// Makes the rules known to the sandbox and to tools that find files and hosts by
/// themselves: searches, mentions, redirects. To be done again when the rules change.
pub fn enforce(rules: &Rules, place: &Place) {
    place.hide(hidden(rules, place));
    place.sandbox().refuse(refused(rules, place));
    place.refuse_hosts(web::refused(rules));
}
