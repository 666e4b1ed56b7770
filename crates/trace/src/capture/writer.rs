//! Writes the records of a capture file, in a thread of its own.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use quipu_message::request_view::RequestView;
use serde::Serialize;

use super::bases::Bases;
use super::delta;
use super::folder::SessionList;
use super::log::{Item, LogOptions, MAX_WRITE_DELAY, Queue, Queued, QueuedRequest, RequestBody};
use super::mask::{Secrets, StreamMasker};
use super::record::{EndRecord, GapRecord, RecordKind, ResponseSteps, StartRecord, write_record, write_record_header};
use crate::credentials::exchanges_credentials;

/// Version of the format.
const FORMAT: u32 = 1;

/// Frames of one call that arrive within this time are one record, up to [`MAX_MERGED_BYTES`].
const MERGE_MICROS: u64 = 1000;

const MAX_MERGED_BYTES: usize = 64 << 10;

/// Records are handed to the kernel when there are this many bytes of them.
const MAX_BUFFERED_BYTES: usize = 256 << 10;

/// Parts of a request of this length are written from where they are, not copied.
const MIN_DIRECT_BYTES: usize = 64 << 10;

const SESSION_HEADER: &str = "x-claude-code-session-id";

/// The file of a log.
pub(super) trait LogFile: Write + Send {
    /// Removes what was written after the first `length` bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// The thread that writes.
pub(super) struct Writer {
    file: Box<dyn LogFile>,
    queue: Arc<Queue>,
    /// Records that are not written yet.
    buffer: Vec<u8>,
    /// Size of the file.
    length: u64,
    max_bytes: Option<u64>,
    bases: Bases,
    /// Call and response head that was recorded last.
    last_response: Option<(u64, Bytes)>,
    /// Calls whose request is recorded and whose end is not.
    open: HashMap<u64, OpenCall>,
    /// Frame that later bytes may be added to.
    pending: Option<PendingFrame>,
    secrets: Secrets,
    sessions: Option<SessionList>,
    /// Requests without a record that no gap record counts yet.
    uncounted_requests: u64,
}

#[derive(Debug, Default)]
struct OpenCall {
    masker: StreamMasker,
    omits_body: bool,
    /// Frame bytes in the buffer.
    buffered_bytes: u64,
    /// Bytes that are missing and that no gap record counts yet.
    lost_bytes: u64,
}

#[derive(Debug)]
struct PendingFrame {
    call: u64,
    micros: u64,
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        file: Box<dyn LogFile>,
        options: &LogOptions,
        sessions: Option<SessionList>,
        queue: Arc<Queue>,
    ) -> Self {
        let mut secrets = Secrets::default();
        options.secrets.iter().for_each(|secret| secrets.add(secret.as_bytes()));
        Self {
            file,
            queue,
            buffer: Vec::new(),
            length: 0,
            max_bytes: options.max_bytes,
            bases: Bases::default(),
            last_response: None,
            open: HashMap::new(),
            pending: None,
            secrets,
            sessions,
            uncounted_requests: 0,
        }
    }

