//! Tools that read and change files, and rules about paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddDirectories, SetMode};
use quipu_message::values::SettingsLocation;
use serde_json::Value;

use super::decision::{ApprovalRequest, Decision, DecisionReason, PermissionContext, suggest_rules};
use super::path_pattern::PathPattern;
use super::rules::SourcedRule;
use super::{Behavior, PermissionMode, Rule, RuleSet, RuleSource};
use crate::guarded_paths::{comparable, guarded_names, is_guarded, is_in_repository};
use crate::path::{TargetPath, resolve};
use crate::tool::{HiddenFileFilter, Workspace};

/// Whether a tool reads files.
pub(super) fn is_read_tool(tool: &str) -> bool {
    ["Read", "Glob", "Grep", "LS", "NotebookRead"].contains(&tool)
}

/// Whether a tool changes files.
pub(super) fn is_edit_tool(tool: &str) -> bool {
    ["Edit", "Write", "MultiEdit", "NotebookEdit"].contains(&tool)
}

/// Judges a call of a file tool on a file.
pub(super) fn evaluate(court: &PermissionContext<'_>, input: &Value, target: &TargetPath) -> Decision {
    let place = court.workspace;
    let path = target.given.clone();
    // A pattern may lead out of the folder it starts in.
    let wanders = court.tool == "Glob" && input["pattern"].as_str().is_some_and(leaves_folder);
    if let Some(verdict) = court.decide_before_allow_rules(|rule| rule_matches(rule, court.tool, target, place)) {
        return verdict;
    }
    let within = |folder: &PathBuf| target.real.as_ref().is_some_and(|real| real.starts_with(folder));
    let inside = place.folders().iter().any(within) && !wanders;
    let own_output = resolve(place.output_folder()).is_some_and(|folder| within(&folder)) && court.tool == "Read";
    if place.is_confined() && !inside && !own_output {
        let message =
            format!("{} Rules cannot allow it: the session is restricted.", outside_message(court.tool, &path, place));
        return Decision::Deny { message, reason: DecisionReason::Mode(court.mode) };
    }
    let allowed = court.find_rule(Behavior::Allow, |rule| rule_matches(rule, court.tool, target, place));
    let allowed = allowed.filter(|_| !(place.is_confined() && is_edit_tool(court.tool) && is_guarded(&path)));
    if is_read_tool(court.tool) {
        if let Some(rule) = allowed.filter(|rule| !wanders || rule.rule.content.is_none()) {
            return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
        }
        if inside || own_output {
            return Decision::allow_unsandboxed(DecisionReason::Mode(court.mode));
        }
        return ask_to_read(court, path);
    }
    if court.mode == PermissionMode::Plan {
        let message = format!("Cannot write to {} while in plan mode.", path.display());
        return Decision::Deny { message, reason: DecisionReason::Mode(court.mode) };
    }
    if let Some(rule) = allowed.filter(|rule| is_covered_by_rule(rule, &path)) {
        return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
    }
    if court.mode.accepts_edits() && inside && !is_guarded(&path) {
        return Decision::allow_unsandboxed(DecisionReason::Mode(court.mode));
    }
    ask_to_change(court, path, inside)
}

fn ask_to_read(court: &PermissionContext<'_>, path: PathBuf) -> Decision {
    let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    let suggestions = match folder.to_str().filter(|text| *text != "/" && !text.contains(['*', '?', '['])) {
        Some(text) => {
            vec![suggest_rules([Rule::new("Read", Some(&format!("/{text}/**")))], RuleSource::Session)]
        }
        None => Vec::new(),
    };
    let message = outside_message(court.tool, &path, court.workspace);
    Decision::Ask(Box::new(ApprovalRequest {
        message,
        reason: DecisionReason::NoRule,
        blocked_path: Some(path),
        suggestions,
    }))
}

fn ask_to_change(court: &PermissionContext<'_>, path: PathBuf, inside: bool) -> Decision {
    let (message, blocked_path) = if inside {
        (format!("{} to {} needs approval.", court.tool, path.display()), None)
    } else {
        (outside_message(court.tool, &path, court.workspace), Some(path.clone()))
    };
    let suggestions = if is_guarded(&path) { Vec::new() } else { suggest_accept_edits(&path, inside) };
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::NoRule, blocked_path, suggestions }))
}

