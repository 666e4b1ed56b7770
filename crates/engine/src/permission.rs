//! Whether a call may run: modes, rules, and the judge.
//!
//! Closed for decisions: a word that is not known allows nothing, a command that is
//! not understood is asked, and a path is judged by where it really leads.

mod bash;
mod decision;
mod file_tools;
mod mode;
mod path_pattern;
mod rule;
mod rules;
mod sandbox_rules;
mod shell;
mod web;

pub(crate) use bash::{is_read_only, program_names};
pub use decision::{ApprovalRequest, Decision, DecisionReason, evaluate, evaluate_target};
pub use file_tools::{file_target, hidden_file_filter};
pub use mode::PermissionMode;
pub use rule::{Behavior, Rule, RuleSource};
pub use rules::{RuleSet, SourcedRule, UpdateError};
pub use sandbox_rules::sandbox_restrictions;

use crate::tool::Workspace;

/// Makes the rules known to the sandbox and to tools that find files and hosts by
/// themselves: searches, mentions, redirects. To be done again when the rules change.
pub fn apply_rules(rules: &RuleSet, place: &Workspace) {
    place.set_hidden_files(hidden_file_filter(rules, place));
    place.sandbox().set_restrictions(sandbox_restrictions(rules, place));
    place.set_denied_hosts(web::denied_host_filter(rules));
}
