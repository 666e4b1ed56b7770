//! What a command may read besides the session's folders.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::CommandContext;
use crate::path::resolve;

/// Folders of the system: programs, libraries, settings.
const SYSTEM_FOLDERS: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/run/current-system",
];

/// What of `/proc` says nothing of single processes. With namespaces there is a `/proc`
/// of the command's own, and all of it may be read.
const SHARED_PROC_FILES: [&str; 9] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self/mountinfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
];

/// How many files of git's settings are looked at for others that they name.
const MAX_GIT_SETTINGS: usize = 16;

/// Folders of programs: the system's and those on PATH.
pub(super) fn program_folders(context: &CommandContext<'_>) -> Vec<PathBuf> {
    let home = context.home.clone().map(|home| resolve(&home).unwrap_or(home));
    // A PATH that leads to home, or a folder above it, opens nothing.
    let narrow = |path: &PathBuf| path.parent().is_some() && home.as_ref().is_none_or(|home| !home.starts_with(path));
    let path = context.env.get(OsStr::new("PATH")).map(std::env::split_paths).into_iter().flatten();
    let path = path.filter(|path| path.is_absolute()).filter_map(|path| resolve(&path));
    let mut folders: Vec<PathBuf> = SYSTEM_FOLDERS.iter().map(PathBuf::from).chain(path.filter(narrow)).collect();
    folders.retain(|folder| folder.exists());
    folders.sort();
    folders.dedup();
    folders
}

/// Files and folders that are read: the session's, git's settings and repository, and
/// what the kernel tells.
pub(super) fn readable_paths(context: &CommandContext<'_>, own_proc: bool) -> Vec<PathBuf> {
    let mut files = context.folders.clone();
    files.extend(git_settings(context));
    files.extend(context.folders.iter().flat_map(|folder| external_git_folders(folder)));
    match own_proc {
        true => files.push(PathBuf::from("/proc")),
        false => files.extend(SHARED_PROC_FILES.map(PathBuf::from)),
    }
    files.retain(|file| file.exists());
    files.sort();
    files.dedup();
    files
}

/// The user's settings of git, and the files that they name.
fn git_settings(context: &CommandContext<'_>) -> Vec<PathBuf> {
    let home = context.home.clone();
    let config = context.env.get(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    // Not the folder: it may hold credentials.
    let names = ["config", "ignore", "attributes"].map(|name| Path::new("git").join(name));
    let mut files: Vec<PathBuf> =
        config.into_iter().flat_map(|config| names.clone().map(|name| config.join(name))).collect();
    files.extend(home.map(|home| home.join(".gitconfig")));
    let mut at = 0;
    while let Some(file) = files.get(at).filter(|_| at < MAX_GIT_SETTINGS) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let named: Vec<PathBuf> = text.lines().filter_map(|line| named_settings_file(line, file, context)).collect();
        files.extend(named);
        at += 1;
    }
    files
}

/// The file that a line of git's settings names.
fn named_settings_file(line: &str, settings: &Path, context: &CommandContext<'_>) -> Option<PathBuf> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim().to_lowercase();
    let value = value.trim().trim_matches('"');
    match key.as_str() {
        "path" | "excludesfile" | "attributesfile" if value.starts_with(['~', '/']) => Some(context.absolute(value)),
        "path" => Some(settings.parent()?.join(value)),
        _ => None,
    }
}

/// The git folders of the repository that a folder belongs to, when they lie outside it:
/// of a repository above it, or of the one that it is a worktree of.
fn external_git_folders(folder: &Path) -> Vec<PathBuf> {
    let mut above = folder.ancestors().map(|above| above.join(".git"));
    let Some((git, about)) = above.find_map(|git| git.symlink_metadata().ok().map(|about| (git, about))) else {
        return Vec::new();
    };
    // A link may lead to any folder.
    if !about.is_file() {
        return if about.is_dir() { vec![git] } else { Vec::new() };
    }
    // A clone may hold a file that names any folder. One that git made for this worktree
    // names the file in turn.
    let named = |file: &Path| {
        let text = fs::read_to_string(file).ok().filter(|text| text.len() < 4096)?;
        Some(PathBuf::from(text.trim_end().trim_start_matches("gitdir: ")))
    };
    let Some(own) = named(&git).filter(|own| own.is_absolute()) else { return Vec::new() };
    if named(&own.join("gitdir")).is_none_or(|back| back != git) {
        return Vec::new();
    }
    let common = named(&own.join("commondir")).and_then(|common| own.join(common).canonicalize().ok());
    let is_git = |folder: &PathBuf| ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
    let common = common.filter(|common| own.parent() == Some(&common.join("worktrees")) && is_git(common));
    common.into_iter().chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_folder_on_path_opens_home() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let home = root.join("home");
        fs::create_dir_all(home.join("bin")).unwrap();
        symlink(&home, root.join("link")).unwrap();
        let check = |path: &str| {
            let path = path.replace("HOME", home.to_str().unwrap()).replace("ROOT", root.to_str().unwrap());
            let env = [("PATH".into(), path.into())].into();
            let context =
                CommandContext { cwd: root.join("p"), folders: Vec::new(), home: Some(home.clone()), env: &env };
            let opened =
                program_folders(&context).into_iter().filter(|path| path.starts_with(&root) || root.starts_with(path));
            opened.map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(check("HOME/bin:bin:/"), [Path::new("home/bin")]);
        for path in ["HOME", "HOME/", "HOME/bin/..", "HOME/bin/../..", "ROOT", "ROOT/link", "ROOT/link/bin/.."] {
            assert_eq!(check(path), Vec::<PathBuf>::new(), "{path}");
        }
    }
}
