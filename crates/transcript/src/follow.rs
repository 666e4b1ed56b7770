//! Reading a file on as it grows: whole lines, soon after they are written.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::append::is_same_file;
use crate::problem::FileError;

mod session;
mod watcher;

pub use session::{LineSource, SessionFollower};
pub use watcher::ChangeWatcher;

/// Something that happened to a followed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowEvent {
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
/// It never waits and never opens a file that has not changed: pair it with [`ChangeWatcher`],
/// which tells when to look again.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    offset: u64,
    line_number: u64,
    partial_line: Vec<u8>,
    /// Lines that begin before this offset are counted and passed over.
    skip_before: u64,
}

impl Follower {
    /// Follows a file from its start.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, offset: 0, line_number: 0, partial_line: Vec::new(), skip_before: 0 })
    }

    /// Follows a file from the first line that begins in its last `bytes`. Earlier lines
    /// are counted, so that line numbers are right.
    pub fn open_near_end(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let mut follower = Self::open(path)?;
        let len = follower.file.metadata().map_err(|source| follower.read_error(source))?.len();
        follower.skip_before = len.saturating_sub(bytes);
        Ok(follower)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What happened since the last call; empty when nothing did. A large file comes in
    /// pieces: call again until nothing comes.
    pub fn poll(&mut self) -> Result<Vec<FollowEvent>, FileError> {
        let mut events = Vec::new();
        let len = self.file.metadata().map_err(|source| self.read_error(source))?.len();
        if len < self.offset {
            self.restart(FollowEvent::Truncated, &mut events);
            self.file.seek(SeekFrom::Start(0)).map_err(|source| self.read_error(source))?;
        }
        if len != self.offset {
            self.read_lines(&mut events)?;
        }
        // Only at the end of the old file: what it still holds comes first. A name that is
        // missing for a moment is a replacement under way.
        if events.is_empty() && self.is_replaced() {
            let file = File::open(&self.path);
            if let Ok(file) = file {
                self.restart(FollowEvent::Replaced, &mut events);
                self.file = file;
                self.read_lines(&mut events)?;
            }
        }
        Ok(events)
    }

    fn restart(&mut self, why: FollowEvent, events: &mut Vec<FollowEvent>) {
        events.push(why);
        self.partial_line.clear();
        (self.offset, self.line_number, self.skip_before) = (0, 0, 0);
    }

    /// Reads until whole lines have come or the file ends: a long line takes many reads.
    fn read_lines(&mut self, events: &mut Vec<FollowEvent>) -> Result<(), FileError> {
        let before = events.len();
        let mut chunk = vec![0; 64 << 10];
        let mut read = 0;
        while read < MAX_READ_BYTES || events.len() == before {
            let n = match self.file.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.read_error(source)),
            };
            read += n as u64;
            self.split_lines(&chunk[..n], events);
        }
        Ok(())
    }

    fn split_lines(&mut self, mut bytes: &[u8], events: &mut Vec<FollowEvent>) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.partial_line.extend_from_slice(&bytes[..end]);
            self.line_number += 1;
            // Where the line began: the half that waited was counted already.
            let waited = self.partial_line.len() - end;
            let offset = self.offset - waited as u64;
            self.offset += end as u64 + 1;
            let mut line = std::mem::take(&mut self.partial_line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if offset >= self.skip_before {
                events.push(FollowEvent::Line { number: self.line_number, offset, bytes: line });
            }
            bytes = &bytes[end + 1..];
        }
        self.partial_line.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
    }

    fn is_replaced(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(ours), Ok(there)) => !is_same_file(&ours, &there),
            _ => false,
        }
    }

    fn read_error(&self, source: io::Error) -> FileError {
        FileError::Read { path: self.path.clone(), offset: self.offset, source }
    }
}
