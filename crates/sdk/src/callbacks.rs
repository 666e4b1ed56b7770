//! Handles control requests of the agent: permission requests, hooks, MCP messages.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use quipu_message::control::request::{CanUseTool, HookCallback, McpMessage};
use quipu_message::control::{ControlRequest, ControlResponse, RequestBody};
use quipu_message::{Entry, Json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::LOG_TARGET;
use crate::conversation_state::ConversationState;
use crate::handle::Handle;
use crate::mcp::McpBridge;
use crate::permission::Decision;

/// Control requests of the agent that may run at once; further ones are refused.
const MAX_RUNNING_CALLBACKS: usize = 1000;
/// Responses that may wait for the agent to read them; further ones are dropped.
const MAX_UNREAD_RESPONSES: usize = 16 * MAX_RUNNING_CALLBACKS;
/// How long a response may wait for the agent to read it.
const RESPONSE_WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// Second argument of every callback.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallbackContext {
    /// The conversation, for control requests from inside the callback.
    pub handle: Handle,
    /// Cancelled when the agent withdraws its request; the callback's future is dropped then.
    pub cancelled: CancellationToken,
}

pub(crate) type PermissionFn = Arc<dyn Fn(CanUseTool, CallbackContext) -> BoxFuture<'static, Decision> + Send + Sync>;
pub(crate) type HookFn =
    Arc<dyn Fn(HookCallback, CallbackContext) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;
pub(crate) type RequestFn =
    Arc<dyn Fn(RequestBody, CallbackContext) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;

/// The callbacks of the host.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) permission: Option<PermissionFn>,
    pub(crate) permission_timeout: Option<Duration>,
    /// Hooks with their timeouts, by callback ID.
    pub(crate) hooks: HashMap<String, (HookFn, Option<Duration>)>,
    pub(crate) mcp_servers: HashMap<String, McpBridge>,
    pub(crate) on_request: Option<RequestFn>,
}

/// Runs the callbacks of one conversation, each in a task of its own.
pub(crate) struct CallbackRunner {
    state: Arc<ConversationState>,
    callbacks: Callbacks,
    /// Requests without a response yet, by request ID.
    running: Mutex<HashMap<String, CancellationToken>>,
    unread_responses: AtomicUsize,
}

impl CallbackRunner {
    pub(crate) fn new(state: Arc<ConversationState>, callbacks: Callbacks) -> Arc<Self> {
        Arc::new(Self { state, callbacks, running: Mutex::default(), unread_responses: AtomicUsize::new(0) })
    }

    /// The agent withdraws a request: its callback is dropped, no response is sent.
    pub(crate) fn cancel(&self, request_id: &str) {
        if let Some(token) = self.running.lock().remove(request_id) {
            token.cancel();
        }
    }

    /// Starts the callback for a request; its response is sent when it is done.
    pub(crate) fn handle_request(self: &Arc<Self>, request: ControlRequest) {
        let id = request.request_id.clone();
        let token = self.state.callbacks_cancelled.child_token();
        {
            let mut running = self.running.lock();
            if running.len() >= MAX_RUNNING_CALLBACKS {
                drop(running);
                return self.send_response(ControlResponse::error(id, "too many requests at once"));
            }
            running.insert(id.clone(), token.clone());
        }
        let runner = Arc::clone(self);
        let span = tracing::debug_span!(target: LOG_TARGET, "callback", subtype = request.request.tag(), id = %id);
        let task = async move {
            let _expectation = runner.state.mailbox.expect_response();
            let context = CallbackContext { handle: Handle::new(Arc::clone(&runner.state)), cancelled: token.clone() };
            // A panic becomes an error response and does not reach the other tasks.
            let response = AssertUnwindSafe(runner.run_callback(request, context)).catch_unwind();
            let response = tokio::select! {
                biased;
                () = token.cancelled() => return,
                response = response => response.unwrap_or_else(|_| ControlResponse::error(&id, "the callback panicked")),
            };
            // No response if the request was withdrawn in the meantime.
            if runner.running.lock().remove(&id).is_some() {
                runner.send_response(response);
            }
        };
        tokio::spawn(task.instrument(span));
    }

    /// Queues a response and returns at once. Responses to an agent that sends requests
    /// but does not read are dropped beyond a limit, so that memory stays bounded.
    pub(crate) fn send_response(self: &Arc<Self>, response: ControlResponse) {
        if self.unread_responses.fetch_add(1, Ordering::Relaxed) >= MAX_UNREAD_RESPONSES {
            self.unread_responses.fetch_sub(1, Ordering::Relaxed);
            let id = response.response.request_id().unwrap_or_default();
            return self.state.report_bad_line(id.as_bytes(), "request of an agent that does not read responses");
        }
        let runner = Arc::clone(self);
        tokio::spawn(async move {
            let line = Entry::ControlResponse(Box::new(response));
            let _ = runner.state.write("writing a control response", &line, RESPONSE_WRITE_TIMEOUT).await;
            runner.unread_responses.fetch_sub(1, Ordering::Relaxed);
        });
    }

    async fn run_callback(&self, request: ControlRequest, context: CallbackContext) -> ControlResponse {
        let id = request.request_id.clone();
        let result = match (request.request, &self.callbacks.permission) {
            (RequestBody::CanUseTool(request), Some(callback)) => {
                Ok(self.decide_permission(callback, *request, context).await)
            }
            (RequestBody::HookCallback(call), _) => self.run_hook(*call, context).await,
            (RequestBody::McpMessage(message), _) => self.forward_to_server(*message).await,
            (other, _) => match &self.callbacks.on_request {
                Some(callback) => callback(other, context).await,
                None => return ControlResponse::unsupported(&ControlRequest::new(id, other)),
            },
        };
        match result {
            Ok(response) => ControlResponse::success(id, Some(response)),
            Err(error) => ControlResponse::error(id, error),
        }
    }

    async fn decide_permission(&self, callback: &PermissionFn, request: CanUseTool, context: CallbackContext) -> Json {
        let input = request.input.clone();
        let decision = with_timeout(self.callbacks.permission_timeout, callback(request, context)).await;
        decision.unwrap_or_else(|| Decision::deny("No answer came in time.")).into_response(&input)
    }

    async fn run_hook(&self, call: HookCallback, context: CallbackContext) -> Result<Json, String> {
        let Some((hook, timeout)) = self.callbacks.hooks.get(&call.callback_id) else {
            return Err(format!("no hook has the callback ID {}", call.callback_id));
        };
        with_timeout(*timeout, hook(call, context)).await.unwrap_or_else(|| Err("the hook timed out".to_owned()))
    }

    async fn forward_to_server(&self, message: McpMessage) -> Result<Json, String> {
        let Some(server) = self.callbacks.mcp_servers.get(&message.server_name) else {
            return Err(format!("no MCP server is named {}", message.server_name));
        };
        server.exchange(message.message).await
    }
}

/// The output of a future; `None` if it takes longer than `timeout`.
async fn with_timeout<T>(timeout: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, future).await.ok(),
        None => Some(future.await),
    }
}
