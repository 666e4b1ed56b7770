//! Paths inside the session that decide which programs run without a sandbox later, though their names are not
//! guarded: what variables, flags, settings and links in the home folder name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::script_names::{ScriptNames, expand_variables};
use super::{CONFIG_FOLDERS, GUARDED_FILES, GUARDED_FOLDERS, entries, has_guarded_name, links_below, links_to_follow};
use crate::git::git_root;
use crate::path::{TargetPath, may_exist, resolve};

/// How deep in a folder of definitions links are found.
const MAX_DEFINITION_DEPTH: usize = 8;

/// What is guarded in the user's folder of settings, also if the session works in this folder.
const CLAUDE_CONFIG_NAMES: [&str; 10] = [
    "CLAUDE.md",
    "agents",
    "commands",
    "hooks",
    "output-styles",
    "plugins",
    "rules",
    "settings.json",
    "settings.local.json",
    "skills",
];

/// Folders in `.claude` without settings and definitions: worktrees and, in the home folder, sessions and backups.
const CLAUDE_DATA_NAMES: [&str; 3] = ["worktrees", "projects", "file-history"];

/// The paths, resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigPaths {
    /// Always guarded.
    pub(crate) always: Vec<PathBuf>,
    /// Folders of settings: guarded unless the session works in them.
    pub(crate) folders: Vec<PathBuf>,
    /// Folders on `PATH`: guarded unless the session works in a folder inside.
    pub(crate) programs: Vec<PathBuf>,
    /// Links on the way to folders on `PATH`. They must not be replaced, but what they lead to may be changed.
    pub(crate) links: Vec<PathBuf>,
    /// What hooks, helpers and MCP servers may run inside the session's folders.
    pub(crate) scripts: Arc<ScriptNames>,
}

/// Where the paths are found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigSources<'a> {
    /// Environment of commands.
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    /// What the script that runs before every command sets.
    pub(crate) script: &'a ScriptVariables,
    /// Files and folders by which the session was started.
    pub(crate) start_files: &'a [PathBuf],
    /// Names in the commands of hooks, helpers and MCP servers.
    pub(crate) scripts: &'a Arc<ScriptNames>,
    /// Links of the session that were on the way to folders on `PATH` before it was resolved.
    pub(crate) program_links: &'a [PathBuf],
    /// See [`home_link_targets`].
    pub(crate) home_link_targets: &'a [PathBuf],
}

/// Variables that the script sets which runs before every command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptVariables {
    /// The value of `PATH`; empty if there is no script.
    pub(crate) path: OsString,
    /// The values of `BASH_ENV` and `ENV`.
    pub(crate) scripts: Vec<PathBuf>,
}

impl ConfigPaths {
    pub(crate) fn find(sources: ConfigSources<'_>) -> Self {
        let value = |name: &str| sources.env.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
        let mut found = Self { scripts: Arc::clone(sources.scripts), ..Self::default() };
        let home = value("HOME");
        let claude = value("CLAUDE_CONFIG_DIR");
        let xdg = value("XDG_CONFIG_HOME");
        let config = xdg.clone().or_else(|| Some(home.as_ref()?.join(".config")));
        let in_claude = claude.iter().flat_map(|folder| CLAUDE_CONFIG_NAMES.map(|name| folder.join(name)));
        let in_config = config.iter().flat_map(|folder| CONFIG_FOLDERS.map(|name| folder.join(name)));
        // bash expands variables in the names of its start-up files.
        let variable =
            |name: &str| sources.env.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::to_owned);
        let expanded = |path: PathBuf| PathBuf::from(expand_variables(&path.to_string_lossy(), &variable));
        let scripts = ["BASH_ENV", "ENV", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"]
            .into_iter()
            .filter_map(value)
            .map(expanded)
            .chain(value("CLAUDE_ENV_FILE"));
        let scripts = scripts.chain(sources.script.scripts.iter().cloned()).chain(sources.start_files.iter().cloned());
        for path in in_claude.chain(in_config).chain(scripts) {
            let Some(path) = resolve_from_start(&path) else { continue };
            found.always.extend(deciding_paths(&path));
            found.always.extend(path.real);
        }
        for path in claude.iter().chain(&xdg) {
            let Some(path) = resolve_from_start(path) else { continue };
            found.always.extend(deciding_paths(&path));
            found.folders.extend(path.real);
        }
        found.always.extend(home.and_then(|home| resolve_from_start(&home)).iter().flat_map(deciding_paths));
        found.always.extend_from_slice(sources.home_link_targets);
        let path = value("PATH").unwrap_or_default();
        for folder in std::env::split_paths(&path).chain(std::env::split_paths(&sources.script.path)) {
            let Some(path) = resolve_from_start(&folder).filter(|_| folder.is_absolute()) else { continue };
            found.links.extend(links_on_the_way(&path));
            found.programs.extend(path.real);
        }
        found.links.extend_from_slice(sources.program_links);
        found
    }
}

/// Resolves a path; a relative one starts in the folder that the agent was started in.
fn resolve_from_start(path: &Path) -> Option<TargetPath> {
    std::path::absolute(path).ok().map(TargetPath::new)
}

/// Returns what decides where a path leads, besides the path itself: the links on the way, and the first folder that
/// does not exist, because it could be made as a link.
fn deciding_paths(path: &TargetPath) -> Vec<PathBuf> {
    let missing = path.real.iter().flat_map(|real| real.ancestors()).take_while(|path| !may_exist(path)).last();
    let missing = missing.map(Path::to_owned);
    links_on_the_way(path).into_iter().chain(missing).collect()
}

