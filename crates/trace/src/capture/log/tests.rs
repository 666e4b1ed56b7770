//! A disk that is slow or full.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request;
use parking_lot::{Condvar, Mutex};

use super::super::reader::{CaptureItem, CaptureReader, CapturedCall};
use super::super::writer::LogFile;
use super::{CaptureLog, LogOptions, MAX_QUEUED_BYTES, RequestBody};
use crate::call::CallEnd;

/// A file in memory that can be blocked, or made to fail.
#[derive(Clone, Default)]
struct TestFile(Arc<(Mutex<FileState>, Condvar)>);

#[derive(Default)]
struct FileState {
    bytes: Vec<u8>,
    is_blocked: bool,
    is_full: bool,
    /// Size from which on the disk is full.
    max_bytes: Option<usize>,
    /// Address and length of each text that was written.
    writes: Vec<(usize, usize)>,
}

impl TestFile {
    fn set(&self, change: impl FnOnce(&mut FileState)) {
        change(&mut self.0.0.lock());
        self.0.1.notify_all();
    }

    fn read(&self) -> (Vec<CapturedCall>, Vec<String>) {
        let bytes = self.0.0.lock().bytes.clone();
        let mut reader = CaptureReader::new(bytes.as_slice());
        let (mut calls, mut problems) = (Vec::new(), Vec::new());
        while let Some(item) = reader.next_item().unwrap() {
            match item {
                CaptureItem::Call(call) => calls.push(*call),
                CaptureItem::Problem(problem) => problems.push(problem),
            }
        }
        (calls, problems)
    }
}

impl Write for TestFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.0.lock();
        while state.is_blocked {
            self.0.1.wait(&mut state);
        }
        state.writes.push((bytes.as_ptr().addr(), bytes.len()));
        if state.is_full || state.max_bytes.is_some_and(|max| state.bytes.len() + bytes.len() > max) {
            // A full disk takes a part of a record.
            state.bytes.extend_from_slice(&bytes[..bytes.len() / 2]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for TestFile {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.0.lock().bytes.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

fn start(max_bytes: Option<u64>) -> (CaptureLog, TestFile) {
    let file = TestFile::default();
    let options = LogOptions { max_bytes, ..LogOptions::default() };
    (CaptureLog::start(Box::new(file.clone()), &options, None).unwrap(), file)
}

fn head() -> request::Parts {
    http::Request::post("/v1/messages").body(()).unwrap().into_parts().0
}

fn body(text: &str) -> RequestBody {
    RequestBody::Whole(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn a_slow_disk_stalls_no_request_and_is_counted() {
    let (log, file) = start(None);
    file.set(|state| state.is_blocked = true);
    let before = Instant::now();
    let mut call = log.begin(&head(), body("one")).await;
    // It waited, but not for the disk, which is blocked for good.
    assert!(before.elapsed() >= super::MAX_WRITE_DELAY);
    let frame = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..40 {
        call.frame(&frame);
    }
    assert!(log.queue.waiting.lock().bytes <= MAX_QUEUED_BYTES);
    let large = RequestBody::Whole(vec![b'y'; MAX_QUEUED_BYTES].into());
    drop(log.begin(&head(), large).await);
    file.set(|state| state.is_blocked = false);
    call.end(CallEnd::Completed, None);
    let stats = log.finish();
    assert_eq!((stats.calls, stats.late_requests, stats.lost_requests), (1, 1, 1));
    let (calls, problems) = file.read();
    assert_eq!(calls[0].request_body.as_deref(), Some(&b"one"[..]));
    assert_eq!(calls[0].response_body.len() as u64 + calls[0].lost_bytes, 40 << 20);
    assert_eq!(calls[0].lost_bytes, stats.lost_bytes);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.contains(&"1 requests were forwarded without a record".to_owned()), "{problems:?}");
}

#[tokio::test]
async fn a_full_disk_leaves_a_file_that_can_be_read() {
    let (log, file) = start(None);
    let text = "the same history ".repeat(100);
    let mut first = log.begin(&head(), body(&text)).await;
    file.set(|state| state.is_full = true);
    first.frame(&Bytes::from_static(b"lost"));
    drop(log.begin(&head(), body(&format!("{text}two"))).await);
    file.set(|state| state.is_full = false);
    first.frame(&Bytes::from_static(b"kept"));
    first.end(CallEnd::Completed, None);
    drop(log.begin(&head(), body(&format!("{text}three"))).await);
    let stats = log.finish();
    assert_eq!((stats.calls, stats.lost_requests, stats.lost_bytes), (2, 1, 4));
    assert!(stats.error.is_some());
    let (calls, problems) = file.read();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!((calls[0].response_body.as_slice(), calls[0].lost_bytes), (&b"kept"[..], 4));
    assert_eq!(calls[1].request_body.as_deref(), Some(format!("{text}three").as_bytes()));
    assert_eq!((calls[1].number, calls[1].end), (3, CallEnd::ClientAborted));
}

#[tokio::test]
async fn a_disk_that_is_full_in_the_middle_of_a_large_request_leaves_a_file_that_can_be_read() {
    let (log, file) = start(None);
    drop(log.begin(&head(), body("one")).await);
    file.set(|state| state.max_bytes = Some(200 << 10));
    drop(log.begin(&head(), RequestBody::Whole(vec![b'x'; 300 << 10].into())).await);
    file.set(|state| state.max_bytes = None);
    drop(log.begin(&head(), body("three")).await);
    let stats = log.finish();
    assert_eq!((stats.calls, stats.lost_requests), (2, 1));
    assert_eq!(stats.bytes, file.0.0.lock().bytes.len() as u64);
    let (calls, problems) = file.read();
    assert_eq!(problems, ["1 requests were forwarded without a record"]);
    assert_eq!(calls[1].request_body.as_deref(), Some(&b"three"[..]));
}

#[tokio::test]
async fn large_bodies_are_not_held_a_second_time() {
    let (log, file) = start(None);
    let request: Bytes = vec![b'x'; 3 << 20].into();
    let mut call = log.begin(&head(), RequestBody::Whole(request.clone())).await;
    let frame = Bytes::from(vec![b'y'; 16 << 10]);
    for _ in 0..200 {
        call.frame(&frame);
    }
    call.end(CallEnd::Completed, None);
    log.finish();
    // The request is written from where it is, and the response a little at a time.
    let writes = file.0.0.lock().writes.clone();
    let (large, small): (Vec<_>, Vec<_>) = writes.into_iter().partition(|(_, length)| *length > 512 << 10);
    assert_eq!(large, [(request.as_ptr().addr(), request.len())]);
    assert!(small.len() > 5, "{small:?}");
    let (calls, _) = file.read();
    assert_eq!(calls[0].request_body.as_deref(), Some(&request[..]));
    assert_eq!(calls[0].response_body.len(), 200 * frame.len());
}

#[tokio::test]
async fn a_capture_stops_at_its_limit() {
    let (log, file) = start(Some(1000));
    for _ in 0..5 {
        let mut call = log.begin(&head(), body("{}")).await;
        call.frame(&Bytes::from(vec![b'z'; 600]));
        call.end(CallEnd::Completed, None);
    }
    let stats = log.finish();
    assert!(stats.is_full && stats.bytes < 3000, "{stats:?}");
    assert_eq!(stats.calls + stats.lost_requests, 5);
    let (calls, problems) = file.read();
    assert_eq!(calls.len() as u64, stats.calls);
    assert_eq!(problems, [format!("{} requests were forwarded without a record", stats.lost_requests)]);
}
