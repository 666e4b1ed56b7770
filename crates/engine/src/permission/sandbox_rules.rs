//! Converts permission rules into restrictions for the sandbox.

use std::sync::Arc;

use quipu_message::ToolName;

use super::path_pattern::{PathPattern, PatternFolders};
use super::rules::SourcedRule;
use super::{Behavior, RuleSet, file_tools};
use crate::path::TargetPath;
use crate::sandbox::{PathMatcher, RestrictionSource, SandboxRestrictions};
use crate::tool::Workspace;

/// Returns what finds the files that deny and ask rules and the `sandbox` settings protect from commands
/// that run without approval, and whether an allow rule opens the network. Must be built again when the
/// rules change.
pub fn sandbox_restrictions(rules: &RuleSet, workspace: &Workspace) -> RestrictionSource {
    let anywhere = |rule: &SourcedRule| {
        rule.rule.tool == ToolName::WebFetch && rule.rule.content.as_deref().is_none_or(|what| what == "domain:*")
    };
    // Single domains cannot be filtered.
    let is_restricted =
        rules.iter().any(|rule| rule.behavior != Behavior::Allow && rule.rule.tool == ToolName::WebFetch);
    let allows_network = rules.with_behavior(Behavior::Allow).any(anywhere) && !is_restricted;
    let refusing = rules.iter().filter(|rule| rule.behavior != Behavior::Allow);
    let refusing: Vec<SourcedRule> = refusing.cloned().collect();
    let settings = workspace.sandbox().settings().filesystem.clone();
    let folders = PatternFolders::new(workspace);
    let find = move || {
        let of = |tool: fn(&ToolName) -> bool, named: &[String]| {
            let refusing = refusing.iter().filter(|rule| tool(&rule.rule.tool));
            path_matcher(PathPattern::from_restrictions(refusing, named, &folders))
        };
        SandboxRestrictions {
            allows_network,
            unreadable: of(|tool| *tool == ToolName::Read, &settings.deny_read),
            unwritable: of(file_tools::is_edit_tool, &settings.deny_write),
        }
    };
    // Links that the rules name now are remembered.
    drop(find());
    RestrictionSource::new(find)
}

fn path_matcher(pattern: PathPattern) -> PathMatcher {
    let roots = pattern.literal_prefixes.clone();
    let names = move |path: &std::path::Path| pattern.matches(&TargetPath::from_resolved(path));
    PathMatcher { roots, matches: Arc::new(names) }
}
