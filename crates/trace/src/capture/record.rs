//! Records of a capture file.
//!
//! ```text
//! @KIND CALL MICROSECONDS LENGTH CHECKSUM
//! payload of LENGTH bytes
//! ```
//!
//! Each record begins on a new line, and payloads are the bytes themselves, so that `grep`
//! finds what was sent. The checksum (CRC-32, in hexadecimal) covers the fields before it and
//! the payload. A reader that finds a damaged record continues at the next line that begins
//! a valid one.

use std::io::{self, Read, Write};
use std::mem;

use serde::{Deserialize, Serialize};

use super::delta::Step;
use crate::call::CallEnd;

/// Longest first line of a record.
const MAX_HEADER_BYTES: usize = 128;

/// How many bytes are read at once.
const READ_BYTES: usize = 256 << 10;

/// Longest payload that is read: more than the largest body that is recorded.
const MAX_PAYLOAD_BYTES: usize = 256 << 20;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// First record: format, start time and upstream, as JSON.
    Capture,
    /// Request, as the difference to an earlier one: a line of JSON, then new bytes.
    Request,
    /// Status line and headers of a response, as the difference to the ones before.
    Response,
    /// Bytes of a response body.
    Frame,
    /// How a call ended, as JSON.
    End,
    /// What is missing from the file, as JSON.
    Gap,
}

const KINDS: [(RecordKind, &str); 6] = [
    (RecordKind::Capture, "capture"),
    (RecordKind::Request, "request"),
    (RecordKind::Response, "response"),
    (RecordKind::Frame, "frame"),
    (RecordKind::End, "end"),
    (RecordKind::Gap, "gap"),
];

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: RecordKind,
    /// Number of the call, from 1; 0 if the record belongs to none.
    pub(super) call: u64,
    /// Microseconds since the start of the capture.
    pub(super) micros: u64,
    pub(super) payload: Vec<u8>,
}

/// Payload of the first record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StartRecord {
    pub(super) format: u32,
    /// RFC 3339, in UTC.
    pub(super) started_at: String,
    pub(super) upstream: String,
    pub(super) program: String,
}

/// First line of a response record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResponseSteps {
    /// Call whose response head this one is described by; `None` if all bytes are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<u64>,
    pub(super) head: Vec<Step>,
}

/// Payload of an end record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndRecord {
    pub(super) end: CallEnd,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Payload of a gap record: what is missing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GapRecord {
    /// Requests that were forwarded without a record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) requests: u64,
    /// Bytes of the call's response.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) bytes: u64,
    /// Milliseconds after which the call's request was recorded; nothing is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) late_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Appends a record with a payload in parts.
pub(super) fn write_record(out: &mut Vec<u8>, kind: RecordKind, call: u64, micros: u64, payload: &[&[u8]]) {
    write_record_header(out, kind, call, micros, payload);
    payload.iter().for_each(|part| out.extend_from_slice(part));
    out.push(b'\n');
}

/// Appends what is before the payload of a record. A line break follows the payload.
pub(super) fn write_record_header(out: &mut Vec<u8>, kind: RecordKind, call: u64, micros: u64, payload: &[&[u8]]) {
    let name = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name);
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let start = out.len();
    // Writing to memory cannot fail.
    let _ = write!(out, "@{name} {call} {micros} {length} ");
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&out[start..]);
    payload.iter().for_each(|part| checksum.update(part));
    let _ = writeln!(out, "{:08x}", checksum.finalize());
}

/// A place in the file that holds no valid record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    /// Offset of the first byte that is not part of a valid record.
    pub(super) offset: u64,
    /// Number of bytes up to the next valid record, or to the end of the file.
    pub(super) length: u64,
    /// Whether the file ends there: the writer was stopped in the middle of a record.
    pub(super) is_tail: bool,
}

/// Reads the records of a file in order.
#[derive(Debug)]
pub(super) struct RecordReader<R> {
    input: R,
    /// Bytes that were read and not returned yet, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Offset of `start` in the file.
    offset: u64,
}

