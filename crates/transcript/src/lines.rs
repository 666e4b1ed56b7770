//! Reads bytes line by line, in bounded memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::mem;
use std::ops::Range;

use memchr::memchr;

/// Longest line that is read. A longer one is reported as [`RawLine::TooLong`].
pub const MAX_LINE_BYTES: usize = 256 << 20;

/// Reads lines and holds one of them in memory at a time.
///
/// Not an iterator: each line borrows the buffer of the reader.
///
/// ```
/// use quipu_transcript::{LineReader, RawLine};
/// let mut lines = LineReader::new(&b"{}\r\n{\"torn"[..]);
/// let mut seen = Vec::new();
/// while let Some(line) = lines.next()? {
///     if let RawLine::Line { number, offset, bytes, .. } = line {
///         seen.push((number, offset, bytes.to_vec()));
///     }
/// }
/// assert_eq!(seen, [(1, 0, b"{}".to_vec()), (2, 4, b"{\"torn".to_vec())]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    buffer: ReadBuffer,
    /// The part of `buffer` that was read from the input and not returned yet.
    unread: Range<usize>,
    number: u64,
    offset: u64,
    max_line_bytes: usize,
}

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum RawLine<'a> {
    /// A line with its bytes.
    Line {
        /// Number of the line, counted from 1.
        number: u64,
        /// Offset of its first byte.
        offset: u64,
        /// The line without its line ending and without a byte-order mark.
        bytes: &'a [u8],
        /// How the line ends.
        ending: LineEnding,
        /// Whether the line began with a byte-order mark.
        has_bom: bool,
    },
    /// A line longer than [`MAX_LINE_BYTES`]; its bytes are skipped.
    TooLong {
        /// Number of the line, counted from 1.
        number: u64,
        /// Offset of its first byte.
        offset: u64,
        /// Length in bytes without its line ending.
        len: u64,
        /// How the line ends.
        ending: LineEnding,
    },
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// Line feed, `\n`.
    Lf,
    /// Carriage return and line feed, `\r\n`.
    CrLf,
    /// End of the file: the line is still being written, or its write was cut off.
    None,
}

impl LineEnding {
    /// The bytes of the line ending; empty for [`LineEnding::None`].
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::None => b"",
        }
    }
}

/// Large enough for few reads and for most lines, small enough for the cache of a core.
const READ_BUFFER_BYTES: usize = 256 << 10;

/// A larger buffer is freed after the file that needed it.
const MAX_SPARE_BYTES: usize = 4 << 20;

