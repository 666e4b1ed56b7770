//! The folders that a command may run in, and what its names mean there.

use std::path::{Path, PathBuf};

use super::known_commands;
use super::possible_commands::PossibleCommands;
use super::{possible_file_names, strip_wrappers};
use crate::path::{TargetPath, resolve, without_dots};
use crate::permission::decision::PermissionContext;
use crate::permission::shell::{Script, SimpleCommand, Word};
use crate::tool::Workspace;

/// Folders that a command may run in after `cd` in the same script; `None` if they cannot be
/// determined. All but the first are resolved.
pub(super) struct PossibleCwds(pub(super) Option<Vec<PathBuf>>);

impl PossibleCwds {
    pub(super) fn from_script(script: &Script, workspace: &Workspace) -> Self {
        let cwd = workspace.cwd();
        let is = |part: &&SimpleCommand, names: &[&str]| {
            strip_wrappers(&part.words).first().is_some_and(|word| names.contains(&word.text.as_str()))
        };
        if script.commands.iter().any(redirects_folders) {
            return Self(None);
        }
        let moves: Vec<&SimpleCommand> =
            script.commands.iter().filter(|part| is(part, &["cd", "pushd", "popd"])).collect();
        match moves.as_slice() {
            [] => Self(Some(vec![cwd])),
            [part] if !script.has_loop => match part.words.as_slice() {
                [command, target] if command.text == "cd" && is_cd_target(target) => {
                    // Bash resolves `..` by name and the system by link; `cd` may also fail.
                    let there = cwd.join(&target.text);
                    let both = [resolve(&there), resolve(&without_dots(&there))];
                    let both = both.into_iter().collect::<Option<Vec<_>>>();
                    Self(both.map(|both| {
                        let mut all = [vec![cwd], both].concat();
                        all.dedup();
                        all
                    }))
                }
                _ => Self(None),
            },
            _ => Self(None),
        }
    }

    /// Whether a name is a regular file and not a link, in every possible folder.
    pub(super) fn is_file(&self, name: &str) -> bool {
        let is_file = |folder: &PathBuf| folder.join(name).symlink_metadata().is_ok_and(|about| about.is_file());
        self.0.as_ref().is_some_and(|folders| folders.iter().all(is_file))
    }

    /// Whether a name is a regular file, a folder or nothing, in every possible folder.
    pub(super) fn is_regular_or_missing(&self, name: &str) -> bool {
        let is_plain = |path: PathBuf| path.metadata().map_or(true, |about| about.is_file() || about.is_dir());
        self.0.as_ref().is_some_and(|folders| folders.iter().all(|folder| is_plain(folder.join(name))))
    }

