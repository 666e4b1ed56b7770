//! The one parser of server-sent events: bytes in, events out.
//!
//! It follows the event-stream rules of the WHATWG HTML standard. However the bytes are split into parts, the
//! events are the same. The data of events is not interpreted.
//!
//! ```
//! use quipu_message::sse::Parser;
//!
//! let mut parser = Parser::new();
//! assert!(parser.push(b"event: ping\nda").is_empty());
//! let events = parser.push(b"ta: {}\n\n");
//! let event = events[0].as_ref().unwrap();
//! assert_eq!((event.name(), event.data.as_str()), ("ping", "{}"));
//! assert!(parser.finish().is_ok());
//! ```

use std::borrow::Cow;
use std::fmt;
use std::mem;

#[cfg(test)]
mod tests;

/// The default limit on the bytes of one event; see [`Parser::with_limit`].
pub const DEFAULT_MAX_EVENT_BYTES: usize = 64 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One dispatched event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; `None` if there is none or it is empty.
    pub event: Option<String>,
    /// The `data` lines, joined by `\n`.
    pub data: String,
    /// The last `id` of the stream so far; `None` if there was none or the last one is empty.
    pub id: Option<String>,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD in this event.
    pub lossy: bool,
}

impl Event {
    /// Returns the event's type: its `event` field, or `message`.
    pub fn name(&self) -> &str {
        self.event.as_deref().unwrap_or("message")
    }
}

/// An event that was over the parser's limit and was skipped up to its blank line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

impl fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event skipped: longer than {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLarge {}

/// The rest of a stream that ended inside an event. It was never dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteEvent {
    /// The `event` field, if its line had arrived.
    pub event: Option<String>,
    /// The complete `data` lines, joined by `\n`.
    pub data: String,
    /// The last line, if its end had not arrived.
    pub line: String,
}

impl fmt::Display for IncompleteEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.data.len() + self.line.len();
        let name = self.event.as_deref().unwrap_or("message");
        write!(f, "stream ended inside a {name:?} event ({held} bytes held)")
    }
}

impl std::error::Error for IncompleteEvent {}

/// A parser of one event stream, which takes its bytes in parts.
#[derive(Debug, Clone)]
pub struct Parser {
    limit: usize,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    event: String,
    /// Each data line with a `\n` after it, so that empty means no data line.
    data: String,
    lossy: bool,
    id: String,
    retry: Option<u64>,
    at_start: bool,
    /// The last byte was a CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    skip_state: SkipState,
}

/// Whether the parser is inside an event that is over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkipState {
    No,
    AtLineStart,
    InLine,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_limit(DEFAULT_MAX_EVENT_BYTES)
    }
}

