//! The files that the commands of hooks, helpers and MCP servers run. A change of such a file is run without a sandbox
//! the next time the command runs.
//!
//! The parser of `permission::shell` refuses what it does not understand, because it decides what may run. Here every text
//! must give words, and a word too many only guards a file too many, so lines are split in a simpler way.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Endings of the names of scripts, also of those that a name without its ending may mean.
const SCRIPT_ENDINGS: [&str; 15] =
    ["js", "mjs", "cjs", "ts", "tsx", "mts", "py", "sh", "bash", "zsh", "fish", "rb", "pl", "php", "lua"];

/// Endings of the names of files that are not run, whatever program gets them.
const DATA_ENDINGS: [&str; 12] =
    ["css", "csv", "db", "html", "json", "lock", "log", "md", "sqlite", "toml", "txt", "yaml"];

/// Programs that run the files or commands among their arguments.
const RUNNERS: &str = ". ash awk bash bun bunx command dash deno env eval exec expect fastmcp fish flock gmake ksh lua make \
    nice node nohup npx perl php pipx pypy run-parts ruby sh source stdbuf sudo time timeout trap ts-node tsx uv uvx \
    xargs zsh";

/// Programs that run every file that a wildcard or a folder among their arguments means.
const FOLDER_RUNNERS: &str = ". ash bash dash fish for ksh run-parts sh source zsh";

/// What a folder may contain that is run if the folder is named.
const FOLDER_ENTRIES: [&str; 5] = ["__main__.py", "index.js", "index.mjs", "index.ts", "package.json"];

/// What only the shell knows, in a word.
const UNKNOWN: [char; 6] = ['*', '?', '[', '$', '`', '{'];

/// How often the text in a quoted word is read as a command: `sh -c 'sh -c "./x"'`.
const MAX_NESTING: usize = 3;

/// What the words of a command are relative to.
#[derive(Clone, Copy)]
pub(crate) struct CommandFolders<'a> {
    /// Where the command starts, and the root of the project.
    pub(crate) start: [&'a Path; 2],
    /// The home folder, for `~`.
    pub(crate) home: &'a Path,
    /// Values of variables; `None` if one is not known.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// Whether it may be run: it is the program, or an argument of one that runs its arguments.
    is_run: bool,
    /// Whether every file of a folder or wildcard is run.
    runs_folder: bool,
    /// Whether it is the name of a Python module.
    is_module: bool,
}

/// Returns the files that a command runs, as far as its text shows: files that it names and that are scripts, can be
/// executed, or are given to a program which runs them, also if they do not exist yet, and folders of which any file may
/// be run (`for f in scripts/*.sh`, `scripts/$x.sh`). Words are also looked up in the folders that it names
/// (`cd scripts && ./x`), and after a variable or substitution whose value is not known, in the folders it starts in.
pub(crate) fn named_files(words: &[String], folders: CommandFolders<'_>) -> Vec<PathBuf> {
    named_in(mark_words(&[words.to_vec()]), folders)
}

/// As [`named_files`], for a command line.
pub(crate) fn files_of_command(command: &str, folders: CommandFolders<'_>) -> Vec<PathBuf> {
    named_in(mark_words(&split_commands(command)), folders)
}

fn named_in(words: Vec<Word>, folders: CommandFolders<'_>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    words.iter().for_each(|word| add_meanings(word, MAX_NESTING, folders, &mut all));
    let mut bases: Vec<PathBuf> = folders.start.map(Path::to_owned).to_vec();
    // A folder may be named relative to another one.
    for _ in 0..2 {
        let named: Vec<PathBuf> = all.iter().flat_map(|word| bases.iter().map(|base| base.join(&word.text))).collect();
        let is_new = |path: &PathBuf| path.is_dir() && !is_start(path, folders) && !bases.contains(path);
        let new: Vec<PathBuf> = named.into_iter().filter(is_new).collect();
        bases.extend(new);
    }
    let mut found = Vec::new();
    for word in &all {
        let existing: Vec<PathBuf> = bases.iter().flat_map(|base| existing_files(word, base, folders)).collect();
        // A script that is missing may be made.
        if existing.is_empty() && may_be_made(word) {
            found.extend(bases.iter().map(|base| base.join(&word.text)).filter(|path| !path.exists()));
        }
        found.extend(existing);
    }
    found
}

