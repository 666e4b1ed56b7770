//! An upstream that responds byte by byte as a test says, and a client that sees every byte.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_trace::capture::{CaptureItem, CaptureLog, CaptureProxy, CaptureReader, CapturedCall, LogOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

/// A test that waits longer has failed.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// What an upstream does after it has read a request.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Sends nothing more until the client leaves.
    WaitForClient,
}

/// A server on loopback that responds the same to every request.
pub(super) struct Upstream {
    pub(super) address: String,
    /// Requests as they were received.
    pub(super) received: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Number of clients that left while the server waited for that.
    pub(super) left: Arc<Mutex<usize>>,
    pub(super) changed: Arc<Notify>,
}

impl Upstream {
    pub(super) async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let upstream =
            Self { address, received: Arc::default(), left: Arc::default(), changed: Arc::new(Notify::new()) };
        let (received, left, changed) = (upstream.received.clone(), upstream.left.clone(), upstream.changed.clone());
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (steps, received, left, changed) = (steps.clone(), received.clone(), left.clone(), changed.clone());
                tokio::spawn(async move { serve(tcp, &steps, &received, &left, &changed).await });
            }
        });
        upstream
    }

    pub(super) async fn wait_until(&self, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        timeout(MAX_WAIT, wait).await.unwrap();
    }
}

async fn serve(
    mut tcp: TcpStream,
    steps: &[Step],
    received: &Mutex<Vec<Vec<u8>>>,
    left: &Mutex<usize>,
    changed: &Notify,
) {
    tcp.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut tcp).await {
        received.lock().push(request);
        changed.notify_waiters();
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if tcp.write_all(bytes).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
                Step::Close => return,
                Step::WaitForClient => {
                    let _ = tcp.read(&mut [0]).await;
                    *left.lock() += 1;
                    changed.notify_waiters();
                    return;
                }
            }
        }
    }
}

/// Head and body of a request with a content length; `None` if the connection ends.
async fn read_request(tcp: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let total = end + 4 + length.unwrap_or(0);
            let missing = total - bytes.len();
            let start = bytes.len();
            bytes.resize(total, 0);
            if missing > 0 {
                tcp.read_exact(&mut bytes[start..]).await.ok()?;
            }
            return Some(bytes);
        }
        if tcp.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// What a client sees of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: String,
    /// Lowercase, sorted; without those of the connection.
    pub(super) headers: Vec<String>,
    pub(super) body: Vec<u8>,
    /// Whether the response ended as its headers announce.
    pub(super) is_complete: bool,
}

/// Sends a request, reads until the connection ends, and reads the response.
pub(super) async fn exchange(address: &str, request: &[u8]) -> Seen {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = tcp.split();
    let mut bytes = Vec::new();
    // A large request and a large response pass each other.
    let send = async { writer.write_all(request).await };
    let receive = async { reader.read_to_end(&mut bytes).await };
    let _ = timeout(MAX_WAIT, async { tokio::join!(send, receive) }).await.unwrap();
    parse_response(&bytes, request.starts_with(b"HEAD"))
}

pub(super) fn parse_response(bytes: &[u8], is_head: bool) -> Seen {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Seen { status: String::new(), headers: Vec::new(), body: Vec::new(), is_complete: false };
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().to_owned();
    let mut headers: Vec<String> = lines.map(str::to_owned).collect();
    let value = |name: &str| headers.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
    let length = value("content-length: ").and_then(|value| value.parse::<usize>().ok());
    let is_chunked = value("transfer-encoding: ").is_some();
    let rest = &bytes[end + 4..];
    let (body, is_complete) = match length {
        _ if is_head => (rest.to_vec(), rest.is_empty()),
        _ if is_chunked => dechunk(rest),
        Some(length) => (rest.to_vec(), rest.len() == length),
        None => (rest.to_vec(), true),
    };
    headers.retain(|line| {
        let line = line.to_lowercase();
        !line.starts_with("connection:") && !line.starts_with("transfer-encoding:")
    });
    headers.sort();
    Seen { status, headers, body, is_complete }
}

fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") else { return (body, false) };
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let chunk = &bytes[end + 2..];
        if length == 0 {
            return (body, true);
        }
        if chunk.len() < length + 2 {
            body.extend_from_slice(&chunk[..chunk.len().min(length)]);
            return (body, false);
        }
        body.extend_from_slice(&chunk[..length]);
        bytes = &chunk[length + 2..];
    }
}

/// A proxy that writes to a file of its own.
pub(super) struct Running {
    pub(super) proxy: CaptureProxy,
    pub(super) folder: tempfile::TempDir,
}

impl Running {
    pub(super) async fn start(upstream: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = CaptureLog::create(&folder.path().join("test.capture"), &LogOptions::default()).unwrap();
        let proxy = CaptureProxy::start("127.0.0.1:0".parse().unwrap(), upstream, log).await.unwrap();
        Self { proxy, folder }
    }

    pub(super) fn address(&self) -> String {
        self.proxy.address().to_string()
    }

    /// Stops the proxy; returns the bytes of the file and its calls. A problem fails the test.
    pub(super) async fn finish(self) -> (Vec<u8>, Vec<CapturedCall>) {
        self.proxy.shut_down().await;
        let bytes = std::fs::read(self.folder.path().join("test.capture")).unwrap();
        let calls = read_calls(&bytes);
        (bytes, calls)
    }
}

pub(super) fn read_calls(bytes: &[u8]) -> Vec<CapturedCall> {
    let mut reader = CaptureReader::new(bytes);
    let mut calls = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            CaptureItem::Call(call) => calls.push(*call),
            CaptureItem::Problem(problem) => panic!("{problem}"),
        }
    }
    calls
}

/// A request for a message with these headers and this body.
pub(super) fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}
