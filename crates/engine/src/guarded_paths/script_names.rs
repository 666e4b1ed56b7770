//! The files inside the session that commands of hooks, helpers and MCP servers may run, by the names in their texts. A
//! change of such a file runs without a sandbox the next time the command runs.
//!
//! The text does not show what a command does. So what matters is only whether a name occurs in it: a file is guarded if
//! its name and the folders on the way to it do, also if it does not exist yet. A name too many only guards a file too
//! many. Files that are only data, and wildcards that no shell runs, are left out, because linters are given these.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::command_words::{expand_variables, is_name_char, is_python, program_name, split_commands};
use super::{comparable, entries, links_to_follow};
use crate::path::original_paths;

#[cfg(test)]
mod tests;

/// Endings that a name without an ending may mean in JavaScript, Python, Ruby, Perl and Lua.
const MODULE_ENDINGS: [&str; 10] = ["js", "mjs", "cjs", "ts", "tsx", "mts", "py", "rb", "pm", "lua"];

/// Endings of files that are not run, unless a shell is given the file.
const DATA_ENDINGS: [&str; 16] = [
    "css", "csv", "db", "html", "json", "jsonl", "lock", "log", "md", "rst", "sqlite", "svg", "toml", "txt", "xml",
    "yaml",
];

/// Further endings of files that are not run because a wildcard or a folder contains them.
const SOURCE_ENDINGS: [&str; 13] =
    ["c", "cc", "cpp", "cs", "go", "h", "hpp", "java", "kt", "rs", "scala", "swift", "zig"];

/// Shells, which run what comes from standard input if no file is named.
const SHELLS: &str = ". ash bash dash fish ksh sh source zsh";

/// Other programs that run the file after their options, or what a folder there contains.
const INTERPRETERS: &str = "awk bun deno expect lua node perl php ruby run-parts ts-node tsx";

/// Programs that run a package, which may be a folder.
const PACKAGE_RUNNERS: &str = "bunx npx";

/// Programs that search modules without endings.
const MODULE_RUNNERS: &str = "bun bunx deno lua node perl ruby ts-node tsx";

/// What `node FOLDER` and `python FOLDER` run.
const FOLDER_ENTRIES: [&str; 5] = ["__main__.py", "index.js", "index.mjs", "index.ts", "package.json"];

/// Words before a folder that is only the current one of other words.
const BEFORE_FOLDER: &str = "-C --cwd --directory --prefix cd pushd";

/// Words before a program.
const BEFORE_PROGRAM: &str = "do then else elif if while until ! builtin command env exec nohup sudo time";

/// What is not a part of a path for the text of a command, though it may be one of a name.
const SEPARATORS: [char; 22] =
    [' ', '\t', '\n', ',', ':', ';', '=', '(', ')', '{', '}', '[', ']', '<', '>', '|', '&', '!', '\'', '"', '`', '$'];

/// How often the text in a quoted word is read as a command: `sh -c 'sh -c "./x"'`.
const MAX_NESTING: usize = 3;

/// What the words of commands mean.
#[derive(Clone, Copy)]
pub(crate) struct CommandContext<'a> {
    /// The home folder, for `~`.
    pub(crate) home: &'a Path,
    /// Values of variables; `None` if one is not known.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The names in the texts of commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptNames(Vec<CommandNames>);

/// The names in the text of one command line.
#[derive(Debug, Clone, Default)]
struct CommandNames {
    names: Vec<NamedPath>,
    patterns: Vec<NamePattern>,
    /// The words, and the parts of paths in them.
    parts: BTreeSet<String>,
    /// Whether files in all folders are meant: it searches, or changes to a folder that only the shell knows.
    is_anywhere: bool,
    /// Whether it runs files that wildcards mean or that are searched in folders.
    runs_any_file: bool,
    /// Whether a wildcard means all files of a folder: `cd scripts; for f in *`.
    has_open_pattern: bool,
    /// Whether it runs text, so that files of any kind may contain code.
    runs_text: bool,
    /// Whether a shell gets files that wildcards mean or that are searched, whatever their endings.
    runs_any_data: bool,
    /// Whether names may lack their endings.
    runs_modules: bool,
}

