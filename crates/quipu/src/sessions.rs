//! Finds the session that the user names on the command line.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Result;
use quipu_index::ListedSession;
use quipu_transcript::find::{self, ResolveError, SessionFile};
use rayon::prelude::*;

use crate::catalogue;
use crate::claude_dirs::{claude_dirs, no_sessions_error};
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::project_filter::ProjectFilter;
use crate::session_table::{candidate_table, short_id};

/// File of the session that `spec` names: a path, `agent-ID`, an id or a unique prefix of it, or
/// `latest`; an id, a prefix or `latest` also after `PROJECT/`.
pub(crate) fn resolve_session(spec: &str, global: &GlobalArgs) -> Result<PathBuf> {
    // A path needs no listing of the sessions.
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
    if project.is_none() && id == "latest" {
        return latest_session(&dirs, global)?.ok_or_else(|| no_sessions_error(global));
    }
    let mut rows = catalogue::list_sessions(global)?;
    if let Some(project) = project {
        retain_project(&mut rows, project)?;
    }
    if id == "latest" {
        return rows.first().map(|row| row.path.clone()).ok_or_else(|| not_found_error(spec));
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

/// The session with the latest entry, which is the first one of `quipu ls`. Sessions that the index
/// does not know as they are now are compared by both ends of their files: the index itself may take
/// longer to bring up to date than the session takes to show.
fn latest_session(dirs: &[PathBuf], global: &GlobalArgs) -> Result<Option<PathBuf>> {
    let indexed = catalogue::open(global)?.0.sessions().unwrap_or_default();
    let indexed: HashMap<&Path, &ListedSession> = indexed.iter().map(|row| (row.path.as_path(), row)).collect();
    let last_active = |file: &SessionFile| {
        let ends = || ListedSession::from_file_ends(file).last_active_ns();
        let modified_ns = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let known = indexed.get(file.path.as_path()).filter(|row| row.modified_ns as u128 >= modified_ns);
        known.map_or_else(ends, |row| row.last_active_ns())
    };
    let (files, _) = find::list_sessions(dirs);
    let latest = files.par_iter().min_by_key(|file| (Reverse(last_active(file)), file.path.clone()));
    Ok(latest.map(|file| file.path.clone()))
}

fn not_found_error(spec: &str) -> anyhow::Error {
    ResolveError::NotFound { spec: spec.to_owned() }.into()
}

/// Keeps the sessions of the project with exactly this folder name or path, or else of those
/// that contain it.
fn retain_project(rows: &mut Vec<ListedSession>, project: &str) -> Result<()> {
    // The folder names begin with a dash, which would look like an option.
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

/// Lists the sessions that match, each by the shortest kind of name that is unique.
fn ambiguous_error(spec: &str, rows: &[ListedSession]) -> anyhow::Error {
    let ids = |row: &ListedSession| row.session_id.clone();
    let in_projects = |row: &ListedSession| format!("{}/{}", row.project.trim_start_matches('-'), short_id(row));
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
    Failure::listing("session.ambiguous", message, candidate_table(rows, name), names)
}

/// Splits `SESSION:LINE`. The line is `None` if no digits follow a colon, or if a file has
/// exactly this name.
pub(crate) fn split_line(spec: &str) -> (&str, Option<u64>) {
    let is_file = || std::path::Path::new(spec).is_file();
    match spec.rsplit_once(':') {
        Some((session, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !is_file() => {
            digits.parse().map_or((spec, None), |line| (session, Some(line)))
        }
        _ => (spec, None),
    }
}
