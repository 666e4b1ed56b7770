//! Guarded paths: files that control what programs and agents do (git hooks, shell start-up
//! files, agent settings). No mode but `bypassPermissions` and no broad rule allows changing them.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use quipu_message::text;

use crate::path::{TargetPath, resolve};
use config_paths::ConfigPaths;

pub(crate) mod config_paths;
pub(crate) mod python_code;
pub(crate) mod script_names;

/// Guarded folders, at any depth.
pub(crate) const GUARDED_FOLDERS: [&str; 18] = [
    ".git",
    ".githooks",
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
    ".codex",
    ".cursor",
    ".gemini",
    ".zed",
];

/// Guarded folders below `.config`.
pub(crate) const CONFIG_FOLDERS: [&str; 5] = ["git", "fish", "autostart", "systemd", "quipu"];

/// Guarded files, at any depth.
pub(crate) const GUARDED_FILES: [&str; 38] = [
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
    ".zlogin.zwc",
    ".zlogout",
    ".zlogout.zwc",
    ".zprofile",
    ".zprofile.zwc",
    ".zshenv",
    ".zshenv.zwc",
    ".zshrc",
    ".zshrc.zwc",
    "bunfig.toml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    "pyrightconfig.json",
];

/// Prefixes of names of further guarded files.
const GUARDED_PREFIXES: [&str; 5] = [".lefthook", ".pnp.", ".yarnrc", "lefthook-local.", "lefthook."];

/// How deep guarded folders are searched for links, and how many of their files.
const MAX_LINK_DEPTH: usize = 2;
const MAX_LINK_SEARCH: usize = 1000;

/// The user's home folder, as far as the folders of a session contain it.
///
/// Programs read their start-up files there, under more names than a list can hold. So
/// everything hidden in it is guarded, unless the session has a folder inside the hidden one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuardedHome<'a> {
    /// Home folder, resolved.
    pub(crate) home: Option<&'a Path>,
    /// Folders of the session, resolved.
    pub(crate) folders: &'a [PathBuf],
    /// The agent's own folder, resolved: it contains a script that runs before commands.
    pub(crate) agent_folder: &'a Path,
    /// Folders whose `.claude` has settings of the session, resolved.
    pub(crate) settings_folders: &'a [PathBuf],
    /// Paths that decide which programs run later.
    pub(crate) config_paths: &'a ConfigPaths,
}

impl GuardedHome<'_> {
    /// Whether everything in a folder of the session is guarded.
    pub(crate) fn is_guarded_folder(self, folder: &Path) -> bool {
        let config = self.config_paths;
        let is_config = config.always.iter().any(|config| folder.starts_with(config))
            || config.programs.iter().any(|programs| folder == programs);
        has_guarded_name(folder) || is_config || is_in_repository(folder)
    }

    /// Returns the hidden name directly in home that a resolved path leads through, or the name of
    /// the agent's own folder or of one of the [`ConfigPaths`]; `None` if
    /// it leads through none of them, or if home is not in the session's folders.
    pub(crate) fn hidden_name(self, path: &Path) -> Option<String> {
        let innermost = self.folders.iter().filter(|folder| path.starts_with(folder));
        let innermost = innermost.max_by_key(|folder| folder.components().count());
        let config = self.config_paths;
        let is_inside = |config: &&PathBuf| self.folders.iter().any(|folder| config.starts_with(folder));
        let works_in = |config: &PathBuf| innermost.is_some_and(|folder| folder.starts_with(config));
        let folders = config.folders.iter().filter(is_inside).filter(|folder| !works_in(folder));
        let is_around = |programs: &PathBuf| works_in(programs) && innermost != Some(programs);
        let programs = config.programs.iter().filter(is_inside).filter(|programs| !is_around(programs));
        let always = config.always.iter().filter(|_| innermost.is_some());
        let all = folders.chain(programs).chain(always).map(PathBuf::as_path);
        if let Some(folder) = all.chain([self.agent_folder]).find(|folder| path.starts_with(folder)) {
            return folder.file_name().map(comparable);
        }
        // What took the place of such a link is guarded as a whole.
        let is_replaced = |link: &&PathBuf| path == *link || path.starts_with(link) && !link.is_symlink();
        if let Some(link) = config.links.iter().filter(is_inside).find(is_replaced) {
            return link.file_name().map(comparable);
        }
        if config.scripts.may_run(path, self.folders) {
            return path.file_name().map(comparable);
        }
        // Other agents keep such a folder beside that of this one.
        let beside = self.agent_folder.parent().and_then(|folder| path.strip_prefix(folder).ok());
        let beside = beside.and_then(|path| path.iter().next()).filter(|name| is_agent_folder_name(name));
        if let Some(name) = beside.filter(|_| is_agent_folder_name(self.agent_folder.file_name().unwrap_or_default())) {
            return Some(comparable(name));
        }
        let home = self.home?;
        let name = comparable(path.strip_prefix(home).ok()?.iter().next()?);
        (name.starts_with('.') && home.starts_with(innermost?)).then_some(name)
    }
}

