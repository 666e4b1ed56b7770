//! Effect of git commands.

use std::path::{Path, PathBuf};

use super::{contains_word, dashed_words, operands, options};
use crate::guarded_paths::is_repository_folder;
use crate::path::resolve;
use crate::permission::bash::possible_commands::{GIT_VALUE_OPTIONS, is_known_git_option};
use crate::permission::shell::Word;

/// Subcommands that change nothing.
const READ_ONLY_SUBCOMMANDS: &str = "blame cat-file check-ignore count-objects describe diff for-each-ref grep log ls-files \
    ls-tree merge-base name-rev rev-list rev-parse shortlog show status";

/// Command lines that change nothing in exactly this form.
const READ_ONLY_COMMAND_LINES: [&str; 16] = [
    "--version",
    "branch",
    "branch --show-current",
    "branch --list",
    "branch -a",
    "branch -r",
    "branch -v",
    "branch -vv",
    "reflog",
    "remote",
    "remote -v",
    "stash list",
    "tag",
    "tag --list",
    "tag -l",
    "worktree list",
];

/// Long options with which git neither writes files, runs programs nor reads other files.
const SAFE_LONG_OPTIONS: &str = "--abbrev --abbrev-commit --abbrev-ref --after --all --always --author --before --branch --branches --cached \
    --check --cherry --color --committer --contains --count --date --date-order --decorate --deleted \
    --diff-filter --dirstat --dirty --exact-match --exclude-standard --exit-code --extended-regexp \
    --files-with-matches --find-renames --first-parent --fixed-strings --follow --format --full-name --full-tree \
    --git-dir --graph --grep --histogram --ignore-all-space --ignore-case --ignore-space-change --ignored \
    --is-ancestor --is-inside-work-tree --left-right --line-number --line-porcelain --long --match --max-count \
    --merged --merges --minimal --modified --name-only --name-status --no-color --no-ext-diff --no-merged \
    --no-merges --no-patch --no-renames --no-textconv --numbered --numstat --object-only --oneline --others \
    --patch --patience --perl-regexp --points-at --porcelain --pretty --quiet --raw --remotes --reverse --short \
    --shortstat --show-cdup --show-current --show-prefix --show-stash --show-toplevel --since --skip --sort \
    --staged --stat --summary --symbolic-full-name --tags --topo-order --unified --until --untracked-files \
    --verify --word-diff --word-regexp";

/// Subcommands that may run without a sandbox beside a git command that a rule allows.
pub(super) const PLAIN_SUBCOMMANDS: &str = "branch diff log rev-parse show status";