/// Whether a folder is or contains one that the command starts in.
fn is_start(path: &Path, folders: CommandFolders<'_>) -> bool {
    folders.start.iter().any(|start| start.starts_with(path))
}

/// Whether a word names a script that need not exist yet.
fn may_be_made(word: &Word) -> bool {
    let text = word.text.as_str();
    let is_path = text.contains('/') || SCRIPT_ENDINGS.iter().any(|known| ending_of(text) == *known);
    let is_plain =
        !text.starts_with('-') && !text.contains(UNKNOWN) && !text.contains([' ', '=', ':', '@', ',', '(', ')']);
    word.is_run && !word.is_module && is_path && is_plain && !DATA_ENDINGS.contains(&ending_of(text))
}

fn ending_of(name: &str) -> &str {
    Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

/// Returns the existing files that a word may mean in a folder.
fn existing_files(word: &Word, base: &Path, folders: CommandFolders<'_>) -> Vec<PathBuf> {
    let unknown = word.text.find(UNKNOWN);
    if let Some(at) = unknown {
        let folder = word.text[..at].rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = base.join(folder);
        let is_wildcard = word.text[at..].starts_with(['*', '?', '[']);
        let is_run = if is_wildcard { word.runs_folder } else { word.is_run };
        return Some(path).filter(|path| is_run && path.is_dir() && !is_start(path, folders)).into_iter().collect();
    }
    let path = base.join(&word.text);
    let is_script = SCRIPT_ENDINGS.contains(&ending_of(&word.text));
    let is_data = DATA_ENDINGS.contains(&ending_of(&word.text));
    if path.is_dir() {
        if is_start(&path, folders) || !word.is_run {
            return Vec::new();
        }
        let entries = FOLDER_ENTRIES.iter().map(|name| path.join(name)).filter(|path| path.exists());
        return entries.chain(word.runs_folder.then(|| path.clone())).collect();
    }
    if path.is_file() {
        let can_run = path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
        let is_named = is_script || can_run || word.is_run && !is_data;
        return Some(path).filter(|_| is_named).into_iter().collect();
    }
    if !word.is_run || is_data {
        return Vec::new();
    }
    // `node scripts/hook` runs `scripts/hook.js`.
    let with_ending = |ending: &&str| PathBuf::from(format!("{}.{ending}", path.display()));
    SCRIPT_ENDINGS.iter().map(with_ending).filter(|path| path.is_file()).collect()
}

/// Splits a command line into its simple commands and their words, without quotes. Commands in substitutions are among
/// them.
fn split_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = split_line(line);
    for text in substitutions(line) {
        commands.extend(split_commands(text));
    }
    commands
}

/// Returns the texts of the outermost `$(…)` and `` `…` `` of a line.
fn substitutions(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("$(").into_iter().chain(rest.find('`')).min() {
        let is_backtick = rest[at..].starts_with('`');
        let inside = &rest[at + if is_backtick { 1 } else { 2 }..];
        let end = match is_backtick {
            true => inside.find('`').unwrap_or(inside.len()),
            false => closing_bracket(inside),
        };
        found.push(&inside[..end]);
        rest = &inside[end..];
        rest = rest.get(1..).unwrap_or_default();
    }
    found
}