/// What the names of the agent's own folders begin with.
pub(crate) const AGENT_FOLDER_PREFIX: &str = "quipu-agent-";

pub(crate) fn is_agent_folder_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(AGENT_FOLDER_PREFIX.as_bytes())
}

/// Whether a path is guarded: as given, after its links are resolved, or as one of these links.
pub(crate) fn is_guarded(target: &TargetPath, home: GuardedHome<'_>) -> bool {
    GuardedFiles::new(home).contains(target)
}

/// The guarded files of a session, to look up several paths.
pub(crate) struct GuardedFiles<'a> {
    home: GuardedHome<'a>,
    link_targets: OnceCell<Vec<PathBuf>>,
}

impl<'a> GuardedFiles<'a> {
    pub(crate) fn new(home: GuardedHome<'a>) -> Self {
        Self { home, link_targets: OnceCell::new() }
    }

    /// As [`is_guarded`].
    pub(crate) fn contains(&self, target: &TargetPath) -> bool {
        let named = |path: &Path| guarded_names(path).next().is_some() || self.home.hidden_name(path).is_some();
        let link_targets = || self.link_targets.get_or_init(|| targets_of_guarded_links(self.home));
        target.names().any(|path| named(path) || is_in_repository(path))
            || target.real.as_ref().is_some_and(|real| link_targets().iter().any(|target| real.starts_with(target)))
    }
}

/// Whether a guarded link leads to the path ([`targets_of_guarded_links`]).
pub(crate) fn is_target_of_guarded_link(real: &Path, home: GuardedHome<'_>) -> bool {
    targets_of_guarded_links(home).iter().any(|target| real.starts_with(target))
}

/// Returns what links lead to that have a guarded name directly in a folder of the session, are in such a guarded folder
/// (`.git/hooks/pre-commit`) or in a folder on `PATH`, or in the session's settings; also through a folder that
/// contains further links.
fn targets_of_guarded_links(home: GuardedHome<'_>) -> Vec<PathBuf> {
    let is_guarded = |path: &PathBuf| path.file_name().is_some_and(|name| has_guarded_name(Path::new(name)));
    let guarded = home.folders.iter().flat_map(|folder| entries(folder)).filter(is_guarded);
    let settings = home.settings_folders.iter().flat_map(|folder| settings_paths(folder));
    let is_inside = |folder: &&PathBuf| home.folders.iter().any(|session| folder.starts_with(session));
    let programs = home.config_paths.programs.iter().filter(is_inside).cloned();
    let leads_to_session = |target: &Path| home.folders.iter().any(|folder| folder.starts_with(target));
    let links = links_to_follow(guarded.chain(settings).chain(programs), leads_to_session);
    links.iter().filter_map(|link| resolve(link)).filter(|target| !leads_to_session(target)).collect()
}

/// Returns the links among some paths and in the folders there, and those in the folders that these links lead to,
/// unless `skips` such a folder.
pub(crate) fn links_to_follow(paths: impl Iterator<Item = PathBuf>, skips: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    links_below(paths, MAX_LINK_DEPTH, skips)
}

/// As [`links_to_follow`], in folders of this depth.
fn links_below(paths: impl Iterator<Item = PathBuf>, depth: usize, skips: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut open: VecDeque<PathBuf> = paths.collect();
    while let Some(path) = open.pop_front() {
        for link in links_in(path, depth) {
            if links.contains(&link) || links.len() >= MAX_LINK_SEARCH {
                continue;
            }
            open.extend(resolve(&link).filter(|target| target.is_dir() && !skips(target)));
            links.push(link);
        }
    }
    links
}

