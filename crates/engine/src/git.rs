//! Facts about the git repository that a folder is in, read from its `.git` without running git.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::text_file::{self, MAX_BYTES};

/// The root of the git repository that contains a folder; `None` outside of git.
pub(crate) fn git_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The root of the repository whose local settings a session in `folder` has too; the main worktree's if
/// the folder is in a linked one. `None` outside of git and in the root itself; for a repository without a
/// main worktree; if the root is the home folder, whose `.claude` is for all sessions; and if `user` does
/// not own the root, its `.git` and its `.claude`: anyone can create these in a shared folder like `/tmp`.
pub(crate) fn settings_root(folder: &Path, home: Option<&Path>, user: u32) -> Option<PathBuf> {
    let root = main_worktree(git_root(folder)?)?;
    let is_home = home.and_then(|home| fs::canonicalize(home).ok()).is_some_and(|home| home == root);
    let is_own = |path: &Path| {
        let mut owners = [path.symlink_metadata(), path.metadata()].into_iter().flatten();
        owners.all(|metadata| metadata.uid() == user)
    };
    let owns_all = is_own(&root) && is_own(&root.join(".git")) && is_own(&root.join(".claude"));
    (root != folder && !is_home && owns_all).then_some(root)
}

/// The folders that must be trusted before git runs what the settings of a folder's repository name: the root of the
/// worktree and, if it is a linked one, of the main one, which has the settings. Empty outside of git.
pub(crate) fn repository_roots(folder: &Path) -> Vec<PathBuf> {
    let root = git_root(folder).map(Path::to_owned);
    let main = root.as_deref().and_then(main_worktree).filter(|main| Some(main) != root.as_ref());
    root.into_iter().chain(main).collect()
}

/// The main worktree of the repository that a worktree belongs to: `root` itself unless it is a linked one;
/// `None` if there is only a bare repository.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let read = |path: &Path| Some(text_file::read(path, None, MAX_BYTES).ok()?.trim().to_owned());
    let linked = || {
        let git = fs::canonicalize(git_folder(root)?).ok()?;
        let back = fs::canonicalize(git.join(read(&git.join("gitdir"))?)).ok()?;
        let common = fs::canonicalize(git.join(read(&git.join("commondir"))?)).ok()?;
        // A `.git` file can name any repository. A repository names its worktrees in its own folder.
        let is_listed =
            git.parent()? == common.join("worktrees") && back == fs::canonicalize(root.join(".git")).ok()?;
        is_listed.then_some(common)
    };
    match linked() {
        Some(common) if common.ends_with(".git") => common.parent().map(Path::to_owned),
        Some(_) => None,
        None => Some(root.to_owned()),
    }
}

/// The folder in which git keeps its files: `.git` in the root of a worktree, or what the file `.git` names.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if !git.is_file() {
        return Some(git);
    }
    let link = text_file::read(&git, None, MAX_BYTES).ok()?;
    Some(root.join(link.strip_prefix("gitdir:")?.trim()))
}

/// Whether a folder is in a linked worktree of a repository.
pub(crate) fn is_worktree(folder: &Path) -> bool {
    let link = git_root(folder).and_then(|root| text_file::read(&root.join(".git"), None, MAX_BYTES).ok());
    // The `.git` of a submodule is a file too, and points to `modules`.
    link.is_some_and(|link| link.contains("/worktrees/"))
}