/// Suggests to accept changes, and to open the folder when it is not.
pub(super) fn suggest_accept_edits(path: &Path, inside: bool) -> Vec<PermissionUpdate> {
    let destination = SettingsLocation::Session;
    let mode = PermissionUpdate::SetMode(Box::new(SetMode {
        mode: PermissionMode::AcceptEdits.into(),
        destination,
        ..SetMode::default()
    }));
    if inside { vec![mode] } else { vec![suggest_folder(path), mode] }
}

/// Suggests to open the folder of a path.
pub(super) fn suggest_folder(path: &Path) -> PermissionUpdate {
    let folder = path.parent().unwrap_or(path).to_string_lossy().into_owned();
    PermissionUpdate::AddDirectories(Box::new(AddDirectories {
        directories: vec![folder],
        destination: SettingsLocation::Session,
        ..AddDirectories::default()
    }))
}

/// Says that something is outside.
pub(super) fn outside_message(what: &str, path: &Path, place: &Workspace) -> String {
    let folders: Vec<String> = place.folders().iter().map(|folder| format!("'{}'", folder.display())).collect();
    format!(
        "{what} in '{}' needs approval: the path is outside the folders of this session ({}).",
        path.display(),
        folders.join(", ")
    )
}

/// Whether a pattern for names leads out of the folder it starts in.
fn leaves_folder(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

/// Whether a rule is about a call of `tool` on a file.
///
/// `Read(path)` speaks of all tools that read files, `Edit(path)` of all that change
/// them. To refuse or ask, so does the name of any tool that changes files.
pub(super) fn rule_matches(rule: &SourcedRule, tool: &str, target: &TargetPath, place: &Workspace) -> bool {
    if rule.rule.content.is_none() {
        return rule.rule.applies_to(tool);
    }
    let family = match rule.rule.tool.as_str() {
        "Read" => is_read_tool(tool),
        "Edit" => is_edit_tool(tool),
        name if rule.behavior != Behavior::Allow && is_edit_tool(name) => is_edit_tool(tool),
        name => name == tool,
    };
    family && PathPattern::from_rule(rule, place).is_some_and(|pattern| pattern.matches(target))
}

/// Tells which files rules keep from being read, for searches and mentions to leave out:
/// what would have to be asked about is left out too. To be made again when the rules change.
pub fn hidden_file_filter(rules: &RuleSet, place: &Workspace) -> HiddenFileFilter {
    let kept = rules.iter().filter(|rule| rule.behavior != Behavior::Allow && rule.rule.tool == "Read");
    let patterns: Vec<PathPattern> = kept.filter_map(|rule| PathPattern::from_rule(rule, place)).collect();
    Arc::new(move |target| patterns.iter().any(|pattern| pattern.matches(target)))
}

/// The file or folder that a call of a file tool names; `None` for other tools.
pub fn file_target(tool: &str, input: &Value, place: &Workspace) -> Option<TargetPath> {
    if !is_read_tool(tool) && !is_edit_tool(tool) {
        return None;
    }
    let given = ["file_path", "notebook_path", "path"].iter().find_map(|key| input[*key].as_str());
    Some(TargetPath::new(given.map_or_else(|| place.cwd(), |given| place.absolute(given))))
}

/// Whether an allow rule covers a path: guarded files only where the rule names what guards them.
pub(super) fn is_covered_by_rule(rule: &SourcedRule, path: &Path) -> bool {
    let pattern = rule.rule.content.as_deref().unwrap_or_default().to_lowercase();
    let written: Vec<&str> = pattern.split('/').collect();
    let real = resolve(path).unwrap_or_else(|| path.to_owned());
    let named = |path: &Path| guarded_names(path).all(|name| written.contains(&name.as_str()));
    let file_name = real.file_name().map(comparable).unwrap_or_default();
    named(path) && named(&real) && (written.contains(&file_name.as_str()) || !is_in_repository(&real))
}