/// A path in a command line.
#[derive(Debug, Clone, Default)]
struct NamedPath {
    /// As [`comparable`] names, without `.`; never empty.
    parts: Vec<String>,
    /// The path as it is written.
    text: String,
    /// Whether a shell runs it, whatever its ending.
    is_code: bool,
    /// Whether all files in the folder of this path may be run.
    is_folder: bool,
    /// Whether commands only change to the folder.
    is_cwd: bool,
}

/// A path of which only the shell knows a part.
#[derive(Debug, Clone)]
struct NamePattern {
    matcher: GlobMatcher,
    /// For the folders on the way, which may be made as links.
    folder_matchers: Vec<GlobMatcher>,
    /// The folder before what only the shell knows; empty if there is none.
    folder: String,
    /// Whether it is run: it is the program, or its last part is a name.
    is_run: bool,
    /// Whether a shell runs it, whatever its ending.
    is_code: bool,
}

impl ScriptNames {
    /// Adds the names in a command line.
    pub(crate) fn add_line(&mut self, line: &str, context: CommandContext<'_>) {
        let mut names = CommandNames::default();
        let line = expand_variables(line, context.variable);
        split_commands(&line).iter().for_each(|command| names.add_command(command, context, MAX_NESTING));
        self.0.push(names);
    }

    /// Adds the names in the words of a command.
    pub(crate) fn add_words(&mut self, words: &[String], context: CommandContext<'_>) {
        let mut names = CommandNames::default();
        let words: Vec<String> = words.iter().map(|word| expand_variables(word, context.variable)).collect();
        names.add_command(&words, context, MAX_NESTING);
        self.0.push(names);
    }

    /// Adds the names of the files that a start-up file of the shell loads: `. ./x`, `source x`.
    pub(crate) fn add_loaded(&mut self, text: &str, context: CommandContext<'_>) {
        let commands = split_commands(text);
        let mut loads_unknown = false;
        for command in &commands {
            if let Some(at) = command.iter().position(|word| [".", "source"].contains(&word.as_str())) {
                loads_unknown |= command[at..].iter().any(|word| word.contains(UNKNOWN));
                self.add_words(&command[at..], context);
            }
        }
        // `for f in x/*.sh; do . "$f"; done`
        let looped =
            commands.iter().filter(|command| loads_unknown && command.first().is_some_and(|word| word == "for"));
        for word in looped.flat_map(|command| command.iter().skip_while(|word| *word != "in").skip(1)) {
            self.add_words(&[".".to_owned(), word.clone()], context);
        }
    }

    /// Returns the existing files, and folders of scripts, that the commands may run if they start in one of the folders
    /// and that links lead to.
    pub(crate) fn linked_paths(&self, folders: &[&Path]) -> Vec<PathBuf> {
        let is_linked = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real != *path);
        self.0.iter().flat_map(|command| command.existing_paths(folders)).filter(is_linked).collect()
    }

    /// Whether a command may run a file in one of the folders, which need not exist.
    pub(crate) fn may_run(&self, path: &Path, folders: &[PathBuf]) -> bool {
        // A session in a worktree runs the files there.
        self.may_run_file(path, folders) || original_paths(path).iter().any(|path| self.may_run_file(path, folders))
    }

    fn may_run_file(&self, path: &Path, folders: &[PathBuf]) -> bool {
        let Some(outside) =
            folders.iter().filter(|folder| path.starts_with(folder)).map(|folder| parts_of(folder).len()).max()
        else {
            return false;
        };
        let file = FileParts { path, parts: parts_of(path), outside };
        // Packages have many files with the same names.
        let is_package = file.inside(file.parts.len()).iter().any(|part| part == "node_modules");
        !is_package
            && self.0.iter().any(|command| command.may_run(&file))
            && !path.symlink_metadata().is_ok_and(|data| data.is_dir())
    }
}

/// A file that may be run.
struct FileParts<'a> {
    path: &'a Path,
    parts: Vec<String>,
    /// How many of the parts are those of the session's folder.
    outside: usize,
}

impl FileParts<'_> {
    /// The parts inside the session's folder, of the first `end` parts.
    fn inside(&self, end: usize) -> &[String] {
        self.parts.get(self.outside..end).unwrap_or_default()
    }

    fn ending(&self) -> &str {
        ending_of(self.path.file_name().and_then(OsStr::to_str).unwrap_or_default())
    }

    /// Whether a wildcard or folder may mean the file as a script.
    fn may_be_script(&self) -> bool {
        !DATA_ENDINGS.contains(&self.ending()) && !SOURCE_ENDINGS.contains(&self.ending())
    }
}

