//! The git worktrees of a repository, read from git's files.

use std::fs;
use std::path::{Path, PathBuf};

/// The roots of all worktrees of the repository that a directory is in; empty if it is
/// in no repository, or in one with a single worktree.
pub(super) fn repository_worktrees(directory: &Path) -> Vec<PathBuf> {
    let Some((root, git)) = directory.ancestors().find_map(|root| Some((root, git_folder(root)?))) else {
        return Vec::new();
    };
    // A linked worktree refers to the folder that all worktrees share.
    let common = read_trimmed(&git.join("commondir")).map_or_else(|| git.clone(), |common| resolve_path(&git, &common));
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let mut roots: Vec<PathBuf> = linked
        .filter_map(|entry| {
            Some(resolve_path(&entry.path(), &read_trimmed(&entry.path().join("gitdir"))?).parent()?.to_owned())
        })
        .collect();
    if roots.is_empty() {
        return Vec::new();
    }
    let is_main = common.file_name().is_some_and(|name| name == ".git");
    roots.extend(common.parent().filter(|_| is_main).map(Path::to_owned));
    roots.push(root.to_owned());
    roots.sort();
    roots.dedup();
    roots
}

/// The git folder of a worktree: `.git`, or the folder that the file `.git` refers to.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let target = read_trimmed(&git)?;
    Some(resolve_path(root, target.strip_prefix("gitdir:")?.trim()))
}

fn read_trimmed(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// A path from a file in `folder`, with dots and links resolved if it exists.
fn resolve_path(folder: &Path, path: &str) -> PathBuf {
    let path = folder.join(path);
    path.canonicalize().unwrap_or(path)
}
