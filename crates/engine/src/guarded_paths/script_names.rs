//! The files inside the session that commands of hooks, helpers and MCP servers run, by the names in their texts. A change
//! of such a file runs without a sandbox the next time the command runs.
//!
//! What a command does is not parsed: a file is guarded if its name and those of the folders on the way to it occur in the
//! text, in any order. This is easy to foresee, and a name too many only guards a file too many.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::comparable;
use crate::path::original_paths;

#[cfg(test)]
mod tests;

/// Endings of files that programs find by a name without it: `node x`, `python3 -m x`, `require 'x'`.
const MODULE_ENDINGS: [&str; 10] = ["cjs", "js", "lua", "mjs", "mts", "pm", "py", "rb", "ts", "tsx"];

/// The names in the texts of commands, one set a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptNames(Vec<CommandText>);

#[derive(Debug, Clone)]
struct CommandText {
    text: String,
    names: BTreeSet<String>,
}

impl ScriptNames {
    /// Adds the names in the text of a command, with the values of variables that are known.
    pub(crate) fn add(&mut self, text: &str, variable: &dyn Fn(&str) -> Option<String>) {
        let text = expand_variables(text, variable);
        let names = names_in(&text).flat_map(forms_of).collect();
        self.0.push(CommandText { text, names });
    }

    /// Adds the names in the lines of a start-up file of the shell that load other files: `. ./x`, `source x`.
    pub(crate) fn add_loaded(&mut self, text: &str, variable: &dyn Fn(&str) -> Option<String>) {
        let loads = |line: &&str| line.split([' ', '\t', ';', '&', '|']).any(|word| [".", "source"].contains(&word));
        text.lines().filter(loads).for_each(|line| self.add(line, variable));
    }

    /// Returns the paths in the texts that links lead to, if they are relative to one of the folders.
    pub(crate) fn linked_paths(&self, folders: &[&Path]) -> Vec<PathBuf> {
        let words = self.0.iter().flat_map(|command| command.text.split(|c: char| c != '/' && !is_name_char(c)));
        let paths =
            words.filter(|word| !word.is_empty()).flat_map(|word| folders.iter().map(move |folder| folder.join(word)));
        let leads_to_folder = |real: &Path| folders.iter().any(|folder| folder.starts_with(real));
        let is_linked = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real != *path && !leads_to_folder(&real));
        paths.filter(is_linked).collect()
    }

    /// Whether a command names a file in one of the folders, which need not exist.
    pub(crate) fn may_run(&self, path: &Path, folders: &[PathBuf]) -> bool {
        // A session in a worktree runs the files there.
        self.names_file(path, folders) || original_paths(path).iter().any(|path| self.names_file(path, folders))
    }

    fn names_file(&self, path: &Path, folders: &[PathBuf]) -> bool {
        let below = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        let Some(below) = below.min_by_key(|below| below.components().count()) else { return false };
        let (folder, Some(name)) = (below.parent().unwrap_or(Path::new("")), below.file_name()) else { return false };
        let name = name.to_string_lossy();
        let stem = name.rsplit_once('.').filter(|(_, ending)| MODULE_ENDINGS.contains(ending)).map(|(stem, _)| stem);
        let occurs = |command: &CommandText, text: &str| {
            names_in(text).all(|name| command.names.contains(&comparable(OsStr::new(name))))
        };
        let is_named = |command: &CommandText| {
            folder.iter().all(|name| occurs(command, &name.to_string_lossy()))
                && (occurs(command, &name) || stem.is_some_and(|stem| occurs(command, stem)))
        };
        self.0.iter().any(is_named) && !path.symlink_metadata().is_ok_and(|data| data.is_dir())
    }
}

/// Returns the names in a text, without the signs between them: `sh "my hooks/x.sh"` contains `sh`, `my`, `hooks` and
/// `x.sh`.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_name_char(c)).filter(|name| !name.is_empty())
}

/// Whether a character belongs to a name, for the text of a command.
fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || "._-+@".contains(c)
}

/// Returns the forms of a name: as it is written, after the letter of an option (`-rx`, `-mx`), and the modules in
/// `tools.check`.
fn forms_of(name: &str) -> Vec<String> {
    let option = name.strip_prefix('-').unwrap_or_default();
    let value = option.chars().next().map(|letter| &option[letter.len_utf8()..]).unwrap_or_default();
    let whole = [name, option, value];
    let modules = whole.iter().flat_map(|name| name.split('.'));
    whole.iter().copied().chain(modules).map(|name| comparable(OsStr::new(name))).collect()
}

/// Replaces the variables whose values are known.
pub(super) fn expand_variables(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split('$');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = braced.unwrap_or(part.split_at(end));
        match variable(name) {
            Some(value) => expanded.extend([value.as_str(), rest]),
            None => expanded.extend(["$", part]),
        }
    }
    expanded
}
