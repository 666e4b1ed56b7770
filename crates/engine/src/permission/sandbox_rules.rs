//! Converts permission rules into restrictions for the sandbox.

use std::sync::Arc;

use quipu_message::ToolName;

use super::path_pattern::PathPattern;
use super::rules::SourcedRule;
use super::{Behavior, RuleSet, file_tools};
use crate::path::TargetPath;
use crate::sandbox::{PathMatcher, SandboxRestrictions};
use crate::tool::Workspace;

/// Returns the files that deny and ask rules and the `sandbox` settings protect from commands that
/// run without approval, and whether an allow rule opens the network. Must be built again when the rules
/// change.
pub fn sandbox_restrictions(rules: &RuleSet, workspace: &Workspace) -> SandboxRestrictions {
    let of = |tool: fn(&ToolName) -> bool, named: &[String]| {
        let refusing = [Behavior::Deny, Behavior::Ask].into_iter().flat_map(|behavior| rules.with_behavior(behavior));
        let refusing = refusing.filter(|rule| tool(&rule.rule.tool));
        let patterns = refusing.filter_map(|rule| PathPattern::from_rule(rule, workspace));
        path_matcher(patterns.chain(named.iter().flat_map(|path| PathPattern::from_setting(path, workspace))).collect())
    };
    let anywhere = |rule: &SourcedRule| {
        rule.rule.tool == ToolName::WebFetch && rule.rule.content.as_deref().is_none_or(|what| what == "domain:*")
    };
    let network = rules.with_behavior(Behavior::Allow).any(anywhere);
    let settings = &workspace.sandbox().settings().filesystem;
    SandboxRestrictions {
        allows_network: network,
        unreadable: of(|tool| *tool == ToolName::Read, &settings.deny_read),
        unwritable: of(file_tools::is_edit_tool, &settings.deny_write),
    }
}

fn path_matcher(patterns: Vec<PathPattern>) -> PathMatcher {
    let roots = patterns.iter().flat_map(|pattern| pattern.literal_prefixes.iter().cloned()).collect();
    let names = move |path: &std::path::Path| {
        let target = TargetPath::from_resolved(path);
        patterns.iter().any(|pattern| pattern.matches(&target))
    };
    PathMatcher { roots, matches: Arc::new(names) }
}
