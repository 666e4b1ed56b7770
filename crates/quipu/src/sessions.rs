//! Which sessions are meant: where they are kept and how they are named.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use quipu_index::ListedSession;
use quipu_transcript::find::{self, ResolveError};

use crate::args::{Command, GlobalArgs};
use crate::catalogue;
use crate::error::Failure;
use crate::filter::ProjectFilter;
use crate::ls;

/// The folders in which the agent keeps its sessions: those of `--claude-dir`, those of
/// `$CLAUDE_CONFIG_DIR` (separated by commas), or `~/.claude` and, when it has projects,
/// `~/.config/claude`.
pub(crate) fn claude_dirs(global: &GlobalArgs) -> Vec<PathBuf> {
    if let Some(dirs) = named_dirs(global) {
        return dirs.into_iter().map(without_projects_folder).collect();
    }
    let Some(home) = std::env::home_dir() else { return Vec::new() };
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty());
    let config = config.map_or_else(|| home.join(".config"), PathBuf::from).join("claude");
    [Some(home.join(".claude")), Some(config).filter(|dir| dir.join("projects").is_dir())]
        .into_iter()
        .flatten()
        .collect()
}

/// The folders the user names; `None` without any.
fn named_dirs(global: &GlobalArgs) -> Option<Vec<PathBuf>> {
    if !global.claude_dir.is_empty() {
        return Some(global.claude_dir.clone());
    }
    let list = std::env::var_os("CLAUDE_CONFIG_DIR")?;
    let dirs: Vec<PathBuf> = match list.to_str() {
        Some(list) if !Path::new(list).is_dir() => {
            list.split(',').map(str::trim).filter(|dir| !dir.is_empty()).map(PathBuf::from).collect()
        }
        _ => vec![PathBuf::from(list)],
    };
    Some(dirs).filter(|dirs| !dirs.is_empty())
}

/// The folder itself, or the one above when it is the `projects` folder in it.
fn without_projects_folder(dir: PathBuf) -> PathBuf {
    let is_projects = dir.file_name() == Some(OsStr::new("projects")) && !dir.join("projects").is_dir();
    match dir.parent() {
        Some(parent) if is_projects && parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) if is_projects => parent.to_owned(),
        _ => dir,
    }
}

/// Fails when a folder the user names is not there, or when a command needs sessions and
/// there is no folder for them at all.
pub(crate) fn require_dirs(command: Option<&Command>, global: &GlobalArgs) -> Result<()> {
    use Command::{Answer, CompleteSessions, Completions, Doctor, Help, Man};
    if matches!(command, Some(Answer(_) | Completions { .. } | CompleteSessions | Doctor | Help { .. } | Man { .. })) {
        return Ok(());
    }
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
    let needs_sessions = match command {
        Some(Command::Ls(_) | Command::Usage(_) | Command::Stats(_) | Command::Contexts(_) | Command::Search(_)) => {
            true
        }
        Some(Command::Check(check)) => check.paths.is_empty(),
        Some(Command::Export(export)) => export.all,
        Some(Command::Secrets(secrets)) => secrets.sessions.is_empty(),
        _ => false,
    };
    if needs_sessions && !dirs.iter().any(|dir| dir.join("projects").is_dir()) {
        return Err(no_sessions_error(global));
    }
    Ok(())
}

/// There are no sessions in any of the folders.
pub(crate) fn no_sessions_error(global: &GlobalArgs) -> anyhow::Error {
    let dirs = claude_dirs(global).iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
    Failure::error("session.none", format!("no sessions in {dirs}"), "name another folder with --claude-dir")
}

