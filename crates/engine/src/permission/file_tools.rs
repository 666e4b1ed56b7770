//! Tools that read or change files, and rules about paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_message::ToolName;
use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddDirectories, SetMode};
use quipu_message::values::SettingsLocation;
use serde_json::Value;

use super::decision::{ApprovalRequest, Decision, DecisionReason, PermissionContext, suggest_rules};
use super::path_pattern::{PathPattern, PatternFolders, has_wildcards};
use super::rules::SourcedRule;
use super::{Behavior, EffectiveMode, Rule, RuleSet, RuleSource};
use crate::guarded_paths::{comparable, guarded_names, is_in_repository};
use crate::path::{TargetPath, may_exist, resolve};
use crate::tool::{HiddenFileFilterSource, Workspace};

/// Whether a tool reads files.
pub(super) fn is_read_tool(tool: &ToolName) -> bool {
    matches!(tool, ToolName::Read | ToolName::Glob | ToolName::Grep | ToolName::Ls | ToolName::NotebookRead)
}

/// Whether a tool changes files.
pub(crate) fn is_edit_tool(tool: &ToolName) -> bool {
    matches!(tool, ToolName::Edit | ToolName::Write | ToolName::MultiEdit | ToolName::NotebookEdit)
}

/// Whether a tool that changes files reports what it finds in the file. `Write` does if there is one.
fn shows_old_content(tool: &ToolName, target: &TargetPath) -> bool {
    is_edit_tool(tool) && (*tool != ToolName::Write || target.real.as_deref().is_none_or(may_exist))
}

/// Evaluates a call of a file tool.
pub(super) fn evaluate(ctx: &PermissionContext<'_>, input: &Value, target: &TargetPath) -> Decision {
    let workspace = ctx.workspace;
    let path = target.given.clone();
    // A Glob pattern may lead out of the folder it is relative to.
    let pattern_leaves_folder = *ctx.tool == ToolName::Glob && input["pattern"].as_str().is_some_and(leaves_folder);
    if let Some(decision) = ctx.decide_before_allow_rules(|rule| rule_matches(rule, ctx.tool, target, workspace)) {
        return decision;
    }
    let within = |folder: &PathBuf| target.real.as_ref().is_some_and(|real| real.starts_with(folder));
    let is_script = is_agent_script(workspace.output_folder())(target);
    let inside = workspace.folders().iter().any(within) && !pattern_leaves_folder && !is_script;
    let outputs = || {
        let outputs = [Some(workspace.output_folder().to_owned()), workspace.results_folder()];
        outputs.into_iter().flatten().filter_map(|folder| resolve(&folder))
    };
    // Does not matter inside, and resolving the folders takes many system calls.
    let is_own_output = !inside && *ctx.tool == ToolName::Read && !is_script && outputs().any(|folder| within(&folder));
    if workspace.is_confined() && !inside && !is_own_output {
        let message = format!(
            "{} Rules cannot allow it: the session is restricted.",
            outside_message(ctx.tool.as_str(), &path, workspace)
        );
        return Decision::Deny { message, reason: DecisionReason::Mode(ctx.mode) };
    }
    let allowed = ctx.find_rule(Behavior::Allow, |rule| rule_matches(rule, ctx.tool, target, workspace));
    let allowed =
        allowed.filter(|_| !(workspace.is_confined() && is_edit_tool(ctx.tool) && workspace.is_target_guarded(target)));
    if is_read_tool(ctx.tool) {
        if let Some(rule) = allowed.filter(|rule| !pattern_leaves_folder || rule.rule.content.is_none()) {
            return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
        }
        if inside || is_own_output {
            return Decision::allow_unsandboxed(DecisionReason::Mode(ctx.mode));
        }
        return ask_to_read(ctx, path);
    }
    if ctx.mode == EffectiveMode::Plan {
        let message = format!("Cannot write to {} while in plan mode.", path.display());
        return Decision::Deny { message, reason: DecisionReason::Mode(ctx.mode) };
    }
    if let Some(rule) = allowed.filter(|rule| is_covered_by_rule(rule, target, workspace)) {
        return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
    }
    if ctx.mode.accepts_edits() && inside && !workspace.is_target_guarded(target) {
        return Decision::allow_unsandboxed(DecisionReason::Mode(ctx.mode));
    }
    ask_to_change(ctx, path, inside)
}

fn ask_to_read(ctx: &PermissionContext<'_>, path: PathBuf) -> Decision {
    let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    // Allow rules compare the resolved path.
    let folder = resolve(folder).unwrap_or_else(|| folder.to_owned());
    let suggestions = match folder.to_str().filter(|text| *text != "/" && !has_wildcards(text)) {
        Some(text) => {
            vec![suggest_rules([Rule::new(ToolName::Read, Some(&format!("/{text}/**")))], RuleSource::Session)]
        }
        None => Vec::new(),
    };
    let message = outside_message(ctx.tool.as_str(), &path, ctx.workspace);
    Decision::Ask(Box::new(ApprovalRequest {
        message,
        reason: DecisionReason::NoRule,
        blocked_path: Some(path),
        suggestions,
    }))
}

fn ask_to_change(ctx: &PermissionContext<'_>, path: PathBuf, inside: bool) -> Decision {
    let (message, blocked_path) = if inside {
        (format!("{} to {} needs approval.", ctx.tool, path.display()), None)
    } else {
        (outside_message(ctx.tool.as_str(), &path, ctx.workspace), Some(path.clone()))
    };
    let suggestions = if ctx.workspace.is_guarded(&path) { Vec::new() } else { suggest_accept_edits(&path, inside) };
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::NoRule, blocked_path, suggestions }))
}

