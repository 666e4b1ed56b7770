//! Lists session files and finds one by its id or a prefix of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quipu_message::SessionId;

use super::{list_project_folders, list_session_files};
use crate::problem::FileError;

/// A session file and what the file system knows about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Path of the session file.
    pub path: PathBuf,
    /// Id of the session: the name of the file without its extension.
    pub id: SessionId,
    /// Name of the project folder, such as `-home-dev-app`.
    pub project: String,
    /// Time of the last write.
    pub modified: SystemTime,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Lists the session files of config folders, `projects/<project>/<session>.jsonl`, newest
/// first. Folders that cannot be read are returned as errors.
pub fn list_sessions(config_dirs: &[PathBuf]) -> (Vec<SessionFile>, Vec<FileError>) {
    let (projects, mut errors) = list_project_folders(config_dirs);
    let (found, more) = list_sessions_in(&projects);
    errors.extend(more);
    (found, errors)
}

/// Lists the session files of project folders, newest first. Folders that cannot be read are
/// returned as errors.
pub fn list_sessions_in(projects: &[PathBuf]) -> (Vec<SessionFile>, Vec<FileError>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for project in projects {
        found.extend(list_folder(project, &mut errors).into_iter().filter_map(SessionFile::from_path));
    }
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    (found, errors)
}

fn list_folder(folder: &Path, errors: &mut Vec<FileError>) -> Vec<PathBuf> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(source) => {
            errors.push(FileError::Open { path: folder.to_owned(), source });
            Vec::new()
        }
    }
}

impl SessionFile {
    /// Describes the session file at a path. `None` if it does not exist, is not a `.jsonl` file, or
    /// belongs to a subagent.
    pub fn from_path(path: PathBuf) -> Option<Self> {
        if path.extension()? != "jsonl" {
            return None;
        }
        let stem = path.file_stem()?.to_str()?;
        // Older versions kept subagents in the same folder.
        if stem.starts_with("agent-") {
            return None;
        }
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let project = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        Some(Self { id: stem.into(), project, modified, bytes: meta.len(), path })
    }
}

/// Why a name does not identify one session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No session has this id or an id with this prefix.
    #[error("no session matches '{spec}'")]
    NotFound {
        /// The name as it was given.
        spec: String,
    },
    /// Several sessions have this id, or ids with this prefix.
    #[error("{} sessions match '{spec}'", paths.len())]
    Ambiguous {
        /// The name as it was given.
        spec: String,
        /// Paths of their files.
        paths: Vec<PathBuf>,
    },
}

impl ResolveError {
    /// Stable code for scripts, such as `session.not_found`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "session.not_found",
            Self::Ambiguous { .. } => "session.ambiguous",
        }
    }
}

/// Finds the file of a session by its id or a unique prefix of it, ignoring case. A session with
/// exactly this id is preferred to those whose ids begin with it.
pub fn resolve_session<'a>(
    spec: &str,
    sessions: impl IntoIterator<Item = (&'a str, &'a Path)>,
) -> Result<PathBuf, ResolveError> {
    let starts = |id: &str| id.get(..spec.len()).is_some_and(|start| start.eq_ignore_ascii_case(spec));
    let mut found: Vec<(&str, &Path)> = sessions.into_iter().filter(|(id, _)| !spec.is_empty() && starts(id)).collect();
    if found.iter().any(|(id, _)| id.len() == spec.len()) {
        found.retain(|(id, _)| id.len() == spec.len());
    }
    match found.as_slice() {
        [] => Err(ResolveError::NotFound { spec: spec.to_owned() }),
        [(_, one)] => Ok(one.to_path_buf()),
        several => {
            let paths = several.iter().map(|(_, path)| path.to_path_buf()).collect();
            Err(ResolveError::Ambiguous { spec: spec.to_owned(), paths })
        }
    }
}

/// Finds the file of a subagent in project folders by its name, `agent-ID`, or a unique prefix
/// of it.
pub fn resolve_subagent(spec: &str, projects: &[PathBuf]) -> Result<PathBuf, ResolveError> {
    let name = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (sessions, _) = list_session_files(projects, &());
    let files = sessions.into_iter().flat_map(|session| session.files).filter(|file| file.is_subagent);
    let named: Vec<(String, PathBuf)> = files.map(|file| (name(&file.path), file.path)).collect();
    resolve_session(spec, named.iter().map(|(name, path)| (name.as_str(), path.as_path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &str, expect: Result<&str, &[&str]>) {
        let sessions = [("05ef09b2", "a"), ("05ff", "b"), ("05ff-1", "c"), ("768d", "d"), ("768d", "e")];
        let found = resolve_session(spec, sessions.map(|(id, path)| (id, Path::new(path))));
        let expect = match expect {
            Ok(path) => Ok(PathBuf::from(path)),
            Err([]) => Err(ResolveError::NotFound { spec: spec.to_owned() }),
            Err(paths) => {
                let paths = paths.iter().map(PathBuf::from).collect();
                Err(ResolveError::Ambiguous { spec: spec.to_owned(), paths })
            }
        };
        assert_eq!(found, expect, "{spec}");
    }

    #[test]
    fn a_session_is_named_by_its_id_or_a_unique_prefix() {
        check("05ef", Ok("a"));
        check("05EF09B2", Ok("a"));
        check("05ff", Ok("b"));
        check("05ff-", Ok("c"));
        check("05", Err(&["a", "b", "c"]));
        check("768d", Err(&["d", "e"]));
        check("9", Err(&[]));
        check("", Err(&[]));
    }
}
