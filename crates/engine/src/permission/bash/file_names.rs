//! Files that a command names, for comparison with deny and ask rules.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use quipu_message::ToolName;

use super::known_commands::{self, CommandEffect};
use super::pattern::{decode_escapes, with_plain_blanks};
use super::possible_commands::{PossibleCommands, is_tar, program_name};
use super::possible_cwds::PossibleCwds;
use crate::path::{MAX_PATH_BYTES, TargetPath, without_dots};
use crate::permission::Behavior;
use crate::permission::decision::PermissionContext;
use crate::permission::file_tools;
use crate::permission::path_pattern::{PathPattern, PatternFolders, expand_braces};
use crate::permission::rules::SourcedRule;
use crate::permission::shell::Word;

/// How many letters of short options in one word are followed.
const MAX_SHORT_OPTIONS: usize = 1024;

/// The most folders, and values of variables, that names are joined to.
const MAX_FOLDERS: usize = 32;

/// The names in a command that may be files, and the folders that they may be relative to.
pub(super) struct NamedFiles<'a> {
    possible: &'a PossibleCommands,
    ctx: &'a PermissionContext<'a>,
    folders: Vec<PathBuf>,
    /// The first file that a deny rule about reading, a deny rule about changes, and ask rules about these match. To
    /// compare many names with many rules one by one would take minutes.
    first_matches: [OnceCell<Option<TargetPath>>; 4],
}

impl<'a> NamedFiles<'a> {
    pub(super) fn new(possible: &'a PossibleCommands, ctx: &'a PermissionContext<'a>, cwds: &PossibleCwds) -> Self {
        let cwds = cwds.0.clone().unwrap_or_else(|| vec![ctx.workspace.cwd()]);
        Self { possible, ctx, folders: file_folders(possible, cwds), first_matches: Default::default() }
    }

    /// Whether a deny or ask rule about files matches the first of the names, in any of the folders, that any rule like it
    /// matches. If one of these rules matches a name, one matches the first.
    pub(super) fn match_rule(&self, rule: &SourcedRule) -> bool {
        let Some(forbids_reading) = forbids_reading(rule) else { return false };
        let is_ask = rule.behavior == Behavior::Ask;
        let found = self.first_matches[usize::from(is_ask) * 2 + usize::from(forbids_reading)].get_or_init(|| {
            let rules = self.ctx.rules.with_behavior(rule.behavior);
            let similar = rules.filter(|rule| self::forbids_reading(rule) == Some(forbids_reading));
            let folders = PatternFolders::new(self.ctx.workspace);
            self.find_match(&PathPattern::from_restrictions(similar, &[], &folders), forbids_reading)
        });
        let pattern = || PathPattern::from_rule(rule, &PatternFolders::new(self.ctx.workspace));
        found.as_ref().is_some_and(|file| pattern().is_some_and(|pattern| pattern.matches(file)))
    }

    /// Returns the first file of the names that a pattern matches, in any of the folders.
    fn find_match(&self, pattern: &PathPattern, forbids_reading: bool) -> Option<TargetPath> {
        let Self { possible, ctx, folders, .. } = self;
        let file = |name: &str| {
            if name.is_empty() {
                return None;
            }
            let home = name.starts_with('~').then(|| ctx.workspace.absolute(name));
            let paths = folders.iter().map(|folder| folder.join(name)).chain(home);
            paths.map(TargetPath::new).find(|path| pattern.matches(path))
        };
        let named = |word: &Word| {
            let mut parts = if word.is_literal { Vec::new() } else { known_parts(&word.text, &possible.values) };
            // `.e"n"{v,x}`
            let expanded = parts.iter().filter(|part| part.contains('{')).filter_map(|part| expand_braces(part));
            parts.extend(expanded.flatten().collect::<Vec<_>>());
            let names = possible_file_names(&word.text);
            names.iter().map(AsRef::as_ref).chain(parts.iter().map(String::as_str)).find_map(file)
        };
        let command = |words: &Vec<Word>| {
            // A command that only reads cannot violate a rule about changes.
            let reads = known_commands::command_effect(words) == Some(CommandEffect::ReadOnly);
            if reads && !forbids_reading {
                return None;
            }
            let first = words.first().filter(|first| !first.is_literal);
            let copied = || known_commands::copied_names(words).iter().find_map(|name| file(name));
            words.iter().skip(1).chain(first).find_map(named).or_else(copied)
        };
        let written = |word: &&Word| forbids_reading || possible.written_files.contains(word);
        let in_code = |code: &String| names_in_code(code).iter().find_map(|name| file(name));
        let commands = possible.commands.iter().find_map(command);
        commands
            .or_else(|| possible.redirect_files.iter().filter(written).find_map(named))
            .or_else(|| possible.values.iter().find_map(named))
            .or_else(|| possible.foreign_code.iter().find_map(in_code))
    }
}

