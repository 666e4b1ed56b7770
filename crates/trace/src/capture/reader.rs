//! Reads a capture file as calls.

use std::collections::BTreeMap;
use std::io::{self, Read};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use super::bases::{Bases, RequestSteps};
use super::delta;
use super::record::{EndRecord, GapRecord, Record, RecordKind, RecordReader, ResponseSteps, StartRecord};
use crate::call::CallEnd;

/// How many bytes of finished calls wait for calls that began before them.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// One call of a capture file.
#[derive(Debug, Clone, Default)]
pub struct CapturedCall {
    /// Number of the call, from 1, in the order in which requests arrived.
    pub number: u64,
    /// When the request arrived.
    pub started_at: Option<Timestamp>,
    /// When the first bytes of the response body arrived.
    pub first_frame_at: Option<Timestamp>,
    /// When the call ended; `None` if the capture ends before.
    pub ended_at: Option<Timestamp>,
    /// Method, path and headers of the request. Credentials are hashed.
    pub request: Head,
    /// Body of the request; `None` if it was not recorded or cannot be rebuilt.
    pub request_body: Option<Bytes>,
    /// Status and headers of the response; `None` if none arrived.
    pub response: Option<Head>,
    /// Body of the response as it was sent, compressed or not.
    pub response_body: Vec<u8>,
    /// How the call ended; [`CallEnd::Unknown`] if the capture ends before.
    pub end: CallEnd,
    /// Error of the connection.
    pub error: Option<String>,
    /// Bytes of the response that are missing.
    pub lost_bytes: u64,
}

/// First line and headers of a request or response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// First line, for example `POST /v1/messages HTTP/1.1` or `HTTP/1.1 200 OK`.
    pub first_line: String,
    /// Names and values; names are lowercase.
    pub headers: Vec<(String, String)>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n');
        let first_line = lines.next().unwrap_or_default().to_owned();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { first_line, headers: lines.filter_map(header).collect() }
    }

    /// Word of the first line: 0 and 1 are method and path, or version and status.
    pub fn word(&self, index: usize) -> &str {
        self.first_line.split(' ').nth(index).unwrap_or_default()
    }

    /// Value of the first header with this name, in lowercase.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Something of a capture file.
#[derive(Debug, Clone)]
pub enum CaptureItem {
    /// A call.
    Call(Box<CapturedCall>),
    /// What is missing or damaged.
    Problem(String),
}

/// Reads the calls of a capture file in the order of their requests. Memory is bounded by the
/// calls that were open at the same time.
#[derive(Debug)]
pub struct CaptureReader<R> {
    records: RecordReader<R>,
    started_at: Option<Timestamp>,
    bases: Bases,
    last_response: Option<(u64, Bytes)>,
    /// Calls that are not returned yet, by their number, and whether they ended.
    calls: BTreeMap<u64, (CapturedCall, bool)>,
    is_at_end: bool,
}

impl<R: Read> CaptureReader<R> {
    /// Reads from the start of a capture file.
    pub fn new(input: R) -> Self {
        Self {
            records: RecordReader::new(input),
            started_at: None,
            bases: Bases::default(),
            last_response: None,
            calls: BTreeMap::new(),
            is_at_end: false,
        }
    }

    /// The next call or problem; `None` at the end.
    pub fn next_item(&mut self) -> io::Result<Option<CaptureItem>> {
        loop {
            if let Some(call) = self.next_finished() {
                return Ok(Some(CaptureItem::Call(Box::new(call))));
            }
            if self.is_at_end {
                return Ok(None);
            }
            match self.records.next()? {
                None => self.is_at_end = true,
                Some(Err(damage)) if damage.is_tail => {
                    let message = format!(
                        "the last record, {} bytes at offset {}, is incomplete and was left out",
                        damage.length, damage.offset
                    );
                    return Ok(Some(CaptureItem::Problem(message)));
                }
                Some(Err(damage)) => {
                    let message = format!("{} bytes at offset {} are damaged", damage.length, damage.offset);
                    return Ok(Some(CaptureItem::Problem(message)));
                }
                Some(Ok(record)) => {
                    if let Err(problem) = self.read(&record) {
                        return Ok(Some(CaptureItem::Problem(problem)));
                    }
                }
            }
        }
    }