/// Returns the links among a path and what is in it, at most this many folders deep.
fn links_in(path: PathBuf, max_depth: usize) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let Ok(data) = path.symlink_metadata() else { return links };
    let mut open = VecDeque::from([(path, data.file_type(), 0)]);
    let mut visited = 0;
    while let Some((path, kind, depth)) = open.pop_front().filter(|_| visited < MAX_LINK_SEARCH) {
        visited += 1;
        if kind.is_dir() && depth < max_depth {
            let entries = path.read_dir().into_iter().flatten().flatten();
            open.extend(entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?, depth + 1))));
        } else if kind.is_symlink() {
            links.push(path);
        }
    }
    links
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the paths of settings in a folder, which need not exist.
pub(crate) fn settings_paths(folder: &Path) -> [PathBuf; 3] {
    [".claude", ".claude/settings.json", ".claude/settings.local.json"].map(|name| folder.join(name))
}

/// Whether a path contains a guarded name; does not access the file system.
pub(crate) fn has_guarded_name(path: &Path) -> bool {
    guarded_names(path).next().is_some()
}

/// Whether a path is in a folder that git treats as a repository whatever its name, or would
/// turn the folder into one: it contains `HEAD`, with `objects` and `refs` or with
/// `commondir`, which says where these are. So is one with the settings for such a folder.
pub(crate) fn is_in_repository(path: &Path) -> bool {
    path.ancestors().any(is_directly_in_repository)
}

/// As [`is_in_repository`], for the folder that contains the path.
fn is_directly_in_repository(path: &Path) -> bool {
    path.parent().is_some_and(|folder| {
        // What a link leads to may appear later.
        is_repository_with(|name| path.ends_with(name) || has_entry(folder, name))
    })
}

/// Whether a folder has a file or link of some name. It counts as there if that cannot be found out, because a command
/// may have locked the folder for a moment.
fn has_entry(folder: &Path, name: &str) -> bool {
    match folder.join(name).symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// Whether git treats a folder as a repository whatever its name.
pub(crate) fn is_repository_folder(folder: &Path) -> bool {
    is_repository_with(|name| has_entry(folder, name))
}

/// As [`is_repository_folder`], for a folder that has these names.
fn is_repository_with(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && has("commondir") || has("objects") && has("refs") && (has("HEAD") || has("config"))
}

/// Whether a file or folder decides which programs git runs in the repository that contains it, or
/// that its folder is one.
pub(crate) fn is_repository_part(path: &Path) -> bool {
    let names = ["HEAD", "config", "config.worktree", "hooks", "commondir"];
    names.iter().any(|name| path.ends_with(name)) && is_directly_in_repository(path)
}

/// Normalises a name as some file systems do: HFS+ ignores case and invisible characters,
/// NTFS trailing dots and spaces, text after a colon, and accepts short names.
pub(crate) fn comparable(name: &OsStr) -> String {
    // Through upper case, because `ſ` and `ﬁ` are lower case themselves.
    let name = name.to_string_lossy().to_uppercase().to_lowercase();
    let seen: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let stem = seen.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    long_name(stem).unwrap_or(stem).to_owned()
}

/// Returns the name that NTFS shortens to this one: `claude~1` is `.claude`.
fn long_name(short: &str) -> Option<&'static str> {
    let (start, number) = short.split_once('~')?;
    let is_shortened = |name: &&str| {
        let letters = name.trim_start_matches('.').split('.').next().unwrap_or_default();
        letters.chars().take(6).eq(start.chars())
    };
    let mut names = GUARDED_FOLDERS.into_iter().chain(GUARDED_FILES).chain([".config"]);
    names.find(is_shortened).filter(|_| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the guarded names in a path.
pub(crate) fn guarded_names(path: &Path) -> impl Iterator<Item = String> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(comparable(name)),
        _ => None,
    });
    let mut names: Vec<String> = names.collect();
    // Worktrees are below `.claude`, but files in them are not guarded for that.
    if let Some(at) = names.windows(3).position(|names| names[0] == ".claude" && names[1] == "worktrees") {
        names.drain(at..at + 2);
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

/// Whether a character is invisible: Unicode spaces, and marks that change how text is displayed.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_whitespace() || text::is_invisible(c) || text::is_joiner(c)
}