impl NamedPath {
    /// What the words before a word tell about it, without its path.
    fn from_position(words: &[String], at: usize, start: usize) -> Self {
        let program = words[..at].iter().rev().find(|word| !word.starts_with('-')).map(|word| program_name(word));
        let program = program.unwrap_or_default();
        let before = at.checked_sub(1).map_or("", |at| words[at].as_str());
        let is_text = ["-c", "-e", "-m"].contains(&before);
        let runs_folder =
            contains_word(INTERPRETERS, program) || contains_word(PACKAGE_RUNNERS, program) || is_python(program);
        Self {
            // In `jq . x.json` it is an argument.
            is_code: at == start && words[at].contains('/')
                || is_shell_file(&words[at])
                || at > start
                    && (is_given_to_shell(&words[start..=at]) || is_script_of_interpreter(&words[start..=at])),
            is_folder: runs_folder && !is_text,
            is_cwd: contains_word(BEFORE_FOLDER, before),
            ..Self::default()
        }
    }

    fn is_data(&self) -> bool {
        !self.is_code && DATA_ENDINGS.contains(&ending_of(&self.text))
    }
}

impl CommandNames {
    fn add_command(&mut self, words: &[String], context: CommandContext<'_>, nesting: usize) {
        let is_assignment = |word: &str| word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_name_char));
        let before = |word: &String| contains_word(BEFORE_PROGRAM, word) || is_assignment(word);
        let start = words.iter().position(|word| !before(word)).unwrap_or(words.len());
        for (at, word) in words.iter().enumerate() {
            self.add_effects(words, at);
            // A quoted word may begin with a substitution and is no program for that.
            if at == start && nesting == MAX_NESTING && word.starts_with(['$', '`']) {
                self.runs_text = true;
                self.runs_any_file |= !word.contains('/');
            }
            let found = NamedPath::from_position(words, at, start);
            if found.is_folder && [".", "./"].contains(&word.as_str()) {
                let entry = NamedPath { is_code: true, ..found.clone() };
                FOLDER_ENTRIES.iter().for_each(|name| self.add_name(name, &entry));
            }
            if let Some(module) = python_module(words, at) {
                let module = module.replace('.', "/");
                self.add_name(&format!("{module}.py"), &found);
                self.add_name(&format!("{module}/__main__.py"), &found);
            }
            match word.strip_prefix("PATH=") {
                // Programs are searched in these folders.
                Some(folders) => {
                    let folder = NamedPath { is_folder: true, ..found };
                    folders.split(':').for_each(|text| self.add_name(text, &folder));
                }
                None => self.add_word(word, &found, at == start, context),
            }
            if nesting > 0 && word.contains(char::is_whitespace) {
                split_commands(word).iter().for_each(|command| self.add_command(command, context, nesting - 1));
            }
        }
    }

    /// Finds out what the word at a position does with names anywhere in the text, if it is a program.
    fn add_effects(&mut self, words: &[String], at: usize) {
        let name = program_name(&words[at]);
        let rest = &words[at + 1..];
        let options = rest.iter().take_while(|word| word.starts_with('-')).count();
        let operand = rest.get(options);
        let is_code = |option: &String| !option.starts_with("--") && option.contains(['c', 'e']);
        let has_code = rest[..options].iter().any(is_code);
        let runs_operand = is_runner(name) && !has_code;
        let is_unknown = |word: &String| word.contains(UNKNOWN);
        let is_itself = |pair: &[String]| pair[0].starts_with("-exec") && pair[1].starts_with("{}");
        let runs_found = name == "xargs" || name == "find" && rest.iter().any(|word| word.starts_with("-exec"));
        let is_text = |word: &String| word.starts_with('$') || !has_code && (is_input(word) || is_unknown(word));
        let takes_text = contains_word(SHELLS, name) && operand.is_none_or(is_text);
        self.runs_any_file |= runs_found
            && (rest.iter().any(|word| is_runner(program_name(word))) || rest.windows(2).any(is_itself))
            || name == "run-parts"
            || runs_operand && operand.is_some_and(is_unknown)
            || takes_text;
        let is_shell = |word: &String| contains_word(SHELLS, program_name(word));
        self.runs_any_data |= contains_word(SHELLS, name) && runs_operand && operand.is_some_and(is_unknown)
            || runs_found && rest.iter().any(is_shell) && !has_shell_code(rest);
        self.runs_text |= takes_text || name == "eval" || name == "xargs";
        self.runs_modules |= contains_word(MODULE_RUNNERS, name) || is_python(name);
        self.is_anywhere |= ["fd", "find"].contains(&name)
            || contains_word(BEFORE_FOLDER, &words[at]) && operand.is_some_and(is_unknown);
    }

    /// Adds what a word may name: itself, and what is between other signs in it.
    fn add_word(&mut self, word: &str, found: &NamedPath, is_program: bool, context: CommandContext<'_>) {
        let home = word.strip_prefix("~/").map(|below| context.home.join(below).to_string_lossy().into_owned());
        let word = home.as_deref().unwrap_or(word);
        let word = word.strip_prefix("/proc/self/cwd/").or(word.strip_prefix("~+/")).unwrap_or(word);
        self.patterns.extend(NamePattern::from_word(word, is_program, found.is_code));
        self.has_open_pattern |= word.contains('*') && word.chars().all(|c| "*?./".contains(c));
        self.add_name(word, found);
        for part in word.split(SEPARATORS).filter(|part| *part != word) {
            self.add_name(part, found);
            // A module of Python: `runpy.run_module('tools.check')`.
            if part.contains('.') && !part.contains('/') {
                self.add_name(&part.replace('.', "/"), found);
            }
        }
    }

    fn add_name(&mut self, text: &str, found: &NamedPath) {
        // The value of an option may follow it directly.
        let names = [Some(text), text.strip_prefix('-').and_then(|option| option.get(1..)), text.strip_prefix('-')];
        for name in names.into_iter().flatten() {
            let mut parts: Vec<String> = Vec::new();
            for part in Path::new(name).components() {
                match part {
                    Component::Normal(part) => parts.push(comparable(part)),
                    Component::ParentDir => drop(parts.pop()),
                    Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
                }
            }
            if !parts.is_empty() {
                self.parts.extend(parts.iter().cloned());
                self.names.push(NamedPath { parts, text: name.to_owned(), ..found.clone() });
            }
        }
    }

    /// Returns the existing files and folders of scripts that the command may run, and the links in these folders.
    fn existing_paths(&self, folders: &[&Path]) -> Vec<PathBuf> {
        let in_folders =
            |text: &str, starts: &[PathBuf]| starts.iter().map(|folder| folder.join(text)).collect::<Vec<_>>();
        let mut starts: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
        let further = self.names.iter().filter(|name| name.is_cwd).flat_map(|name| in_folders(&name.text, &starts));
        let further: Vec<PathBuf> = further.filter(|path| path.is_dir()).collect();
        starts.extend(further);
        let named = |name: &NamedPath| in_folders(&name.text, &starts);
        let files = self.names.iter().filter(|name| !name.is_data()).flat_map(named).filter(|path| path.is_file());
        let runs_folder = |name: &&NamedPath| self.runs_folder(name);
        let named_folders = self.names.iter().filter(runs_folder).flat_map(named);
        let patterns = self.patterns.iter().filter(|pattern| pattern.is_run || self.runs_any_file);
        let pattern_folders = patterns.clone().filter(|pattern| !pattern.folder.is_empty());
        let pattern_folders = pattern_folders.flat_map(|pattern| in_folders(&pattern.folder, &starts));
        let script_folders =
            named_folders.chain(pattern_folders).filter(|path| path.is_dir() && !starts.contains(path));
        let script_folders: Vec<PathBuf> = script_folders.collect();
        let leads_to_start = |target: &Path| starts.iter().any(|start| start.starts_with(target));
        let linked = links_to_follow(script_folders.iter().cloned(), leads_to_start);
        // Wildcards for the names in a folder that commands start in.
        let local = patterns.filter(|pattern| pattern.folder.is_empty());
        let local = local.flat_map(|pattern| {
            let is_meant = |path: &PathBuf| pattern.matcher.is_match(parts_of(path).join("/"));
            starts.iter().flat_map(|start| entries(start)).filter(is_meant).collect::<Vec<_>>()
        });
        let local: Vec<PathBuf> = local.collect();
        let is_safe = |path: &PathBuf| !path.canonicalize().is_ok_and(|real| leads_to_start(&real));
        files.chain(script_folders).chain(linked).chain(local).filter(is_safe).collect()
    }

    fn may_run(&self, file: &FileParts<'_>) -> bool {
        self.names.iter().any(|name| self.is_named(file, name))
            || self.patterns.iter().any(|pattern| self.is_meant(file, pattern))
    }

    /// Whether the folders between the session's and the first of the last parts occur in the text.
    fn contains_folders(&self, file: &FileParts<'_>, end: usize) -> bool {
        self.is_anywhere || file.inside(end).iter().all(|part| self.parts.contains(part))
    }

    fn is_named(&self, file: &FileParts<'_>, name: &NamedPath) -> bool {
        let (all, wanted) = (&file.parts, &name.parts);
        let ends_with = |parts: &[String]| all.ends_with(parts) && self.contains_folders(file, all.len() - parts.len());
        let is_data = !name.is_code && !self.runs_text && DATA_ENDINGS.contains(&file.ending());
        if !is_data && (ends_with(wanted) || self.runs_modules && is_module(file, wanted, ends_with)) {
            return true;
        }
        // A folder on the way may be made, as a link.
        let is_on_the_way =
            |parts: &[String]| ends_with(parts) && (file.path.is_symlink() || !super::may_exist(file.path));
        if !name.is_data() && (1..wanted.len()).any(|end| is_on_the_way(&wanted[..end])) {
            return true;
        }
        let is_in_folder = |end: usize| {
            all[..end].ends_with(wanted) && end > file.outside && self.contains_folders(file, end - wanted.len())
        };
        let is_entry = name.is_folder && all.last().is_some_and(|last| FOLDER_ENTRIES.contains(&last.as_str()));
        let may_be_run = file.may_be_script() || is_entry || self.runs_any_data;
        self.runs_folder(name) && may_be_run && (wanted.len()..all.len()).any(is_in_folder)
    }

    /// Whether files in the folder that a name means may be run.
    fn runs_folder(&self, name: &NamedPath) -> bool {
        name.is_folder || self.runs_any_file && (!name.is_cwd || self.has_open_pattern)
    }

    fn is_meant(&self, file: &FileParts<'_>, pattern: &NamePattern) -> bool {
        let runs = pattern.is_run || self.runs_any_file;
        let is_folder = |matcher: &GlobMatcher| matcher.is_match(file.parts.join("/"));
        if runs && file.path.is_symlink() && pattern.folder_matchers.iter().any(is_folder) {
            return true;
        }
        runs && (pattern.is_code || self.runs_any_data || file.may_be_script())
            && pattern.matcher.is_match(file.parts.join("/"))
    }
}

