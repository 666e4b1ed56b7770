//! The client: asks, listens, waits and asks again.

use std::sync::Arc;
use std::time::Duration;

use quipu_message::api::StreamEvent;
use quipu_message::{Block, Message, RequestId};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::attempt::{Connection, EventSender, ReceiverDropped};
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::ApiError;
use crate::request::Request;
use crate::retry::{RetryClock, SystemClock};

/// The target of events for `--debug`.
const DEBUG_TARGET: &str = "quipu::api";

/// How many things heard may wait for the one who asked.
const MAX_QUEUED_EVENTS: usize = 64;

/// Asks one endpoint. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

/// What is heard while an answer is under way.
#[derive(Debug)]
pub enum ApiEvent {
    /// An answer begins: the message still without content, and the call's id.
    Started {
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
    ModelFallback {
        /// The model that was asked for.
        from: String,
        /// The model that is asked.
        to: String,
    },
    /// The answer is complete. Nothing comes after it.
    Completed(ApiResponse),
}

/// A call failed and will be made again.
#[derive(Debug)]
pub struct Retry {
    /// Which retry, counted from 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_retries: u32,
    /// How long it waits.
    pub delay: Duration,
    /// Why.
    pub error: ApiError,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// The message, with stop reason and usage.
    pub message: Message,
    /// The call.
    pub request_id: Option<RequestId>,
}

impl Client {
    /// A client of this endpoint.
    pub fn new(endpoint: Endpoint) -> Result<Self, EndpointError> {
        Self::with_clock(endpoint, Arc::new(SystemClock))
    }

    /// A client that waits and draws lots as it is told.
    pub fn with_clock(endpoint: Endpoint, pace: Arc<dyn RetryClock>) -> Result<Self, EndpointError> {
        let http = endpoint.http_client()?;
        Ok(Self { connection: Arc::new(Connection { http, endpoint, clock: pace }) })
    }

    /// Whom it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }

    /// Asks. Dropping what is returned breaks off the call.
    ///
    /// Must be called inside a tokio runtime.
    pub fn call(&self, request: &Request) -> ApiCall {
        self.send(request.clone())
    }

    /// Asks like [`Client::call`], and keeps a request that may be large from being copied.
    pub fn send(&self, request: Request) -> ApiCall {
        let (out, heard) = mpsc::channel(MAX_QUEUED_EVENTS);
        let call = CallTask { connection: Arc::clone(&self.connection), request, sender: EventSender::new(out) };
        ApiCall { events: heard, task: tokio::spawn(call.run()).abort_handle() }
    }

    /// Asks how many tokens the prompt of a request has.
    pub async fn count_tokens(&self, request: &Request) -> Result<u64, ApiError> {
        let policy = &self.connection.endpoint.retry_policy;
        let mut attempt = 1;
        loop {
            let error = match self.connection.count_tokens(request).await {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            let Some(delay) = policy.retry_delay(&error, attempt, self.connection.clock.random()) else {
                return Err(error);
            };
            self.connection.clock.sleep(delay).await;
            attempt += 1;
        }
    }
}

/// A call under way.
#[derive(Debug)]
pub struct ApiCall {
    events: mpsc::Receiver<Result<ApiEvent, ApiError>>,
    task: AbortHandle,
}

impl ApiCall {
    /// The next thing heard; none after `Done` or an error.
    ///
    /// Safe to drop and call again: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<ApiEvent, ApiError>> {
        self.events.recv().await
    }

    /// Listens to the end and keeps only the answer.
    pub async fn response(mut self) -> Result<ApiResponse, ApiError> {
        while let Some(heard) = self.next().await {
            if let ApiEvent::Completed(answer) = heard? {
                return Ok(answer);
            }
        }
        Err(ApiError::BadRequest { reason: "the runtime shut down".to_owned() })
    }
}

impl Drop for ApiCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One question, over as many attempts as it takes.
struct CallTask {
    connection: Arc<Connection>,
    request: Request,
    sender: EventSender,
}

impl CallTask {
    async fn run(mut self) {
        // An error here is a listener who left: nobody is there to tell.
        let _ = self.run_attempts().await;
    }

    async fn run_attempts(&mut self) -> Result<(), ReceiverDropped> {
        let policy = self.connection.endpoint.retry_policy;
        let mut streaming = true;
        let mut may_unstream = true;
        let (mut attempt, mut overloads) = (1, 0);
        let mut wire = self.request.take_wire_request();
        loop {
            self.request.set_model_and_stream(&mut wire, streaming);
            tracing::debug!(target: DEBUG_TARGET, model = %self.request.model, attempt, streaming, "request");
            let error = match self.connection.request_message(&self.request, &wire, &mut self.sender).await? {
                Ok(answer) => {
                    let stop_reason = answer.message.stop_reason.text();
                    let id = answer.request_id.as_ref().map(RequestId::as_str);
                    tracing::debug!(target: DEBUG_TARGET, ?id, ?stop_reason, "answer");
                    return self.sender.send(ApiEvent::Completed(answer)).await;
                }
                Err(error) => error,
            };
            tracing::debug!(target: DEBUG_TARGET, %error, "failed");
            self.sender.withdraw().await?;
            streaming = true;
            // A server that fails while it streams may still answer in one piece.
            if may_unstream && matches!(error, ApiError::StreamFailed { .. }) {
                (streaming, may_unstream) = (false, false);
                continue;
            }
            overloads = if error.is_overloaded() { overloads + 1 } else { 0 };
            let wait = policy.retry_delay(&error, attempt, self.connection.clock.random());
            let hopeless = overloads >= policy.overloads_before_fallback || overloads > 0 && wait.is_none();
            if hopeless && let Some((from, to)) = self.request.switch_to_fallback() {
                tracing::debug!(target: DEBUG_TARGET, %from, %to, "fallback");
                self.sender.send(ApiEvent::ModelFallback { from, to }).await?;
                (attempt, overloads) = (1, 0);
                continue;
            }
            let Some(delay) = wait else { return self.sender.send_error(error).await };
            tracing::debug!(target: DEBUG_TARGET, ?delay, attempt, of = policy.max_retries, "retry");
            self.sender.send(ApiEvent::Retry(Retry { attempt, max_retries: policy.max_retries, delay, error })).await?;
            self.connection.clock.sleep(delay).await;
            attempt += 1;
        }
    }
}
