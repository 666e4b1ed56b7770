//! What the tasks of one conversation share: who waits for which answer, what is to be
//! written, what was heard.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_message::control::{ControlRequest, ControlResponse, RequestBody, ResponseBody};
use quipu_message::{Entry, Json};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::mailbox::Mailbox;
use crate::options::Options;
use crate::{Error, Exit};

/// A line to write, and whom to tell when it is written.
pub(crate) struct OutgoingLine {
    pub(crate) bytes: Vec<u8>,
    pub(crate) on_written: oneshot::Sender<()>,
}

/// What one conversation's tasks share.
pub(crate) struct ConversationState {
    pub(crate) mailbox: Mailbox,
    pub(crate) callbacks: Callbacks,
    /// How long an answer may take.
    pub(crate) response_timeout: Duration,
    /// Whether prompts are taken as they are.
    pub(crate) verbatim_prompts: bool,
    outgoing: mpsc::Sender<OutgoingLine>,
    /// Nothing more will be said: what is on its way is written, then the way is closed.
    pub(crate) input_closed: CancellationToken,
    /// Ends the conversation at once.
    pub(crate) abort: CancellationToken,
    /// Ends it when the agent has said what it has to say.
    pub(crate) finish: CancellationToken,
    /// How it ended, when it has.
    pub(crate) ending: watch::Sender<Option<ConversationEnd>>,
    /// Whether a prompt waits for its result.
    pub(crate) is_in_turn: AtomicBool,
    /// Whether any prompt has had one.
    pub(crate) has_had_result: AtomicBool,
    /// Lines that could not be read, as people are told of them.
    pub(crate) on_bad_line: Option<BadLineFn>,
    pub(crate) stderr: Mutex<StderrTail>,
    pending_requests: Mutex<HashMap<String, oneshot::Sender<RequestResult>>>,
    next_request: AtomicU64,
}

/// Hears of a line that is no message.
pub(crate) type BadLineFn = Arc<dyn Fn(BadLine) + Send + Sync>;

type RequestResult = Result<Json, RequestFailure>;

/// No answer to what was asked.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The agent's no.
    Refused { error: String, code: Option<String> },
    /// Neither yes nor no.
    Unexpected(Json),
}

impl RequestFailure {
    fn into_error(self, request: String) -> Error {
        match self {
            Self::Refused { error, code } => Error::Refused { request, error, code },
            Self::Unexpected(answer) => {
                let source = serde::de::Error::custom("neither success nor error");
                Error::BadResponse { request, answer, source: Arc::new(source) }
            }
        }
    }
}

/// How a conversation ended.
#[derive(Debug, Clone)]
pub(crate) struct ConversationEnd {
    pub(crate) exit: Exit,
    /// Why nothing more can be said; none when this side wanted it so.
    pub(crate) error: Option<Error>,
}

