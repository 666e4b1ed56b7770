//! Guarded files among the names in a command that a rule allows: the rule does not cover changes of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::Glob;

use super::file_names::{file_folders, names_in_code, possible_file_names};
use super::known_commands;
use super::possible_commands::PossibleCommands;
use super::possible_cwds::PossibleCwds;
use crate::path::{MAX_PATH_BYTES, without_dots};
use crate::permission::decision::PermissionContext;
use crate::permission::path_pattern::expand_braces;
use crate::permission::rules::SourcedRule;
use crate::permission::shell::{Script, Word};

/// Characters of words that the shell replaces by names of files.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The most names that wildcards are followed to, and texts that a word may become.
const MAX_MATCHES: usize = 5000;

/// Options before a text that is no name of a file: `git commit -m "$(cat <<E …)"`.
const MESSAGE_OPTIONS: [&str; 4] = ["-m", "-am", "--message", "--body"];

/// What a command that a rule allows may change against the rule.
pub(super) enum ChangedFile {
    /// A guarded file that the rule does not name.
    Guarded(PathBuf),
    /// A file whose name only the shell knows.
    Unknown,
}

/// Returns what a command may change although the rule that allows it does not name it:
/// `git log --output=.git/config`, `env cp x .envrc`, `for f in .claude/*; do rm "$f"; done`.
pub(super) fn changed_file(
    ctx: &PermissionContext<'_>,
    rule: &SourcedRule,
    possible: &PossibleCommands,
    (script, cwds): (&Script, &PossibleCwds),
) -> Option<ChangedFile> {
    let rule = rule.rule.content.as_deref().unwrap_or_default();
    let is_named = |name: &str| {
        let mut words = rule.split_whitespace().map(|word| word.trim_end_matches(":*"));
        !name.contains(WILDCARDS) && words.any(|word| word.ends_with(name))
    };
    let folders = cwds.0.clone().unwrap_or_else(|| vec![ctx.workspace.cwd()]);
    let values = Values { ctx, script, folders: &folders };
    let (mut names, mut copied) = (Vec::new(), Vec::new());
    for words in possible.commands.iter().filter(|words| known_commands::may_write_files(words)) {
        let Some(words) = values.expand_all(words) else { return Some(ChangedFile::Unknown) };
        let changed = known_commands::changed_names(&words).into_iter().filter(|name| !is_named(name));
        names.extend(
            changed.flat_map(|name| possible_file_names(&name).into_iter().map(String::from).collect::<Vec<_>>()),
        );
        copied.extend(known_commands::copied_names(&words));
        if known_commands::runs_script(&words) {
            names.extend(words.iter().skip(1).flat_map(|word| names_in_code(&word.text)));
            names.extend(words.iter().skip(1).flat_map(|word| names_after_letter(&word.text)));
        }
    }
    let folders = file_folders(possible, folders.clone());
    // `cp a/b x` changes `x/b` only if `x` is a folder.
    let is_in_folder = |name: &String| {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        folders.iter().any(|start| start.join(folder).is_dir())
    };
    names.extend(copied.into_iter().filter(is_in_folder));
    names.retain(|name| !name.is_empty() && !is_named(name));
    names.sort_unstable();
    names.dedup();
    let mut paths = Vec::new();
    for (name, folder) in names.iter().flat_map(|name| folders.iter().map(move |folder| (name, folder))) {
        match name.contains(WILDCARDS) {
            true => match matches_of(folder, name) {
                Some(matches) => paths.extend(matches),
                None => return Some(ChangedFile::Unknown),
            },
            false => paths.push(folder.join(name)),
        }
    }
    ctx.workspace.find_guarded(paths.into_iter()).map(ChangedFile::Guarded)
}

/// Returns the names of files that a script of `sed` may write, directly after the letter: `1w.envrc`.
fn names_after_letter(code: &str) -> Vec<String> {
    let after = code.match_indices(['w', 'W']).map(|(at, _)| &code[at + 1..]).take(MAX_MATCHES);
    let names = after.filter_map(|rest| rest.lines().next()).filter(|name| name.len() <= MAX_PATH_BYTES);
    names.map(|name| name.trim_start().to_owned()).collect()
}