    /// Writes the first record.
    #[expect(clippy::disallowed_methods, reason = "the time of the capture")]
    pub(super) fn write_start(&mut self, upstream: &str) -> io::Result<()> {
        let start = StartRecord {
            format: FORMAT,
            started_at: Timestamp::now().to_string(),
            upstream: upstream.to_owned(),
            program: concat!("quipu ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        write_record(&mut self.buffer, RecordKind::Capture, 0, 0, &[&to_json(&start)]);
        self.file.write_all(&self.buffer)?;
        self.length = self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some((items, lost_requests)) = self.queue.take() {
            self.lose_requests(lost_requests);
            for queued in items {
                self.write(queued);
                if self.buffer.len() >= MAX_BUFFERED_BYTES {
                    self.flush();
                }
            }
            self.flush();
        }
        self.count_lost_requests(0);
        self.flush();
    }

    fn write(&mut self, Queued { call, micros, item }: Queued) {
        if let Item::Request(request) = item {
            return self.write_request(call, micros, *request);
        }
        let Some(mut open) = self.open.remove(&call) else { return };
        if open.lost_bytes > 0 && !matches!(item, Item::Lost(_)) {
            self.write_gap(call, micros, &GapRecord { bytes: mem::take(&mut open.lost_bytes), ..GapRecord::default() });
        }
        match item {
            Item::Request(_) => unreachable!("requests are written above"),
            Item::Response { status_line, headers } => self.write_response(call, micros, status_line, &headers),
            Item::Frame(bytes) => {
                let bytes = if open.omits_body { Bytes::new() } else { open.masker.push(bytes, &self.secrets) };
                open.buffered_bytes += bytes.len() as u64;
                self.add_frame(call, micros, &bytes);
            }
            Item::Lost(bytes) => {
                open.lost_bytes += bytes;
                self.queue.stats.lock().lost_bytes += bytes;
            }
            Item::End(end, error) => {
                self.add_frame(call, micros, &open.masker.finish());
                let error = error.map(|mut text| {
                    let mut bytes = mem::take(&mut text).into_bytes();
                    self.secrets.mask(&mut bytes);
                    String::from_utf8_lossy(&bytes).into_owned()
                });
                return self.write_json(RecordKind::End, call, micros, &EndRecord { end, error });
            }
        }
        self.open.insert(call, open);
    }

    fn write_request(&mut self, call: u64, micros: u64, request: QueuedRequest) {
        if self.max_bytes.is_some_and(|max| self.length >= max) {
            self.queue.stats.lock().is_full = true;
            return self.lose_requests(1);
        }
        self.count_lost_requests(micros);
        self.secrets.learn(&request.headers);
        let first_line = format!("{} {} HTTP/1.1", request.method, request.uri);
        let head = self.head(first_line, &request.headers);
        let omits_body = exchanges_credentials(request.uri.path());
        let body = match &request.body {
            RequestBody::Whole(body) if !omits_body => Some(self.secrets.masked(body.clone())),
            _ => None,
        };
        let body_omitted = body.is_none();
        let body = body.unwrap_or_default();
        let mut literals = Vec::new();
        let mut steps = self.bases.encode(call, &head, &body, &mut literals);
        steps.body_omitted = body_omitted;
        self.write_pending();
        let steps = to_json(&steps);
        let mut payload = vec![steps.as_slice(), b"\n"];
        payload.append(&mut literals);
        write_record_header(&mut self.buffer, RecordKind::Request, call, micros, &payload);
        payload.push(b"\n");
        if !self.flush_with(&payload) {
            return self.lose_requests(1);
        }
        let delay = request.queued_at.elapsed();
        // The proxy may have gone on without waiting.
        let _ = request.written.send(());
        self.open.insert(call, OpenCall { omits_body, ..OpenCall::default() });
        self.queue.stats.lock().calls += 1;
        if delay > MAX_WRITE_DELAY {
            self.queue.stats.lock().late_requests += 1;
            let late_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            self.write_gap(call, micros, &GapRecord { late_ms, ..GapRecord::default() });
        }
        self.note_session(request.uri.path(), &request.headers, &body);
    }

    fn write_response(&mut self, call: u64, micros: u64, status_line: String, headers: &HeaderMap) {
        self.write_pending();
        self.secrets.learn(headers);
        let head = self.head(status_line, headers);
        let (base, earlier) = self.last_response.take().map_or((None, Bytes::new()), |(call, head)| (Some(call), head));
        let mut literals = Vec::new();
        let steps = to_json(&ResponseSteps { base, head: delta::encode(&earlier, &head, &mut literals) });
        let mut payload = vec![steps.as_slice(), b"\n"];
        payload.append(&mut literals);
        write_record(&mut self.buffer, RecordKind::Response, call, micros, &payload);
        self.last_response = Some((call, head));
    }

    /// First line and headers, without credentials.
    fn head(&self, first_line: String, headers: &HeaderMap) -> Bytes {
        let mut head = first_line.into_bytes();
        self.secrets.mask(&mut head);
        for (name, value) in headers {
            head.push(b'\n');
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(&self.secrets.stored_value(name, value));
        }
        head.into()
    }

    fn add_frame(&mut self, call: u64, micros: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(pending) = &mut self.pending
            && pending.call == call
            && micros.saturating_sub(pending.micros) < MERGE_MICROS
            && pending.bytes.len() < MAX_MERGED_BYTES
        {
            return pending.bytes.extend_from_slice(bytes);
        }
        self.write_pending();
        self.pending = Some(PendingFrame { call, micros, bytes: bytes.to_vec() });
    }

    fn write_pending(&mut self) {
        if let Some(frame) = self.pending.take() {
            write_record(&mut self.buffer, RecordKind::Frame, frame.call, frame.micros, &[&frame.bytes]);
        }
    }

    fn write_gap(&mut self, call: u64, micros: u64, gap: &GapRecord) {
        self.write_json(RecordKind::Gap, call, micros, gap);
    }

    fn write_json(&mut self, kind: RecordKind, call: u64, micros: u64, payload: &impl Serialize) {
        self.write_pending();
        write_record(&mut self.buffer, kind, call, micros, &[&to_json(payload)]);
    }

    fn lose_requests(&mut self, requests: u64) {
        self.uncounted_requests += requests;
        self.queue.stats.lock().lost_requests += requests;
    }

    /// Writes how many requests have no record.
    fn count_lost_requests(&mut self, micros: u64) {
        let requests = mem::take(&mut self.uncounted_requests);
        if requests > 0 {
            self.write_gap(0, micros, &GapRecord { requests, ..GapRecord::default() });
        }
    }

    /// Hands the buffer to the kernel; false if that failed, and then the file ends where it
    /// did before.
    fn flush(&mut self) -> bool {
        self.write_pending();
        self.buffer.is_empty() || self.flush_with(&[])
    }

    /// As [`flush`](Self::flush), with the rest of the last record in the buffer.
    fn flush_with(&mut self, rest: &[&[u8]]) -> bool {
        let written = self.write_out(rest);
        let mut stats = self.queue.stats.lock();
        match &written {
            Ok(bytes) => self.length += bytes,
            Err(error) => {
                stats.error = Some(error.to_string());
                // If this fails too, a reader finds the damage and continues after it.
                let _ = self.file.truncate(self.length);
                self.bases.clear();
                self.last_response = None;
            }
        }
        stats.bytes = self.length;
        #[expect(clippy::iter_over_hash_type, reason = "each call is counted by itself")]
        for open in self.open.values_mut() {
            let bytes = mem::take(&mut open.buffered_bytes);
            if written.is_err() {
                open.lost_bytes += bytes;
                stats.lost_bytes += bytes;
            }
        }
        self.buffer.clear();
        written.is_ok()
    }

    /// Writes the buffer and what follows it; returns the number of bytes. Large parts are not
    /// copied: with the request itself and the one before it they would need as much memory again.
    fn write_out(&mut self, rest: &[&[u8]]) -> io::Result<u64> {
        let mut written = 0;
        for part in rest {
            if part.len() < MIN_DIRECT_BYTES {
                self.buffer.extend_from_slice(part);
                continue;
            }
            self.file.write_all(&self.buffer)?;
            self.file.write_all(part)?;
            written += (self.buffer.len() + part.len()) as u64;
            self.buffer.clear();
        }
        self.file.write_all(&self.buffer)?;
        Ok(written + self.buffer.len() as u64)
    }

    /// Lists the session of a request, if it is new.
    fn note_session(&mut self, path: &str, headers: &HeaderMap, body: &[u8]) {
        let in_header = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let in_body = || {
            let body = std::str::from_utf8(body).ok().filter(|_| path.ends_with("/v1/messages"))?;
            RequestView::read(body).ok()?.session_id()
        };
        let Some(id) = in_header.or_else(in_body) else { return };
        let mut stats = self.queue.stats.lock();
        if stats.session_ids.contains(&id) {
            return;
        }
        if let Some(list) = &mut self.sessions
            && let Err(error) = list.add(&id)
        {
            stats.error = Some(error.to_string());
        }
        stats.session_ids.push(id);
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("records are plain data: {error}"))
}
