//! Following a file as it grows: whole lines within moments of the write.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use memchr::memchr;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::problem::FileError;

/// Something that happened to a followed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// A whole line.
    Line {
        /// Counted from 1, since the file began anew.
        number: u64,
        /// Where it begins.
        offset: u64,
        /// The line without its end.
        bytes: Vec<u8>,
    },
    /// The file became shorter; it is read from its start again.
    Truncated,
    /// Another file took its place and is read from its start.
    Replaced,
}

/// How often to look when nobody tells of changes.
const POLL: Duration = Duration::from_millis(20);
/// How often to look anyway: on some file systems nobody ever tells.
const LOOK_ANYWAY: Duration = Duration::from_millis(200);

/// Reads a file to its end and then on, as it grows. A line without its end waits
/// for it; truncation and replacement are told.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    offset: u64,
    number: u64,
    half: Vec<u8>,
    ready: VecDeque<Followed>,
    // Held for its effect: it ends when dropped.
    _watcher: Option<RecommendedWatcher>,
    changes: Option<Receiver<()>>,
}

impl Follower {
    /// Follows a file from its start.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        let (watcher, changes) = watch(path).map_or((None, None), |(w, c)| (Some(w), Some(c)));
        let path = path.to_owned();
        let (half, ready) = (Vec::new(), VecDeque::new());
        Ok(Self { path, file, offset: 0, number: 0, half, ready, _watcher: watcher, changes })
    }

    /// The next thing that happens; none when nothing does until `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Followed>, FileError> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            self.look()?;
            if !self.ready.is_empty() {
                continue;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait(left);
        }
    }

    fn wait(&mut self, left: Duration) {
        let Some(changes) = &self.changes else { return std::thread::sleep(left.min(POLL)) };
        match changes.recv_timeout(left.min(LOOK_ANYWAY)) {
            // Several changes are one reason to look.
            Ok(()) => while changes.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.changes = None,
        }
    }

    /// Reads what is new.
    fn look(&mut self) -> Result<(), FileError> {
        let len = self.file.metadata().map_err(|source| self.broken(source))?.len();
        if len < self.offset {
            self.begin_anew(Followed::Truncated);
            self.file.seek(SeekFrom::Start(0)).map_err(|source| self.broken(source))?;
        }
        if len != self.offset || self.offset == 0 {
            self.read()?;
        }
        // A name that is gone for a moment is a replacement under way.
        if let Ok(there) = File::open(&self.path)
            && !self.is_ours(&there)
        {
            self.read()?;
            self.begin_anew(Followed::Replaced);
            self.file = there;
            self.read()?;
        }
        Ok(())
    }

    fn begin_anew(&mut self, why: Followed) {
        self.ready.push_back(why);
        self.half.clear();
        (self.offset, self.number) = (0, 0);
    }

    fn read(&mut self) -> Result<(), FileError> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let n = match self.file.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.broken(source)),
            };
            self.take(&chunk[..n]);
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.half.extend_from_slice(&bytes[..end]);
            self.number += 1;
            // Where the line began: the half that waited was counted already.
            let waited = self.half.len() - end;
            let offset = self.offset - waited as u64;
            self.offset += end as u64 + 1;
            let mut line = std::mem::take(&mut self.half);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.ready.push_back(Followed::Line { number: self.number, offset, bytes: line });
            bytes = &bytes[end + 1..];
        }
        self.half.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
    }

    fn is_ours(&self, there: &File) -> bool {
        let same = |a: fs::Metadata, b: fs::Metadata| crate::append::same_file(&a, &b);
        self.file.metadata().and_then(|ours| Ok(same(ours, there.metadata()?))).unwrap_or(true)
    }

    fn broken(&self, source: io::Error) -> FileError {
        FileError::Read { path: self.path.clone(), offset: self.offset, source }
    }
}

/// Asks the system to tell of changes in the file's folder; none when it cannot.
fn watch(path: &Path) -> Option<(RecommendedWatcher, Receiver<()>)> {
    let (tell, changes) = channel();
    let mut watcher = notify::recommended_watcher(move |_| {
        // Nobody listens once the follower is gone.
        let _ = tell.send(());
    })
    .ok()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
    Some((watcher, changes))
}
