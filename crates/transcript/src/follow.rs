//! Reading a file on as it grows: whole lines, soon after they are written.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::append::same_file;
use crate::problem::FileError;

mod changes;
mod session;

pub use changes::Changes;
pub use session::{SessionFollower, Source};

/// Something that happened to a followed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// A whole line.
    Line {
        /// Counted from 1, since the file was last read from its start.
        number: u64,
        /// Where it begins, in bytes.
        offset: u64,
        /// The line without its end.
        bytes: Vec<u8>,
    },
    /// The file became shorter; it is read from its start again.
    Truncated,
    /// Another file took its place and is read from its start.
    Replaced,
}

/// At most this much is read at a time, so that a large file is never held whole.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Reads a file to its end and then on, as it grows. A line without its end waits for
/// it; truncation and replacement are reported.
///
/// It never waits and never opens a file that has not changed: pair it with [`Changes`],
/// which tells when to look again.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    offset: u64,
    number: u64,
    half: Vec<u8>,
    /// Lines that begin before this offset are counted and passed over.
    from: u64,
}

impl Follower {
    /// Follows a file from its start.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, offset: 0, number: 0, half: Vec::new(), from: 0 })
    }

    /// Follows a file from the first line that begins in its last `bytes`. Earlier lines
    /// are counted, so that line numbers are right.
    pub fn open_near_end(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let mut follower = Self::open(path)?;
        let len = follower.file.metadata().map_err(|source| follower.broken(source))?.len();
        follower.from = len.saturating_sub(bytes);
        Ok(follower)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What happened since the last call; empty when nothing did. A large file comes in
    /// pieces: call again until nothing comes.
    pub fn poll(&mut self) -> Result<Vec<Followed>, FileError> {
        let mut events = Vec::new();
        let len = self.file.metadata().map_err(|source| self.broken(source))?.len();
        if len < self.offset {
            self.restart(Followed::Truncated, &mut events);
            self.file.seek(SeekFrom::Start(0)).map_err(|source| self.broken(source))?;
        }
        if len != self.offset {
            self.read(&mut events)?;
        }
        // Only at the end of the old file: what it still holds comes first. A name that is
        // missing for a moment is a replacement under way.
        if events.is_empty() && self.is_replaced() {
            let file = File::open(&self.path);
            if let Ok(file) = file {
                self.restart(Followed::Replaced, &mut events);
                self.file = file;
                self.read(&mut events)?;
            }
        }
        Ok(events)
    }

    fn restart(&mut self, why: Followed, events: &mut Vec<Followed>) {
        events.push(why);
        self.half.clear();
        (self.offset, self.number, self.from) = (0, 0, 0);
    }

    /// Reads until whole lines have come or the file ends: a long line takes many reads.
    fn read(&mut self, events: &mut Vec<Followed>) -> Result<(), FileError> {
        let before = events.len();
        let mut chunk = vec![0; 64 << 10];
        let mut read = 0;
        while read < MAX_READ_BYTES || events.len() == before {
            let n = match self.file.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.broken(source)),
            };
            read += n as u64;
            self.take(&chunk[..n], events);
        }
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8], events: &mut Vec<Followed>) {
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
            if offset >= self.from {
                events.push(Followed::Line { number: self.number, offset, bytes: line });
            }
            bytes = &bytes[end + 1..];
        }
        self.half.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
    }

    fn is_replaced(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(ours), Ok(there)) => !same_file(&ours, &there),
            _ => false,
        }
    }

    fn broken(&self, source: io::Error) -> FileError {
        FileError::Read { path: self.path.clone(), offset: self.offset, source }
    }
}
