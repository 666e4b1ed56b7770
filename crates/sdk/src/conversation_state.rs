//! State that the tasks of one conversation share: pending control requests, lines to
//! write, messages to read, and how the conversation ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_message::control::{ControlRequest, ControlResponse, RequestBody, ResponseBody};
use quipu_message::{Entry, Json};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::mailbox::Mailbox;
use crate::{Error, Exit};

/// A line for the agent, and the signal that it was written.
pub(crate) struct OutgoingLine {
    pub(crate) bytes: Vec<u8>,
    pub(crate) on_written: oneshot::Sender<()>,
}

/// State shared by the tasks of one conversation.
pub(crate) struct ConversationState {
    pub(crate) mailbox: Mailbox,
    /// Cancels the running callbacks and refuses new ones.
    pub(crate) callbacks_cancelled: CancellationToken,
    /// Time limit for the response to a control request.
    pub(crate) response_timeout: Duration,
    /// Whether prompts are marked as free of `@file` and `/command`.
    pub(crate) verbatim_prompts: bool,
    outgoing: mpsc::Sender<OutgoingLine>,
    /// Closes the agent's input after the lines that are queued.
    pub(crate) input_closed: CancellationToken,
    /// Kills the agent at once.
    pub(crate) abort: CancellationToken,
    /// Lets the agent finish, up to the close timeout.
    pub(crate) finish: CancellationToken,
    /// How the conversation ended; `None` while it is open.
    pub(crate) ending: watch::Sender<Option<ConversationEnd>>,
    /// Whether the result of a prompt is still to come.
    pub(crate) is_in_turn: AtomicBool,
    /// Whether any result was received.
    pub(crate) has_had_result: AtomicBool,
    /// Called for each line that is not a message.
    pub(crate) on_bad_line: Option<BadLineFn>,
    pub(crate) stderr: Mutex<StderrTail>,
    pending_requests: Mutex<HashMap<String, oneshot::Sender<RequestResult>>>,
    next_request: AtomicU64,
}

/// Values of [`Options`](crate::Options) that the state needs.
pub(crate) struct StateOptions {
    pub(crate) max_buffered_bytes: usize,
    pub(crate) response_timeout: Duration,
    pub(crate) verbatim_prompts: bool,
    pub(crate) on_bad_line: Option<BadLineFn>,
}

/// Called for each line that is not a message.
pub(crate) type BadLineFn = Arc<dyn Fn(BadLine) + Send + Sync>;

/// Called for each line of the agent's stderr.
pub(crate) type StderrFn = Arc<dyn Fn(&str) + Send + Sync>;

type RequestResult = Result<Json, RequestFailure>;

/// A control request failed.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The agent responded with an error.
    Refused { error: String, code: Option<String> },
    /// The response is neither a success nor an error.
    Unexpected(Json),
}

impl RequestFailure {
    fn into_error(self, request: String) -> Error {
        match self {
            Self::Refused { error, code } => Error::Refused { request, error, code },
            Self::Unexpected(response) => {
                let source = serde::de::Error::custom("neither success nor error");
                Error::BadResponse { request, response, source: Arc::new(source) }
            }
        }
    }
}

/// How a conversation ended.
#[derive(Debug, Clone)]
pub(crate) struct ConversationEnd {
    pub(crate) exit: Exit,
    /// Why the conversation broke; `None` if the host ended it.
    pub(crate) error: Option<Error>,
}

/// A line of the agent's output that is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLine {
    /// The line, or its first 500 bytes.
    pub text: String,
    /// Why the line cannot be read.
    pub reason: String,
}

impl ConversationState {
    pub(crate) fn new(options: StateOptions) -> (Self, mpsc::Receiver<OutgoingLine>) {
        let (outgoing, lines) = mpsc::channel(64);
        let state = Self {
            mailbox: Mailbox::new(options.max_buffered_bytes),
            callbacks_cancelled: CancellationToken::new(),
            response_timeout: options.response_timeout,
            verbatim_prompts: options.verbatim_prompts,
            outgoing,
            input_closed: CancellationToken::new(),
            abort: CancellationToken::new(),
            finish: CancellationToken::new(),
            ending: watch::Sender::new(None),
            is_in_turn: AtomicBool::new(false),
            has_had_result: AtomicBool::new(false),
            on_bad_line: options.on_bad_line,
            stderr: Mutex::default(),
            pending_requests: Mutex::default(),
            next_request: AtomicU64::new(0),
        };
        (state, lines)
    }

    /// The error for an operation after the end of the conversation.
    pub(crate) fn closed_error(&self) -> Error {
        match &*self.ending.borrow() {
            Some(ConversationEnd { error: Some(error), .. }) => error.clone(),
            _ if self.is_closing() => Error::Closed,
            Some(ConversationEnd { exit, .. }) => Error::Ended(exit.clone()),
            None if self.input_closed.is_cancelled() => Error::Closed,
            // The agent closed its input; its exit is not known yet.
            None => Error::Ended(Exit::default()),
        }
    }

