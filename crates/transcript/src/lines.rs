//! Reads bytes line by line, in bounded memory.

use std::io::{self, BufRead, BufReader, Read};

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
    input: BufReader<R>,
    /// Bytes at the start of the buffer that belong to the line returned last.
    lent_bytes: usize,
    line: Vec<u8>,
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

/// Large enough for few reads, small enough that thousands of files do not each map
/// and fault in fresh memory.
const READ_BUFFER_BYTES: usize = 112 << 10;

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> LineReader<R> {
    /// Reads from the start of `input`.
    pub fn new(input: R) -> Self {
        Self::with_max_line_bytes(input, MAX_LINE_BYTES)
    }

    /// Passes over lines longer than `longest`.
    pub fn with_max_line_bytes(input: R, longest: usize) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BUFFER_BYTES, input),
            lent_bytes: 0,
            line: Vec::new(),
            number: 0,
            offset: 0,
            max_line_bytes: longest,
        }
    }

    /// The next line; `None` at the end of the input.
    #[allow(clippy::should_implement_trait, reason = "a line borrows the reader, which an iterator cannot lend")]
    pub fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.line.clear();
        self.input.consume(std::mem::take(&mut self.lent_bytes));
        let (mut len, mut ended, mut last) = (0u64, false, None);
        while !ended {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            let (part, used) = match memchr(b'\n', chunk) {
                Some(end) => {
                    ended = true;
                    (&chunk[..end], end + 1)
                }
                None => (chunk, chunk.len()),
            };
            last = part.last().copied().or(last);
            if ended && len == 0 && part.len() <= self.max_line_bytes {
                // A line that is complete in the buffer is returned without copying it.
                len = part.len() as u64;
                self.lent_bytes = used;
                break;
            }
            len += part.len() as u64;
            if len <= self.max_line_bytes as u64 {
                self.line.extend_from_slice(part);
            } else if self.line.capacity() > 0 {
                self.line = Vec::new();
            }
            self.input.consume(used);
        }
        if len == 0 && !ended {
            return Ok(None);
        }
        let ending = match (ended, last) {
            (true, Some(b'\r')) => LineEnding::CrLf,
            (true, _) => LineEnding::Lf,
            (false, _) => LineEnding::None,
        };
        self.number += 1;
        let (number, offset) = (self.number, self.offset);
        self.offset += len + u64::from(ended);
        if len > self.max_line_bytes as u64 {
            let len = len - u64::from(ending == LineEnding::CrLf);
            return Ok(Some(RawLine::TooLong { number, offset, len, ending }));
        }
        let whole = if self.lent_bytes > 0 { &self.input.buffer()[..self.lent_bytes - 1] } else { &self.line[..] };
        let mut bytes = &whole[..whole.len() - usize::from(ending == LineEnding::CrLf)];
        let bom = number == 1 && bytes.starts_with(BOM);
        if bom {
            bytes = &bytes[BOM.len()..];
        }
        Ok(Some(RawLine::Line { number, offset, bytes, ending, has_bom: bom }))
    }

    /// Whether the next line is in the buffer already, so that [`next`](Self::next) does not block.
    pub fn has_buffered_line(&self) -> bool {
        memchr(b'\n', &self.input.buffer()[self.lent_bytes..]).is_some()
    }

    /// Number of bytes in the lines returned so far, with their endings.
    pub fn offset(&self) -> u64 {
        self.offset
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