impl Parser {
    /// Makes a parser with the default limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a parser that holds at most about `limit` bytes of one event.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: String::new(),
            data: String::new(),
            lossy: false,
            id: String::new(),
            retry: None,
            at_start: true,
            after_cr: false,
            skip_state: SkipState::No,
        }
    }

    /// Parses the next bytes and returns the events they complete, in order.
    ///
    /// An event over the limit is one `Err`; the events after it are returned as usual.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Result<Event, EventTooLarge>> {
        let mut out = Vec::new();
        while let Some(&first) = bytes.first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) else {
                self.buffer_partial_line(bytes, &mut out);
                break;
            };
            self.after_cr = bytes[end] == b'\r';
            self.end_line(&bytes[..end], &mut out);
            bytes = &bytes[end + 1..];
        }
        out
    }

    /// Returns the reconnection time in milliseconds, if the stream gave one.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`IncompleteEvent`] if the stream ended inside an event.
    pub fn finish(self) -> Result<(), IncompleteEvent> {
        let line = strip_bom(&self.line, self.at_start);
        let idle_line = line.is_empty() || line[0] == b':';
        if idle_line && self.data.is_empty() && self.event.is_empty() && self.skip_state == SkipState::No {
            return Ok(());
        }
        let line = String::from_utf8_lossy(line).into_owned();
        let mut data = self.data;
        data.pop();
        Err(IncompleteEvent { event: Some(self.event).filter(|name| !name.is_empty()), data, line })
    }

    /// Keeps the start of a line, or starts to skip the event if it is over the limit.
    fn buffer_partial_line(&mut self, bytes: &[u8], out: &mut Vec<Result<Event, EventTooLarge>>) {
        if self.skip_state == SkipState::No && self.fits_limit(bytes) {
            self.line.extend_from_slice(bytes);
        } else {
            self.skip_event(out);
        }
    }

    fn fits_limit(&self, more: &[u8]) -> bool {
        self.line.len() + more.len() + self.event.len() + self.data.len() <= self.limit
    }

    /// Marks the current line as skipped, and reports the event the first time.
    fn skip_event(&mut self, out: &mut Vec<Result<Event, EventTooLarge>>) {
        if self.skip_state == SkipState::No {
            out.push(Err(EventTooLarge { limit: self.limit }));
            self.line = Vec::new();
            self.event = String::new();
            self.data = String::new();
            self.lossy = false;
        }
        self.skip_state = SkipState::InLine;
    }

    /// Ends the current line, whose last bytes are `tail`.
    fn end_line(&mut self, tail: &[u8], out: &mut Vec<Result<Event, EventTooLarge>>) {
        let at_start = mem::take(&mut self.at_start);
        let blank = tail.is_empty() && self.line.is_empty();
        if self.skip_state == SkipState::No && !blank && !self.fits_limit(tail) {
            self.skip_event(out);
        }
        match self.skip_state {
            SkipState::No => {}
            SkipState::AtLineStart if blank => return self.skip_state = SkipState::No,
            SkipState::AtLineStart | SkipState::InLine => return self.skip_state = SkipState::AtLineStart,
        }
        // A line that is completely in the pushed bytes is read in place.
        if self.line.is_empty() {
            self.read_line(strip_bom(tail, at_start), out);
        } else {
            let mut line = mem::take(&mut self.line);
            line.extend_from_slice(tail);
            self.read_line(strip_bom(&line, at_start), out);
            line.clear();
            self.line = line;
        }
    }

    fn read_line(&mut self, line: &[u8], out: &mut Vec<Result<Event, EventTooLarge>>) {
        let (field, value) = match memchr::memchr(b':', line) {
            _ if line.is_empty() => return out.extend(self.dispatch().map(Ok)),
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let text = self.decode_utf8(value);
                self.data.push_str(&text);
                self.data.push('\n');
            }
            b"event" => self.event = self.decode_utf8(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = self.decode_utf8(value).into_owned(),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = self.decode_utf8(value).parse().ok().or(self.retry);
            }
            _ => {}
        }
    }

    fn decode_utf8<'a>(&mut self, value: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(value);
        self.lossy |= matches!(text, Cow::Owned(_));
        text
    }

    /// Takes the event that a blank line ends; `None` if it has no data line.
    fn dispatch(&mut self) -> Option<Event> {
        let event = mem::take(&mut self.event);
        let lossy = mem::take(&mut self.lossy);
        let mut data = mem::take(&mut self.data);
        data.pop()?;
        Some(Event {
            event: Some(event).filter(|name| !name.is_empty()),
            data,
            id: Some(&self.id).filter(|id| !id.is_empty()).cloned(),
            lossy,
        })
    }
}

/// Writes one event in the form that [`Parser`] reads.
///
/// The format has no escape: a CR or CRLF in `data` is read back as `\n`, line
/// ends in `event` and `id` become spaces, and an `id` with a NUL is left out.
pub fn write_event(event: &Event, out: &mut String) {
    if let Some(name) = event.event.as_deref().filter(|name| !name.is_empty()) {
        write_field("event", &name.replace(['\r', '\n'], " "), out);
    }
    if let Some(id) = event.id.as_deref().filter(|id| !id.contains('\0')) {
        write_field("id", &id.replace(['\r', '\n'], " "), out);
    }
    for line in event.data.replace("\r\n", "\n").split(['\r', '\n']) {
        write_field("data", line, out);
    }
    out.push('\n');
}

fn write_field(field: &str, value: &str, out: &mut String) {
    out.extend([field, ": ", value, "\n"]);
}

fn strip_bom(line: &[u8], at_start: bool) -> &[u8] {
    line.strip_prefix(BOM).filter(|_| at_start).unwrap_or(line)
}
