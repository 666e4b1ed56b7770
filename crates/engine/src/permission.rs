//! Decides whether a tool call may run: permission modes, rules and their evaluation.
//!
//! | I want to … | look at |
//! |---|---|
//! | decide about a tool call | [`evaluate`] |
//! | read or compare a rule | [`Rule`], `path_pattern` for files, `bash::pattern` for commands |
//! | change the rules of a session | [`RuleSet::apply`], then [`apply_rules`] |
//! | see how a shell command is understood | `shell`, `bash` |
//!
//! Everything fails closed: an unknown value allows nothing, a command that cannot be
//! parsed needs approval, and a path is compared after its links are resolved.

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

pub(crate) use bash::{is_read_only, loop_variables, program_names};
pub use decision::{ApprovalRequest, Decision, DecisionReason, evaluate, evaluate_target};
pub(crate) use decision::{needs_user_interaction, skill_name};
pub(crate) use file_tools::is_edit_tool;
pub use file_tools::{file_target, hidden_file_filter};
pub use mode::EffectiveMode;
pub(crate) use path_pattern::pattern_count;
pub use rule::{Behavior, Rule, RuleSource};
pub use rules::{RuleSet, SourcedRule, UpdateError};
pub use sandbox_rules::sandbox_restrictions;

use crate::tool::Workspace;

/// Passes the rules to the sandbox and to tools that find files and hosts themselves
/// (searches, mentions, redirects). Must be called again whenever the rules change.
pub fn apply_rules(rules: &RuleSet, workspace: &Workspace) {
    workspace.set_hidden_files(hidden_file_filter(rules, workspace));
    workspace.sandbox().set_restrictions(sandbox_restrictions(rules, workspace));
    workspace.set_denied_hosts(web::denied_host_filter(rules));
}
