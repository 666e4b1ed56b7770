//! Tools that read and change files, and rules about paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddDirectories, SetMode};
use serde_json::Value;

use super::guarded::{is_covered, is_guarded};
use super::judge::{Court, Question, Reason, Verdict, suggest_rules};
use super::path::PathPattern;
use super::rules::Sourced;
use super::{Behavior, Mode, Rule, Rules, Source};
use crate::tool::{Hides, Place, Target, resolve};

/// Whether a tool reads files.
pub(super) fn reads(tool: &str) -> bool {
    ["Read", "Glob", "Grep", "LS", "NotebookRead"].contains(&tool)
}

/// Whether a tool changes files.
pub(super) fn changes(tool: &str) -> bool {
    ["Edit", "Write", "MultiEdit", "NotebookEdit"].contains(&tool)
}

/// Judges a call of a file tool on a file.
pub(super) fn judge(court: &Court<'_>, input: &Value, target: &Target) -> Verdict {
    let place = court.place;
    let path = target.given.clone();
    // A pattern may lead out of the folder it starts in.
    let wanders = court.tool == "Glob" && input["pattern"].as_str().is_some_and(wanders);
    if let Some(verdict) = court.before_allowing(|rule| matches(rule, court.tool, target, place)) {
        return verdict;
    }
    let within = |folder: &PathBuf| target.real.as_ref().is_some_and(|real| real.starts_with(folder));
    let inside = place.folders().iter().any(within) && !wanders;
    let own_output = resolve(place.outputs()).is_some_and(|folder| within(&folder)) && court.tool == "Read";
    if place.is_confined() && !inside && !own_output {
        let message =
            format!("{} Rules cannot allow it: the session is restricted.", outside(court.tool, &path, place));
        return Verdict::Deny { message, reason: Reason::Mode(court.mode) };
    }
    let allowed = court.rule(Behavior::Allow, |rule| matches(rule, court.tool, target, place));
    let allowed = allowed.filter(|_| !(place.is_confined() && changes(court.tool) && is_guarded(&path)));
    if reads(court.tool) {
        if let Some(rule) = allowed.filter(|rule| !wanders || rule.rule.content.is_none()) {
            return Verdict::allow(Reason::rule(rule));
        }
        if inside || own_output {
            return Verdict::allow(Reason::Mode(court.mode));
        }
        return ask_to_read(court, path);
    }
    if court.mode == Mode::Plan {
        let message = format!("Cannot write to {} while in plan mode.", path.display());
        return Verdict::Deny { message, reason: Reason::Mode(court.mode) };
    }
    if let Some(rule) = allowed.filter(|rule| is_covered(rule, &path)) {
        return Verdict::allow(Reason::rule(rule));
    }
    if court.mode.accepts_edits() && inside && !is_guarded(&path) {
        return Verdict::allow(Reason::Mode(court.mode));
    }
    ask_to_change(court, path, inside)
}

fn ask_to_read(court: &Court<'_>, path: PathBuf) -> Verdict {
    let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    let suggestions = match folder.to_str().filter(|text| *text != "/" && !text.contains(['*', '?', '['])) {
        Some(text) => {
            vec![suggest_rules([Rule::new("Read", Some(&format!("/{text}/**")))], Source::Session)]
        }
        None => Vec::new(),
    };
    let message = outside(court.tool, &path, court.place);
    Verdict::Ask(Box::new(Question { message, reason: Reason::Unspoken, blocked_path: Some(path), suggestions }))
}

fn ask_to_change(court: &Court<'_>, path: PathBuf, inside: bool) -> Verdict {
    let (message, blocked_path) = if inside {
        (format!("{} to {} needs approval.", court.tool, path.display()), None)
    } else {
        (outside(court.tool, &path, court.place), Some(path.clone()))
    };
    let suggestions = if is_guarded(&path) { Vec::new() } else { suggest_edits(&path, inside) };
    Verdict::Ask(Box::new(Question { message, reason: Reason::Unspoken, blocked_path, suggestions }))
}

/// Suggests to accept changes, and to open the folder when it is not.
pub(super) fn suggest_edits(path: &Path, inside: bool) -> Vec<PermissionUpdate> {
    let destination = Source::Session.as_str().to_owned();
    let mode = PermissionUpdate::SetMode(Box::new(SetMode {
        mode: Mode::AcceptEdits.as_str().to_owned(),
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
        destination: Source::Session.as_str().to_owned(),
        ..AddDirectories::default()
    }))
}

/// Says that something is outside.
pub(super) fn outside(what: &str, path: &Path, place: &Place) -> String {
    let folders: Vec<String> = place.folders().iter().map(|folder| format!("'{}'", folder.display())).collect();
    format!(
        "{what} in '{}' needs approval: the path is outside the folders of this session ({}).",
        path.display(),
        folders.join(", ")
    )
}

/// Whether a pattern for names leads out of the folder it starts in.
fn wanders(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

/// Whether a rule is about a call of `tool` on a file.
///
/// `Read(path)` speaks of all tools that read files, `Edit(path)` of all that change
/// them. To refuse or ask, so does the name of any tool that changes files.
pub(super) fn matches(rule: &Sourced, tool: &str, target: &Target, place: &Place) -> bool {
    if rule.rule.content.is_none() {
        return rule.rule.is_about(tool);
    }
    let family = match rule.rule.tool.as_str() {
        "Read" => reads(tool),
        "Edit" => changes(tool),
        name if rule.behavior != Behavior::Allow && changes(name) => changes(tool),
        name => name == tool,
    };
    family && PathPattern::of(rule, place).is_some_and(|pattern| pattern.matches(target))
}

/// Tells which files rules keep from being read, for searches and mentions to leave out:
/// what would have to be asked about is left out too. To be made again when the rules change.
pub fn hidden(rules: &Rules, place: &Place) -> Hides {
    let kept = rules.iter().filter(|rule| rule.behavior != Behavior::Allow && rule.rule.tool == "Read");
    let patterns: Vec<PathPattern> = kept.filter_map(|rule| PathPattern::of(rule, place)).collect();
    Arc::new(move |target| patterns.iter().any(|pattern| pattern.matches(target)))
}

/// The file or folder that a call of a file tool names; `None` for other tools.
pub fn target(tool: &str, input: &Value, place: &Place) -> Option<Target> {
    if !reads(tool) && !changes(tool) {
        return None;
    }
    let given = ["file_path", "notebook_path", "path"].iter().find_map(|key| input[*key].as_str());
    Some(Target::new(given.map_or_else(|| place.cwd(), |given| place.absolute(given))))
}
