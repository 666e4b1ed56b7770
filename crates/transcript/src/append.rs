//! Whole lines at the end of a file, safe against crashes and other writers.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_message::{Line, Uuid};

use crate::problem::FileError;

/// Why lines could not be appended. What was in the file before is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The file cannot be made.
    #[error("cannot create {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file cannot be opened for appending.
    #[error("cannot open {} for appending", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The lock cannot be had.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another program holds the lock.
    #[error("another program has kept {} locked for {:.1} s", path.display(), waited.as_secs_f64())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A write failed; it may have left a torn line, which the next append sets aside.
    #[error("cannot append to {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The lines are written but may not survive a power cut.
    #[error("cannot sync {} to stable storage", path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another file stands where ours was.
    #[error("{} was replaced by another file", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder is gone.
    #[error("{} was deleted", path.display())]
    Deleted {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than what we wrote.
    #[error("{} was cut from {expected} to {found} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How long it was.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// An entry cannot be written as JSON.
    #[error("cannot write an entry as JSON")]
    Serialize(#[source] serde_json::Error),
    /// An entry has no id, so its place in the chain cannot be kept.
    #[error("a {kind} entry without a uuid cannot be recorded")]
    NoUuid {
        /// The kind of entry.
        kind: String,
    },
    /// The session has no such line.
    #[error("no entry {uuid} in {}", path.display())]
    EntryNotFound {
        /// The file.
        path: PathBuf,
        /// The line asked for.
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
    /// A stable name for scripts.
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

/// How long a lock that another program holds is waited for.
pub(crate) const LOCK_DEADLINE: Duration = Duration::from_secs(10);

/// How long to wait between two tries to get the lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A file that only grows, by whole lines.
///
/// Each append takes the file's lock, looks whether the file is still the one it
/// knows, sets a torn tail aside with a line end (never by cutting: another
/// program may be writing), and writes each line with one write.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    len: u64,
    /// Whether the byte at `len` is known to end a line: we wrote it.
    ends_with_newline: bool,
}

/// Makes a folder and those above it that are not there, for their owner alone.
pub(crate) fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

impl Journal {
    /// Makes a new file, readable by its owner alone, with the folders it needs.
    pub fn create(path: &Path) -> Result<Self, AppendError> {
        let fail = |source| AppendError::Create { path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(Path::new("."));
        create_private_folder(folder).map_err(fail)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(fail)?;
        sync_folder(folder).map_err(fail)?;
        Ok(Self { path: path.to_owned(), file, len: 0, ends_with_newline: true })
    }

    /// Opens a file to go on with it.
    pub fn open(path: &Path) -> Result<Self, AppendError> {
        let open = || {
            let file = OpenOptions::new().read(true).append(true).open(path)?;
            let len = file.metadata()?.len();
            Ok((file, len))
        };
        let (file, len) = open().map_err(|source| AppendError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, len, ends_with_newline: false })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines and takes each from the queue when it is written, so that what
    /// an error leaves there can be tried again. With `sync`, returns when all are on
    /// stable storage.
    pub fn append(&mut self, lines: &mut VecDeque<Line>, sync: bool) -> Result<(), AppendError> {
        self.append_with_lock_wait(lines, sync, |waited| waited < LOCK_DEADLINE)
    }

    /// The same, but waits for the lock only as long as `patient` says: it is passed how
    /// long that has taken.
    pub(crate) fn append_with_lock_wait(
        &mut self,
        lines: &mut VecDeque<Line>,
        sync: bool,
        patient: impl Fn(Duration) -> bool,
    ) -> Result<(), AppendError> {
        self.lock(patient)?;
        let written = self.append_locked(lines, sync);
        // An unlock that fails is undone when the file closes.
        let _ = self.file.unlock();
        written
    }

    fn lock(&self, patient: impl Fn(Duration) -> bool) -> Result<(), AppendError> {
        let began = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => return Err(AppendError::Lock { path: self.path.clone(), source }),
                Err(TryLockError::WouldBlock) => {}
            }
            let waited = began.elapsed();
            if !patient(waited) {
                return Err(AppendError::Locked { path: self.path.clone(), waited });
            }
            std::thread::sleep(LOCK_RETRY_INTERVAL);
        }
    }

    fn append_locked(&mut self, lines: &mut VecDeque<Line>, sync: bool) -> Result<(), AppendError> {
        let mut torn = self.check_file()?;
        let mut buffer = Vec::new();
        while let Some(line) = lines.front() {
            buffer.clear();
            if std::mem::take(&mut torn) {
                buffer.push(b'\n');
            }
            buffer.extend_from_slice(line.as_str().as_bytes());
            buffer.push(b'\n');
            let path = &self.path;
            self.ends_with_newline = false;
            self.file.write_all(&buffer).map_err(|source| AppendError::Write { path: path.clone(), source })?;
            self.ends_with_newline = true;
            self.len += buffer.len() as u64;
            lines.pop_front();
        }
        if sync { self.sync() } else { Ok(()) }
    }

    /// Returns when everything appended is on stable storage.
    pub fn sync(&mut self) -> Result<(), AppendError> {
        self.file.sync_data().map_err(|source| AppendError::Sync { path: self.path.clone(), source })
    }

    /// Looks at the file as it is now; true when it ends in a torn line.
    fn check_file(&mut self) -> Result<bool, AppendError> {
        let path = || self.path.clone();
        let fail = |source| AppendError::Open { path: self.path.clone(), source };
        let ours = self.file.metadata().map_err(fail)?;
        match fs::metadata(&self.path) {
            Ok(there) if is_same_file(&ours, &there) => {}
            Ok(_) => return Err(AppendError::Replaced { path: path() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AppendError::Deleted { path: path() }),
            Err(error) => return Err(fail(error)),
        }
        let found = ours.len();
        if found < self.len {
            return Err(AppendError::Truncated { path: path(), expected: self.len, found });
        }
        // Nobody wrote since we did: no need to look at the last byte.
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

/// Makes a new name in a folder survive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