/// Whether a name without its ending means the file.
fn is_module(file: &FileParts<'_>, wanted: &[String], ends_with: impl Fn(&[String]) -> bool) -> bool {
    let Some((last, folders)) = wanted.split_last() else { return false };
    let with_ending = |ending: &&str| [folders, &[format!("{last}.{ending}")]].concat();
    let in_folder = |ending: &&str| [wanted, &[format!("index.{ending}")]].concat();
    let init = [wanted, &["__init__.py".to_owned()]].concat();
    let mut forms = MODULE_ENDINGS.iter().map(with_ending).chain(MODULE_ENDINGS.iter().map(in_folder)).chain([init]);
    MODULE_ENDINGS.contains(&file.ending()) && forms.any(|parts| ends_with(&parts))
}

/// What only the shell knows, in a word.
const UNKNOWN: [char; 6] = ['*', '?', '[', '$', '`', '{'];

impl NamePattern {
    /// Reads a word in which only the shell knows some part; `None` if there is none, or if no part is known.
    fn from_word(word: &str, is_program: bool, is_code: bool) -> Option<Self> {
        if !word.contains(UNKNOWN) {
            return None;
        }
        let known = word.split(UNKNOWN).next().unwrap_or_default();
        let folder = known.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let pattern = wildcards(word).to_lowercase();
        let pattern = pattern.rsplit(['=', ' ']).next().unwrap_or_default();
        // What comes first may lead to any folder: `$(pwd)/scripts/x`.
        let is_open = |part: &&str| part.chars().all(|c| "*?.".contains(c));
        let parts: Vec<&str> = pattern.split('/').skip_while(is_open).collect();
        let last = parts.last()?;
        let matcher = |parts: &[&str]| {
            let glob = GlobBuilder::new(&format!("**/{}", parts.join("/"))).literal_separator(true).build();
            glob.ok().map(|glob| glob.compile_matcher())
        };
        Some(Self {
            matcher: matcher(&parts)?,
            folder_matchers: (1..parts.len()).filter_map(|end| matcher(&parts[..end])).collect(),
            folder,
            is_run: is_program && !word.starts_with('*') || !last.contains(['*', '?', '{']),
            is_code: is_code && !last.contains(['*', '?', '{']),
        })
    }
}

