//! Files that decide what programs and agents do: no mode and no broad rule lets them be changed.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::path::resolve;

/// Folders, at any depth.
const GUARDED_FOLDERS: [&str; 13] = [
    ".git",
    ".hg",
    ".jj",
    ".ssh",
    ".gnupg",
    ".claude",
    ".husky",
    ".vscode",
    ".idea",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
];

/// Folders of `.config`.
pub(crate) const CONFIG_FOLDERS: [&str; 4] = ["git", "fish", "autostart", "systemd"];

/// Files, at any depth.
const GUARDED_FILES: [&str; 40] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bazelrc",
    ".claude.json",
    ".cshrc",
    ".devcontainer.json",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".inputrc",
    ".kshrc",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".login",
    ".logout",
    ".mcp.json",
    ".mkshrc",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".ripgreprc",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "bunfig.toml",
    "gradle-wrapper.properties",
    "lefthook-local.yml",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "maven-wrapper.properties",
    "pyrightconfig.json",
];

/// How the names of more such files begin.
const GUARDED_PREFIXES: [&str; 2] = [".pnp.", ".yarnrc"];

/// Whether a file is guarded, as its path is written or as it really is.
pub(crate) fn is_guarded(path: &Path) -> bool {
    let real = resolve(path).unwrap_or_else(|| path.to_owned());
    [path, &real].iter().any(|path| guarded_names(path).next().is_some() || is_in_repository(path))
}

/// Whether a guarded name is in a path, without a look at the file system.
pub(crate) fn has_guarded_name(path: &Path) -> bool {
    guarded_names(path).next().is_some()
}

/// Whether a path is in a folder that git takes for a repository, whatever its name, or
/// would make it one: `HEAD` is in it, with `objects` and `refs`, or with `commondir`,
/// which says where these are.
pub(crate) fn is_in_repository(path: &Path) -> bool {
    path.ancestors().zip(path.ancestors().skip(1)).any(|(inside, folder)| {
        let has = |name: &str| inside.ends_with(name) || folder.join(name).exists();
        has("HEAD") && (has("commondir") || has("objects") && has("refs"))
    })
}

/// A name as file systems would read it that ignore case and characters that cannot be
/// seen (HFS+), or trailing dots and spaces, what follows a colon, and short names (NTFS).
pub(crate) fn comparable(name: &OsStr) -> String {
    let name = name.to_string_lossy().to_lowercase();
    let seen: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let stem = seen.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    if stem == "git~1" { ".git".to_owned() } else { stem.to_owned() }
}

/// The names in a path that guard it.
pub(crate) fn guarded_names(path: &Path) -> impl Iterator<Item = String> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(comparable(name)),
        _ => None,
    });
    let mut names: Vec<String> = names.collect();
    // A worktree is a working folder like any other, though it is kept below `.claude`.
    if let Some(at) = names.windows(2).position(|pair| pair[0] == ".claude" && pair[1] == "worktrees") {
        names.drain(at..names.len().min(at + 3));
    }
    let is_read = |pair: &[String]| pair[0] == ".config" && CONFIG_FOLDERS.contains(&pair[1].as_str());
    let below_config = names.windows(2).any(is_read);
    let below_config = below_config.then(|| ".config".to_owned());
    let is_guarded = |name: &String| {
        GUARDED_FOLDERS.contains(&name.as_str())
            || GUARDED_FILES.contains(&name.as_str())
            || GUARDED_PREFIXES.iter().any(|start| name.starts_with(start))
    };
    names.into_iter().filter(is_guarded).chain(below_config)
}

/// Spaces that are no spaces to the shell, and marks that change how text looks.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}