/// The values of variables in a script.
struct Values<'a> {
    ctx: &'a PermissionContext<'a>,
    script: &'a Script,
    /// Where the script may run.
    folders: &'a [PathBuf],
}

impl Values<'_> {
    /// Returns the words of a command with those that the shell expands replaced by all that they may become, still with
    /// wildcards; `None` if that is not known.
    fn expand_all(&self, words: &[Word]) -> Option<Vec<Word>> {
        let mut expanded: Vec<Word> = Vec::new();
        for word in words {
            let is_message = expanded.last().is_some_and(|before| MESSAGE_OPTIONS.contains(&before.text.as_str()));
            let texts = match word.is_literal || is_message {
                true => vec![word.text.clone()],
                false => self.expand(&word.text)?,
            };
            expanded.extend(texts.into_iter().map(|text| Word { text, is_literal: true }));
        }
        Some(expanded)
    }

    /// Returns what a word may become. Only usual forms are known: a word in double quotes or without any.
    fn expand(&self, source: &str) -> Option<Vec<String>> {
        let quoted = source.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = quoted.unwrap_or(source);
        if text.contains(['\'', '"', '\\', '`']) || text.contains("..}") || text.contains("$(") {
            return None;
        }
        let texts = match text.contains('{') && quoted.is_none() {
            true => expand_braces(&text.replace("${", "$\u{1}")).filter(|_| !has_range(text))?,
            false => vec![text.replace("${", "$\u{1}")],
        };
        let mut found = Vec::new();
        for text in texts {
            let substituted = self.substitute(&text.replace('\u{1}', "{"))?;
            // Without quotes the shell splits values.
            found.extend(substituted.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned));
            found.extend(substituted);
        }
        found.into_iter().map(|text| self.expand_home(text)).collect()
    }

    fn expand_home(&self, text: String) -> Option<String> {
        match text.strip_prefix('~') {
            None => Some(text),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(self.ctx.workspace.absolute(&text).to_string_lossy().into_owned())
            }
            Some(_) => None,
        }
    }

    /// Replaces the variables in a word by all their values.
    fn substitute(&self, text: &str) -> Option<Vec<String>> {
        let Some((before, rest)) = text.split_once('$') else { return Some(vec![text.to_owned()]) };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match rest.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let values = self.values(name)?;
        let after = self.substitute(after)?;
        let count = values.len() * after.len();
        let join = |value: &String| after.iter().map(|after| format!("{before}{value}{after}")).collect::<Vec<_>>();
        (count <= MAX_MATCHES).then(|| values.iter().flat_map(join).collect())
    }

    /// Returns the values that a variable may have: of a loop, or of the environment.
    fn values(&self, name: &str) -> Option<Vec<String>> {
        if self.script.loop_variables.iter().any(|variable| variable == name) {
            let plain = |word: &Word| match word.is_literal {
                true => Some(vec![word.text.clone()]),
                false if word.text.contains('$') => None,
                false => self.expand(&word.text).and_then(|texts| self.with_matches(texts)),
            };
            let values: Option<Vec<Vec<String>>> = self.script.loop_words.iter().map(plain).collect();
            return values.map(|values| values.concat());
        }
        if self.ctx.workspace.env_script().contains(name) {
            return None;
        }
        match self.ctx.workspace.env().get(OsStr::new(name)) {
            Some(value) => Some(vec![value.to_str()?.to_owned()]),
            // The shell sets variables with capitals itself.
            None => name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| vec![String::new()]),
        }
    }

    /// Adds the names that wildcards match.
    fn with_matches(&self, mut texts: Vec<String>) -> Option<Vec<String>> {
        for text in texts.clone().iter().filter(|text| text.contains(WILDCARDS)) {
            for folder in self.folders {
                let matches = matches_of(folder, text)?;
                let names = matches.iter().map(|path| path.strip_prefix(folder).unwrap_or(path));
                texts.extend(names.map(|name| name.to_string_lossy().into_owned()));
            }
        }
        Some(texts)
    }
}

/// Whether a word has a range in braces: `{a..c}`.
fn has_range(text: &str) -> bool {
    text.split('{').skip(1).any(|part| part.split('}').next().unwrap_or_default().contains(".."))
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
