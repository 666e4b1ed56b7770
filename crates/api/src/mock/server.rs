//! The HTTP server: reads a request, chooses a response from the script, sends it.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use parking_lot::Mutex;
use quipu_message::values::ApiErrorType;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use super::incoming::{IncomingRequest, RequestKind};
use super::recording::SUBAGENT_HEADER;
use super::request_difference::{ComparableRequest, RequestDifference};
use super::response::{IdGenerator, MockResponse, ResponseEnd};
use super::{ReceivedRequest, ResponseState, Script};
use crate::secret::Secret;

/// Limit on the size of a request body.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// State that all requests share.
pub(crate) struct ServerState {
    script: Mutex<Script>,
    requests: Mutex<Vec<ReceivedRequest>>,
    changed: Notify,
    ids: IdGenerator,
    /// Called with each request; requests are then not kept.
    observer: Option<RequestObserver>,
}

/// Callback for each request.
pub(crate) type RequestObserver = Box<dyn Fn(&ReceivedRequest) + Send + Sync>;

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState").field("requests", &self.requests().len()).finish_non_exhaustive()
    }
}

pub(crate) async fn serve(listener: TcpListener, server: Arc<ServerState>) {
    let listener = listener.tap_io(|tcp| {
        // Chunks are sent at once. If it fails, they arrive later.
        let _ = tcp.set_nodelay(true);
    });
    // Ends only when the future is dropped.
    let _ = axum::serve(listener, Router::new().fallback(handle_request).with_state(server)).await;
}

async fn handle_request(State(server): State<Arc<ServerState>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let text = |value: &axum::http::HeaderValue| Secret::from(String::from_utf8_lossy(value.as_bytes()).into_owned());
    let received = ReceivedRequest {
        number: 0,
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        body: String::from_utf8(body.into()).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        request: None,
        summary: String::new(),
        matched_rule: None,
        difference: None,
        status: 0,
        state: ResponseState::InProgress,
    };
    let request_id = server.ids.next_id("req");
    let (tracker, response) = ServerState::respond(&server, received, &request_id);
    if !response.delay.is_zero() {
        sleep(response.delay).await;
    }
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut builder = Response::builder().status(status).header("content-type", &response.content_type);
    // A recorded response has its own id.
    if !response.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("request-id")) {
        builder = builder.header("request-id", request_id);
    }
    for (name, value) in &response.headers {
        builder = builder.header(name, value);
    }
    let body = Body::from_stream(ResponseStream::new(response, tracker));
    builder.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

impl ServerState {
    pub(crate) fn new(script: Script, observer: Option<RequestObserver>) -> Self {
        let (script, requests) = (Mutex::new(script), Mutex::new(Vec::new()));
        Self { script, requests, changed: Notify::new(), ids: IdGenerator::default(), observer }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().clone()
    }

