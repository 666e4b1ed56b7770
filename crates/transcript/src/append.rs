//! Appends whole lines to a file, safely with other writers and across crashes.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_message::{Line, Uuid};

use crate::problem::FileError;

/// Why lines could not be appended. What the file held before is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The file or its folder cannot be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file cannot be opened for appending.
    #[error("cannot open {} for appending", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The operating system refused the lock.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Another program held the lock until the deadline.
    #[error("another program has kept {} locked for {:.1} s", path.display(), waited.as_secs_f64())]
    Locked {
        /// Path of the file.
        path: PathBuf,
        /// How long this program waited for the lock.
        waited: Duration,
    },
    /// A write failed. It may have left an incomplete line, which the next append ends.
    #[error("cannot append to {}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The lines are written but may not survive a power cut.
    #[error("cannot sync {} to stable storage", path.display())]
    Sync {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The path now names another file than the one that was opened.
    #[error("{} was replaced by another file", path.display())]
    Replaced {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file or its folder was deleted.
    #[error("{} was deleted", path.display())]
    Deleted {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is shorter than after the last append.
    #[error("{} was cut from {expected} to {found} bytes", path.display())]
    Truncated {
        /// Path of the file.
        path: PathBuf,
        /// Length in bytes after the last append.
        expected: u64,
        /// Length in bytes now.
        found: u64,
    },
    /// An entry cannot be written as JSON.
    #[error("cannot write an entry as JSON")]
    Serialize(#[source] serde_json::Error),
    /// An entry has no UUID, so no later entry could name it as its parent.
    #[error("a {kind} entry without a uuid cannot be recorded")]
    NoUuid {
        /// Type of the entry, such as `user`.
        kind: String,
    },
    /// The session has no entry with this UUID.
    #[error("no entry {uuid} in {}", path.display())]
    EntryNotFound {
        /// Path of the file.
        path: PathBuf,
        /// UUID that was asked for.
        uuid: Uuid,
    },
    /// The file to continue cannot be read, so the last entry of its chain is not known.
    #[error(transparent)]
    Read(#[from] FileError),
    /// The recorder has ended.
    #[error("the session's writer has ended")]
    Stopped,
}

impl AppendError {
    /// Stable code for scripts, such as `append.locked`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Create { .. } => "append.cannot_create",
            Self::Open { .. } => "append.cannot_open",
            Self::Lock { .. } => "append.cannot_lock",
            Self::Locked { .. } => "append.locked",
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => "append.disk_full",
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => "append.disk_full",
            Self::Write { .. } => "append.cannot_write",
            Self::Sync { .. } => "append.cannot_sync",
            Self::Replaced { .. } => "append.replaced",
            Self::Deleted { .. } => "append.deleted",
            Self::Truncated { .. } => "append.truncated",
            Self::Serialize(_) => "append.not_json",
            Self::NoUuid { .. } => "append.no_uuid",
            Self::EntryNotFound { .. } => "append.no_entry",
            Self::Read(error) => error.code(),
            Self::Stopped => "append.stopped",
        }
    }
}

/// How long to wait for a lock that another program holds.
pub(crate) const LOCK_DEADLINE: Duration = Duration::from_secs(10);

/// Pause between two attempts to take the lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A file that only grows, by whole lines.
///
/// Each append takes the lock of the file, checks that the path still names this file and that
/// it was not truncated, ends an incomplete last line with a line feed, and writes each line
/// with one write. An incomplete line is never cut off: it may be another program's line that
/// is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    len: u64,
    /// Whether the byte before `len` is known to be a line feed, because this journal wrote it.
    ends_with_newline: bool,
    /// Whether everything that this journal wrote is on stable storage.
    is_synced: bool,
}

/// Creates a folder and its missing parents, readable by their owner only.
pub(crate) fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

impl Journal {
    /// Creates a new file and its missing folders, readable by their owner only. Fails if the file
    /// exists.
    pub fn create(path: &Path) -> Result<Self, AppendError> {
        let io_error = |source| AppendError::Create { path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(Path::new("."));
        create_private_folder(folder).map_err(io_error)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(io_error)?;
        sync_folder(folder).map_err(io_error)?;
        Ok(Self { path: path.to_owned(), file, len: 0, ends_with_newline: true, is_synced: true })
    }

    /// Opens an existing file to append to it.
    pub fn open(path: &Path) -> Result<Self, AppendError> {
        let open = || {
            let file = OpenOptions::new().read(true).append(true).open(path)?;
            let len = file.metadata()?.len();
            Ok((file, len))
        };
        let (file, len) = open().map_err(|source| AppendError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, len, ends_with_newline: false, is_synced: true })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines and removes each from the queue once it is written, so that the rest can be
    /// retried after an error. With `sync`, returns when all are on stable storage. Waits up to ten
    /// seconds for the lock of the file. Does nothing if there is nothing to write or sync.
    pub fn append(&mut self, lines: &mut VecDeque<Line>, sync: bool) -> Result<(), AppendError> {
        self.append_with_lock_wait(lines, sync, |waited| waited < LOCK_DEADLINE)
    }

    /// Like [`append`](Self::append), but waits for the lock while `keep_waiting` returns true. It
    /// is called with the time waited so far.
    pub(crate) fn append_with_lock_wait(
        &mut self,
        lines: &mut VecDeque<Line>,
        sync: bool,
        keep_waiting: impl Fn(Duration) -> bool,
    ) -> Result<(), AppendError> {
        let _span = tracing::trace_span!(
            target: "quipu::transcript", "append", path = %self.path.display(), lines = lines.len(), sync
        )
        .entered();
        if lines.is_empty() && (self.is_synced || !sync) {
            return Ok(());
        }
        self.lock(keep_waiting)?;
        let written = self.append_locked(lines, sync);
        // An unlock that fails is undone when the file closes.
        let _ = self.file.unlock();
        written
    }

    fn lock(&self, keep_waiting: impl Fn(Duration) -> bool) -> Result<(), AppendError> {
        let started_at = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => return Err(AppendError::Lock { path: self.path.clone(), source }),
                Err(TryLockError::WouldBlock) => {}
            }
            let waited = started_at.elapsed();
            if !keep_waiting(waited) {
                return Err(AppendError::Locked { path: self.path.clone(), waited });
            }
            std::thread::sleep(LOCK_RETRY_INTERVAL);
        }
    }

    fn append_locked(&mut self, lines: &mut VecDeque<Line>, sync: bool) -> Result<(), AppendError> {
        let mut has_torn_line = self.check_file()?;
        let mut buffer = Vec::new();
        while let Some(line) = lines.front() {
            buffer.clear();
            if std::mem::take(&mut has_torn_line) {
                buffer.push(b'\n');
            }
            buffer.extend_from_slice(line.as_str().as_bytes());
            buffer.push(b'\n');
            let path = &self.path;
            self.ends_with_newline = false;
            self.is_synced = false;
            self.file.write_all(&buffer).map_err(|source| AppendError::Write { path: path.clone(), source })?;
            self.ends_with_newline = true;
            self.len += buffer.len() as u64;
            lines.pop_front();
        }
        if sync { self.sync() } else { Ok(()) }
    }

    /// Returns when everything appended is on stable storage.
    pub fn sync(&mut self) -> Result<(), AppendError> {
        self.file.sync_data().map_err(|source| AppendError::Sync { path: self.path.clone(), source })?;
        self.is_synced = true;
        Ok(())
    }

    /// Whether everything that this journal wrote is on stable storage.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Checks that the path still names this file and that it was not truncated. Returns true if it
    /// ends in an incomplete line.
    fn check_file(&mut self) -> Result<bool, AppendError> {
        let path = || self.path.clone();
        let io_error = |source| AppendError::Open { path: self.path.clone(), source };
        let open_metadata = self.file.metadata().map_err(io_error)?;
        match fs::metadata(&self.path) {
            Ok(path_metadata) if is_same_file(&open_metadata, &path_metadata) => {}
            Ok(_) => return Err(AppendError::Replaced { path: path() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AppendError::Deleted { path: path() }),
            Err(error) => return Err(io_error(error)),
        }
        let found = open_metadata.len();
        if found < self.len {
            return Err(AppendError::Truncated { path: path(), expected: self.len, found });
        }
        // No other program wrote since the last append: the last byte is known.
        if found == 0 || self.ends_with_newline && found == self.len {
            return Ok(false);
        }
        self.len = found;
        let mut last = [0];
        let read = self.file.seek(SeekFrom::Start(found - 1)).and_then(|_| self.file.read_exact(&mut last));
        read.map_err(|source| AppendError::Open { path: self.path.clone(), source })?;
        Ok(last != *b"\n")
    }
}

#[cfg(unix)]
pub(crate) fn is_same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
pub(crate) fn is_same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.created().ok() == b.created().ok()
}

/// Syncs a folder, so that a new name in it survives a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