/// Suggests the mode `acceptEdits`, and adding the folder if it is outside the session's.
pub(super) fn suggest_accept_edits(path: &Path, inside: bool) -> Vec<PermissionUpdate> {
    let destination = SettingsLocation::Session;
    let mode = PermissionUpdate::SetMode(Box::new(SetMode {
        mode: EffectiveMode::AcceptEdits.into(),
        destination,
        ..SetMode::default()
    }));
    if inside { vec![mode] } else { vec![suggest_folder(path), mode] }
}

/// Suggests adding the folder of a path to the session's folders.
pub(super) fn suggest_folder(path: &Path) -> PermissionUpdate {
    let folder = path.parent().unwrap_or(path);
    // The user sees which folder it is, not a link to it.
    let folder = resolve(folder).unwrap_or_else(|| folder.to_owned()).to_string_lossy().into_owned();
    PermissionUpdate::AddDirectories(Box::new(AddDirectories {
        directories: vec![folder],
        destination: SettingsLocation::Session,
        ..AddDirectories::default()
    }))
}

/// Message for a path outside the session's folders.
pub(super) fn outside_message(what: &str, path: &Path, workspace: &Workspace) -> String {
    let folders: Vec<String> = workspace.folders().iter().map(|folder| format!("'{}'", folder.display())).collect();
    format!(
        "{what} in '{}' needs approval: the path is outside the folders of this session ({}).",
        path.display(),
        folders.join(", ")
    )
}

/// Whether a Glob pattern can match files outside the folder it is relative to.
fn leaves_folder(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

/// Whether a rule matches a call of `tool` on a file.
///
/// `Read(path)` applies to all tools that read files, `Edit(path)` to all that change them.
/// In deny and ask rules the name of any tool that changes files applies to all of them, and
/// `Read` also to those that show the old content.
pub(super) fn rule_matches(rule: &SourcedRule, tool: &ToolName, target: &TargetPath, workspace: &Workspace) -> bool {
    if rule.rule.content.is_none() {
        return rule.rule.applies_to(tool);
    }
    let family = match &rule.rule.tool {
        // An edit shows whether a text is in the file, and a write what it replaces.
        ToolName::Read if rule.behavior != Behavior::Allow => is_read_tool(tool) || shows_old_content(tool, target),
        ToolName::Read => is_read_tool(tool),
        ToolName::Edit => is_edit_tool(tool),
        name if rule.behavior != Behavior::Allow && is_edit_tool(name) => is_edit_tool(tool),
        name => name == tool,
    };
    let pattern = || PathPattern::from_rule(rule, &PatternFolders::new(workspace));
    family && pattern().is_some_and(|pattern| pattern.matches(target))
}

/// Returns what makes the test for files that searches and mentions leave out because a deny or ask
/// rule matches them. Must be built again when the rules change.
pub fn hidden_file_filter(rules: &RuleSet, workspace: &Workspace) -> HiddenFileFilterSource {
    let kept = rules.iter().filter(|rule| rule.behavior != Behavior::Allow && rule.rule.tool == ToolName::Read);
    let kept: Vec<SourcedRule> = kept.cloned().collect();
    let folders = PatternFolders::new(workspace);
    let output_folder = workspace.output_folder().to_owned();
    Arc::new(move || {
        let pattern = PathPattern::from_restrictions(kept.iter(), &[], &folders);
        let is_script = is_agent_script(&output_folder);
        Arc::new(move |target| is_script(target) || pattern.matches(target))
    })
}

/// Returns a test for the scripts in the agent's own folder, which contain variables of the user's shell.
fn is_agent_script(output_folder: &Path) -> impl Fn(&TargetPath) -> bool + Send + Sync + 'static {
    let folder = resolve(output_folder);
    move |target| {
        let script = target.real.as_ref().filter(|real| real.extension().is_some_and(|extension| extension == "sh"));
        script.zip(folder.as_ref()).is_some_and(|(script, folder)| script.starts_with(folder))
    }
}

/// Resolves the file or folder that a call of a file tool names; `None` for other tools.
pub fn file_target(tool: &ToolName, input: &Value, workspace: &Workspace) -> Option<TargetPath> {
    if !is_read_tool(tool) && !is_edit_tool(tool) {
        return None;
    }
    let given = ["file_path", "notebook_path", "path"].iter().find_map(|key| input[*key].as_str());
    Some(TargetPath::new(given.map_or_else(|| workspace.cwd(), |given| workspace.absolute(given))))
}

/// Whether an allow rule covers a path. Guarded files are covered only by rules that name them.
pub(super) fn is_covered_by_rule(rule: &SourcedRule, target: &TargetPath, workspace: &Workspace) -> bool {
    let pattern = rule.rule.content.as_deref().unwrap_or_default().to_lowercase();
    let written: Vec<&str> = pattern.split('/').collect();
    let real = target.real.as_ref().unwrap_or(&target.given);
    let named = |path: &Path| {
        let mut names = guarded_names(path).chain(workspace.hidden_home_name(path));
        names.all(|name| written.contains(&name.as_str()))
    };
    let file_name = real.file_name().map(comparable).unwrap_or_default();
    // A rule that names `.git` means what is in it.
    let is_unnamed = guarded_names(real).next().is_none();
    let needs_own_name = is_unnamed && is_in_repository(real) || workspace.is_target_of_guarded_link(real);
    target.names().all(named) && (written.contains(&file_name.as_str()) || !needs_own_name)
}