    pub(crate) async fn wait_until(&self, holds: impl Fn(&[ReceivedRequest]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Enabled before the check, so that no change in between is missed.
            changed.as_mut().enable();
            if holds(&self.requests.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Chooses the response and records the request.
    fn respond(server: &Arc<Self>, mut received: ReceivedRequest, request_id: &str) -> (ResponseTracker, MockResponse) {
        // Requests are numbered in the order in which their responses are chosen.
        let mut script = server.script.lock();
        received.number = server.requests.lock().len() + 1;
        let response = server.choose_response(&mut script, &mut received, request_id);
        received.status = response.status;
        let index = received.number - 1;
        if let Some(observer) = &server.observer {
            observer(&received);
            (received.body, received.request) = (String::new(), None);
        }
        server.requests.lock().push(received);
        drop(script);
        server.changed.notify_waiters();
        (ResponseTracker { server: Arc::clone(server), index, state: ResponseState::ClientDisconnected }, response)
    }

    fn choose_response(&self, script: &mut Script, received: &mut ReceivedRequest, request_id: &str) -> MockResponse {
        let Some(kind) = RequestKind::from_path(&received.method, &received.path) else {
            let recorded = script.respond_other(&received.method, &received.path);
            if let Some((name, response)) = recorded.and_then(|found| found.matched) {
                received.matched_rule = Some(name);
                return response;
            }
            let message = format!("the mock server has no {} {}", received.method, received.path);
            return MockResponse::from_error(404, &ApiErrorType::NotFound, &message, request_id);
        };
        let subagent = received.header(SUBAGENT_HEADER).is_some();
        let incoming = match IncomingRequest::parse(kind, &received.body, subagent) {
            Ok(incoming) => incoming,
            Err(error) => {
                let message = format!("request {} is invalid: {error}", received.number);
                return MockResponse::from_error(400, &ApiErrorType::InvalidRequest, &message, request_id);
            }
        };
        received.summary = incoming.summary();
        let is_message =
            |other: &&ReceivedRequest| RequestKind::from_path(&other.method, &other.path) == Some(RequestKind::Message);
        let call = self.requests.lock().iter().filter(is_message).count() + 1;
        let headers = received.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        let comparable = || ComparableRequest::new(&received.path, headers, &received.body);
        let found = script.respond(&incoming, comparable, call, &self.ids, request_id);
        received.request = Some(incoming.request);
        received.difference = found.difference;
        if let Some((rule, response)) = found.matched {
            received.matched_rule = Some(rule);
            return response;
        }
        let mut message = format!("no rule of the script matches request {} ({})", received.number, received.summary);
        if let Some(RequestDifference { call, at, recorded, received }) = &received.difference {
            message.push_str(&format!("; {call} differs at {at}: recorded {recorded:?}, received {received:?}"));
        }
        MockResponse::from_error(400, &ApiErrorType::InvalidRequest, &message, request_id)
    }

    pub(crate) fn unplayed_calls(&self) -> Vec<String> {
        self.script.lock().unplayed_calls()
    }
}

/// Records how a response ended, also if the client disconnects.
struct ResponseTracker {
    server: Arc<ServerState>,
    index: usize,
    state: ResponseState,
}

impl Drop for ResponseTracker {
    fn drop(&mut self) {
        if let Some(received) = self.server.requests.lock().get_mut(self.index) {
            received.state = self.state;
        }
        self.server.changed.notify_waiters();
    }
}

/// The body of a response, sent chunk by chunk.
struct ResponseStream {
    chunks: std::vec::IntoIter<String>,
    chunk_delay: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    has_started: bool,
    end: ResponseEnd,
    is_flushed: bool,
    tracker: ResponseTracker,
}

impl ResponseStream {
    fn new(response: MockResponse, tracker: ResponseTracker) -> Self {
        let MockResponse { chunks, chunk_delay, end, .. } = response;
        Self {
            chunks: chunks.into_iter(),
            chunk_delay,
            sleep: None,
            has_started: false,
            end,
            is_flushed: false,
            tracker,
        }
    }
}

impl Stream for ResponseStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.chunks.as_slice().is_empty() {
            return self.poll_end(context);
        }
        if self.has_started && !self.chunk_delay.is_zero() {
            let delay = self.chunk_delay;
            let timer = self.sleep.get_or_insert_with(|| Box::pin(sleep(delay)));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        self.has_started = true;
        Poll::Ready(self.chunks.next().map(|chunk| Ok(Bytes::from(chunk))))
    }
}

impl ResponseStream {
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.end {
            ResponseEnd::Hang => Poll::Pending,
            ResponseEnd::Complete => {
                self.tracker.state = ResponseState::Complete;
                Poll::Ready(None)
            }
            // The earlier chunks must be flushed before the connection breaks. The server flushes when
            // the body is pending once.
            ResponseEnd::Cut if !self.is_flushed => {
                self.is_flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            ResponseEnd::Cut => {
                self.tracker.state = ResponseState::Cut;
                Poll::Ready(Some(Err(io::Error::other("cut by the script"))))
            }
        }
    }
}
