//! Tools that read and change files, and rules about paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddDirectories, SetMode};
use serde_json::Value;

use super::judge::{Court, Question, Reason, Verdict, suggest_rules};
use super::rules::Sourced;
use super::{Behavior, Mode, Rule, Rules, Source};
use crate::tool::{Hides, Place, resolve};

/// Whether a tool reads files.
pub(super) fn reads(tool: &str) -> bool {
    ["Read", "Glob", "Grep", "LS", "NotebookRead"].contains(&tool)
}

/// Whether a tool changes files.
pub(super) fn changes(tool: &str) -> bool {
    ["Edit", "Write", "MultiEdit", "NotebookEdit"].contains(&tool)
}

/// Judges a call of a file tool.
pub(super) fn judge(court: &Court<'_>, input: &Value) -> Verdict {
    let place = court.place;
    let given = ["file_path", "notebook_path", "path"].iter().find_map(|key| input[*key].as_str());
    let path = given.map_or_else(|| place.cwd(), |given| place.absolute(given));
    // A pattern may lead out of the folder it starts in.
    let wanders = court.tool == "Glob" && input["pattern"].as_str().is_some_and(wanders);
    if let Some(verdict) = court.before_allowing(|rule| matches(rule, court.tool, &path, place)) {
        return verdict;
    }
    let allowed = court.rule(Behavior::Allow, |rule| matches(rule, court.tool, &path, place));
    let inside = place.holds(&path) && !wanders;
    if reads(court.tool) {
        if let Some(rule) = allowed.filter(|rule| !wanders || rule.rule.content.is_none()) {
            return Verdict::allow(Reason::rule(rule));
        }
        let own_output = resolve(place.outputs()).is_some_and(|folder| leads_into(&path, &folder));
        if inside || (own_output && court.tool == "Read") {
            return Verdict::allow(Reason::Mode(court.mode));
        }
        return ask_to_read(court, path);
    }
    if court.mode == Mode::Plan {
        let message = format!("Cannot write to {} while in plan mode.", path.display());
        return Verdict::Deny { message, reason: Reason::Mode(court.mode) };
    }
    if let Some(rule) = allowed {
        return Verdict::allow(Reason::rule(rule));
    }
    if court.mode == Mode::AcceptEdits && inside && !is_guarded(&path) {
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

/// Whether a file decides what programs and agents do, so that no mode alone lets it be changed.
pub(crate) fn is_guarded(path: &Path) -> bool {
    let folders = [".git", ".claude", ".husky", ".vscode", ".idea"];
    let files = [".mcp.json", ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".envrc"];
    let real = resolve(path).unwrap_or_else(|| path.to_owned());
    [path, &real].iter().any(|path| {
        let mut names = path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase());
        names.any(|name| folders.contains(&name.as_str()) || files.contains(&name.as_str()))
    })
}

/// Whether a rule is about a call of `tool` on `path`.
///
/// `Edit(path)` speaks of all tools that change files, `Read(path)` of all that read them.
pub(super) fn matches(rule: &Sourced, tool: &str, path: &Path, place: &Place) -> bool {
    let Some(pattern) = rule.rule.content.as_deref() else { return rule.rule.is_about(tool) };
    let family = match rule.rule.tool.as_str() {
        "Read" => reads(tool),
        "Edit" => changes(tool),
        name => name == tool,
    };
    family && path_matches(pattern, rule, path, place)
}

/// Whether a path is one that a rule's pattern names. To allow, it is where the path
/// really leads that must match; to refuse or ask, any way to it is enough.
fn path_matches(pattern: &str, rule: &Sourced, path: &Path, place: &Place) -> bool {
    let Some((root, pattern)) = anchor(pattern, rule.source, place) else { return false };
    let Some(real) = resolve(path) else { return rule.behavior != Behavior::Allow };
    if rule.behavior == Behavior::Allow {
        return ignored(&root, &pattern, &real);
    }
    let real_root = resolve(&root).unwrap_or_else(|| root.clone());
    let plain = plain_path(path);
    let lead = leading(&root, &pattern);
    ignored(&root, &pattern, &real)
        || ignored(&real_root, &pattern, &real)
        || ignored(&root, &pattern, &plain)
        || lead.is_some_and(|(root, pattern)| ignored(&root, &pattern, &real))
}

/// Tells which files no tool may read, for searches to leave out. To be made anew
/// when the rules change.
pub fn hidden(rules: &Rules, place: &Place) -> Hides {
    let denied = rules.saying(Behavior::Deny).filter(|rule| rule.rule.tool == "Read");
    let matchers: Vec<(PathBuf, Gitignore)> = denied
        .filter_map(|rule| {
            let (root, pattern) = anchor(rule.rule.content.as_deref()?, rule.source, place)?;
            let matcher = matcher(&root, &pattern)?;
            Some((root, matcher))
        })
        .collect();
    Arc::new(move |path| {
        let hides = |(root, matcher): &(PathBuf, Gitignore)| {
            path.starts_with(root) && matcher.matched_path_or_any_parents(path, false).is_ignore()
        };
        matchers.iter().any(hides)
    })
}

/// The pattern of a rule that refuses, with the folders it is anchored at.
pub(super) fn matchers(rule: &Sourced, place: &Place) -> Option<Vec<(PathBuf, String, Gitignore)>> {
    let (root, pattern) = anchor(rule.rule.content.as_deref()?, rule.source, place)?;
    let mut anchors = vec![(root.clone(), pattern.clone())];
    anchors.extend(resolve(&root).map(|root| (root, pattern.clone())));
    anchors.extend(leading(&root, &pattern));
    anchors.dedup();
    let compiled = |(root, pattern): (PathBuf, String)| {
        let matcher = matcher(&root, &pattern)?;
        Some((root, pattern, matcher))
    };
    Some(anchors.into_iter().filter_map(compiled).collect())
}

/// Where a pattern starts: `//` the root of the system, `~/` home, `/` the folder of
/// the settings that hold the rule, otherwise the session's folder.
fn anchor(pattern: &str, source: Source, place: &Place) -> Option<(PathBuf, String)> {
    let home = || place.home().map(|home| resolve(&home).unwrap_or(home));
    if let Some(rest) = pattern.strip_prefix("//") {
        return Some((PathBuf::from("/"), format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        return Some((home()?, format!("/{rest}")));
    }
    let pattern = pattern.strip_prefix("./").map_or_else(|| pattern.to_owned(), |rest| format!("/{rest}"));
    if pattern.starts_with('/') && source == Source::User {
        return Some((home()?.join(".claude"), pattern));
    }
    Some((place.root().to_owned(), pattern))
}

/// A pattern with its leading plain names followed through links.
fn leading(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let names: Vec<&str> = pattern.strip_prefix('/')?.split('/').collect();
    let plain = names.iter().take_while(|name| !name.contains(['*', '?', '[', '\\'])).count().min(names.len() - 1);
    let folder = names[..plain].iter().fold(root.to_owned(), |path, name| path.join(name));
    Some((resolve(&folder)?, format!("/{}", names[plain..].join("/"))))
}

/// Whether a pattern, in the manner of ignore files, names a path or a folder above it.
fn ignored(root: &Path, pattern: &str, path: &Path) -> bool {
    let named = |matcher: Gitignore| matcher.matched_path_or_any_parents(path, path.is_dir()).is_ignore();
    path.starts_with(root) && matcher(root, pattern).is_some_and(named)
}

fn matcher(root: &Path, pattern: &str) -> Option<Gitignore> {
    // A pattern cannot take back what it says, and is no comment.
    let pattern = if pattern.starts_with(['!', '#']) { format!("\\{pattern}") } else { pattern.to_owned() };
    let mut builder = GitignoreBuilder::new(root);
    builder.add_line(None, &pattern).ok()?.build().ok()
}

/// A path without `.` and `..`, links not followed.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn leads_into(path: &Path, folder: &Path) -> bool {
    resolve(path).is_some_and(|real| real.starts_with(folder))
}
