//! The client: sends requests, decides on retries and fallback models.

use std::sync::Arc;

use tracing::Instrument as _;

use crate::LOG_TARGET;
use crate::attempt::Connection;
use crate::call::ApiCall;
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::ApiError;
use crate::event::{ApiEvent, EventSender, ReceiverDropped, Retry};
use crate::request::Request;
use crate::retry::{RetryClock, SystemClock};

/// Events that may wait for the caller; then reading from the server pauses.
const MAX_QUEUED_EVENTS: usize = 64;

/// Client of one endpoint. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

impl Client {
    /// A client of `endpoint`. Fails if its headers, proxy or certificates are invalid.
    pub fn new(endpoint: Endpoint) -> Result<Self, EndpointError> {
        Self::with_clock(endpoint, Arc::new(SystemClock))
    }

    /// Like [`Client::new`], with the clock that retries are timed by.
    pub fn with_clock(endpoint: Endpoint, clock: Arc<dyn RetryClock>) -> Result<Self, EndpointError> {
        let http = endpoint.http_client()?;
        Ok(Self { connection: Arc::new(Connection { http, endpoint, clock }) })
    }

    /// The endpoint that requests go to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }

    /// Sends a copy of the request; see [`Client::send`].
    pub fn call(&self, request: &Request) -> ApiCall {
        self.send(request.clone())
    }

    /// Sends a request. Dropping the returned call cancels it.
    ///
    /// Failed attempts are repeated as the endpoint's
    /// [`RetryPolicy`](crate::RetryPolicy) says.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn send(&self, request: Request) -> ApiCall {
        let (sender, receiver) = EventSender::channel(MAX_QUEUED_EVENTS);
        let span = tracing::debug_span!(target: LOG_TARGET, "api_call", model = %request.model);
        let task = CallTask { connection: Arc::clone(&self.connection), request, sender };
        let task = tokio::spawn(task.run().instrument(span.clone())).abort_handle();
        ApiCall::new(Arc::clone(&self.connection), receiver, task, span)
    }

    /// Returns how many tokens the prompt of a request has, as the server counts them.
    pub async fn count_tokens(&self, request: &Request) -> Result<u64, ApiError> {
        let policy = &self.connection.endpoint.retry_policy;
        let mut attempt = 1;
        loop {
            let span = tracing::debug_span!(target: LOG_TARGET, "count_tokens", model = %request.model, attempt);
            let error = match self.connection.count_tokens(request).instrument(span).await {
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

/// Makes as many attempts at one request as the retry policy allows.
struct CallTask {
    connection: Arc<Connection>,
    request: Request,
    sender: EventSender,
}

impl CallTask {
    async fn run(mut self) {
        // The caller dropped the call: there is no one to report to.
        let _ = self.run_attempts().await;
    }

    /// Repeats the attempt until it succeeds or the policy gives up.
    ///
    /// Three answers to a failure, in this order: a server that fails in the middle of a
    /// stream is asked once for a response that is not streamed, without delay; a model
    /// that stays overloaded is replaced by the next fallback, which starts with a fresh
    /// count of attempts; everything else waits and tries again.
    async fn run_attempts(&mut self) -> Result<(), ReceiverDropped> {
        let policy = self.connection.endpoint.retry_policy;
        let mut streaming = true;
        let mut may_unstream = true;
        let (mut attempt, mut overloads) = (1, 0);
        let mut wire = self.request.take_wire_request();
        loop {
            self.request.set_model_and_stream(&mut wire, streaming);
            tracing::debug!(target: LOG_TARGET, model = %self.request.model, attempt, streaming, "request");
            let span = tracing::debug_span!(target: LOG_TARGET, "attempt", number = attempt, streaming);
            let made = self.connection.request_message(&self.request, &wire, &mut self.sender).instrument(span);
            let Err(error) = made.await? else { return Ok(()) };
            tracing::debug!(target: LOG_TARGET, %error, "failed");
            self.sender.withdraw().await?;
            streaming = true;
            if may_unstream && matches!(error, ApiError::StreamFailed { .. }) {
                (streaming, may_unstream) = (false, false);
                continue;
            }
            overloads = if error.is_overloaded() { overloads + 1 } else { 0 };
            let delay = policy.retry_delay(&error, attempt, self.connection.clock.random());
            let hopeless = overloads >= policy.overloads_before_fallback || overloads > 0 && delay.is_none();
            if hopeless && let Some((from, to)) = self.request.switch_to_fallback() {
                tracing::debug!(target: LOG_TARGET, %from, %to, "fallback");
                self.sender.send(ApiEvent::ModelFallback { from, to }).await?;
                (attempt, overloads) = (1, 0);
                continue;
            }
            let Some(delay) = delay else { return self.sender.send_error(error).await };
            tracing::debug!(target: LOG_TARGET, ?delay, attempt, of = policy.max_retries, "retry");
            self.sender.send(ApiEvent::Retry(Retry { attempt, max_retries: policy.max_retries, delay, error })).await?;
            self.connection.clock.sleep(delay).await;
            attempt += 1;
        }
    }
}
