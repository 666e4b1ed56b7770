//! Deleting a session, with all that belongs to it.

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::append::sync_folder;
use crate::find;

/// Why a session could not be deleted. Its file is still there.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The file cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Someone is writing to the file.
    #[error("{} is being written to", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder cannot be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl DeleteError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "delete.cannot_open",
            Self::Busy { .. } => "delete.busy",
            Self::Remove { .. } => "delete.cannot_remove",
        }
    }
}

/// Deletes a session's file, its folder with the subagents, the files of subagents that
/// older versions put beside it, and, with the last copy of the session, its file
/// checkpoints and tasks. A link is removed, not what it leads to.
///
/// The file's lock is held meanwhile, so no append is cut in two; a session that is
/// open but not writing cannot be told from one at rest, and its recorder hears of the
/// deletion with its next append. The file goes last: what breaks off can be done again.
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

/// The folders that the config folder keeps for a session, unless another project holds a
/// copy of it.
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