/// Returns where the bracket closes that was opened before the text; its end if it does not.
fn closing_bracket(text: &str) -> usize {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn split_line(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let mut quote = None;
    let mut chars = line.chars().peekable();
    let (mut depth, mut in_backticks) = (0_i32, false);
    while let Some(c) = chars.next() {
        let word = commands.last_mut().and_then(|command| command.last_mut());
        let Some(word) = word else { unreachable!("there is always a word") };
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(chars.next()),
            // `$(…)` and `${…}` are parts of a word.
            (None, '$') if matches!(chars.peek(), Some('(' | '{')) => {
                depth += 1;
                word.push(c);
                word.extend(chars.next());
            }
            (None, ')' | '}') if depth > 0 => {
                depth -= 1;
                word.push(c);
            }
            (None, '`') => {
                depth = if in_backticks { depth - 1 } else { depth + 1 };
                in_backticks = !in_backticks;
                word.push(c);
            }
            (None, c) if ";&|\n()<>".contains(c) && depth == 0 => commands.push(vec![String::new()]),
            (None, c) if c.is_whitespace() && depth == 0 => {
                commands.last_mut().into_iter().for_each(|command| command.push(String::new()));
            }
            (_, c) => word.push(c),
        }
    }
    commands.iter_mut().for_each(|command| command.retain(|word| !word.is_empty() && word != "{" && word != "}"));
    commands.retain(|command| !command.is_empty());
    commands
}

/// Finds out which words of commands may be run.
fn mark_words(commands: &[Vec<String>]) -> Vec<Word> {
    // Words of the shell before a program.
    const BEFORE_PROGRAM: [&str; 8] = ["do", "then", "else", "elif", "if", "while", "until", "!"];
    // `cat scripts/x | bash` runs what it is given.
    let takes_code = |command: &Vec<String>| {
        let program = command.first().map(|word| program_name(word)).unwrap_or_default();
        let is_shell = contains_word(FOLDER_RUNNERS, &program) || program == "eval";
        let has_code = command.len() == 1 || command.iter().any(|word| word.contains("$(") || word.contains('`'));
        program == "xargs" || is_shell && has_code
    };
    let runs_all = commands.iter().any(takes_code);
    let mut marked = Vec::new();
    for command in commands {
        let start = command.iter().position(|word| {
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_name_char));
            !BEFORE_PROGRAM.contains(&word.as_str()) && !is_assignment
        });
        let (before, rest) = command.split_at(start.unwrap_or(command.len()));
        let program = rest.first().map(|word| program_name(word)).unwrap_or_default();
        let is_runner = |word: &String| {
            let program = program_name(word);
            contains_word(RUNNERS, &program) || is_python(&program) || word.starts_with('$')
        };
        let runs = runs_all || rest.iter().any(is_runner);
        let runs_folder = runs_all || rest.iter().any(|word| contains_word(FOLDER_RUNNERS, &program_name(word)));
        let executes = program == "find" && rest.iter().any(|word| word.starts_with("-exec"));
        for (at, text) in before.iter().chain(rest).enumerate() {
            let is_program = at == before.len();
            let is_module = at > 0 && command[at - 1] == "-m" && is_python(&program);
            let is_run = (is_program && program != "for") || at > before.len() && (runs || runs_folder || executes);
            let runs_folder = runs_folder || executes;
            marked.push(Word { text: text.clone(), is_run, runs_folder, is_module });
        }
    }
    marked
}