/// Subcommands that do not show the contents of files, with the short and long options for which this holds.
const CONTENT_FREE_SUBCOMMANDS: [(&str, &str, &str); 36] = [
    ("add", "AfNnu", "--all --chmod --dry-run --force --intent-to-add --refresh --update"),
    (
        "branch",
        "aDdfMmqrtuv",
        "--all --contains --copy --delete --force --list --merged --move --no-merged --no-track \
        --quiet --remotes --set-upstream-to --show-current --sort --track --unset-upstream",
    ),
    ("checkout", "Bbdfqt", "--detach --force --no-track --orphan --ours --quiet --theirs --track"),
    ("cherry-pick", "emnsx", "--abort --continue --edit --mainline --no-commit --quit --signoff --skip --strategy"),
    (
        "commit",
        "aCcemnoqsSF",
        "--all --allow-empty --allow-empty-message --amend --author --date --edit --file --fixup \
        --message --no-edit --no-gpg-sign --no-verify --only --quiet --reset-author --signoff --squash --trailer",
    ),
    (
        "config",
        "lz",
        "--add --all --bool --default --get --get-all --get-regexp --global --int --list --local \
        --name-only --path --replace-all --show-origin --show-scope --system --type --unset --unset-all --worktree",
    ),
    ("describe", "", "--abbrev --all --always --contains --dirty --exact-match --long --match --tags"),
    (
        "fetch",
        "afjnpqtv",
        "--all --depth --dry-run --force --jobs --no-recurse-submodules --no-tags --progress --prune \
        --quiet --recurse-submodules --tags --unshallow --verbose",
    ),
    ("for-each-ref", "", "--contains --count --merged --no-merged --sort"),
    ("gc", "", "--aggressive --auto --force --prune --quiet"),
    ("help", "a", "--all"),
    ("init", "bq", "--bare --initial-branch --quiet"),
    (
        "ls-files",
        "cdikmostuz",
        "--cached --deleted --directory --error-unmatch --exclude-standard --full-name --ignored \
        --modified --others --stage --unmerged",
    ),
    ("ls-remote", "hqt", "--branches --exit-code --heads --refs --sort --symref --tags"),
    (
        "merge",
        "emnqsSX",
        "--abort --allow-unrelated-histories --continue --edit --ff --ff-only --message --no-commit \
        --no-edit --no-ff --no-verify --quiet --quit --signoff --squash --strategy",
    ),
    ("mv", "fknv", "--dry-run --force --verbose"),
    (
        "pull",
        "fpqrtv",
        "--all --allow-unrelated-histories --autostash --depth --ff --ff-only --force --no-edit --no-ff \
        --no-rebase --prune --quiet --rebase --tags --verbose",
    ),
    (
        "push",
        "dfnquv",
        "--all --atomic --delete --dry-run --follow-tags --force --force-with-lease --mirror --no-verify \
        --porcelain --prune --quiet --set-upstream --tags --verbose",
    ),
    (
        "rebase",
        "fiqr",
        "--abort --autosquash --autostash --continue --force-rebase --interactive --keep-empty \
        --no-autostash --onto --quit --rebase-merges --root --skip",
    ),
    ("remote", "ftv", "--tags --verbose"),
    ("reset", "Nq", "--hard --keep --merge --mixed --quiet --soft"),
    ("restore", "qsSW", "--ours --quiet --source --staged --theirs --worktree"),
    (
        "rev-list",
        "n",
        "--abbrev-commit --after --all --author --before --branches --count --first-parent --left-right \
        --max-count --merges --no-merges --oneline --remotes --reverse --since --tags --until",
    ),
    (
        "rev-parse",
        "q",
        "--abbrev-ref --absolute-git-dir --all --branches --git-common-dir --git-dir --git-path \
        --is-bare-repository --is-inside-work-tree --quiet --short --show-cdup --show-prefix --show-toplevel \
        --symbolic-full-name --verify",
    ),
    ("revert", "emnsS", "--abort --continue --edit --mainline --no-commit --no-edit --quit --signoff --skip"),
    ("rm", "fnqr", "--cached --dry-run --force --ignore-unmatch --quiet"),
    ("shortlog", "ens", "--all --email --no-merges --numbered --since --summary --until"),
    ("show-ref", "dqs", "--branches --dereference --hash --head --heads --quiet --tags --verify"),
    ("stash", "akmqSu", "--all --include-untracked --index --keep-index --message --no-keep-index --quiet --staged"),
    (
        "status",
        "bsuz",
        "--ahead-behind --branch --ignored --long --no-ahead-behind --no-renames --porcelain --renames \
        --short --show-stash --untracked-files",
    ),
    (
        "submodule",
        "q",
        "--branch --checkout --depth --force --init --jobs --merge --name --quiet --rebase --recursive \
        --remote",
    ),
    (
        "switch",
        "Ccdfqt",
        "--create --detach --discard-changes --force --force-create --guess --merge --no-guess \
        --no-track --orphan --quiet --track",
    ),
    (
        "tag",
        "adDflmsu",
        "--annotate --contains --delete --force --list --merged --message --no-merged --points-at \
        --sign --sort",
    ),
    ("var", "l", ""),
    ("version", "", "--build-options"),
    ("worktree", "bBdfq", "--detach --force --lock --orphan --porcelain --quiet --track"),
];

