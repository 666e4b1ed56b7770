//! Effect of git commands.

use std::path::{Path, PathBuf};

use super::{contains_word, dashed_words, options};
use crate::path::resolve;
use crate::permission::bash::possible_commands::GIT_VALUE_OPTIONS;
use crate::permission::shell::Word;

/// Subcommands that change nothing.
const READ_ONLY_SUBCOMMANDS: &str = "status diff log show rev-parse ls-files blame shortlog";

/// Command lines that change nothing in exactly this form.
const READ_ONLY_COMMAND_LINES: [&str; 7] =
    ["branch", "branch --show-current", "branch -a", "remote", "remote -v", "stash list", "tag"];

/// Long options with which git neither writes files, runs programs nor reads other files.
const SAFE_LONG_OPTIONS: &str = "--abbrev --abbrev-commit --abbrev-ref --after --all --author --before --branch --branches --cached \
    --check --cherry --color --committer --date --date-order --decorate --deleted --diff-filter --dirstat \
    --exclude-standard --exit-code --find-renames --first-parent --follow --format --git-dir --graph --grep --histogram \
    --ignore-all-space --ignore-space-change --ignored --is-inside-work-tree --left-right --line-porcelain \
    --max-count --merges --minimal --modified --name-only --name-status --no-color --no-ext-diff --no-merges --no-patch \
    --no-renames --no-textconv --numbered --numstat --oneline --others --patch --patience --porcelain --pretty --quiet \
    --raw --remotes --reverse --short --shortstat --show-cdup --show-current --show-prefix --show-stash --show-toplevel \
    --since --skip --staged --stat --summary --symbolic-full-name --tags --topo-order --unified --until \
    --untracked-files --verify --word-diff";

/// Subcommands that may run without a sandbox beside a git command that a rule allows.
pub(super) const PLAIN_SUBCOMMANDS: &str = "branch diff log rev-parse show status";

/// Subcommands that do not show the contents of files.
const CONTENT_FREE_SUBCOMMANDS: &str = "add branch checkout cherry-pick commit config describe fetch for-each-ref gc help init ls-files \
    ls-remote merge mv pull push rebase remote reset restore rev-list rev-parse revert rm shortlog show-ref stash status \
    submodule switch tag var version";

/// Those of them that show changes with `-p` or `-v`.
const PATCH_SUBCOMMANDS: &str = "add checkout commit reset restore stash";

/// Options of `log` that do not show the contents of files.
const CONTENT_FREE_LOG_OPTIONS: &str = "--abbrev-commit --after --all --author --before --branches --color --committer --date \
    --decorate --first-parent --format --graph --grep --max-count --merges --name-only --name-status --no-color \
    --no-merges --no-patch --numstat --oneline --pretty --remotes --reverse --shortstat --since --skip --stat --tags \
    --until";

/// Whether a git command changes nothing and runs no program that its words name.
pub(super) fn is_read_only(words: &[Word]) -> bool {
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some(command) = text.first().filter(|command| contains_word(READ_ONLY_SUBCOMMANDS, command)) else {
        return READ_ONLY_COMMAND_LINES.contains(&text.join(" ").as_str());
    };
    // `-O` and `-X` name files, `-S` of blame does.
    let refused = if *command == "blame" { "OXS" } else { "OX" };
    let is_known = |option: &&str| match option.strip_prefix("--") {
        Some(_) => contains_word(SAFE_LONG_OPTIONS, option.split('=').next().unwrap_or(option)),
        None => !option.contains(|c| refused.contains(c)),
    };
    // `blame -- FILE --output=OTHER` has an option after the file.
    dashed_words(&words[1..]).filter(|word| *word != "--").all(|option| is_known(&option))
}

/// Whether a git command may show the contents of files or copy them to other names.
pub(super) fn may_show_contents(mut words: &[Word]) -> bool {
    while let [option, rest @ ..] = words
        && option.text.starts_with('-')
    {
        let values = if contains_word(GIT_VALUE_OPTIONS, &option.text) { 1 } else { 0 };
        words = rest.get(values..).unwrap_or_default();
    }
    let Some((command, rest)) = words.split_first() else { return false };
    let only_names = |option: &&str| match option.strip_prefix("--") {
        Some(_) => contains_word(CONTENT_FREE_LOG_OPTIONS, option.split('=').next().unwrap_or(option)),
        None => option[1..].chars().all(|c| c.is_ascii_digit()) || *option == "-n",
    };
    let patches = |option: &&str| match option.strip_prefix("--") {
        Some(name) => ["p", "v", "i"].iter().any(|start| name.starts_with(start)),
        None => option.contains(['p', 'v', 'i']),
    };
    match command.text.as_str() {
        "log" => !options(rest).iter().all(only_names),
        "stash" if rest.first().is_some_and(|word| word.text == "show") => true,
        name if contains_word(PATCH_SUBCOMMANDS, name) => options(rest).iter().any(patches),
        name => !contains_word(CONTENT_FREE_SUBCOMMANDS, name),
    }
}

/// Whether git in `folder` uses the same repository as in `root`, with a plain `.git` folder.
/// Another repository may be part of downloaded files and configure programs for git to run, and so may
/// one whose `.git` is new.
pub(in crate::permission::bash) fn is_same_repository(
    folder: &Path,
    root: &Path,
    is_new: impl Fn(&Path) -> bool,
) -> bool {
    match (find_repository(folder), find_repository(root)) {
        (Repository::None, Repository::None) => true,
        (Repository::At(here), Repository::At(there)) => here == there && !is_new(&here.join(".git")),
        _ => false,
    }
}

#[derive(PartialEq, Eq)]
enum Repository {
    None,
    /// Folder that contains `.git`.
    At(PathBuf),
    /// A folder that is a bare repository by its contents.
    Bare,
}

fn find_repository(folder: &Path) -> Repository {
    let Some(folder) = resolve(folder) else { return Repository::Bare };
    for folder in folder.ancestors() {
        if folder.join(".git").symlink_metadata().is_ok() {
            return Repository::At(folder.to_owned());
        }
        if ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).symlink_metadata().is_ok()) {
            return Repository::Bare;
        }
    }
    Repository::None
}
