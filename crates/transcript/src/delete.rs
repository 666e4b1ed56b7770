//! Deletes a session and everything the agent keeps for it.

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::append::sync_folder;
use crate::find;

/// Why a session could not be deleted. Its file still exists.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The file cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// Path of the session file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Another program holds the lock of the file.
    #[error("{} is being written to", path.display())]
    Busy {
        /// Path of the session file.
        path: PathBuf,
    },
    /// A file or folder cannot be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl DeleteError {
    /// Stable code for scripts, such as `delete.busy`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "delete.cannot_open",
            Self::Busy { .. } => "delete.busy",
            Self::Remove { .. } => "delete.cannot_remove",
        }
    }
}

/// How long to watch a file for writes before it is deleted, because agents do not lock it.
const BUSY_CHECK_DELAY: Duration = Duration::from_millis(300);

/// Deletes a session as [`delete_session`] does, unless its file is written to within a moment.
pub fn delete_idle_session(session: &Path) -> Result<(), DeleteError> {
    let size = || {
        let metadata = fs::metadata(session);
        metadata.map(|data| data.len()).map_err(|source| DeleteError::Open { path: session.to_owned(), source })
    };
    let before = size()?;
    std::thread::sleep(BUSY_CHECK_DELAY);
    if size()? != before {
        return Err(DeleteError::Busy { path: session.to_owned() });
    }
    delete_session(session)
}

/// Deletes the file of a session, its folder with the subagents, subagent files that older
/// versions put into the same folder, and, with the last copy of the session, its file
/// checkpoints and tasks. A symbolic link is removed, not its target.
///
/// Holds the lock of the file meanwhile, so that no append is cut in two. An agent that has the
/// session open without writing cannot be detected; its next append fails with
/// [`AppendError::Deleted`](crate::AppendError::Deleted). The session file is removed last, so
/// that a deletion that fails halfway can be repeated.
pub fn delete_session(session: &Path) -> Result<(), DeleteError> {
    let open = |source| DeleteError::Open { path: session.to_owned(), source };
    let file = OpenOptions::new().read(true).open(session).map_err(open)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => DeleteError::Busy { path: session.to_owned() },
        TryLockError::Error(source) => open(source),
    })?;
    for subagent in find::list_legacy_subagents(session) {
        remove_if_present(&subagent.path, fs::remove_file)?;
        remove_if_present(&subagent.path.with_extension("meta.json"), fs::remove_file)?;
    }
    for folder in session_config_folders(session) {
        remove_if_present(&folder, fs::remove_dir_all)?;
    }
    remove_if_present(&session.with_extension(""), fs::remove_dir_all)?;
    remove_if_present(session, fs::remove_file)?;
    let folder = session.parent().unwrap_or(Path::new("."));
    sync_folder(folder).map_err(|source| DeleteError::Remove { path: session.to_owned(), source })
}

/// Folders for this session in the config folder; empty if another project holds a copy of the
/// session.
fn session_config_folders(session: &Path) -> Vec<PathBuf> {
    let projects = session.parent().and_then(Path::parent).filter(|path| path.file_name() == Some("projects".as_ref()));
    let (Some(projects), Some(name), Some(id)) = (projects, session.file_name(), session.file_stem()) else {
        return Vec::new();
    };
    let others = fs::read_dir(projects).into_iter().flatten().flatten().map(|entry| entry.path().join(name));
    if others.filter(|other| other != session).any(|other| other.exists()) {
        return Vec::new();
    }
    ["file-history", "tasks"].map(|folder| projects.with_file_name(folder).join(id)).to_vec()
}

fn remove_if_present(path: &Path, remove: impl FnOnce(PathBuf) -> io::Result<()>) -> Result<(), DeleteError> {
    match remove(path.to_owned()) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(DeleteError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