/// Subcommands of these that show contents or run other commands.
const SHOWING_OPERANDS: [(&str, &str); 5] =
    [("stash", "show"), ("submodule", "add"), ("submodule", "foreach"), ("submodule", "summary"), ("worktree", "add")];

/// Options of `log` that do not show the contents of files.
const CONTENT_FREE_LOG_OPTIONS: &str = "--abbrev-commit --after --all --author --before --branches --color --committer --date \
    --decorate --first-parent --format --graph --grep --max-count --merges --name-only --name-status --no-color \
    --no-merges --no-patch --numstat --oneline --pretty --remotes --reverse --shortstat --since --skip --stat --tags \
    --until";

/// Whether a git command changes nothing and runs no program that its words name.
pub(super) fn is_read_only(words: &[Word]) -> bool {
    let words = match words {
        [first, rest @ ..] if first.text == "--no-pager" || first.text == "-P" => rest,
        words => words,
    };
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some(command) = text.first().filter(|command| contains_word(READ_ONLY_SUBCOMMANDS, command)) else {
        return match text.as_slice() {
            ["reflog", "-n", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
            ["config", "--get", key] => key.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c)),
            text => READ_ONLY_COMMAND_LINES.contains(&text.join(" ").as_str()),
        };
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
        // A setting may make any command show more.
        let is_setting = option.text.starts_with("-c") || option.text.starts_with("--config-env");
        if is_setting || !is_known_git_option(&option.text) {
            return true;
        }
        let values = if contains_word(GIT_VALUE_OPTIONS, &option.text) { 1 } else { 0 };
        words = rest.get(values..).unwrap_or_default();
    }
    let Some((command, rest)) = words.split_first() else { return false };
    let only_names = |option: &&str| match option.strip_prefix("--") {
        Some(_) => contains_word(CONTENT_FREE_LOG_OPTIONS, option.split('=').next().unwrap_or(option)),
        None => option[1..].chars().all(|c| c.is_ascii_digit()) || *option == "-n",
    };
    if command.text == "log" {
        return !options(rest).iter().all(only_names);
    }
    let Some((name, short, long)) = CONTENT_FREE_SUBCOMMANDS.iter().find(|(name, ..)| *name == command.text) else {
        return true;
    };
    let is_known = |option: &&str| match option.strip_prefix("--") {
        Some(_) => contains_word(long, option.split('=').next().unwrap_or(option)),
        // The text of a message may follow its letter.
        None if option.starts_with("-m") => short.contains('m'),
        None => option[1..].chars().all(|c| short.contains(c) || c.is_ascii_digit()),
    };
    let shows = |word: &Word| SHOWING_OPERANDS.contains(&(name, word.text.as_str()));
    // A list of stashes takes the options of `log`.
    let is_list = *name == "stash" && rest.iter().any(|word| word.text == "list");
    rest.iter().any(shows) || !options(rest).iter().all(is_known) || is_list && !options(rest).is_empty()
}

/// Whether a git command compares two files by name, as `diff` does in the repository of `root` if one of them is outside
/// of it, and always if there is none. It then follows links on the way.
pub(in crate::permission::bash) fn may_compare_files(words: &[Word], root: &Path) -> bool {
    let named = operands(words.get(1..).unwrap_or_default());
    let Some(names) = named.iter().position(|word| *word == "diff").map(|at| &named[at + 1..]) else { return false };
    let leads_out = |name: &&str| name.starts_with('/') || name.split('/').any(|part| part == "..");
    names.len() > 1 && (names.iter().any(leads_out) || find_repository(root) == Repository::None)
}

/// Returns the subcommand among the words after `git`.
pub(super) fn subcommand(words: &[Word]) -> Option<&str> {
    let mut words = words.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        if contains_word(GIT_VALUE_OPTIONS, word) {
            words.next();
        }
    }
    None
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
        if is_repository_folder(folder) {
            return Repository::Bare;
        }
    }
    Repository::None
}