/// Whether a rule for files is about reading; `None` if it is not for files.
fn forbids_reading(rule: &SourcedRule) -> Option<bool> {
    match (&rule.rule.tool, &rule.rule.content) {
        (ToolName::Read, Some(_)) => Some(true),
        (name, Some(_)) if file_tools::is_edit_tool(name) => Some(false),
        _ => None,
    }
}

/// Returns the parts of code that may be file names. There they are enclosed in quotes, brackets or the signs that
/// follow `q` in Perl, or escapes are next to them.
pub(super) fn names_in_code(code: &str) -> BTreeSet<String> {
    let separates = |c: char| c.is_whitespace() || "'\"`()[]{},;=<>|&".contains(c);
    let joined = code.replace("\\\n", "");
    let unquoted = joined.replace(['\'', '"'], "");
    let mut names: BTreeSet<String> =
        [code, &joined, &unquoted].iter().flat_map(|text| text.split(separates)).map(str::to_owned).collect();
    for text in [with_plain_blanks(code), decode_escapes(code)] {
        names.extend(text.split(|c: char| separates(c) || c.is_control() || c == '#').map(str::to_owned));
    }
    let in_slashes = |name: &String| {
        let name = ["q/", "qq/", "qw/"].iter().find_map(|start| name.strip_prefix(start));
        name.map(|name| name.trim_end_matches('/').to_owned())
    };
    let quoted: Vec<String> = names.iter().filter_map(in_slashes).collect();
    names.extend(quoted);
    // `${x:-name}`
    let defaults = [":-", ":=", ":+"];
    let after: Vec<String> = defaults.iter().flat_map(|sign| code.split(sign).skip(1)).map(str::to_owned).collect();
    names.extend(after.iter().filter_map(|text| text.split(separates).next()).map(str::to_owned));
    names
}

/// Returns the folders that names in the commands may be relative to, given those that they may run in.
pub(super) fn file_folders(possible: &PossibleCommands, cwds: Vec<PathBuf>) -> Vec<PathBuf> {
    named_folders(possible, changed_folders(possible, cwds))
}