/// Adds the paths that a word may mean.
fn add_meanings(word: &Word, nesting: usize, folders: CommandFolders<'_>, all: &mut Vec<Word>) {
    let mut text = expand_variables(&word.text, folders.variable);
    if let Some(below) = text.strip_prefix("~/") {
        text = folders.home.join(below).to_string_lossy().into_owned();
    }
    let text = text.strip_prefix("file://").unwrap_or(&text).to_owned();
    let mut add = |text: &str| all.extend((!text.is_empty()).then(|| Word { text: text.to_owned(), ..word.clone() }));
    if word.is_module {
        add(&text.replace('.', "/"));
        add(&format!("{}/__main__", text.replace('.', "/")));
    }
    // The value of an option, what follows something that only the shell knows, and a module with a name in it.
    let value = text.split_once('=').map(|(_, value)| value);
    let joined = text.strip_prefix('-').and_then(|option| option.get(1..)).filter(|_| !text.starts_with("--"));
    let known = text.rfind([')', '}', '`']).map(|at| &text[at + 1..]);
    let after_variable = text.rfind('$').map(|at| text[at + 1..].trim_start_matches(is_name_char));
    let before_name = text.rsplit_once(':').map(|(file, _)| file);
    let parts = [Some(text.as_str()), value, joined, known, after_variable, before_name];
    for part in parts.into_iter().flatten() {
        add(part);
        // What comes before may not be known: `$(pwd)/scripts/x`.
        let relative = part.trim_start_matches('/');
        if relative != part && !Path::new(part).exists() {
            add(relative);
        }
    }
    let names_file = folders.start.iter().any(|folder| folder.join(&text).exists());
    // A quoted command. Substitutions in it are commands of the line already.
    let inner = split_line(&word.text);
    if nesting > 0 && word.is_run && !names_file && inner != [std::slice::from_ref(&word.text)] {
        mark_words(&inner).iter().for_each(|inner| add_meanings(inner, nesting - 1, folders, all));
    }
}

/// Replaces the variables whose values are known.
fn expand_variables(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split('$');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        let end = part.find(|c| !is_name_char(c)).unwrap_or(part.len());
        let (name, rest) = braced.unwrap_or(part.split_at(end));
        match variable(name) {
            Some(value) => expanded.extend([value.as_str(), rest]),
            None => expanded.extend(["$", part]),
        }
    }
    expanded
}

/// Whether a command runs Python without a script: code, a module or standard input. Python then imports modules from the
/// current folder.
pub(crate) fn runs_python_without_script(words: &[String]) -> bool {
    let runs = |command: &[String]| {
        let Some(at) = command.iter().position(|word| is_python(&program_name(word))) else {
            // A variable may be Python.
            return matches!(command, [program, option, ..] if program.starts_with('$') && is_code_option(option));
        };
        let mut rest = command[at + 1..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-W" | "-X" | "--check-hash-based-pycs" => drop(rest.next()),
                option if is_code_option(option) => return true,
                option if option.starts_with('-') => {}
                _ => return false,
            }
        }
        true
    };
    let nested =
        |word: &String| word.contains(char::is_whitespace) && split_commands(word).iter().any(|line| runs(line));
    runs(words) || words.iter().any(nested)
}

/// As [`runs_python_without_script`], for a command line.
pub(crate) fn line_runs_python_without_script(line: &str) -> bool {
    split_commands(line).iter().any(|command| runs_python_without_script(command))
}

/// Whether an option of Python is followed by code or a module.
fn is_code_option(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.contains(['c', 'm']) || option == "-"
}

fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

