//! Reads the backups that the agent makes of files before it changes them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use quipu_message::Entry;
use quipu_message::bookkeeping::{FileBackup, FileSnapshot};

use crate::read::Entries;

/// The first backup of each file in a session: the file before the session changed it.
///
/// The agent keeps them under `file-history/<session>/` in its config folder, when its
/// file checkpoints are on.
#[derive(Debug, Default)]
pub struct FileBackups {
    folder: PathBuf,
    /// Keyed by the path in the entries, which may be relative to the session's working directory.
    first_backups: HashMap<String, FileBackup>,
}

impl FileBackups {
    /// Finds the backups that a session file refers to. Lines that cannot be read are skipped.
    pub fn read(session: &Path) -> Self {
        let id = session.file_stem().unwrap_or_default();
        // <config>/projects/<project>/<session>.jsonl
        let config = session.ancestors().nth(3).unwrap_or(Path::new(""));
        let mut backups = Self { folder: config.join("file-history").join(id), first_backups: HashMap::new() };
        for located in Entries::open(session).into_iter().flatten().flatten() {
            match located.entry {
                Entry::FileHistoryDelta(delta) => {
                    if let (Some(path), Ok(backup)) = (delta.tracking_path.get(), delta.backup.read()) {
                        backups.first_backups.entry(path.clone()).or_insert(backup);
                    }
                }
                Entry::FileHistorySnapshot(snapshot) => {
                    if let Ok(snapshot) = snapshot.snapshot.read::<FileSnapshot>() {
                        for (path, backup) in snapshot.tracked_file_backups {
                            backups.first_backups.entry(path).or_insert(backup);
                        }
                    }
                }
                _ => {}
            }
        }
        backups
    }

    /// The content of a file before its first change: `None` if there is no backup of it,
    /// `Some(None)` if it did not exist. `cwd` is the session's folder.
    pub fn original_content(&self, path: &str, cwd: &str) -> Option<Option<String>> {
        let relative = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/'));
        let backup = self.first_backups.get(path).or_else(|| self.first_backups.get(relative?))?;
        match &backup.backup_file_name {
            None => Some(None),
            Some(name) if name.contains(['/', '\\']) => None,
            Some(name) => fs::read_to_string(self.folder.join(name)).ok().map(Some),
        }
    }
}
