//! Paths that a command may read besides the session's folders.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::CommandContext;
use crate::path::{TargetPath, resolve};
use crate::text_file;

/// System folders: programs, libraries, configuration.
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

/// Where version managers and package managers keep what programs in their folders on PATH start or load.
const INSTALLATION_FOLDERS: [&str; 11] = [
    ".asdf/installs",
    ".cargo/registry",
    ".local/share/mise/installs",
    ".local/share/uv/python",
    ".nodenv/versions",
    ".pyenv/versions",
    ".rbenv/versions",
    ".rustup/settings.toml",
    ".rustup/toolchains",
    ".volta/tools",
    "go/pkg/mod",
];

/// Files in `/proc` that reveal nothing about other processes. With namespaces the command has
/// its own `/proc` and may read all of it.
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

/// Maximum number of git configuration files that are searched for included files.
const MAX_GIT_SETTINGS: usize = 16;

/// Returns the folders of programs: system folders, those on PATH with the folder `lib` beside a `bin`, and those of
/// version managers.
pub(super) fn program_folders(context: &CommandContext<'_>) -> Vec<PathBuf> {
    let home = context.resolved_home();
    // A PATH entry that is the home folder or above it grants nothing.
    let narrow = |path: &PathBuf| path.parent().is_some() && home.as_ref().is_none_or(|home| !home.starts_with(path));
    let path = context.env.get(OsStr::new("PATH")).map(std::env::split_paths).into_iter().flatten();
    // A command may have replaced one in the session's folders by a link that leads out of them.
    let is_inside = |path: &Path| context.folders.iter().any(|folder| path.starts_with(folder));
    let leads_out = |path: &Path, real: &Path| is_inside(path) && !is_inside(real);
    // A `lib` directly in the home folder is the user's own.
    let is_installation = |bin: &Path| bin.ends_with("bin") && bin.parent().and_then(resolve) != home;
    let libraries = |bin: &Path| is_installation(bin).then(|| bin.with_file_name("lib"));
    let path = path.filter(|path| path.is_absolute()).flat_map(|bin| [libraries(&bin), Some(bin)]).flatten();
    let installed = home.iter().flat_map(|home| INSTALLATION_FOLDERS.map(|name| home.join(name)));
    let path = path.chain(installed).filter_map(|path| resolve(&path).filter(|real| !leads_out(&path, real)));
    let system = SYSTEM_FOLDERS.iter().filter_map(|folder| resolve(Path::new(folder)));
    let mut folders: Vec<PathBuf> = system.chain(path.filter(narrow)).collect();
    folders.retain(|folder| folder.exists());
    folders.sort();
    folders.dedup();
    folders
}

/// Returns files and folders that may be read: the session's folders, git configuration and
/// repositories, and `/proc`.
pub(super) fn readable_paths(context: &CommandContext<'_>, own_proc: bool) -> Vec<PathBuf> {
    let mut files = context.folders.clone();
    files.extend(git_settings(context));
    files.extend(context.folders.iter().flat_map(|folder| external_git_folders(folder)));
    match own_proc {
        true => files.push(PathBuf::from("/proc")),
        false => files.extend(SHARED_PROC_FILES.map(PathBuf::from)),
    }
    // A link in the session's folders may be one that a command has made.
    let is_inside = |path: &Path| context.folders.iter().any(|folder| path.starts_with(folder));
    let resolved = files.iter().filter_map(|file| {
        let target = TargetPath::new(file);
        let leads_through = target.names().any(is_inside);
        target.real.filter(|real| real.exists() && (is_inside(real) || !leads_through))
    });
    let mut files: Vec<PathBuf> = resolved.collect();
    files.sort();
    files.dedup();
    files
}

