//! The files that the commands of hooks, helpers and MCP servers name. A change of such a file is run without a sandbox
//! the next time the command runs.

use std::path::{Path, PathBuf};

/// Endings of the names of scripts.
const SCRIPT_ENDINGS: [&str; 13] =
    ["bash", "cjs", "fish", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh", "ts", "zsh"];

/// How often the text in a quoted word is read as a command: `sh -c 'sh -c "./x"'`.
const MAX_NESTING: usize = 3;

/// What the words of a command are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandFolders<'a> {
    /// Where the command starts, and the root of the project.
    pub(crate) start: [&'a Path; 2],
    /// The home folder, for `~`.
    pub(crate) home: &'a Path,
    /// Variables whose values are known.
    pub(crate) variables: &'a [(&'a str, &'a Path)],
}

/// Returns the files that a command names, as far as its text shows: existing files, scripts that do not exist yet,
/// and folders before a wildcard (`scripts/*.sh`). Words are also looked up in the folders that it names
/// (`cd scripts && ./x`), and after a variable or substitution whose value is not known, in the folders it starts in.
pub(crate) fn named_files(words: &[String], folders: CommandFolders<'_>) -> Vec<PathBuf> {
    let mut texts = Vec::new();
    words.iter().for_each(|word| add_texts(word, MAX_NESTING, folders, &mut texts));
    let mut bases: Vec<PathBuf> = folders.start.map(Path::to_owned).to_vec();
    let is_start = |path: &PathBuf| folders.start.iter().any(|start| start.starts_with(path));
    let named: Vec<PathBuf> = texts.iter().flat_map(|text| bases.iter().map(move |base| base.join(text))).collect();
    bases.extend(named.into_iter().filter(|path| path.is_dir() && !is_start(path)));
    let mut found = Vec::new();
    for text in &texts {
        let (before_wildcard, has_wildcard) = match text.find(['*', '?', '[']) {
            Some(at) => (text[..at].rsplit_once('/').map_or("", |(folder, _)| folder), true),
            None => (text.as_str(), false),
        };
        let has_ending =
            Path::new(text).extension().is_some_and(|ending| SCRIPT_ENDINGS.iter().any(|known| ending == *known));
        let is_script = has_ending && !text.contains(['$', '`', '(', '{', ' ', '=']);
        for (at, path) in bases.iter().map(|base| base.join(before_wildcard)).enumerate() {
            let is_named = match has_wildcard {
                true => path.is_dir() && !bases.contains(&path) && !is_start(&path),
                // A script that is missing may be made where the command starts.
                false => path.is_file() || is_script && at < folders.start.len() && !path.exists(),
            };
            found.extend(is_named.then_some(path));
        }
    }
    found
}

/// Splits a command into its words, without quotes.
pub(crate) fn command_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            (None, c) if c.is_whitespace() || ";&|<>(){}`".contains(c) => words.push(String::new()),
            (_, c) => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a command runs Python code in its words, which then imports modules from the current folder.
pub(crate) fn runs_python_code(command: &str) -> bool {
    let words = command_words(command);
    let is_python = |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let is_code = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let python = words.iter().position(is_python);
    python.is_some_and(|at| words[at + 1..].iter().take_while(|word| word.starts_with('-')).any(is_code))
}

/// Adds the paths that a word may mean.
fn add_texts(word: &str, nesting: usize, folders: CommandFolders<'_>, texts: &mut Vec<String>) {
    let mut text = word.to_owned();
    for (name, value) in folders.variables {
        let value = value.to_string_lossy();
        text = text.replace(&format!("${{{name}}}"), &value);
        text = replace_variable(&text, name, &value);
    }
    if let Some(below) = text.strip_prefix("~/") {
        text = folders.home.join(below).to_string_lossy().into_owned();
    }
    // The value of an option, and what follows something that only the shell knows.
    let value = text.split_once('=').map(|(_, value)| value);
    let known = text.rfind([')', '}', '`']).map(|at| &text[at + 1..]);
    let after_variable = text.rfind('$').map(|at| text[at + 1..].trim_start_matches(is_name_char));
    for part in [Some(text.as_str()), value, known, after_variable].into_iter().flatten() {
        texts.extend(Some(part.to_owned()).filter(|part| !part.is_empty()));
        // What comes before may not be known: `$(pwd)/scripts/x`.
        let relative = part.trim_start_matches('/');
        texts.extend(Some(relative.to_owned()).filter(|_| relative != part && !Path::new(part).exists()));
    }
    let names_file = folders.start.iter().any(|folder| folder.join(&text).exists());
    let inner = command_words(word);
    if nesting > 0 && !names_file && inner != [word] {
        inner.iter().for_each(|word| add_texts(word, nesting - 1, folders, texts));
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Replaces `$name`, but not `$name_of_another`.
fn replace_variable(text: &str, name: &str, value: &str) -> String {
    let mut parts = text.split('$');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.strip_prefix(name).filter(|rest| !rest.starts_with(is_name_char)) {
            Some(rest) => replaced.extend([value, rest]),
            None => replaced.extend(["$", part]),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn python_code_in_a_command_is_seen() {
        for command in ["python3 -c 'import json'", "cat | /usr/bin/python3.12 -Ic \"x\"", "python -u -c x"] {
            assert!(runs_python_code(command), "{command}");
        }
        for command in ["python3 scripts/h.py -c x", "python3 -m mypackage", "sh -c x"] {
            assert!(!runs_python_code(command), "{command}");
        }
    }

    #[test]
    fn the_scripts_of_commands_are_found_however_they_are_named() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap();
        let project = home.join("My Project");
        fs::create_dir_all(project.join("scripts/lib")).unwrap();
        for name in ["scripts/h.sh", "scripts/h", "srv.py"] {
            fs::write(project.join(name), "").unwrap();
        }
        let variables = [("CLAUDE_PROJECT_DIR", project.as_path()), ("HOME", home.as_path())];
        let folders = CommandFolders { start: [&project, &project], home: &home, variables: &variables };
        let find = |words: &[String]| {
            let mut found = named_files(words, folders);
            found.sort();
            found.dedup();
            let inside = found.iter().filter_map(|path| path.strip_prefix(&project).ok());
            inside.map(Path::to_owned).collect::<Vec<_>>()
        };
        let check = |command: &str, expected: &[&str]| {
            assert_eq!(
                find(&command_words(command)),
                expected.iter().map(PathBuf::from).collect::<Vec<_>>(),
                "{command}"
            );
        };
        for command in [
            "scripts/h.sh",
            "./scripts/h.sh 2>&1 | tee",
            "\"$CLAUDE_PROJECT_DIR\"/scripts/h.sh",
            "\"${CLAUDE_PROJECT_DIR}/scripts/h.sh\"",
            "\"${CLAUDE_PROJECT_DIR:-.}/scripts/h.sh\" --fix",
            "~/'My Project'/scripts/h.sh",
            "\"$HOME/My Project/scripts/h.sh\"",
            "$(git rev-parse --show-toplevel)/scripts/h.sh",
            "\"$(git rev-parse --show-toplevel)/scripts/h.sh\"",
            "sh `pwd`/scripts/h.sh",
            "$ROOT/scripts/h.sh",
            "sh -c 'exec scripts/h.sh'",
            "node --require=scripts/h.sh",
        ] {
            check(command, &["scripts/h.sh"]);
        }
        check("bash scripts/h", &["scripts/h"]);
        check("for f in scripts/*.sh; do sh $f; done", &["scripts"]);
        check("cd scripts && ./h", &["scripts/h"]);
        check("cd \"$CLAUDE_PROJECT_DIR/scripts\"; sh h", &["scripts/h"]);
        check("test -x new/hook.sh && \"$PWD\"/new/hook.sh", &["new/hook.sh"]);
        check("npx prettier --write .", &[]);
        check("python3 -c 'import json'", &[]);
        check("jq -r .tool_input.file_path", &[]);
        let server = ["/usr/bin/python3".to_owned(), project.join("srv.py").display().to_string()];
        assert_eq!(find(&server), [Path::new("srv.py")]);
    }
}
