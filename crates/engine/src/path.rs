//! Resolution of paths: links, `..`, `~`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum length of a path; longer ones cannot be opened.
pub(crate) const MAX_PATH_BYTES: usize = 4096;
/// Links followed before a path counts as a cycle.
const MAX_LINKS: usize = 40;

/// Follows every link and `..` of an absolute path as the system does, and keeps the
/// names of components that do not exist yet. `None` if the links form a cycle or the path is
/// too long.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    follow_links(path).map(|(real, _)| real)
}

/// As [`resolve`], and returns the paths of the links that were followed, each with the
/// components after it.
fn follow_links(path: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return None;
    }
    if is_free_of_links(path) {
        return Some((path.components().collect(), Vec::new()));
    }
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    push_components_front(&mut ahead, path);
    let mut real = PathBuf::new();
    let mut links = Vec::new();
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        // The root is no link.
        match (name != "/").then(|| std::fs::read_link(&next).ok()).flatten() {
            Some(target) => {
                links.push(ahead.iter().fold(next, |path, name| path.join(name)));
                if links.len() > MAX_LINKS {
                    return None;
                }
                // An absolute target starts with the root, which replaces `real` when joined.
                push_components_front(&mut ahead, &target);
            }
            None => real = next,
        }
    }
    Some((real, links))
}

/// Whether an absolute path exists and has no links and no `..`, so that it resolves to itself. This takes one system
/// call instead of one for each component; `false` also if it cannot be found out.
#[cfg(target_os = "linux")]
fn is_free_of_links(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let is_plain = path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    is_plain && openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_free_of_links(_: &Path) -> bool {
    false
}

/// Resolves `folder` and returns the path of `name` in it; `None` if `name` itself leads through a link.
///
/// For the agent's own files in folders where commands may have made links.
pub(crate) fn resolve_without_links(folder: &Path, name: &Path) -> Option<PathBuf> {
    let mut path = resolve(&std::path::absolute(folder).ok()?)?;
    for part in name.components() {
        path.push(part);
        if !matches!(part, Component::Normal(_)) || std::fs::read_link(&path).is_ok() {
            return None;
        }
    }
    (path.as_os_str().len() <= MAX_PATH_BYTES).then_some(path)
}

/// A path as it was given and as it resolves. Permission rules compare both, and deny and ask
/// rules also the links between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath {
    /// The absolute path before links are followed.
    pub given: PathBuf,
    /// The resolved path (`resolve`); `None` if its links form a cycle.
    pub real: Option<PathBuf>,
    /// The paths of the links that were followed, each with the components after it.
    pub links: Vec<PathBuf>,
}

impl TargetPath {
    /// Resolves an absolute path.
    pub fn new(given: impl Into<PathBuf>) -> Self {
        let given = given.into();
        let (real, links) = follow_links(&given).unzip();
        Self { real, links: links.unwrap_or_default(), given }
    }

    /// Takes a path that contains neither links nor `..`, as from a walk of a resolved folder.
    pub(crate) fn from_resolved(path: impl Into<PathBuf>) -> Self {
        let given = path.into();
        Self { real: Some(given.clone()), links: Vec::new(), given }
    }

    /// Returns all names of the file that are known: the resolved path, the path as given and the
    /// links between them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.real.iter().chain([&self.given]).chain(&self.links).map(PathBuf::as_path)
    }
}

/// Makes a path absolute: a leading `~` is the home folder, other relative paths start in `cwd`.
pub(crate) fn absolute(path: &str, home: Option<&Path>, cwd: &Path) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(path),
    }
}

/// Whether a path exists, or it cannot be found out: a command may have locked its folder for a moment.
pub(crate) fn may_exist(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// Returns the paths that a file in a git worktree of the agent has in the repository, and in the worktrees
/// around it; none for other files.
pub(crate) fn original_paths(path: &Path) -> Vec<PathBuf> {
    let names: Vec<_> = path.iter().collect();
    let is_worktree = |at: &usize| names[*at] == ".claude" && names[*at + 1] == "worktrees";
    let starts: Vec<usize> = (0..names.len().saturating_sub(2)).filter(is_worktree).collect();
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else { return Vec::new() };
    let without = |from: &usize, to: &usize| names[..*from].iter().chain(&names[to + 3..]).collect();
    starts.iter().map(|from| without(from, last)).chain([without(first, first)]).collect()
}

/// Removes `.` and `..` from a path without following links.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn push_components_front(ahead: &mut VecDeque<OsString>, path: &Path) {
    let names = path.components().filter(|part| !matches!(part, Component::CurDir));
    for part in names.collect::<Vec<_>>().into_iter().rev() {
        ahead.push_front(part.as_os_str().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_resolve_as_the_system_resolves_them() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        symlink("a/b", root.join("link")).unwrap();
        symlink("missing", root.join("broken")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let check = |path: &str, expected: Option<&str>, links: usize| {
            let target = TargetPath::new(root.join(path));
            assert_eq!(target.real, expected.map(|path| root.join(path)), "{path}");
            assert_eq!(target.links.len(), links, "{path}");
        };
        check("a/b", Some("a/b"), 0);
        check("a//./b/", Some("a/b"), 0);
        check("a/file", Some("a/file"), 0);
        check("a/new/x", Some("a/new/x"), 0);
        check("link", Some("a/b"), 1);
        check("link/../file", Some("a/file"), 1);
        check("a/../link/x", Some("a/b/x"), 1);
        check("broken", Some("missing"), 1);
        check("loop", None, 0);
    }
}