/// Returns the user's git configuration files and the files that they include.
fn git_settings(context: &CommandContext<'_>) -> Vec<PathBuf> {
    let home = context.home.clone();
    let config = context.env.get(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    // Not the whole folder: it may contain credentials.
    let names = ["config", "ignore", "attributes"].map(|name| Path::new("git").join(name));
    let mut files: Vec<PathBuf> =
        config.into_iter().flat_map(|config| names.clone().map(|name| config.join(name))).collect();
    files.extend(home.map(|home| home.join(".gitconfig")));
    let mut at = 0;
    // A file in the session's folders may name any other.
    let is_own =
        |file: &Path| resolve(file).is_some_and(|real| !context.folders.iter().any(|folder| real.starts_with(folder)));
    while let Some(file) = files.get(at).filter(|_| at < MAX_GIT_SETTINGS) {
        let text = Some(file).filter(|file| is_own(file)).and_then(|file| read_text(file));
        let text = text.unwrap_or_default();
        let named: Vec<PathBuf> = text.lines().filter_map(|line| named_settings_file(line, file, context)).collect();
        files.extend(named);
        at += 1;
    }
    files
}

/// Reads a file of git; `None` if it is too large, which a project may have made it.
fn read_text(path: &Path) -> Option<String> {
    text_file::read(path, None, text_file::MAX_BYTES).ok()
}

/// Returns the file that a line of git configuration names, if any.
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

/// Returns the git folders of the repository that contains a folder, if they are outside it:
/// those of a parent folder, or of the repository that it is a worktree of, with the file that names them.
fn external_git_folders(folder: &Path) -> Vec<PathBuf> {
    let mut above = folder.ancestors().map(|above| above.join(".git"));
    let Some((git, about)) = above.find_map(|git| git.symlink_metadata().ok().map(|about| (git, about))) else {
        return Vec::new();
    };
    // A link could point to any folder.
    if !about.is_file() {
        return if about.is_dir() { vec![git] } else { Vec::new() };
    }
    // A cloned repository may contain a `.git` file that names any folder. The folder of a
    // real worktree names the file in turn.
    let named = |file: &Path| {
        let text = read_text(file).filter(|text| text.len() < 4096)?;
        Some(PathBuf::from(text.trim_end().trim_start_matches("gitdir: ")))
    };
    let Some(own) = named(&git) else { return Vec::new() };
    if own.is_relative() {
        return submodule_git_folder(&git, &own).into_iter().flat_map(|own| [own, git.clone()]).collect();
    }
    if named(&own.join("gitdir")).is_none_or(|back| back != git) {
        return Vec::new();
    }
    let common = named(&own.join("commondir")).and_then(|common| own.join(common).canonicalize().ok());
    let is_git = |folder: &PathBuf| ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
    let common = common.filter(|common| own.parent() == Some(&common.join("worktrees")) && is_git(common));
    common.into_iter().chain([own, git]).collect()
}

/// Returns the git folder of a submodule whose `.git` file names it by a relative path; `None` unless it is one of the
/// repository above, and its settings say that the submodule is there.
fn submodule_git_folder(git: &Path, named: &Path) -> Option<PathBuf> {
    let folder = git.parent()?;
    let own = folder.join(named).canonicalize().ok()?;
    let is_module = |above: &Path| own.starts_with(above.join(".git/modules")) && above.join(".git/HEAD").exists();
    folder.ancestors().skip(1).find(|above| is_module(above))?;
    let settings = read_text(&own.join("config"))?;
    let mut worktrees = settings.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("worktree").then(|| own.join(value.trim()).canonicalize().ok())?
    });
    worktrees.next().filter(|worktree| worktree == folder).map(|_| own)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_git_folder_of_a_submodule_is_readable_if_it_names_the_submodule() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let own = root.join(".git/modules/sub");
        fs::create_dir_all(&own).unwrap();
        fs::write(root.join(".git/HEAD"), "").unwrap();
        fs::write(own.join("config"), "[core]\n\tworktree = ../../../sub\n").unwrap();
        for name in ["sub", "other"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        }
        assert_eq!(external_git_folders(&root.join("sub")), [own, root.join("sub/.git")]);
        // The file of another folder names it too.
        assert_eq!(external_git_folders(&root.join("other")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_large_git_file_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        fs::write(&git, "gitdir: /x\n").unwrap();
        assert!(read_text(&git).is_some());
        // Takes no space on the disk.
        fs::File::create(&git).unwrap().set_len(1 << 40).unwrap();
        assert!(read_text(&git).is_none() && external_git_folders(temp.path()).is_empty());
    }

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
            let context = CommandContext {
                cwd: root.join("p"),
                folders: Vec::new(),
                settings_folders: &[],
                home: Some(home.clone()),
                env: &env,
                config_paths: Default::default(),
            };
            let opened =
                program_folders(&context).into_iter().filter(|path| path.starts_with(&root) || root.starts_with(path));
            opened.map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(check("HOME/bin:bin:/"), [Path::new("home/bin")]);
        for name in ["lib", ".local/bin", ".local/lib", ".rustup/toolchains", ".rustup/tmp"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        assert_eq!(check("HOME/bin"), ["home/.rustup/toolchains", "home/bin"].map(Path::new));
        let local = ["home/.local/bin", "home/.local/lib", "home/.rustup/toolchains"];
        assert_eq!(check("HOME/.local/bin"), local.map(Path::new));
        symlink(&home, home.join("bin/lib")).unwrap();
        assert_eq!(check("HOME/bin/bin"), [Path::new("home/.rustup/toolchains")]);
        fs::remove_dir_all(home.join(".rustup")).unwrap();
        for path in ["HOME", "HOME/", "HOME/bin/..", "HOME/bin/../..", "ROOT", "ROOT/link", "ROOT/link/bin/.."] {
            assert_eq!(check(path), Vec::<PathBuf>::new(), "{path}");
        }
    }
}