/// Adds the folders that commands change to or are given as theirs (`cd -P a`, `pushd a`, `tar -C a`), in any order.
fn changed_folders(possible: &PossibleCommands, mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let changes = |word: &Word| ["cd", "pushd"].contains(&word.text.as_str());
    let is_option = |word: &Word| ["-C", "--chdir", "--directory"].contains(&word.text.as_str());
    let mut names: Vec<&str> = Vec::new();
    for words in &possible.commands {
        let changed = words.first().filter(|first| changes(first)).map(|_| &words[1..]).unwrap_or_default();
        names.extend(changed.iter().map(|word| word.text.as_str()).filter(|text| !text.starts_with('-')));
        names.extend(words.windows(2).filter(|pair| is_option(&pair[0])).map(|pair| pair[1].text.as_str()));
        names.extend(words.iter().filter_map(|word| word.text.split_once("directory=")).map(|(_, folder)| folder));
        // `tar cfCC - a b x`: the values of several options follow.
        let has_bundle = words.get(1).is_some_and(|word| word.text.contains('C'));
        if has_bundle && is_tar(&program_name(&words[0])) {
            names.extend(words[2..].iter().map(|word| word.text.as_str()));
        }
    }
    for name in names {
        let parts = if name.contains('$') { known_parts(name, &possible.values) } else { vec![name.to_owned()] };
        let further = folders.iter().flat_map(|folder| parts.iter().map(|part| without_dots(&folder.join(part))));
        for folder in further.collect::<Vec<PathBuf>>() {
            if folders.len() < MAX_FOLDERS && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders
}

/// Adds the existing folders among all names, because any option or code may tell a program to run there:
/// `make -sCa`, `d=a; cd "$d"`, `find a -execdir`.
fn named_folders(possible: &PossibleCommands, mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let words = possible.commands.iter().flatten().chain(&possible.values);
    let names = words.flat_map(|word| possible_file_names(&word.text)).map(Cow::into_owned);
    let in_code = possible.foreign_code.iter().flat_map(|code| names_in_code(code));
    let names: BTreeSet<String> =
        names.chain(in_code).filter(|name| !name.is_empty() && name.len() <= MAX_PATH_BYTES).collect();
    let bases = folders.clone();
    let found = names.iter().flat_map(|name| bases.iter().map(move |base| without_dots(&base.join(name))));
    for folder in found.filter(|path| path.is_dir()) {
        if folders.len() < MAX_FOLDERS && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Returns what is known of a word that the shell expands, without quotes: the word, and its parts between quotes and
/// variables, also after one of the values that variables may have. What begins with `/` may be below any folder.
fn known_parts(source: &str, values: &[Word]) -> Vec<String> {
    let mut parts = vec![source.replace(['\'', '"', '\\'], "")];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (at, part) in source.split('$').enumerate() {
        // The name of the variable comes first.
        let rest = match part.strip_prefix('{') {
            _ if at == 0 => part,
            Some(braced) => braced.trim_start_matches(is_name).trim_start_matches('}'),
            None => part.trim_start_matches(is_name),
        };
        parts.push(rest.replace(['\'', '"', '\\'], ""));
        parts.extend(rest.split(['\'', '"']).map(str::to_owned));
    }
    let below: Vec<String> = parts.iter().filter(|part| part.starts_with('/')).cloned().collect();
    for part in below {
        let ends = part.match_indices('/').map(|(at, _)| part[at + 1..].to_owned());
        let valued = values.iter().take(MAX_FOLDERS).map(|value| format!("{}{part}", value.text));
        parts.extend(ends.chain(valued).filter(|part| !part.is_empty()).collect::<Vec<_>>());
    }
    parts
}

/// Returns the parts of a word that may be file names: the word, the text after and between
/// separators, and the text after each letter of a short option.
pub(super) fn possible_file_names(word: &str) -> Vec<Cow<'_, str>> {
    let separates = |c: char| "=:@<>,;{})".contains(c);
    let mut names = vec![word];
    names.extend(word.match_indices(separates).map(|(at, sign)| &word[at + sign.len()..]));
    names.extend(word.split(separates));
    if word.starts_with('-') && !word.starts_with("--") {
        names.extend(word.char_indices().skip(2).take(MAX_SHORT_OPTIONS).map(|(at, _)| &word[at..]));
    }
    let expanded = if word.contains('{') { expand_braces(word).unwrap_or_default() } else { Vec::new() };
    // Programs remove quotes in values of options: `-F 'a=@".env"'`.
    let quotes = ['"', '\''];
    let unquoted: Vec<&str> =
        names.iter().filter(|name| name.starts_with(quotes)).map(|name| name.trim_matches(quotes)).collect();
    names.extend(unquoted);
    let mut names: Vec<Cow<'_, str>> = names.into_iter().map(Cow::Borrowed).collect();
    // The path of a URL follows the name of a host.
    names.extend(word.split_once("://").and_then(|(_, url)| url.find('/').map(|at| url_path(&url[at..]))));
    names.extend(expanded.into_iter().map(Cow::Owned));
    names.retain(|name| !name.is_empty() && name.len() <= MAX_PATH_BYTES);
    names
}

/// Returns the path of a URL without query and fragment, decoded.
fn url_path(text: &str) -> Cow<'_, str> {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    percent_encoding::percent_decode_str(path).decode_utf8_lossy()
}
