//! The capture log: what the proxy hands over, and the thread that writes it.
//!
//! The proxy waits for one thing only, that the request is with the kernel before it is
//! forwarded, and for that at most [`MAX_WRITE_DELAY`]. Everything else is queued. The queue
//! is bounded: what does not fit is left out and counted in a gap record, so that a slow disk
//! neither stalls the client nor fills the memory.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, request, response};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::folder::{SessionList, create_private};
use super::writer::{LogFile, Writer};
use crate::call::CallEnd;

/// How long a request waits for its record.
pub(super) const MAX_WRITE_DELAY: Duration = Duration::from_millis(20);

/// How many bytes may wait to be written. A request is also accepted if nothing waits.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// Where and how a log is written.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// Upstream that the capture names.
    pub upstream: String,
    /// Size of the file after which no more requests are recorded; `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Credentials that are masked from the start, for example those of the environment.
    pub secrets: Vec<String>,
    /// File that lists the ids of the captured sessions; `None` if there is none.
    pub session_list: Option<PathBuf>,
}

/// Numbers of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Number of recorded requests.
    pub calls: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Requests that were forwarded without a record.
    pub lost_requests: u64,
    /// Bytes of responses that were forwarded without a record.
    pub lost_bytes: u64,
    /// Requests that were recorded later than 20 ms, and forwarded before that.
    pub late_requests: u64,
    /// Whether the limit of the file was reached.
    pub is_full: bool,
    /// Last error of the file system.
    pub error: Option<String>,
    /// Ids of the captured sessions, in the order of their first calls.
    pub session_ids: Vec<String>,
}

/// A capture file that is being written. Dropping it writes what is queued.
#[derive(Debug)]
pub struct CaptureLog {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    started: Instant,
    next_call: std::sync::atomic::AtomicU64,
}

impl CaptureLog {
    /// Creates a capture file that only its owner can read. Fails if it exists.
    pub fn create(path: &Path, options: &LogOptions) -> io::Result<Self> {
        let sessions = options.session_list.as_deref().map(SessionList::create).transpose()?;
        Self::start(Box::new(create_private(path)?), options, sessions)
    }

    /// Starts the thread that writes to `file`.
    pub(super) fn start(file: Box<dyn LogFile>, options: &LogOptions, list: Option<SessionList>) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let mut writer = Writer::new(file, options, list, Arc::clone(&queue));
        writer.write_start(&options.upstream)?;
        let thread = thread::Builder::new().name("capture-log".to_owned()).spawn(move || writer.run())?;
        Ok(Self { queue, thread: Some(thread), started: Instant::now(), next_call: 1.into() })
    }

    /// Records a request before it is forwarded. Returns after it was handed to the kernel, or
    /// after 20 ms.
    pub(super) async fn begin(&self, request: &request::Parts, body: RequestBody) -> CallLog {
        let call = self.next_call.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let queue = Arc::clone(&self.queue);
        let log = CallLog { queue, call, started: self.started, lost_bytes: 0, is_ended: false };
        let (written, is_written) = oneshot::channel();
        let item = QueuedRequest {
            method: request.method.clone(),
            uri: request.uri.clone(),
            headers: request.headers.clone(),
            body,
            queued_at: Instant::now(),
            written,
        };
        if log.push(Item::Request(Box::new(item))) {
            // An error or a timeout means that it is not written yet; the writer counts it.
            let _ = tokio::time::timeout(MAX_WRITE_DELAY, is_written).await;
        }
        log
    }

    /// Numbers of the log up to now.
    pub fn stats(&self) -> LogStats {
        self.queue.stats.lock().clone()
    }

    /// Writes what is queued and closes the file.
    pub fn finish(mut self) -> LogStats {
        self.close();
        self.stats()
    }

    fn close(&mut self) {
        self.queue.waiting.lock().is_closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the writer is reported by its own thread.
            let _ = thread.join();
        }
    }
}

impl Drop for CaptureLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Body of a request as it is recorded.
#[derive(Debug, Clone)]
pub(super) enum RequestBody {
    /// The whole body.
    Whole(Bytes),
    /// The body is too large to be held in memory.
    Omitted,
}

