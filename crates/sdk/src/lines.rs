//! Splits the output of an agent into lines, in bounded memory.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Beginning of an overlong line that is kept for the report.
const MAX_SHOWN_BYTES: usize = 200;

/// A line that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum ReadLine {
    /// A complete line, without its line end.
    Line(BytesMut),
    /// The beginning of a line that exceeds the limit.
    TooLong(BytesMut),
    /// Bytes after the last line end, at the end of the output.
    Torn(BytesMut),
}

/// Splits bytes into lines. Cancel-safe: dropping the future of `next` loses nothing.
pub(crate) struct AsyncLineReader<R> {
    input: R,
    buffer: BytesMut,
    /// Length of the buffer's beginning that has no line end.
    searched_bytes: usize,
    max_line_bytes: usize,
    /// The beginning of the overlong line that is being skipped.
    skipped_line_head: Option<BytesMut>,
}

impl<R: AsyncRead + Unpin> AsyncLineReader<R> {
    pub(crate) fn new(input: R, max_line_bytes: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched_bytes: 0, max_line_bytes, skipped_line_head: None }
    }

    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<ReadLine>> {
        loop {
            if let Some(piece) = self.next_buffered() {
                return Ok(Some(piece));
            }
            // Release the memory of a long line.
            if self.buffer.is_empty() && self.buffer.capacity() > 16 * READ_CHUNK_BYTES {
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(READ_CHUNK_BYTES);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                let rest = std::mem::take(&mut self.buffer);
                self.searched_bytes = 0;
                let torn = self.skipped_line_head.take().or((!rest.is_empty()).then_some(rest));
                return Ok(torn.map(ReadLine::Torn));
            }
        }
    }

    /// A line that is in the buffer already; `None` if more must be read.
    pub(crate) fn next_buffered(&mut self) -> Option<ReadLine> {
        let end = memchr::memchr(b'\n', &self.buffer[self.searched_bytes..]).map(|at| self.searched_bytes + at);
        match end {
            Some(end) => {
                self.searched_bytes = 0;
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                Some(match self.skipped_line_head.take() {
                    Some(head) => ReadLine::TooLong(head),
                    None if line.len() > self.max_line_bytes => ReadLine::TooLong(line_head(&line)),
                    None => ReadLine::Line(line),
                })
            }
            None if self.buffer.len() > self.max_line_bytes || self.skipped_line_head.is_some() => {
                self.skipped_line_head.get_or_insert_with(|| line_head(&self.buffer));
                self.buffer.clear();
                self.searched_bytes = 0;
                None
            }
            None => {
                self.searched_bytes = self.buffer.len();
                None
            }
        }
    }
}

fn line_head(line: &[u8]) -> BytesMut {
    BytesMut::from(&line[..line.len().min(MAX_SHOWN_BYTES)])
}

#[cfg(test)]
mod tests;