fn program_name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or_default().to_owned()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn contains_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn python_without_a_script_is_seen() {
        for command in [
            "python3 -c 'import json'",
            "cat | /usr/bin/python3.12 -Ic \"x\"",
            "python -u -c x",
            "python3 -X utf8 -c x",
            "python3 -m json.tool",
            "python3 - <<'EOF'\nimport json\nEOF",
            "python3 <<'EOF'\nimport json\nEOF",
            "python3 --version && python3 -c x",
            "$PYTHON -c x",
            "sh -c 'python3 -c x'",
            "f=$(python3 -c 'import json'); echo $f",
            "echo \"$(cat | python3 -c x)\"",
            "f=`python3 -c x`",
            "set -e\npython3 -c x",
            "${PY:-python3} -c x",
            "echo 'import json' | python3\ntrue",
        ] {
            assert!(line_runs_python_without_script(command), "{command}");
        }
        for command in ["python3 scripts/h.py -c x", "python3 -u ~/h.py", "sh -c x", "pytest -m slow"] {
            assert!(!line_runs_python_without_script(command), "{command}");
        }
    }

    #[test]
    fn the_scripts_of_commands_are_found_however_they_are_named() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap();
        let project = home.join("My Project");
        for folder in ["scripts/lib", "tools", "src", "pkg"] {
            fs::create_dir_all(project.join(folder)).unwrap();
        }
        for name in [
            "scripts/h.sh",
            "scripts/h",
            "scripts/lib/x.sh",
            "srv.py",
            "tools/index.js",
            "pkg/check.py",
            "package.json",
            "README.md",
            "src/a.ts",
        ] {
            fs::write(project.join(name), "").unwrap();
        }
        let variable = |name: &str| match name {
            "CLAUDE_PROJECT_DIR" => Some(project.display().to_string()),
            "HOME" => Some(home.display().to_string()),
            "HK" => Some("scripts".to_owned()),
            _ => None,
        };
        let folders = CommandFolders { start: [&project, &project], home: &home, variable: &variable };
        let inside = |mut found: Vec<PathBuf>| {
            found = found.iter().map(|path| path.components().collect()).collect();
            found.sort();
            found.dedup();
            let inside = found.iter().filter_map(|path| path.strip_prefix(&project).ok());
            inside.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let check = |command: &str, expected: &[&str]| {
            assert_eq!(inside(files_of_command(command, folders)), expected, "{command}");
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
            "$HK/h.sh",
            "sh -c 'exec scripts/h.sh'",
            "node --require=scripts/h.sh",
            "bash -x scripts/h.sh",
        ] {
            check(command, &["scripts/h.sh"]);
        }
        check("bash scripts/h", &["scripts/h"]);
        check("cd scripts && ./h", &["scripts/h"]);
        check("cd scripts && cd lib && ./x.sh", &["scripts/lib/x.sh"]);
        check("cd \"$CLAUDE_PROJECT_DIR/scripts\"; sh h", &["scripts/h"]);
        for command in [
            "out=$(bash scripts/h); echo \"$out\"",
            "if ! out=$(scripts/h 2>&1); then exit 2; fi",
            "echo \"$(bash scripts/h)\"",
            "bash -c \"$(cat scripts/h)\"",
            "set -e\nbash scripts/h",
            "x=`bash scripts/h`",
            "cat scripts/h | bash",
            "nice bash scripts/h",
            "trap 'bash scripts/h' EXIT",
            "elif bash scripts/h",
            "${BASH:-bash} scripts/h",
        ] {
            check(command, &["scripts/h"]);
        }
        check("ls scripts/*.sh | xargs -n1 bash", &["scripts"]);
        check("node ./tools", &["tools/index.js"]);
        check("python3 -m pkg.check", &["pkg/check.py"]);
        check("fastmcp run srv.py:mcp", &["srv.py"]);
        // Any file of the folder may be run.
        check("for f in scripts/*.sh; do sh $f; done", &["scripts"]);
        check("for h in a b; do \"scripts/$h.sh\"; done", &["scripts"]);
        check("run-parts scripts", &["scripts"]);
        check("scripts/{a,b}.sh", &["scripts"]);
        // These may be made later.
        check("test -x new/hook.sh && new/hook.sh", &["new/hook.sh"]);
        check("[ -f scripts/pre ] && sh scripts/pre", &["scripts/pre"]);
        // Files that are not run.
        for command in [
            "npx prettier --write .",
            "npx prettier --write \"src/**/*.md\"",
            "eslint 'src/**/*.{ts,tsx}'",
            "[[ $f == src/*.rs ]] && cargo fmt",
            "[ -f package.json ] && npm run lint",
            "cat README.md",
            "echo 'update README.md' >> README.md",
            "tsc -p package.json",
            "python3 -c 'import json'",
            "jq -r .tool_input.file_path",
        ] {
            check(command, &[]);
        }
        let server = ["/usr/bin/python3".to_owned(), project.join("srv.py").display().to_string()];
        assert_eq!(inside(named_files(&server, folders)), ["srv.py"]);
    }
}