/// The current branch of a folder; `HEAD` outside of git or without a branch.
pub(crate) fn git_branch(folder: &Path) -> String {
    let git = git_root(folder).and_then(git_folder);
    let head = git.and_then(|git| text_file::read(&git.join("HEAD"), None, MAX_BYTES).ok());
    head.as_deref().and_then(|head| head.trim().strip_prefix("ref: refs/heads/")).unwrap_or("HEAD").to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A scratch folder with the given folders and files; the text of a file may contain its path as `{}`.
    fn tree(folders: &[&str], files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        folders.iter().for_each(|folder| fs::create_dir_all(top.join(folder)).unwrap());
        files
            .iter()
            .for_each(|(path, text)| fs::write(top.join(path), text.replace("{}", top.to_str().unwrap())).unwrap());
        (temp, top)
    }

    /// The root that shares its settings with a folder of a tree, relative to the tree.
    fn root_of(top: &Path, folder: &str) -> Option<String> {
        let user = rustix::process::geteuid().as_raw();
        let root = settings_root(&top.join(folder), Some(&top.join("home")), user)?;
        Some(root.strip_prefix(top).unwrap().to_str().unwrap().to_owned())
    }

    #[test]
    fn the_root_of_a_repository_shares_its_settings_with_its_folders() {
        let folders = ["repo/.git", "repo/a/b", "repo/inner/.git", "repo/inner/c", "home/.git", "home/d", "plain/e"];
        let (_temp, top) = tree(&folders, &[]);
        let check =
            |folder: &str, expect: Option<&str>| assert_eq!(root_of(&top, folder).as_deref(), expect, "{folder}");
        check("repo/a", Some("repo"));
        check("repo/a/b", Some("repo"));
        check("repo/inner/c", Some("repo/inner"));
        for none in ["repo", "repo/inner", "home", "home/d", "plain/e"] {
            check(none, None);
        }
    }

    #[test]
    fn a_root_of_another_user_shares_no_settings() {
        let (_temp, top) = tree(&["repo/.git", "repo/a"], &[]);
        let user = rustix::process::geteuid().as_raw();
        let root = |user| settings_root(&top.join("repo/a"), None, user);
        assert_eq!((root(user), root(user + 1)), (Some(top.join("repo")), None));
        // For root the link has another owner, for others what it leads to.
        symlink("/usr", top.join("repo/.claude")).unwrap();
        if user == 0 {
            std::os::unix::fs::lchown(top.join("repo/.claude"), Some(1), None).unwrap();
        }
        assert_eq!(root(user), None);
    }

    #[test]
    fn a_linked_worktree_has_the_settings_of_the_main_one() {
        let of_main = "repo/.git/worktrees/w";
        let folders = ["repo/.git/modules/m", of_main, "work/a", "relative/a", "repo/mod/a", "apart.git", "apart/a"];
        let files = [
            ("work/.git", "gitdir: {}/repo/.git/worktrees/w\n"),
            ("repo/.git/worktrees/w/gitdir", "{}/work/.git\n"),
            ("repo/.git/worktrees/w/commondir", "../..\n"),
            ("repo/mod/.git", "gitdir: ../.git/modules/m\n"),
            ("apart/.git", "gitdir: {}/apart.git\n"),
        ];
        let (_temp, top) = tree(&folders, &files);
        let check =
            |folder: &str, expect: Option<&str>| assert_eq!(root_of(&top, folder).as_deref(), expect, "{folder}");
        check("work", Some("repo"));
        check("work/a", Some("repo"));
        assert_eq!(repository_roots(&top.join("work/a")), [top.join("work"), top.join("repo")]);
        check("repo/mod/a", Some("repo/mod"));
        check("apart/a", Some("apart"));
        // Worktrees may be linked by relative paths.
        fs::write(top.join("relative/.git"), "gitdir: ../repo/.git/worktrees/w").unwrap();
        fs::write(top.join(of_main).join("gitdir"), "../../../../relative/.git").unwrap();
        check("relative/a", Some("repo"));
    }

    #[test]
    fn a_bare_repository_has_no_settings_for_its_worktrees() {
        let files = [
            ("work/.git", "gitdir: {}/repo.git/worktrees/w\n"),
            ("repo.git/worktrees/w/gitdir", "{}/work/.git\n"),
            ("repo.git/worktrees/w/commondir", "../..\n"),
        ];
        let (_temp, top) = tree(&["repo.git/worktrees/w", "work/a"], &files);
        assert_eq!((root_of(&top, "work"), root_of(&top, "work/a")), (None, None));
    }

    #[test]
    fn a_git_file_alone_does_not_make_a_worktree() {
        let files = [
            ("work/.git", "gitdir: {}/repo/.git/worktrees/w\n"),
            ("repo/.git/worktrees/w/gitdir", "{}/work/.git\n"),
            ("repo/.git/worktrees/w/commondir", "../..\n"),
            // Names the worktree of another folder.
            ("taken/.git", "gitdir: {}/repo/.git/worktrees/w\n"),
            // Names the repository itself.
            ("direct/.git", "gitdir: {}/repo/.git\n"),
            // Has a git folder of its own, which names the repository.
            ("own/.git", "gitdir: {}/own/worktrees/w\n"),
            ("own/worktrees/w/gitdir", "{}/own/.git\n"),
            ("own/worktrees/w/commondir", "{}/repo/.git\n"),
        ];
        let folders = ["repo/.git/worktrees/w", "work/a", "taken/a", "direct/a", "own/worktrees/w", "own/a"];
        let (_temp, top) = tree(&folders, &files);
        for folder in ["taken", "direct", "own"] {
            assert_eq!(root_of(&top, folder), None, "{folder}");
            assert_eq!(root_of(&top, &format!("{folder}/a")).as_deref(), Some(folder));
        }
    }

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
