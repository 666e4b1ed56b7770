//! The server: reads a request, asks the script, plays the answer.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use super::play::{Finish, Ids, Play};
use super::question::{Asked, Question};
use super::recorded::SUBAGENT;
use super::{End, Script, Seen};
use crate::secret::Secret;

/// The most bytes of a request.
const LARGEST: usize = 256 << 20;

/// What all requests share.
pub(crate) struct Desk {
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
    changed: Notify,
    ids: Ids,
    /// Who is told of each request; then what was asked is not kept.
    tell: Option<Tell>,
}

/// Is told of a request.
pub(crate) type Tell = Box<dyn Fn(&Seen) + Send + Sync>;

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("seen", &self.seen().len()).finish_non_exhaustive()
    }
}

pub(crate) async fn run(listener: TcpListener, desk: Arc<Desk>) {
    let prompt = listener.tap_io(|tcp| {
        // Small pieces are to arrive as they are sent; without it they arrive too, later.
        let _ = tcp.set_nodelay(true);
    });
    // It ends only when it is dropped.
    let _ = axum::serve(prompt, Router::new().fallback(answer).with_state(desk)).await;
}

async fn answer(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let text = |value: &axum::http::HeaderValue| Secret::from(String::from_utf8_lossy(value.as_bytes()).into_owned());
    let seen = Seen {
        number: 0,
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        body: String::from_utf8(body.into()).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        request: None,
        summary: String::new(),
        rule: None,
        status: 0,
        end: End::Playing,
    };
    let request_id = desk.ids.make("req");
    let (watch, play) = Desk::decide(&desk, seen, &request_id);
    if !play.delay.is_zero() {
        sleep(play.delay).await;
    }
    let status = StatusCode::from_u16(play.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::builder().status(status).header("content-type", play.kind);
    response = response.header("request-id", request_id);
    for (name, value) in &play.headers {
        response = response.header(name, value);
    }
    let body = Body::from_stream(Playing::new(play, watch));
    response.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

impl Desk {
    pub(crate) fn new(script: Script, tell: Option<Tell>) -> Self {
        let (script, seen) = (Mutex::new(script), Mutex::new(Vec::new()));
        Self { script, seen, changed: Notify::new(), ids: Ids::default(), tell }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        held(&self.seen).clone()
    }

    pub(crate) async fn until(&self, holds: impl Fn(&[Seen]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Listens before it looks, so that no change slips through between the two.
            changed.as_mut().enable();
            if holds(&held(&self.seen)) {
                return;
            }
            changed.await;
        }
    }

    /// Decides how to answer, and writes it down.
    fn decide(desk: &Arc<Self>, mut seen: Seen, request_id: &str) -> (Watch, Play) {
        // Requests are numbered in the order in which they are decided.
        let mut script = held(&desk.script);
        seen.number = held(&desk.seen).len() + 1;
        let play = desk.judge(&mut script, &mut seen, request_id);
        seen.status = play.status;
        let index = seen.number - 1;
        if let Some(tell) = &desk.tell {
            tell(&seen);
            (seen.body, seen.request) = (String::new(), None);
        }
        held(&desk.seen).push(seen);
        drop(script);
        desk.changed.notify_waiters();
        (Watch { desk: Arc::clone(desk), index, end: End::Left }, play)
    }

    fn judge(&self, script: &mut Script, seen: &mut Seen, request_id: &str) -> Play {
        let Some(asked) = Asked::of(&seen.method, &seen.path) else {
            let message = format!("the answerer has no {} {}", seen.method, seen.path);
            return Play::error(404, "not_found_error", &message, request_id);
        };
        let subagent = seen.header(SUBAGENT).is_some();
        let question = match Question::read(asked, &seen.body, subagent) {
            Ok(question) => question,
            Err(error) => {
                let message = format!("request {} is not one: {error}", seen.number);
                return Play::error(400, "invalid_request_error", &message, request_id);
            }
        };
        seen.summary = question.summary();
        let is_message = |other: &&Seen| Asked::of(&other.method, &other.path) == Some(Asked::Message);
        let call = held(&self.seen).iter().filter(is_message).count() + 1;
        let play = script.play(&question, call, &self.ids, request_id);
        seen.request = Some(question.request);
        match play {
            Some((rule, play)) => {
                seen.rule = Some(rule);
                play
            }
            None => {
                let message = format!("nothing in the script fits request {} ({})", seen.number, seen.summary);
                Play::error(400, "invalid_request_error", &message, request_id)
            }
        }
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves a list of what was seen, which is still true.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes down how an answer ended, also when the other side leaves.
struct Watch {
    desk: Arc<Desk>,
    index: usize,
    end: End,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(seen) = held(&self.desk.seen).get_mut(self.index) {
            seen.end = self.end;
        }
        self.desk.changed.notify_waiters();
    }
}

/// The body of an answer as it is played.
struct Playing {
    pieces: std::vec::IntoIter<String>,
    pause: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    begun: bool,
    finish: Finish,
    flushed: bool,
    watch: Watch,
}

impl Playing {
    fn new(play: Play, watch: Watch) -> Self {
        let Play { pieces, pause, finish, .. } = play;
        Self { pieces: pieces.into_iter(), pause, waiting: None, begun: false, finish, flushed: false, watch }
    }
}

impl Stream for Playing {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.pieces.as_slice().is_empty() {
            return self.end(context);
        }
        if self.begun && !self.pause.is_zero() {
            let pause = self.pause;
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(pause)));
            if waiting.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.waiting = None;
        }
        self.begun = true;
        Poll::Ready(self.pieces.next().map(|piece| Ok(Bytes::from(piece))))
    }
}

impl Playing {
    fn end(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.finish {
            Finish::Hang => Poll::Pending,
            Finish::End => {
                self.watch.end = End::Whole;
                Poll::Ready(None)
            }
            // What was sent before must be out before the connection breaks: the server
            // flushes when there is nothing more to send for a moment.
            Finish::Cut if !self.flushed => {
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Finish::Cut => {
                self.watch.end = End::Cut;
                Poll::Ready(Some(Err(io::Error::other("cut by the script"))))
            }
        }
    }
}
