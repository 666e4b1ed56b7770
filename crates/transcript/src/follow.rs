//! Follows a growing file: returns whole lines soon after they are written.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::append::is_same_file;
use crate::problem::FileError;

mod live_session;
mod new_sessions;
mod session;
mod watcher;

pub use live_session::LiveSession;
pub use new_sessions::NewSessions;
pub use session::{LineSource, SessionFollower};
pub use watcher::ChangeWatcher;

/// Something that happened to a followed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowEvent {
    /// A complete line was written.
    Line {
        /// Counted from 1, since the file was last read from its start.
        number: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// The line without its line ending.
        bytes: Vec<u8>,
    },
    /// The file became shorter. It is read from its start again.
    Truncated,
    /// The path names another file now, which is read from its start.
    Replaced,
}

/// One poll reads about this much, so that a large file is never held in memory whole.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Reads a file to its end and then on as it grows. An incomplete last line is kept until its
/// line ending is written; truncation and replacement are reported.
///
/// Never blocks. Use a [`ChangeWatcher`] to wait until there may be something to read.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    offset: u64,
    line_number: u64,
    partial_line: Vec<u8>,
    /// Lines that begin before this offset are counted but not returned.
    skip_before: u64,
}

impl Follower {
    /// Follows a file from its start.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, offset: 0, line_number: 0, partial_line: Vec::new(), skip_before: 0 })
    }

    /// Follows a file from the first line that begins in its last `bytes` bytes. Earlier lines are
    /// read and counted, so that line numbers are right.
    pub fn open_near_end(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let mut follower = Self::open(path)?;
        let len = follower.file.metadata().map_err(|source| follower.read_error(source))?.len();
        follower.skip_before = len.saturating_sub(bytes);
        Ok(follower)
    }

    /// Follows a file from a line that begins at this offset. Earlier lines are not read.
    pub fn open_at(path: &Path, line: u64, offset: u64) -> Result<Self, FileError> {
        let mut follower = Self::open(path)?;
        follower.file.seek(SeekFrom::Start(offset)).map_err(|source| follower.read_error(source))?;
        (follower.line_number, follower.offset) = (line.saturating_sub(1), offset);
        Ok(follower)
    }

    /// Path of the followed file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what happened since the last call; empty if nothing did. A large file is returned in
    /// parts: call again until the result is empty.
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
        // Only at the end of the old file, so that its last lines are returned first. A path that is
        // missing for a moment means that the file is just being replaced.
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

    fn restart(&mut self, event: FollowEvent, events: &mut Vec<FollowEvent>) {
        events.push(event);
        self.partial_line.clear();
        (self.offset, self.line_number, self.skip_before) = (0, 0, 0);
    }

    /// Reads until there is a complete line or the file ends. A long line takes many reads.
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
            // `self.offset` already counts the part of the line that was read before.
            let partial_len = self.partial_line.len() - end;
            let offset = self.offset - partial_len as u64;
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
            (Ok(open_metadata), Ok(path_metadata)) => !is_same_file(&open_metadata, &path_metadata),
            _ => false,
        }
    }

    fn read_error(&self, source: io::Error) -> FileError {
        FileError::Read { path: self.path.clone(), offset: self.offset, source }
    }
}
