//! The config folders of the agent, in which it keeps its sessions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use etcetera::base_strategy::{BaseStrategy, Xdg};

use crate::config;
use crate::error::Failure;
use crate::global::GlobalArgs;

/// Config folders to search for sessions: those of `--claude-dir`, or of `$CLAUDE_CONFIG_DIR`
/// (separated by commas), or of `claude_dirs` in quipu's settings, or `~/.claude` and, if it has a
/// `projects` folder, `~/.config/claude`.
pub(crate) fn claude_dirs(global: &GlobalArgs) -> Vec<PathBuf> {
    if let Some(dirs) = named_dirs(global) {
        return dirs.into_iter().map(without_projects_folder).collect();
    }
    // Settings that cannot be read are reported where they are needed most.
    let configured = config::load().ok().flatten().map(|config| config.claude_dirs).unwrap_or_default();
    if !configured.is_empty() {
        return configured.into_iter().map(without_projects_folder).collect();
    }
    let Ok(xdg) = Xdg::new() else { return Vec::new() };
    let config = xdg.config_dir().join("claude");
    [Some(xdg.home_dir().join(".claude")), Some(config).filter(|dir| dir.join("projects").is_dir())]
        .into_iter()
        .flatten()
        .collect()
}

/// Folders named by option or environment variable; `None` if there are none.
fn named_dirs(global: &GlobalArgs) -> Option<Vec<PathBuf>> {
    if !global.claude_dir.is_empty() {
        return Some(global.claude_dir.clone());
    }
    let list = crate::environment::var("CLAUDE_CONFIG_DIR")?;
    let dirs: Vec<PathBuf> = match list.to_str() {
        Some(list) if !Path::new(list).is_dir() => {
            list.split(',').map(str::trim).filter(|dir| !dir.is_empty()).map(PathBuf::from).collect()
        }
        _ => vec![PathBuf::from(list)],
    };
    Some(dirs).filter(|dirs| !dirs.is_empty())
}

/// The parent folder if `dir` is a `projects` folder, or else `dir` itself.
fn without_projects_folder(dir: PathBuf) -> PathBuf {
    let is_projects = dir.file_name() == Some(OsStr::new("projects")) && !dir.join("projects").is_dir();
    match dir.parent() {
        Some(parent) if is_projects && parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) if is_projects => parent.to_owned(),
        _ => dir,
    }
}

/// Fails if a folder that the user names does not exist, or if `needs_sessions` and none of the
/// folders has a `projects` folder.
pub(crate) fn require_claude_dirs(global: &GlobalArgs, needs_sessions: bool) -> Result<()> {
    let dirs = claude_dirs(global);
    let is_named = named_dirs(global).is_some();
    if let Some(missing) = dirs.iter().find(|dir| is_named && !dir.is_dir()) {
        let message = format!("no folder '{}'", missing.display());
        return Err(Failure::error(
            "claude_dir.not_found",
            message,
            "--claude-dir and CLAUDE_CONFIG_DIR name the folder that has `projects` in it",
        ));
    }
    if needs_sessions && !dirs.iter().any(|dir| dir.join("projects").is_dir()) {
        return Err(no_sessions_error(global));
    }
    Ok(())
}

/// The error for config folders without any session.
pub(crate) fn no_sessions_error(global: &GlobalArgs) -> anyhow::Error {
    let dirs = claude_dirs(global).iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
    Failure::error("session.none", format!("no sessions in {dirs}"), "name another folder with --claude-dir")
}