impl<R: Read> RecordReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), start: 0, offset: 0 }
    }

    /// The next record, or the damage before it; `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<Record, Damage>>> {
        if self.available(1)?.is_empty() {
            return Ok(None);
        }
        if let Some((record, length)) = self.record_at(0)? {
            self.consume(length);
            return Ok(Some(Ok(record)));
        }
        let mut length = 0;
        let is_tail = loop {
            let Some(line) = self.next_line(length)? else {
                length = self.available(0)?.len();
                break true;
            };
            length = line;
            if self.record_at(length)?.is_some() {
                break false;
            }
        };
        let damage = Damage { offset: self.offset, length: length as u64, is_tail };
        self.consume(length);
        Ok(Some(Err(damage)))
    }

    /// The record that begins `skip` bytes further on, and its length; `None` if there is none.
    fn record_at(&mut self, skip: usize) -> io::Result<Option<(Record, usize)>> {
        let bytes = &self.available(skip + MAX_HEADER_BYTES)?[skip..];
        let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(MAX_HEADER_BYTES)]);
        let Some(header) = end.and_then(|end| parse_header(&bytes[..end])) else { return Ok(None) };
        let Header { kind, call, micros, length, checked_bytes, checksum } = header;
        let payload_start = end.unwrap_or_default() + 1;
        let total = payload_start + length + 1;
        let bytes = &self.available(skip + total)?[skip..];
        // The byte after the payload only makes the next record begin a line.
        let Some((_, payload)) = bytes.get(payload_start..total).and_then(<[u8]>::split_last) else { return Ok(None) };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..checked_bytes]);
        hasher.update(payload);
        let record = Record { kind, call, micros, payload: payload.to_vec() };
        Ok((hasher.finalize() == checksum).then_some((record, total)))
    }

    /// Start of the line after the one that `skip` is in; `None` if the file ends before.
    fn next_line(&mut self, mut skip: usize) -> io::Result<Option<usize>> {
        loop {
            let bytes = self.available(skip + 1)?;
            let Some(rest) = bytes.get(skip..).filter(|rest| !rest.is_empty()) else { return Ok(None) };
            match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    let line = skip + end + 1;
                    return Ok((self.available(line + 1)?.len() > line).then_some(line));
                }
                None => skip = bytes.len(),
            }
        }
    }

    /// The bytes not returned yet: at least `wanted`, or all up to the end of the file.
    fn available(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.start > READ_BYTES {
            self.buffer.drain(..mem::take(&mut self.start));
        }
        let missing = (self.start + wanted).saturating_sub(self.buffer.len());
        if missing > 0 {
            (&mut self.input).take(missing.max(READ_BYTES) as u64).read_to_end(&mut self.buffer)?;
        }
        Ok(&self.buffer[self.start..])
    }

    fn consume(&mut self, length: usize) {
        self.start += length;
        self.offset += length as u64;
    }
}

/// First line of a record.
struct Header {
    kind: RecordKind,
    call: u64,
    micros: u64,
    length: usize,
    /// Number of bytes of the line that the checksum covers.
    checked_bytes: usize,
    checksum: u32,
}

fn parse_header(line: &[u8]) -> Option<Header> {
    let text = std::str::from_utf8(line).ok()?;
    let (fields, checksum) = text.split_at(text.rfind(' ')? + 1);
    let mut words = fields.strip_prefix('@')?.split(' ');
    let name = words.next()?;
    let (kind, _) = KINDS.iter().find(|(_, known)| *known == name)?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (call, micros, length) = (number()?, number()?, usize::try_from(number()?).ok()?);
    // Only as it is written: capital letters and a sign would be the same number.
    let checksum = u32::from_str_radix(checksum, 16).ok().filter(|sum| format!("{sum:08x}") == checksum)?;
    let header = Header { kind: *kind, call, micros, length, checked_bytes: fields.len(), checksum };
    (length <= MAX_PAYLOAD_BYTES).then_some(header)
}

#[cfg(test)]
mod tests;