/// A line of the agent that is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLine {
    /// The line, or its beginning.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ConversationState {
    pub(crate) fn new(options: &Options, callbacks: Callbacks) -> (Self, mpsc::Receiver<OutgoingLine>) {
        let (out, lines) = mpsc::channel(64);
        let link = Self {
            mailbox: Mailbox::new(options.max_buffered_bytes),
            callbacks,
            response_timeout: options.response_timeout,
            verbatim_prompts: options.verbatim_prompts,
            outgoing: out,
            input_closed: CancellationToken::new(),
            abort: CancellationToken::new(),
            finish: CancellationToken::new(),
            ending: watch::Sender::new(None),
            is_in_turn: AtomicBool::new(false),
            has_had_result: AtomicBool::new(false),
            on_bad_line: options.on_bad_line.clone(),
            stderr: Mutex::default(),
            pending_requests: Mutex::default(),
            next_request: AtomicU64::new(0),
        };
        (link, lines)
    }

    fn pending_requests(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<RequestResult>>> {
        self.pending_requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing can be said any more.
    pub(crate) fn closed_error(&self) -> Error {
        match &*self.ending.borrow() {
            Some(ConversationEnd { error: Some(error), .. }) => error.clone(),
            _ if self.is_closing() => Error::Closed,
            Some(ConversationEnd { exit, .. }) => Error::Ended(exit.clone()),
            None if self.input_closed.is_cancelled() => Error::Closed,
            // It reads no more, and how it ended is not known yet.
            None => Error::Ended(Exit::default()),
        }
    }

    /// Whether the end is what this side wants.
    pub(crate) fn is_closing(&self) -> bool {
        self.finish.is_cancelled() || self.abort.is_cancelled()
    }

    /// Tells everybody that the conversation is over; only the first word about it counts.
    pub(crate) fn end(&self, ending: ConversationEnd) {
        self.ending.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert_with(|| ending.clone());
            first
        });
        self.callbacks.cancel_all();
        self.mailbox.end(ending.error);
    }

    /// Writes one line and returns when it is written.
    pub(crate) async fn write(&self, what: &str, line: &impl Serialize, patience: Duration) -> Result<(), Error> {
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
        match tokio::time::timeout(patience, self.unless_ended(writing)).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(_) => Err(self.error_after_end().await),
            Err(_) => Err(Error::Timeout { what: what.to_owned(), after: patience }),
        }
    }

    /// Asks the agent something.
    pub(crate) async fn send_request(&self, request: RequestBody, patience: Duration) -> Result<Json, Error> {
        let what = request.tag().to_owned();
        let id = format!("quipu-{}", self.next_request.fetch_add(1, Ordering::Relaxed));
        let (answer, comes) = oneshot::channel();
        self.pending_requests().insert(id.clone(), answer);
        let waits = PendingRequestGuard { state: self, id: &id };
        let _room = self.mailbox.expect_response();
        let asking = async {
            let line = Entry::ControlRequest(Box::new(ControlRequest::new(&id, request)));
            self.write(&what, &line, patience).await?;
            match self.unless_ended(comes).await {
                Some(Ok(answer)) => answer.map_err(|refusal| refusal.into_error(what.clone())),
                _ => Err(self.error_after_end().await),
            }
        };
        let answer = tokio::time::timeout(patience, asking).await;
        drop(waits);
        answer.unwrap_or(Err(Error::Timeout { what, after: patience }))
    }

    /// Gives an answer to whoever waits for it; says whether anybody does.
    pub(crate) fn complete_request(&self, response: ControlResponse) -> bool {
        let Some(id) = response.response.request_id() else { return false };
        let Some(waits) = self.pending_requests().remove(&*id) else { return false };
        drop(id);
        let answer = match response.response {
            ResponseBody::Success(body) => Ok(body.response.into_option().unwrap_or_default()),
            ResponseBody::Error(body) => {
                Err(RequestFailure::Refused { error: body.error, code: body.error_code.into_option() })
            }
            other => Err(RequestFailure::Unexpected(Json::from_serialize(&other))),
        };
        // Whoever asked may have gone away since.
        let _ = waits.send(answer);
        true
    }

    /// What a future gives, or none when the conversation ends first.
    async fn unless_ended<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.ending.subscribe();
        tokio::select! {
            biased;
            value = future => Some(value),
            _ = ended.wait_for(Option::is_some) => None,
        }
    }

    /// Why nothing can be said any more, when the last word about it is not yet spoken:
    /// the pipe may break a moment before it is known how the agent ended.
    async fn error_after_end(&self) -> Error {
        if !self.input_closed.is_cancelled() {
            let mut ended = self.ending.subscribe();
            let known = ended.wait_for(Option::is_some);
            let _ = tokio::time::timeout(Duration::from_secs(10), known).await;
        }
        self.closed_error()
    }

    /// Tells whoever wants to know of a line that is no message.
    pub(crate) fn report_bad_line(&self, text: &[u8], reason: impl Into<String>) {
        if let Some(tell) = &self.on_bad_line {
            let shown = &text[..text.len().min(500)];
            let text = String::from_utf8_lossy(shown).into_owned();
            let bad = BadLine { text, reason: reason.into() };
            // The caller's own mistake must not end the conversation.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(bad)));
        }
    }

    /// The last that the agent wrote to stderr.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

/// Somebody waits for an answer; when they stop waiting, they are forgotten.
struct PendingRequestGuard<'a> {
    state: &'a ConversationState,
    id: &'a str,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.state.pending_requests().remove(self.id);
    }
}

/// The last lines of something long.
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