/// Returns the links that were followed to resolve a path.
fn links_on_the_way(path: &TargetPath) -> Vec<PathBuf> {
    // Each has the names after it, and no other link before it.
    let link = |path: &PathBuf| path.ancestors().filter(|path| path.is_symlink()).last().map(Path::to_owned);
    path.links.iter().filter_map(link).collect()
}

/// Returns the links in a folder, and in the folders that these lead to.
pub(crate) fn links_in_folder(folder: &Path) -> Vec<PathBuf> {
    links_to_follow(std::iter::once(folder.to_owned()), |_| false)
}

/// Returns the links directly in a folder of settings, and in the folders of definitions there.
pub(crate) fn links_in_config(folder: &Path) -> Vec<PathBuf> {
    let links = entries(folder).filter(|path| path.is_symlink());
    let names = CLAUDE_CONFIG_NAMES.into_iter().map(|name| folder.join(name));
    let definitions = links_below(names, MAX_DEFINITION_DEPTH, |_| false);
    links.chain(definitions).collect()
}

/// Returns the links to definitions, settings and hooks that a session in this folder uses: those in `.claude` and
/// `.git`, and the other guarded names; also of the folders above, up to the root of the repository.
pub(crate) fn links_of_project(folder: &Path) -> Vec<PathBuf> {
    let root = git_root(folder).unwrap_or(folder);
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let links = folders.flat_map(|folder| {
        let in_git = [".git", ".git/config", ".git/hooks", ".git/info"].map(|name| folder.join(name));
        let is_guarded = |path: &PathBuf| path.file_name().is_some_and(|name| has_guarded_name(Path::new(name)));
        let others = entries(folder).filter(is_guarded).filter(|path| !path.ends_with(".git"));
        let others = others.filter(|path| !path.ends_with(".claude") || path.is_symlink());
        let is_data = |path: &PathBuf| CLAUDE_DATA_NAMES.iter().any(|name| path.ends_with(name));
        let in_claude = entries(&folder.join(".claude")).filter(|path| !is_data(path));
        let definitions = links_below(in_claude, MAX_DEFINITION_DEPTH, |_| false);
        links_to_follow(in_git.into_iter().chain(others), |_| false).into_iter().chain(definitions).collect::<Vec<_>>()
    });
    links.collect()
}

/// Returns the links in the guarded folders of `XDG_CONFIG_HOME`.
pub(crate) fn links_in_xdg_config(folder: &Path) -> Vec<PathBuf> {
    links_to_follow(CONFIG_FOLDERS.into_iter().map(|name| folder.join(name)), |_| false)
}

/// Returns where links with guarded names in the home folder lead, and links in guarded folders there, as with a
/// repository of such files (`~/.config/fish/config.fish`); and the links on the way.
pub(crate) fn home_link_targets(home: &Path) -> Vec<PathBuf> {
    // The settings folder contains the sessions too.
    let folders = GUARDED_FOLDERS.into_iter().filter(|name| *name != ".claude").map(PathBuf::from);
    let in_config = CONFIG_FOLDERS.map(|name| Path::new(".config").join(name));
    let in_claude = CLAUDE_CONFIG_NAMES.map(|name| Path::new(".claude").join(name));
    let whole = GUARDED_FILES.into_iter().chain([".claude", ".config"]).map(|name| home.join(name));
    let whole = whole.chain(entries(&home.join(".claude")));
    let inside = folders.chain(in_config).chain(in_claude).map(|name| home.join(name));
    let inside: Vec<PathBuf> = inside.collect();
    let links = links_below(inside.iter().cloned(), MAX_DEFINITION_DEPTH, |_| false);
    let inside = links.into_iter().chain(inside);
    let paths = whole.chain(inside).map(TargetPath::new);
    let linked = paths.filter(|path| path.real.as_ref().is_some_and(|real| path.given != *real));
    linked.flat_map(|path| links_on_the_way(&path).into_iter().chain(path.real)).collect()
}

/// A value of `PATH` without the folders that are not safe.
#[derive(Debug, Default)]
pub(crate) struct SafePrograms {
    /// `None` if nothing was changed.
    pub(crate) path: Option<OsString>,
    /// The folders that were removed.
    pub(crate) removed: Vec<PathBuf>,
    /// Links of the session on the way to the others.
    pub(crate) links: Vec<PathBuf>,
}

impl SafePrograms {
    /// Removes the folders of a `PATH` that are relative or belong to the session. Folders inside the session's are
    /// resolved, because commands could replace links, and left out if they do not exist, because commands could make
    /// them.
    pub(crate) fn new(path: &OsStr, session: &[PathBuf]) -> Self {
        let session: Vec<PathBuf> = session.iter().filter_map(|folder| resolve(folder)).collect();
        let is_inside = |path: &Path| session.iter().any(|folder| path.starts_with(folder));
        let (mut kept, mut safe) = (Vec::new(), Self::default());
        for folder in std::env::split_paths(path) {
            let target = TargetPath::new(&folder);
            let leads_through = target.names().any(is_inside);
            let links = links_on_the_way(&target);
            match target.real.filter(|real| folder.is_absolute() && !session.contains(real)) {
                Some(real) if leads_through => {
                    kept.extend(Some(real).filter(|real| real.is_dir()));
                    safe.links.extend(links.into_iter().filter(|link| is_inside(link)));
                }
                Some(_) => kept.push(folder),
                None => safe.removed.push(folder),
            }
        }
        safe.path = std::env::join_paths(kept).ok().filter(|kept| kept != path);
        safe
    }
}