/// Records the response of one call. If it is dropped before [`CallLog::end`], the client left.
#[derive(Debug)]
pub(super) struct CallLog {
    queue: Arc<Queue>,
    call: u64,
    started: Instant,
    /// Bytes that did not fit into the queue and are not reported yet.
    lost_bytes: u64,
    is_ended: bool,
}

impl CallLog {
    /// Records status and headers of the response.
    pub(super) fn response(&mut self, head: &response::Parts) {
        let reason = head.extensions.get::<hyper::ext::ReasonPhrase>().map(|reason| reason.as_bytes());
        let reason = reason.unwrap_or_else(|| head.status.canonical_reason().unwrap_or_default().as_bytes());
        let status_line = format!("HTTP/1.1 {} {}", head.status.as_str(), String::from_utf8_lossy(reason));
        self.push(Item::Response { status_line, headers: head.headers.clone() });
    }

    /// Records bytes of the response body.
    pub(super) fn frame(&mut self, bytes: &Bytes) {
        if self.lost_bytes > 0 && self.queue.has_space(bytes.len()) {
            let lost_bytes = mem::take(&mut self.lost_bytes);
            self.push(Item::Lost(lost_bytes));
        }
        if !self.push(Item::Frame(bytes.clone())) {
            self.lost_bytes += bytes.len() as u64;
        }
    }

    /// Records how the call ended. Only the first end counts.
    pub(super) fn end(&mut self, end: CallEnd, error: Option<String>) {
        if mem::replace(&mut self.is_ended, true) {
            return;
        }
        if self.lost_bytes > 0 {
            self.push(Item::Lost(self.lost_bytes));
        }
        self.push(Item::End(end, error));
    }

    fn push(&self, item: Item) -> bool {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.queue.push(Queued { call: self.call, micros, item })
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        self.end(CallEnd::ClientAborted, None);
    }
}

/// Something to write, with its call and time.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) call: u64,
    /// Microseconds since the start of the capture.
    pub(super) micros: u64,
    pub(super) item: Item,
}

#[derive(Debug)]
pub(super) enum Item {
    Request(Box<QueuedRequest>),
    Response {
        status_line: String,
        headers: HeaderMap,
    },
    Frame(Bytes),
    /// Bytes of the response that did not fit into the queue.
    Lost(u64),
    End(CallEnd, Option<String>),
}

#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    pub(super) queued_at: Instant,
    /// Notified when the record is with the kernel; dropped if that failed.
    pub(super) written: oneshot::Sender<()>,
}

/// What waits to be written, and the numbers of the log.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    pub(super) stats: Mutex<LogStats>,
}

#[derive(Debug, Default)]
struct Waiting {
    items: Vec<Queued>,
    bytes: usize,
    /// Requests that did not fit.
    lost_requests: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds an item; false if it holds bytes and there is no space for them.
    fn push(&self, queued: Queued) -> bool {
        let size = match &queued.item {
            Item::Request(request) => match &request.body {
                RequestBody::Whole(body) => body.len(),
                RequestBody::Omitted => 0,
            },
            Item::Frame(bytes) => bytes.len(),
            Item::Response { .. } | Item::Lost(_) | Item::End(..) => 0,
        };
        let mut waiting = self.waiting.lock();
        if size > 0 && waiting.bytes > 0 && waiting.bytes + size > MAX_QUEUED_BYTES {
            waiting.lost_requests += u64::from(matches!(queued.item, Item::Request(_)));
            return false;
        }
        waiting.bytes += size;
        waiting.items.push(queued);
        if waiting.items.len() == 1 {
            self.changed.notify_one();
        }
        true
    }

    fn has_space(&self, size: usize) -> bool {
        self.waiting.lock().bytes + size <= MAX_QUEUED_BYTES
    }

    /// Waits for items and takes all of them, with the number of requests that did not fit;
    /// `None` after the end.
    pub(super) fn take(&self) -> Option<(Vec<Queued>, u64)> {
        let mut waiting = self.waiting.lock();
        while waiting.items.is_empty() {
            if waiting.is_closed {
                return None;
            }
            self.changed.wait(&mut waiting);
        }
        waiting.bytes = 0;
        Some((mem::take(&mut waiting.items), mem::take(&mut waiting.lost_requests)))
    }
}

#[cfg(test)]
mod tests;