    /// The first call, if it ended or if too much waits behind it.
    fn next_finished(&mut self) -> Option<CapturedCall> {
        let entry = self.calls.first_entry()?;
        let is_ready = entry.get().1 || self.is_at_end;
        if is_ready {
            return Some(entry.remove().0);
        }
        let waiting: usize = self.calls.values().map(|(call, _)| call.held_bytes()).sum();
        let number = *self.calls.iter().find(|(_, (_, is_ended))| *is_ended && waiting > MAX_WAITING_BYTES)?.0;
        self.calls.remove(&number).map(|(call, _)| call)
    }

    fn read(&mut self, record: &Record) -> Result<(), String> {
        let at = self.time(record.micros);
        let number = record.call;
        let problem = |what: &str| format!("call {number}: {what}");
        let bad_json = |error: serde_json::Error| format!("call {number}: {error}");
        if record.kind == RecordKind::Capture {
            let start: StartRecord = serde_json::from_slice(&record.payload).map_err(bad_json)?;
            self.started_at = start.started_at.parse().ok();
            return Ok(());
        }
        if record.kind == RecordKind::Request {
            let mut call = CapturedCall { number, started_at: at, ..CapturedCall::default() };
            let (steps, literals) = split_line(&record.payload);
            let steps: RequestSteps = serde_json::from_slice(steps).map_err(bad_json)?;
            let rebuilt = self.bases.decode(number, &steps, literals);
            let is_rebuilt = rebuilt.is_some();
            if let Some((head, body)) = rebuilt {
                call.request = Head::parse(&head);
                call.request_body = (!steps.body_omitted).then_some(body);
            }
            self.calls.insert(number, (call, false));
            return if is_rebuilt { Ok(()) } else { Err(problem("the request needs a record that is damaged")) };
        }
        if record.kind == RecordKind::Gap && number == 0 {
            let gap: GapRecord = serde_json::from_slice(&record.payload).map_err(bad_json)?;
            return Err(format!("{} requests were forwarded without a record", gap.requests));
        }
        let Some((call, is_ended)) = self.calls.get_mut(&number) else {
            return Err(problem("there is no record of the request"));
        };
        match record.kind {
            RecordKind::Capture | RecordKind::Request => {}
            RecordKind::Response => {
                let (steps, mut literals) = split_line(&record.payload);
                let steps: ResponseSteps = serde_json::from_slice(steps).map_err(bad_json)?;
                let earlier = self.last_response.take();
                let base = match (steps.base, earlier) {
                    (None, _) => Some(Bytes::new()),
                    (Some(base), Some((call, head))) if base == call => Some(head),
                    _ => None,
                };
                let head = base.and_then(|base| delta::decode(&base, &steps.head, &mut literals));
                let head = head.ok_or_else(|| problem("the response needs a record that is damaged"))?;
                call.response = Some(Head::parse(&head));
                self.last_response = Some((number, head.into()));
            }
            RecordKind::Frame => {
                call.first_frame_at = call.first_frame_at.or(at);
                call.response_body.extend_from_slice(&record.payload);
            }
            RecordKind::Gap => {
                let gap: GapRecord = serde_json::from_slice(&record.payload).map_err(bad_json)?;
                call.lost_bytes += gap.bytes;
                if gap.bytes > 0 {
                    return Err(problem(&format!("{} bytes of the response are missing", gap.bytes)));
                }
            }
            RecordKind::End => {
                let end: EndRecord = serde_json::from_slice(&record.payload).map_err(bad_json)?;
                (call.end, call.error, call.ended_at, *is_ended) = (end.end, end.error, at, true);
            }
        }
        Ok(())
    }

    fn time(&self, micros: u64) -> Option<Timestamp> {
        self.started_at?.checked_add(SignedDuration::from_micros(i64::try_from(micros).ok()?)).ok()
    }
}

impl CapturedCall {
    fn held_bytes(&self) -> usize {
        self.request_body.as_ref().map_or(0, Bytes::len) + self.response_body.len()
    }
}

/// The first line of a payload, and what follows it.
fn split_line(payload: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', payload) {
        Some(end) => (&payload[..end], &payload[end + 1..]),
        None => (payload, &[]),
    }
}
