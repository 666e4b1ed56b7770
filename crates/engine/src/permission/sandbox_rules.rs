//! Converts permission rules into restrictions for the sandbox.

use std::sync::Arc;

use quipu_message::ToolName;

use super::path_pattern::PathPattern;
use super::rules::SourcedRule;
use super::{Behavior, RuleSet, file_tools};
use crate::path::TargetPath;
use crate::sandbox::{PathMatcher, SandboxRestrictions};
use crate::tool::Workspace;

/// Returns the files that deny rules protect from commands, and whether an allow rule opens
/// the network. Must be built again when the rules change.
pub fn sandbox_restrictions(rules: &RuleSet, workspace: &Workspace) -> SandboxRestrictions {
    let of = |tool: fn(&ToolName) -> bool| {
        path_matcher(rules.with_behavior(Behavior::Deny).filter(|rule| tool(&rule.rule.tool)), workspace)
    };
    let anywhere = |rule: &SourcedRule| {
        rule.rule.tool == ToolName::WebFetch && rule.rule.content.as_deref().is_none_or(|what| what == "domain:*")
    };
    let network = rules.with_behavior(Behavior::Allow).any(anywhere);
    SandboxRestrictions {
        allows_network: network,
        unreadable: of(|tool| *tool == ToolName::Read),
        unwritable: of(file_tools::is_edit_tool),
    }
}

fn path_matcher<'a>(rules: impl Iterator<Item = &'a SourcedRule>, workspace: &Workspace) -> PathMatcher {
    let patterns: Vec<PathPattern> = rules.filter_map(|rule| PathPattern::from_rule(rule, workspace)).collect();
    let roots = patterns.iter().flat_map(|pattern| pattern.literal_prefixes.iter().cloned()).collect();
    let names = move |path: &std::path::Path| {
        let target = TargetPath::from_resolved(path);
        patterns.iter().any(|pattern| pattern.matches(&target))
    };
    PathMatcher { roots, matches: Arc::new(names) }
}
