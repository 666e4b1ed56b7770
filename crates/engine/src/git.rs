//! Facts about the git repository that a folder is in, read from its `.git` without running git.

use std::path::Path;

use crate::text_file::{self, MAX_BYTES};

/// The root of the git repository that contains a folder; `None` outside of git.
pub(crate) fn git_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Whether a folder is in a linked worktree of a repository.
pub(crate) fn is_worktree(folder: &Path) -> bool {
    let link = git_root(folder).and_then(|root| text_file::read(&root.join(".git"), None, MAX_BYTES).ok());
    // The `.git` of a submodule is a file too, and points to `modules`.
    link.is_some_and(|link| link.contains("/worktrees/"))
}

/// The current branch of a folder; `HEAD` outside of git or without a branch.
pub(crate) fn git_branch(folder: &Path) -> String {
    let head = git_root(folder).and_then(|root| {
        let git = root.join(".git");
        let git = if git.is_file() {
            let link = text_file::read(&git, None, MAX_BYTES).ok()?;
            root.join(link.strip_prefix("gitdir:")?.trim())
        } else {
            git
        };
        text_file::read(&git.join("HEAD"), None, MAX_BYTES).ok()
    });
    head.as_deref().and_then(|head| head.trim().strip_prefix("ref: refs/heads/")).unwrap_or("HEAD").to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_submodule_is_no_worktree() {
        let temp = tempfile::tempdir().unwrap();
        let check = |link: &str, expect: bool| {
            fs::write(temp.path().join(".git"), link).unwrap();
            fs::create_dir_all(temp.path().join("sub")).unwrap();
            assert_eq!((is_worktree(temp.path()), is_worktree(&temp.path().join("sub"))), (expect, expect), "{link}");
        };
        check("gitdir: /repo/.git/worktrees/x\n", true);
        check("gitdir: ../.git/modules/x\n", false);
    }

    #[test]
    fn a_repository_that_leads_to_a_device_has_no_branch() {
        let temp = tempfile::tempdir().unwrap();
        symlink("/dev/zero", temp.path().join(".git")).unwrap();
        assert_eq!((is_worktree(temp.path()), git_branch(temp.path()).as_str()), (false, "HEAD"));
        fs::remove_file(temp.path().join(".git")).unwrap();
        fs::create_dir(temp.path().join(".git")).unwrap();
        symlink("/dev/zero", temp.path().join(".git/HEAD")).unwrap();
        assert_eq!(git_branch(temp.path()), "HEAD");
    }
}
