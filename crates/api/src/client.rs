//! The client: asks, listens, waits and asks again.

use std::sync::Arc;
use std::time::Duration;

use quipu_message::api::StreamEvent;
use quipu_message::{Block, Message, RequestId};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::endpoint::{Endpoint, EndpointError};
use crate::error::ApiError;
use crate::hear::{Gone, Hearing, Line};
use crate::request::Request;
use crate::retry::{Pace, WallClock};

/// The target of events for `--debug`.
const DEBUG: &str = "quipu::api";

/// How many things heard may wait for the one who asked.
const HELD: usize = 64;

/// Asks one endpoint. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    line: Arc<Line>,
}

/// What is heard while an answer is under way.
#[derive(Debug)]
pub enum Heard {
    /// An answer begins: the message still without content, and the call's id.
    Began {
        /// The message; when it is not streamed, already with its stop reason and usage.
        message: Message,
        /// The call.
        request_id: Option<RequestId>,
    },
    /// An event of a streamed answer.
    Event(StreamEvent),
    /// A block is complete. A tool's input that is not JSON reads as an empty object.
    Block {
        /// Which one.
        index: usize,
        /// The block.
        block: Block,
    },
    /// The answer broke: everything since `Began` is void.
    Withdrawn,
    /// The call failed and will be made again after a wait.
    Retry(Retry),
    /// The model stayed overloaded; another one is asked from now on.
    FellBack {
        /// The model that was asked for.
        from: String,
        /// The model that is asked.
        to: String,
    },
    /// The answer is complete. Nothing comes after it.
    Done(Answer),
}

/// A call failed and will be made again.
#[derive(Debug)]
pub struct Retry {
    /// Which retry, counted from 1.
    pub attempt: u32,
    /// How many there may be.
    pub of: u32,
    /// How long it waits.
    pub delay: Duration,
    /// Why.
    pub error: ApiError,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The message, with stop reason and usage.
    pub message: Message,
    /// The call.
    pub request_id: Option<RequestId>,
}

impl Client {
    /// A client of this endpoint.
    pub fn new(endpoint: Endpoint) -> Result<Self, EndpointError> {
        Self::paced(endpoint, Arc::new(WallClock))
    }

    /// A client that waits and draws lots as it is told.
    pub fn paced(endpoint: Endpoint, pace: Arc<dyn Pace>) -> Result<Self, EndpointError> {
        let http = endpoint.http()?;
        Ok(Self { line: Arc::new(Line { http, endpoint, pace }) })
    }

    /// Whom it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.line.endpoint
    }

    /// Asks. Dropping what is returned breaks off the call.
    ///
    /// Must be called inside a tokio runtime.
    pub fn ask(&self, request: &Request) -> Asking {
        self.send(request.clone())
    }

    /// Asks like [`Client::ask`], and keeps a request that may be large from being copied.
    pub fn send(&self, request: Request) -> Asking {
        let (out, heard) = mpsc::channel(HELD);
        let call = Call { line: Arc::clone(&self.line), request, hearing: Hearing::new(out) };
        Asking { heard, task: tokio::spawn(call.run()).abort_handle() }
    }

    /// Asks how many tokens the prompt of a request has.
    pub async fn count_tokens(&self, request: &Request) -> Result<u64, ApiError> {
        let policy = &self.line.endpoint.policy;
        let mut attempt = 1;
        loop {
            let error = match self.line.count(request).await {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            let Some(delay) = policy.wait(&error, attempt, self.line.pace.random()) else { return Err(error) };
            self.line.pace.sleep(delay).await;
            attempt += 1;
        }
    }
}

/// A call under way.
#[derive(Debug)]
pub struct Asking {
    heard: mpsc::Receiver<Result<Heard, ApiError>>,
    task: AbortHandle,
}

impl Asking {
    /// The next thing heard; none after `Done` or an error.
    ///
    /// Safe to drop and call again: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Heard, ApiError>> {
        self.heard.recv().await
    }

    /// Listens to the end and keeps only the answer.
    pub async fn answer(mut self) -> Result<Answer, ApiError> {
        while let Some(heard) = self.next().await {
            if let Heard::Done(answer) = heard? {
                return Ok(answer);
            }
        }
        Err(ApiError::BadRequest { reason: "the runtime shut down".to_owned() })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One question, over as many attempts as it takes.
struct Call {
    line: Arc<Line>,
    request: Request,
    hearing: Hearing,
}

impl Call {
    async fn run(mut self) {
        // An error here is a listener who left: nobody is there to tell.
        let _ = self.attempts().await;
    }

    async fn attempts(&mut self) -> Result<(), Gone> {
        let policy = self.line.endpoint.policy;
        let mut streaming = true;
        let mut may_unstream = true;
        let (mut attempt, mut overloads) = (1, 0);
        let mut wire = self.request.take_wire();
        loop {
            self.request.aim(&mut wire, streaming);
            tracing::debug!(target: DEBUG, model = %self.request.model, attempt, streaming, "request");
            let error = match self.line.ask(&self.request, &wire, &mut self.hearing).await? {
                Ok(answer) => {
                    let stop_reason = answer.message.stop_reason.text();
                    let id = answer.request_id.as_ref().map(RequestId::as_str);
                    tracing::debug!(target: DEBUG, ?id, ?stop_reason, "answer");
                    return self.hearing.say(Heard::Done(answer)).await;
                }
                Err(error) => error,
            };
            tracing::debug!(target: DEBUG, %error, "failed");
            self.hearing.withdraw().await?;
            streaming = true;
            // A server that fails while it streams may still answer in one piece.
            if may_unstream && matches!(error, ApiError::Failed { .. }) {
                (streaming, may_unstream) = (false, false);
                continue;
            }
            overloads = if error.is_overloaded() { overloads + 1 } else { 0 };
            let wait = policy.wait(&error, attempt, self.line.pace.random());
            let hopeless = overloads >= policy.overloads || overloads > 0 && wait.is_none();
            if hopeless && let Some((from, to)) = self.request.fall_back() {
                tracing::debug!(target: DEBUG, %from, %to, "fallback");
                self.hearing.say(Heard::FellBack { from, to }).await?;
                (attempt, overloads) = (1, 0);
                continue;
            }
            let Some(delay) = wait else { return self.hearing.fail(error).await };
            tracing::debug!(target: DEBUG, ?delay, attempt, of = policy.retries, "retry");
            self.hearing.say(Heard::Retry(Retry { attempt, of: policy.retries, delay, error })).await?;
            self.line.pace.sleep(delay).await;
            attempt += 1;
        }
    }
}
