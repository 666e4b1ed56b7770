//! Which session a person means.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quipu_message::SessionId;

use super::{histories, projects};
use crate::problem::FileError;

/// A session's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// The file.
    pub path: PathBuf,
    /// The session: the file's name.
    pub id: SessionId,
    /// The name of the project's folder.
    pub project: String,
    /// When it was last written.
    pub modified: SystemTime,
    /// How large it is.
    pub bytes: u64,
}

/// The session files of some config folders: `projects/<project>/<session>.jsonl`.
/// Newest first. Folders that cannot be read are named beside.
pub fn sessions(config_dirs: &[PathBuf]) -> (Vec<SessionFile>, Vec<FileError>) {
    let (projects, mut errors) = projects(config_dirs);
    let (found, more) = sessions_in(&projects);
    errors.extend(more);
    (found, errors)
}

/// The session files of some project folders, newest first. Folders that cannot be read
/// are named beside.
pub fn sessions_in(projects: &[PathBuf]) -> (Vec<SessionFile>, Vec<FileError>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for project in projects {
        found.extend(list(project, &mut errors).into_iter().filter_map(SessionFile::at));
    }
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    (found, errors)
}

fn list(folder: &Path, errors: &mut Vec<FileError>) -> Vec<PathBuf> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(source) => {
            errors.push(FileError::Open { path: folder.to_owned(), source });
            Vec::new()
        }
    }
}

impl SessionFile {
    /// The session file at a path; none when there is none.
    pub fn at(path: PathBuf) -> Option<Self> {
        if path.extension()? != "jsonl" {
            return None;
        }
        let stem = path.file_stem()?.to_str()?;
        // Older versions kept subagents beside the sessions.
        if stem.starts_with("agent-") {
            return None;
        }
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let project = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        Some(Self { id: stem.into(), project, modified, bytes: meta.len(), path })
    }
}

/// Why no session is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There are no sessions at all.
    #[error("no sessions found")]
    NoSessions,
    /// No session has such an id, and there is no such file.
    #[error("no session and no file {spec}")]
    NotFound {
        /// What was asked for.
        spec: String,
    },
    /// Several sessions have ids that begin so.
    #[error("{spec} is the beginning of {} session ids", ids.len())]
    Ambiguous {
        /// What was asked for.
        spec: String,
        /// The sessions, newest first.
        ids: Vec<SessionId>,
    },
}

impl ResolveError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSessions => "session.none",
            Self::NotFound { .. } => "session.not_found",
            Self::Ambiguous { .. } => "session.ambiguous",
        }
    }
}

/// Finds the file of a session named by its id, a unique beginning of it,
/// `latest`, or a path.
pub fn resolve(spec: &str, sessions: &[SessionFile]) -> Result<PathBuf, ResolveError> {
    let path = Path::new(spec);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if spec == "latest" {
        return sessions.first().map(|session| session.path.clone()).ok_or(ResolveError::NoSessions);
    }
    if let Some(exact) = sessions.iter().find(|session| session.id.as_str() == spec) {
        return Ok(exact.path.clone());
    }
    let begins = |session: &&SessionFile| !spec.is_empty() && session.id.as_str().starts_with(spec);
    let matching: Vec<&SessionFile> = sessions.iter().filter(begins).collect();
    match matching.as_slice() {
        [] => Err(ResolveError::NotFound { spec: spec.to_owned() }),
        [one] => Ok(one.path.clone()),
        several => {
            let ids = several.iter().map(|session| session.id.clone()).collect();
            Err(ResolveError::Ambiguous { spec: spec.to_owned(), ids })
        }
    }
}

/// Finds the file of a subagent named by its file's name, `agent-ID`, or a unique
/// beginning of that, in the sessions of some project folders.
pub fn resolve_subagent(spec: &str, projects: &[PathBuf]) -> Result<PathBuf, ResolveError> {
    let name = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (histories, _) = histories(projects, &());
    let files = histories.into_iter().flat_map(|history| history.files).filter(|file| file.is_subagent);
    let mut found: Vec<(String, PathBuf)> = files.map(|file| (name(&file.path), file.path)).collect();
    found.retain(|(name, _)| name.starts_with(spec));
    if found.iter().any(|(name, _)| name == spec) {
        found.retain(|(name, _)| name == spec);
    }
    match found.len() {
        0 => Err(ResolveError::NotFound { spec: spec.to_owned() }),
        1 => Ok(found.remove(0).1),
        _ => {
            let ids = found.iter().map(|(name, _)| name.as_str().into()).collect();
            Err(ResolveError::Ambiguous { spec: spec.to_owned(), ids })
        }
    }
}