/// Replaces what only the shell knows by wildcards.
fn wildcards(word: &str) -> String {
    let mut pattern = String::new();
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '$' => {
                rest = match rest.chars().next() {
                    Some('{') => after_closing(&rest[1..], '{', '}'),
                    Some('(') => after_closing(&rest[1..], '(', ')'),
                    _ => rest.trim_start_matches(is_name_char),
                };
                pattern.push('*');
            }
            '`' => {
                rest = rest.split_once('`').map_or("", |(_, rest)| rest);
                pattern.push('*');
            }
            '[' => {
                rest = rest.split_once(']').map_or("", |(_, rest)| rest);
                pattern.push('?');
            }
            '{' => {
                let after = after_closing(rest, '{', '}');
                let inside = &rest[..rest.len() - after.len()];
                rest = after;
                match inside.contains(',') && inside.ends_with('}') && !inside.contains(UNKNOWN) {
                    true => pattern.extend(["{", inside]),
                    false => pattern.push('*'),
                }
            }
            c => pattern.push(c),
        }
    }
    pattern
}

/// Returns what follows the bracket that closes the one before the text; nothing if none does.
fn after_closing(text: &str, open: char, close: char) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

/// Whether a shell before the last of the words may run the file that it names. In `jq . x.json` the dot is an argument.
fn is_given_to_shell(words: &[String]) -> bool {
    let is_shell = |(at, word): (usize, &String)| match program_name(word) {
        "." => at == 0 && words.len() == 2,
        name => contains_word(SHELLS, name),
    };
    words.iter().enumerate().take(words.len() - 1).any(is_shell)
}