    /// Whether the host asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.finish.is_cancelled() || self.abort.is_cancelled()
    }

    /// Ends the conversation for all tasks. Only the first call has an effect on `ending`.
    pub(crate) fn end(&self, ending: ConversationEnd) {
        self.ending.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert_with(|| ending.clone());
            first
        });
        self.callbacks_cancelled.cancel();
        self.mailbox.end(ending.error);
    }

    /// Writes one line and returns when the transport has taken it.
    pub(crate) async fn write(&self, what: &str, line: &impl Serialize, timeout: Duration) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| Error::Serialise(Arc::new(error)))?;
        bytes.push(b'\n');
        if self.input_closed.is_cancelled() {
            return Err(self.closed_error());
        }
        let (written, is_written) = oneshot::channel();
        let writing = async {
            self.outgoing.send(OutgoingLine { bytes, on_written: written }).await.map_err(|_| ())?;
            is_written.await.map_err(|_| ())
        };
        match tokio::time::timeout(timeout, self.unless_ended(writing)).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(_) => Err(self.error_after_end().await),
            Err(_) => Err(Error::Timeout { what: what.to_owned(), after: timeout }),
        }
    }

    /// Sends a control request and returns the payload of its response.
    pub(crate) async fn send_request(&self, request: RequestBody, timeout: Duration) -> Result<Json, Error> {
        let what = request.tag().to_owned();
        tracing::debug!(target: crate::LOG_TARGET, subtype = %what, "control request");
        let id = format!("quipu-{}", self.next_request.fetch_add(1, Ordering::Relaxed));
        let (waiter, response) = oneshot::channel();
        self.pending_requests.lock().insert(id.clone(), waiter);
        let guard = PendingRequestGuard { state: self, id: &id };
        let _expectation = self.mailbox.expect_response();
        let exchange = async {
            let line = Entry::ControlRequest(Box::new(ControlRequest::new(&id, request)));
            self.write(&what, &line, timeout).await?;
            match self.unless_ended(response).await {
                Some(Ok(response)) => response.map_err(|failure| failure.into_error(what.clone())),
                _ => Err(self.error_after_end().await),
            }
        };
        let response = tokio::time::timeout(timeout, exchange).await;
        drop(guard);
        response.unwrap_or(Err(Error::Timeout { what, after: timeout }))
    }

    /// Hands a response to the request that waits for it; `false` if there is none.
    pub(crate) fn complete_request(&self, response: ControlResponse) -> bool {
        let Some(id) = response.response.request_id() else { return false };
        let Some(waiter) = self.pending_requests.lock().remove(&*id) else { return false };
        drop(id);
        let result = match response.response {
            ResponseBody::Success(body) => Ok(body.response.into_option().unwrap_or_default()),
            ResponseBody::Error(body) => {
                Err(RequestFailure::Refused { error: body.error, code: body.error_code.into_option() })
            }
            other => Err(RequestFailure::Unexpected(Json::from_serialize(&other))),
        };
        // The requesting future may have been dropped.
        let _ = waiter.send(result);
        true
    }

    /// The output of a future; `None` if the conversation ends first.
    async fn unless_ended<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.ending.subscribe();
        tokio::select! {
            biased;
            value = future => Some(value),
            _ = ended.wait_for(Option::is_some) => None,
        }
    }

    /// Like [`closed_error`](Self::closed_error), after waiting for the agent's exit: a pipe
    /// may break a moment before the exit is known, and the exit says more.
    async fn error_after_end(&self) -> Error {
        if !self.input_closed.is_cancelled() {
            let mut ended = self.ending.subscribe();
            let known = ended.wait_for(Option::is_some);
            let _ = tokio::time::timeout(Duration::from_secs(10), known).await;
        }
        self.closed_error()
    }

    /// Passes a line that is not a message to the callback of the host, if there is one.
    pub(crate) fn report_bad_line(&self, text: &[u8], reason: impl Into<String>) {
        if let Some(on_bad_line) = &self.on_bad_line {
            let shown = &text[..text.len().min(500)];
            let text = String::from_utf8_lossy(shown).into_owned();
            let bad = BadLine { text, reason: reason.into() };
            // A panic in the callback must not end the conversation.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_bad_line(bad)));
        }
    }

    /// The last lines that the agent wrote to stderr.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr.lock().text()
    }
}

/// Removes a pending request when its future completes or is dropped.
struct PendingRequestGuard<'a> {
    state: &'a ConversationState,
    id: &'a str,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.state.pending_requests.lock().remove(self.id);
    }
}

/// The last lines of stderr.
#[derive(Default)]
pub(crate) struct StderrTail {
    lines: VecDeque<String>,
    bytes: usize,
}

impl StderrTail {
    const MAX_TAIL_BYTES: usize = 8 * 1024;

    pub(crate) fn push(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.bytes > Self::MAX_TAIL_BYTES && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }

    fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
