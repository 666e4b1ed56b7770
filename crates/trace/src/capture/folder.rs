//! The folder of captures: private files, found by session id, limited in size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

/// How many bytes of captures are kept; one capture also stops at this size.
pub const MAX_FOLDER_BYTES: u64 = 2 << 30;

const CAPTURE_EXTENSION: &str = "capture";
const SESSIONS_EXTENSION: &str = "sessions";

/// A folder that holds captures.
#[derive(Debug, Clone)]
pub struct CaptureFolder {
    path: PathBuf,
}

/// What [`CaptureFolder::prune`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of captures.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

impl CaptureFolder {
    /// The folder of captures in quipu's data folder; it need not exist.
    pub fn in_data_folder(data_folder: &Path) -> Self {
        Self::new(data_folder.join("captures"))
    }

    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Paths for a new capture: the capture, and the list of its sessions. Creates the folder,
    /// readable only by its owner.
    pub fn new_capture(&self, now: Timestamp) -> io::Result<(PathBuf, PathBuf)> {
        create_private_folder(&self.path)?;
        let name = format!("{}-{}", now.strftime("%Y%m%dT%H%M%S"), std::process::id());
        let file = self.path.join(name);
        Ok((file.with_extension(CAPTURE_EXTENSION), file.with_extension(SESSIONS_EXTENSION)))
    }

    /// Captures that contain calls of a session, oldest first. Empty if the folder does not
    /// exist.
    pub fn captures_of_session(&self, session_id: &str) -> Vec<PathBuf> {
        let mut found = self.captures();
        found.retain(|(_, path, _)| {
            let list = fs::read_to_string(path.with_extension(SESSIONS_EXTENSION)).unwrap_or_default();
            list.lines().any(|id| id == session_id)
        });
        found.into_iter().map(|(_, path, _)| path).collect()
    }

    /// Removes the oldest captures until all together have at most `max_bytes`. Captures that
    /// are being written stay.
    pub fn prune(&self, max_bytes: u64) -> Pruned {
        let captures = self.captures();
        let mut total: u64 = captures.iter().map(|(_, _, size)| size).sum();
        let mut pruned = Pruned::default();
        for (_, path, size) in captures {
            if total <= max_bytes {
                break;
            }
            let is_free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
            if is_free && fs::remove_file(&path).is_ok() {
                // Without the capture the list is useless; it is tiny if it stays.
                let _ = fs::remove_file(path.with_extension(SESSIONS_EXTENSION));
                total -= size;
                pruned = Pruned { files: pruned.files + 1, bytes: pruned.bytes + size };
            }
        }
        pruned
    }

    /// Time of the last change, path and size of each capture, oldest first.
    fn captures(&self) -> Vec<(SystemTime, PathBuf, u64)> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut captures: Vec<_> = entries
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == CAPTURE_EXTENSION))
            .filter_map(|entry| {
                let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((data.modified().ok()?, entry.path(), data.len()))
            })
            .collect();
        captures.sort();
        captures
    }
}

/// The ids of the sessions in a capture, one a line.
#[derive(Debug)]
pub(super) struct SessionList {
    file: File,
}

impl SessionList {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: create_private(path)? })
    }

    /// Adds an id. Ids with control characters are left out: they are not ids of sessions.
    pub(super) fn add(&mut self, id: &str) -> io::Result<()> {
        if id.is_empty() || id.contains(char::is_control) { Ok(()) } else { writeln!(self.file, "{id}") }
    }
}

/// Creates a new file that only its owner can read, and locks it, so that it is not pruned
/// while it is open.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Some file systems have no locks; there a running capture could be pruned.
    let _ = file.try_lock();
    Ok(file)
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