    /// Whether a name is a folder in one of the possible folders.
    pub(super) fn is_folder(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|folders| folders.iter().any(|folder| folder.join(name).is_dir()))
    }

    /// Whether git would use the session's own repository, and not one that a command in the sandbox
    /// has made and that is removed when the command ends.
    pub(super) fn is_session_repository(&self, workspace: &Workspace) -> bool {
        let is_new = |path: &Path| workspace.contains(path) && workspace.sandbox().may_be_new(path);
        self.is_single() && known_commands::git::is_same_repository(&workspace.cwd(), workspace.root(), is_new)
    }

    /// As [`is_session_repository`](Self::is_session_repository), also for the folders that options of git name.
    pub(super) fn are_of_session_repository(&self, workspace: &Workspace, possible: Option<&PossibleCommands>) -> bool {
        let is_new = |path: &Path| workspace.contains(path) && workspace.sandbox().may_be_new(path);
        let has_input = possible.is_some_and(PossibleCommands::takes_words_from_input);
        let is_same = |folder: PathBuf| {
            let folder = workspace.cwd().join(folder);
            // What is no folder may be replaced by the input of a program: `xargs -I{} git -C {}`.
            (folder.is_dir() || !has_input)
                && known_commands::git::is_same_repository(&folder, workspace.root(), is_new)
        };
        let folders = possible.filter(|possible| !possible.starts_elsewhere).and_then(PossibleCommands::git_folders);
        self.is_session_repository(workspace) && folders.is_some_and(|folders| folders.into_iter().all(is_same))
    }

    /// Whether a word after the program of a command may be the name of a file or folder, which need not exist. Plain words
    /// that are none now are subcommands and targets: `npm test`, `make all`.
    pub(super) fn may_name_file(&self, words: &[Word]) -> bool {
        let exists = |name: &str| match &self.0 {
            Some(folders) => folders.iter().any(|folder| folder.join(name).symlink_metadata().is_ok()),
            None => true,
        };
        let may_name = |pair: &[Word]| {
            let [before, word] = pair else { return false };
            let letters = word.text.strip_prefix('-').and_then(|option| option.get(1..)).unwrap_or_default();
            let mut parts = word.text.split(['=', '@', ':', ',']).chain([letters]).filter(|part| !part.is_empty());
            let is_value = before.text.starts_with('-') && !word.text.starts_with('-');
            !word.is_literal || is_value || word.text.contains(['/', '.', ' ']) || parts.any(exists)
        };
        words.windows(2).any(may_name)
    }

    pub(super) fn is_single(&self) -> bool {
        self.0.as_ref().is_some_and(|folders| folders.len() == 1)
    }

    /// Whether a name is inside the session's folders, in every possible folder.
    pub(super) fn is_inside_workspace(&self, ctx: &PermissionContext<'_>, name: &str) -> bool {
        let inside = |path: &Path| ctx.workspace.contains(path) && !is_process_path(path);
        match &self.0 {
            Some(folders) => folders.iter().all(|folder| inside(&folder.join(name))),
            None => Path::new(name).is_absolute() && inside(Path::new(name)),
        }
    }

    /// Whether a link makes a name lead out of the session's folders or to a guarded file.
    pub(super) fn leads_elsewhere(&self, ctx: &PermissionContext<'_>, word: &Word) -> bool {
        let leads = |folder: &PathBuf| {
            let target = TargetPath::new(without_dots(&folder.join(&word.text)));
            let is_same = target.real.as_ref() == Some(&target.given);
            !is_same && (!ctx.workspace.contains(&target.given) || ctx.workspace.is_target_guarded(&target))
        };
        let cwd = ctx.workspace.cwd();
        [cwd].iter().chain(self.0.iter().flatten()).any(leads) || self.0.is_none() || !word.is_literal
    }

    /// Whether a word may name a file through a link of a process.
    pub(super) fn has_process_path(&self, word: &Word) -> bool {
        let names = possible_file_names(&word.text);
        let is_one = |folder: &PathBuf| names.iter().any(|name| is_process_path(&folder.join(&**name)));
        self.0.as_ref().is_some_and(|folders| folders.iter().any(is_one))
    }

    /// Whether a name is inside the session's folders and not guarded, in every possible folder.
    pub(super) fn can_change(&self, ctx: &PermissionContext<'_>, name: &str) -> bool {
        let open = |folder: &PathBuf| {
            let path = folder.join(name);
            let real = resolve(&path);
            let is_folder = real.is_none_or(|real| ctx.workspace.folders().iter().any(|open| open.starts_with(&real)));
            !is_folder && !ctx.workspace.is_guarded(&path)
        };
        self.is_inside_workspace(ctx, name) && self.0.as_ref().is_some_and(|folders| folders.iter().all(open))
    }
}

/// Whether a path leads through a link such as `/proc/self/cwd`, which is another one for the command.
fn is_process_path(path: &Path) -> bool {
    TargetPath::new(path).links.iter().any(|link| link.starts_with("/proc"))
}

/// Whether a command sets a variable or option that changes where `cd` or `~` leads.
fn redirects_folders(part: &SimpleCommand) -> bool {
    const SETTERS: &str =
        "builtin command declare export getopts local mapfile printf read readarray readonly shopt typeset";
    let names = ["CDPATH", "HOME", "OLDPWD", "PWD", "cdable_vars"];
    let sets = part.words.first().is_some_and(|first| SETTERS.split(' ').any(|setter| setter == first.text));
    let is_named = |text: &str| names.iter().any(|name| text.contains(name));
    part.assignments.iter().any(|assignment| is_named(assignment.split('=').next().unwrap_or_default()))
        || sets && part.words.iter().any(|word| is_named(&word.text))
}

/// Whether a word is a folder for `cd`; options and an empty word go home or back.
fn is_cd_target(word: &Word) -> bool {
    word.is_literal && !word.text.is_empty() && !word.text.starts_with('-')
}
