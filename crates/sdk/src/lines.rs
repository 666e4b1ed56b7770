//! Lines out of what an agent writes, in bounded memory.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const CHUNK: usize = 64 * 1024;
/// How much of a line that is too long is kept, to be shown.
const SHOWN: usize = 200;

/// What was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// A line, without its end.
    Line(BytesMut),
    /// A line longer than allowed; its beginning.
    TooLong(BytesMut),
    /// What stood after the last line end when the agent stopped.
    Torn(BytesMut),
}

/// Splits bytes into lines. Dropping a call of `next` loses nothing.
pub(crate) struct Lines<R> {
    input: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    longest: usize,
    /// The beginning of the line that is being passed over.
    passing: Option<BytesMut>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R, longest: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, longest, passing: None }
    }

    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.take() {
                return Ok(Some(piece));
            }
            // A long line must not keep its memory for ever.
            if self.buffer.is_empty() && self.buffer.capacity() > 16 * CHUNK {
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(CHUNK);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                let rest = std::mem::take(&mut self.buffer);
                self.searched = 0;
                let torn = self.passing.take().or((!rest.is_empty()).then_some(rest));
                return Ok(torn.map(Piece::Torn));
            }
        }
    }

    /// A line that was read already.
    pub(crate) fn take(&mut self) -> Option<Piece> {
        let end = memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        match end {
            Some(end) => {
                self.searched = 0;
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                Some(match self.passing.take() {
                    Some(head) => Piece::TooLong(head),
                    None if line.len() > self.longest => Piece::TooLong(head(&line)),
                    None => Piece::Line(line),
                })
            }
            None if self.buffer.len() > self.longest || self.passing.is_some() => {
                self.passing.get_or_insert_with(|| head(&self.buffer));
                self.buffer.clear();
                self.searched = 0;
                None
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }
}

fn head(line: &[u8]) -> BytesMut {
    BytesMut::from(&line[..line.len().min(SHOWN)])
}

#[cfg(test)]
mod tests;
