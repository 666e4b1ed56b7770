//! What rules keep from commands, for the sandbox to hold back.

use std::sync::Arc;

use super::path_pattern::PathPattern;
use super::rules::SourcedRule;
use super::{Behavior, RuleSet, file_tools};
use crate::path::TargetPath;
use crate::sandbox::{PathMatcher, SandboxRestrictions};
use crate::tool::Workspace;

/// The files that deny rules keep from being read or changed, and whether a rule opens the
/// network. To be made again when the rules change.
pub fn sandbox_restrictions(rules: &RuleSet, place: &Workspace) -> SandboxRestrictions {
    let of = |tool: fn(&str) -> bool| {
        path_matcher(rules.with_behavior(Behavior::Deny).filter(|rule| tool(&rule.rule.tool)), place)
    };
    let anywhere = |rule: &SourcedRule| {
        rule.rule.tool == "WebFetch" && rule.rule.content.as_deref().is_none_or(|what| what == "domain:*")
    };
    let network = rules.with_behavior(Behavior::Allow).any(anywhere);
    SandboxRestrictions {
        allows_network: network,
        unreadable: of(|tool| tool == "Read"),
        unwritable: of(file_tools::is_edit_tool),
    }
}

fn path_matcher<'a>(rules: impl Iterator<Item = &'a SourcedRule>, place: &Workspace) -> PathMatcher {
    let patterns: Vec<PathPattern> = rules.filter_map(|rule| PathPattern::from_rule(rule, place)).collect();
    let roots = patterns.iter().flat_map(|pattern| pattern.literal_prefixes.iter().cloned()).collect();
    let names = move |path: &std::path::Path| {
        let target = TargetPath::from_resolved(path);
        patterns.iter().any(|pattern| pattern.matches(&target))
    };
    PathMatcher { roots, matches: Arc::new(names) }
}