/// The file of the session that `spec` names: a path, `agent-ID`, an id or a unique prefix of
/// it, or `latest`; the last three also after `PROJECT/`.
pub(crate) fn resolve_session(spec: &str, global: &GlobalArgs) -> Result<PathBuf> {
    // A path needs no look at the sessions.
    let path = PathBuf::from(spec);
    if path.is_file() {
        return Ok(path);
    }
    let dirs = claude_dirs(global);
    if spec.starts_with("agent-") {
        return Ok(find::resolve_subagent(spec, &find::list_project_folders(&dirs).0)?);
    }
    let (project, id) = spec.rsplit_once('/').map_or((None, spec), |(project, id)| (Some(project), id));
    if project.is_none() && id != "latest" {
        let (sessions, _) = find::list_sessions(&dirs);
        match find::resolve_session(id, sessions.iter().map(|session| (session.id.as_str(), session.path.as_path()))) {
            Err(ResolveError::Ambiguous { .. }) => {}
            done => return Ok(done?),
        }
    }
    let mut rows = catalogue::list_sessions(global)?;
    if let Some(project) = project {
        retain_project(&mut rows, project)?;
    }
    if id == "latest" {
        let none = || if project.is_some() { not_found_error(spec) } else { no_sessions_error(global) };
        return rows.first().map(|row| row.path.clone()).ok_or_else(none);
    }
    match find::resolve_session(id, rows.iter().map(|row| (row.session_id.as_str(), row.path.as_path()))) {
        Ok(path) => Ok(path),
        Err(ResolveError::NotFound { .. }) => Err(not_found_error(spec)),
        Err(ResolveError::Ambiguous { paths, .. }) => {
            rows.retain(|row| paths.contains(&row.path));
            Err(ambiguous_error(spec, &rows))
        }
    }
}

fn not_found_error(spec: &str) -> anyhow::Error {
    ResolveError::NotFound { spec: spec.to_owned() }.into()
}

/// Keeps the sessions of a project: the one with this very folder name or path, or else
/// those that contain it.
fn retain_project(rows: &mut Vec<ListedSession>, project: &str) -> Result<()> {
    // The folders' names begin with a dash, which looks like an option.
    let name = |folder: &str| folder.trim_start_matches('-').to_owned();
    let is_this = |row: &ListedSession| name(&row.project) == name(project) || row.cwd.as_deref() == Some(project);
    if rows.iter().any(is_this) {
        rows.retain(is_this);
    } else {
        let filter = ProjectFilter::new(project)?;
        rows.retain(|row| filter.matches(&row.project, row.cwd.as_deref()));
    }
    Ok(())
}

/// Lists the sessions that match, each by the shortest kind of name that tells them apart.
fn ambiguous_error(spec: &str, rows: &[ListedSession]) -> anyhow::Error {
    let ids = |row: &ListedSession| row.session_id.clone();
    let in_projects = |row: &ListedSession| format!("{}/{}", row.project.trim_start_matches('-'), ls::short_id(row));
    let paths = |row: &ListedSession| row.path.display().to_string();
    let is_unique = |name: &dyn Fn(&ListedSession) -> String| {
        let names: HashSet<String> = rows.iter().map(name).collect();
        names.len() == rows.len()
    };
    let (advice, name): (&str, &dyn Fn(&ListedSession) -> String) = if is_unique(&ids) {
        ("add more characters", &ids)
    } else if is_unique(&in_projects) {
        ("use PROJECT/ID", &in_projects)
    } else {
        ("use the path", &paths)
    };
    let message = format!("{} sessions match '{spec}'; {advice}", rows.len());
    let names = rows.iter().map(name).collect::<Vec<_>>().join(", ");
    Failure::listing("session.ambiguous", message, ls::candidate_table(rows, name), names)
}

/// The session and the line named by `SESSION:LINE`. `None` if no digits follow a colon,
/// or a file has that very name.
pub(crate) fn split_line(spec: &str) -> (&str, Option<u64>) {
    let is_file = || std::path::Path::new(spec).is_file();
    match spec.rsplit_once(':') {
        Some((session, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !is_file() => {
            digits.parse().map_or((spec, None), |line| (session, Some(line)))
        }
        _ => (spec, None),
    }
}