/// Whether the last of the words is the file that a program before it runs: `python3 -u x.txt`.
fn is_script_of_interpreter(words: &[String]) -> bool {
    let Some((_, before)) = words.split_last() else { return false };
    let program = before.iter().rposition(|word| !word.starts_with('-'));
    let has_code = |options: &[String]| options.iter().any(|option| ["-c", "-e", "-m"].contains(&option.as_str()));
    let is_interpreter = |name: &str| contains_word(INTERPRETERS, name) || is_python(name);
    program.is_some_and(|at| is_interpreter(program_name(&before[at])) && !has_code(&before[at + 1..]))
}

/// Whether words contain code for a shell: `find -exec sh -c 'x {}'`.
fn has_shell_code(words: &[String]) -> bool {
    words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') && word != "-exec")
}

/// Whether a word names a script that shells run when they start: `BASH_ENV=x`.
fn is_shell_file(word: &str) -> bool {
    ["BASH_ENV=", "ENV="].iter().any(|variable| word.starts_with(variable))
}

/// Whether an operand of a shell is its input.
fn is_input(word: &str) -> bool {
    word == "-" || word.starts_with("/dev/") || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the module of Python that a word may name: `-m x`, `-mx`, `-um x`.
fn python_module(words: &[String], at: usize) -> Option<&str> {
    let after_letter = |option: &'_ str| -> Option<usize> {
        let end = option.find('m')? + 1;
        (end > 1 && option.starts_with('-') && option[1..end].bytes().all(|byte| byte.is_ascii_alphabetic()))
            .then_some(end)
    };
    let word = words[at].as_str();
    let attached = after_letter(word).map(|end| &word[end..]).filter(|module| !module.is_empty());
    let is_next = at > 0 && after_letter(&words[at - 1]) == Some(words[at - 1].len());
    attached.or(is_next.then_some(word))
}

/// Whether a program runs the file after its options.
pub(crate) fn is_runner(name: &str) -> bool {
    contains_word(SHELLS, name) || contains_word(INTERPRETERS, name) || is_python(name)
}

fn parts_of(path: &Path) -> Vec<String> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(comparable(name)),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

fn ending_of(name: &str) -> &str {
    Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default()
}

fn contains_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}
