//! The server: reads a request, asks the script, plays the answer.

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
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use super::incoming::{IncomingRequest, RequestKind};
use super::recording::SUBAGENT_HEADER;
use super::response::{IdGenerator, MockResponse, ResponseEnd};
use super::{ReceivedRequest, ResponseState, Script};
use crate::secret::Secret;

/// The most bytes of a request.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// What all requests share.
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
        f.debug_struct("Desk").field("seen", &self.requests().len()).finish_non_exhaustive()
    }
}

pub(crate) async fn serve(listener: TcpListener, desk: Arc<ServerState>) {
    let prompt = listener.tap_io(|tcp| {
        // Small pieces are to arrive as they are sent; without it they arrive too, later.
        let _ = tcp.set_nodelay(true);
    });
    // It ends only when it is dropped.
    let _ = axum::serve(prompt, Router::new().fallback(handle_request).with_state(desk)).await;
}

async fn handle_request(State(desk): State<Arc<ServerState>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let text = |value: &axum::http::HeaderValue| Secret::from(String::from_utf8_lossy(value.as_bytes()).into_owned());
    let seen = ReceivedRequest {
        number: 0,
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        body: String::from_utf8(body.into()).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        request: None,
        summary: String::new(),
        matched_rule: None,
        status: 0,
        state: ResponseState::InProgress,
    };
    let request_id = desk.ids.next_id("req");
    let (watch, play) = ServerState::respond(&desk, seen, &request_id);
    if !play.delay.is_zero() {
        sleep(play.delay).await;
    }
    let status = StatusCode::from_u16(play.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::builder().status(status).header("content-type", play.content_type);
    response = response.header("request-id", request_id);
    for (name, value) in &play.headers {
        response = response.header(name, value);
    }
    let body = Body::from_stream(ResponseStream::new(play, watch));
    response.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

impl ServerState {
    pub(crate) fn new(script: Script, tell: Option<RequestObserver>) -> Self {
        let (script, seen) = (Mutex::new(script), Mutex::new(Vec::new()));
        Self { script, requests: seen, changed: Notify::new(), ids: IdGenerator::default(), observer: tell }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().clone()
    }

    pub(crate) async fn wait_until(&self, holds: impl Fn(&[ReceivedRequest]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Listens before it looks, so that no change slips through between the two.
            changed.as_mut().enable();
            if holds(&self.requests.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Decides how to answer, and writes it down.
    fn respond(desk: &Arc<Self>, mut seen: ReceivedRequest, request_id: &str) -> (ResponseTracker, MockResponse) {
        // Requests are numbered in the order in which they are decided.
        let mut script = desk.script.lock();
        seen.number = desk.requests.lock().len() + 1;
        let play = desk.choose_response(&mut script, &mut seen, request_id);
        seen.status = play.status;
        let index = seen.number - 1;
        if let Some(tell) = &desk.observer {
            tell(&seen);
            (seen.body, seen.request) = (String::new(), None);
        }
        desk.requests.lock().push(seen);
        drop(script);
        desk.changed.notify_waiters();
        (ResponseTracker { server: Arc::clone(desk), index, state: ResponseState::ClientDisconnected }, play)
    }

    fn choose_response(&self, script: &mut Script, seen: &mut ReceivedRequest, request_id: &str) -> MockResponse {
        let Some(asked) = RequestKind::from_path(&seen.method, &seen.path) else {
            let message = format!("the answerer has no {} {}", seen.method, seen.path);
            return MockResponse::from_error(404, "not_found_error", &message, request_id);
        };
        let subagent = seen.header(SUBAGENT_HEADER).is_some();
        let question = match IncomingRequest::parse(asked, &seen.body, subagent) {
            Ok(question) => question,
            Err(error) => {
                let message = format!("request {} is not one: {error}", seen.number);
                return MockResponse::from_error(400, "invalid_request_error", &message, request_id);
            }
        };
        seen.summary = question.summary();
        let is_message =
            |other: &&ReceivedRequest| RequestKind::from_path(&other.method, &other.path) == Some(RequestKind::Message);
        let call = self.requests.lock().iter().filter(is_message).count() + 1;
        let play = script.respond(&question, call, &self.ids, request_id);
        seen.request = Some(question.request);
        match play {
            Some((rule, play)) => {
                seen.matched_rule = Some(rule);
                play
            }
            None => {
                let message = format!("nothing in the script fits request {} ({})", seen.number, seen.summary);
                MockResponse::from_error(400, "invalid_request_error", &message, request_id)
            }
        }
    }
}

/// Writes down how an answer ended, also when the other side leaves.
struct ResponseTracker {
    server: Arc<ServerState>,
    index: usize,
    state: ResponseState,
}

impl Drop for ResponseTracker {
    fn drop(&mut self) {
        if let Some(seen) = self.server.requests.lock().get_mut(self.index) {
            seen.state = self.state;
        }
        self.server.changed.notify_waiters();
    }
}

/// The body of an answer as it is played.
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
    fn new(play: MockResponse, watch: ResponseTracker) -> Self {
        let MockResponse { chunks: pieces, chunk_delay: pause, end: finish, .. } = play;
        Self {
            chunks: pieces.into_iter(),
            chunk_delay: pause,
            sleep: None,
            has_started: false,
            end: finish,
            is_flushed: false,
            tracker: watch,
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
            let pause = self.chunk_delay;
            let waiting = self.sleep.get_or_insert_with(|| Box::pin(sleep(pause)));
            if waiting.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        self.has_started = true;
        Poll::Ready(self.chunks.next().map(|piece| Ok(Bytes::from(piece))))
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
            // What was sent before must be out before the connection breaks: the server
            // flushes when there is nothing more to send for a moment.
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
