//! Guarded files among the names in a command that a rule allows: the rule does not cover changes of them.

use std::path::{Path, PathBuf};

use globset::Glob;

use super::file_names::{file_folders, known_parts, possible_file_names};
use super::known_commands;
use super::possible_commands::PossibleCommands;
use super::possible_cwds::PossibleCwds;
use crate::path::without_dots;
use crate::permission::decision::PermissionContext;
use crate::permission::rules::SourcedRule;

/// Characters of words that the shell replaces by names of files.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The most names that wildcards are followed to.
const MAX_MATCHES: usize = 5000;

/// Returns a guarded file that a command which a rule allows may change, unless the rule names the file:
/// `git log --output=.git/config`, `env cp x .envrc`, `for f in .claude/*; do rm "$f"; done`.
pub(super) fn changed_guarded_file(
    ctx: &PermissionContext<'_>,
    rule: &SourcedRule,
    possible: &PossibleCommands,
    cwds: &PossibleCwds,
) -> Option<PathBuf> {
    let rule = rule.rule.content.as_deref().unwrap_or_default();
    let is_named = |name: &str| {
        let mut words = rule.split_whitespace().map(|word| word.trim_end_matches(":*"));
        !name.contains(WILDCARDS) && words.any(|word| word.ends_with(name))
    };
    let changed = possible.commands.iter().flat_map(|words| known_commands::changed_names(words));
    let mut names: Vec<String> = Vec::new();
    for name in changed.filter(|name| !is_named(name)) {
        names.extend(possible_file_names(&name).into_iter().map(String::from));
        if name.contains('$') {
            let values = possible.values.iter().flat_map(|value| possible_file_names(&value.text));
            names.extend(known_parts(&name, &possible.values).into_iter().chain(values.map(String::from)));
        }
    }
    names.retain(|name| !name.is_empty() && !is_named(name));
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let folders = file_folders(possible, cwds.0.clone().unwrap_or_else(|| vec![ctx.workspace.cwd()]));
    // `cp a/b x` changes `x/b` only if `x` is a folder.
    let is_in_folder = |name: &String| {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        folders.iter().any(|start| start.join(folder).is_dir())
    };
    let copied = possible.commands.iter().flat_map(|words| known_commands::copied_names(words));
    names.extend(copied.filter(|name| !is_named(name) && is_in_folder(name)));
    let mut paths = Vec::new();
    for (name, folder) in names.iter().flat_map(|name| folders.iter().map(move |folder| (name, folder))) {
        match name.contains(WILDCARDS) {
            // If there are too many to compare, it is asked about the folder.
            true => match matches_of(folder, name) {
                Some(matches) => paths.extend(matches),
                None => return Some(folder.clone()),
            },
            false => paths.push(folder.join(name)),
        }
    }
    ctx.workspace.find_guarded(paths.into_iter())
}

/// Returns the files that the shell replaces a word with wildcards by; `None` if there are too many.
fn matches_of(folder: &Path, word: &str) -> Option<Vec<PathBuf>> {
    let path = without_dots(&folder.join(word));
    let mut matches = vec![PathBuf::new()];
    for part in &path {
        let pattern = part.to_string_lossy();
        if !pattern.contains(WILDCARDS) {
            matches.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        // What is not known to the library may match anything.
        let glob = Glob::new(&pattern).ok().filter(|_| !pattern.contains("[:")).map(|glob| glob.compile_matcher());
        let mut found = Vec::new();
        for entry in matches.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten() {
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".") && !pattern.starts_with('.');
            if !is_hidden && glob.as_ref().is_none_or(|glob| glob.is_match(&name)) {
                found.push(entry.path());
            }
            if found.len() > MAX_MATCHES {
                return None;
            }
        }
        matches = found;
    }
    Some(matches)
}