thread_local! {
    /// The buffer of the last reader of this thread, for the next one: commands read thousands of
    /// files, and memory for each would be mapped and zeroed again.
    static SPARE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> LineReader<R> {
    /// Reads from the start of `input`.
    pub fn new(input: R) -> Self {
        Self::with_max_line_bytes(input, MAX_LINE_BYTES)
    }

    /// Passes over lines longer than `longest`.
    pub fn with_max_line_bytes(input: R, longest: usize) -> Self {
        Self {
            input,
            buffer: ReadBuffer(SPARE_BUFFER.take()),
            unread: 0..0,
            number: 0,
            offset: 0,
            max_line_bytes: longest,
        }
    }

    /// The next line; `None` at the end of the input.
    #[allow(clippy::should_implement_trait, reason = "a line borrows the reader, which an iterator cannot lend")]
    pub fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        let mut searched = 0;
        let found = loop {
            if let Some(end) = memchr(b'\n', &self.buffer.0[self.unread.start + searched..self.unread.end]) {
                break Some(searched + end);
            }
            searched = self.unread.len();
            if searched > self.max_line_bytes.saturating_add(1) {
                return self.skip_long_line().map(Some);
            }
            if self.read_more()? == 0 {
                break None;
            }
        };
        let has_end = found.is_some();
        let len = found.unwrap_or(searched);
        if len == 0 && !has_end {
            return Ok(None);
        }
        let line = self.unread.start..self.unread.start + len;
        self.unread.start = line.end + usize::from(has_end);
        let ending = ending(has_end, self.buffer.0[line.clone()].last().copied());
        let (number, offset) = self.count_line(len as u64, has_end);
        let mut bytes = &self.buffer.0[line.start..line.end - usize::from(ending == LineEnding::CrLf)];
        if len > self.max_line_bytes {
            return Ok(Some(RawLine::TooLong { number, offset, len: bytes.len() as u64, ending }));
        }
        let has_bom = number == 1 && bytes.starts_with(BOM);
        if has_bom {
            bytes = &bytes[BOM.len()..];
        }
        Ok(Some(RawLine::Line { number, offset, bytes, ending, has_bom }))
    }

    /// Reads on behind the unread bytes, which are moved to the front of the buffer; the buffer
    /// grows if they fill it. Returns how many bytes were read.
    ///
    /// Only the part of a line that is already there is copied, not the whole line.
    fn read_more(&mut self) -> io::Result<usize> {
        self.buffer.0.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.buffer.0.len() {
            // The longest line, a carriage return, and the byte that shows that a line is longer.
            let most = self.max_line_bytes.saturating_add(2);
            self.buffer.0.resize((self.buffer.0.len() * 2).min(most).max(READ_BUFFER_BYTES), 0);
        }
        // A larger buffer is used only for a line that needs it.
        let end = if self.unread.end < READ_BUFFER_BYTES { READ_BUFFER_BYTES } else { self.buffer.0.len() };
        loop {
            match self.input.read(&mut self.buffer.0[self.unread.end..end]) {
                Ok(read) => {
                    self.unread.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes over the rest of a line of which all unread bytes are a part.
    fn skip_long_line(&mut self) -> io::Result<RawLine<'_>> {
        let (mut len, mut last, mut has_end) = (0, None, false);
        while !has_end {
            let unread = &self.buffer.0[self.unread.clone()];
            let end = memchr(b'\n', unread);
            let part = &unread[..end.unwrap_or(unread.len())];
            len += part.len() as u64;
            last = part.last().copied().or(last);
            has_end = end.is_some();
            self.unread.start += part.len() + usize::from(has_end);
            if !has_end {
                self.unread = 0..0;
                self.buffer.0.truncate(READ_BUFFER_BYTES);
                self.buffer.0.shrink_to_fit();
                if self.read_more()? == 0 {
                    break;
                }
            }
        }
        let ending = ending(has_end, last);
        let (number, offset) = self.count_line(len, has_end);
        Ok(RawLine::TooLong { number, offset, len: len - u64::from(ending == LineEnding::CrLf), ending })
    }

    /// Counts a line of `len` bytes before its line feed; returns its number and offset.
    fn count_line(&mut self, len: u64, has_end: bool) -> (u64, u64) {
        let offset = self.offset;
        self.number += 1;
        self.offset += len + u64::from(has_end);
        (self.number, offset)
    }

    /// Whether the next line is in the buffer already, so that [`next`](Self::next) does not block.
    pub fn has_buffered_line(&self) -> bool {
        memchr(b'\n', &self.buffer.0[self.unread.clone()]).is_some()
    }

    /// Number of bytes in the lines returned so far, with their endings.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// Memory for reads; given to the next reader of the thread.
#[derive(Debug)]
struct ReadBuffer(Vec<u8>);

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        if self.0.len() <= MAX_SPARE_BYTES {
            // A thread that ends has no use for it.
            let _ = SPARE_BUFFER.try_with(|spare| spare.set(mem::take(&mut self.0)));
        }
    }
}

fn ending(has_end: bool, last: Option<u8>) -> LineEnding {
    match (has_end, last) {
        (true, Some(b'\r')) => LineEnding::CrLf,
        (true, _) => LineEnding::Lf,
        (false, _) => LineEnding::None,
    }
}

impl RawLine<'_> {
    /// Number of bytes of the file, with the line ending and the byte-order mark.
    pub fn byte_len(&self) -> u64 {
        match self {
            Self::Line { bytes, ending, has_bom: bom, .. } => {
                (bytes.len() + ending.bytes().len()) as u64 + if *bom { BOM.len() as u64 } else { 0 }
            }
            Self::TooLong { len, ending, .. } => len + ending.bytes().len() as u64,
        }
    }
}
