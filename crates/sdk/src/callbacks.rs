//! What an agent asks its host: permissions, hooks, messages for MCP servers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use quipu_message::control::request::{CanUseTool, HookCallback, McpMessage};
use quipu_message::control::{ControlRequest, ControlResponse, RequestBody};
use quipu_message::{Entry, Json};
use tokio_util::sync::CancellationToken;

use crate::client::Handle;
use crate::conversation_state::ConversationState;
use crate::mcp::McpBridge;
use crate::permission::Decision;

/// How many questions of an agent may be under way at once.
const MAX_RUNNING_CALLBACKS: usize = 1000;
/// How many answers may wait for an agent to read them.
const MAX_UNREAD_RESPONSES: usize = 16 * MAX_RUNNING_CALLBACKS;

/// What a callback may need besides what it is asked.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallbackContext {
    /// The conversation, to ask or change something in it.
    pub handle: Handle,
    /// Cancelled when the agent no longer wants the answer; the callback is dropped then.
    pub cancelled: CancellationToken,
}

pub(crate) type PermissionFn = Arc<dyn Fn(CanUseTool, CallbackContext) -> BoxFuture<'static, Decision> + Send + Sync>;
pub(crate) type HookFn =
    Arc<dyn Fn(HookCallback, CallbackContext) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;
pub(crate) type RequestFn =
    Arc<dyn Fn(RequestBody, CallbackContext) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;

/// The host's side of an agent's questions.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) permission: Option<PermissionFn>,
    pub(crate) permission_timeout: Option<Duration>,
    pub(crate) hooks: HashMap<String, (HookFn, Option<Duration>)>,
    pub(crate) mcp_servers: HashMap<String, McpBridge>,
    pub(crate) on_request: Option<RequestFn>,
    running: Mutex<HashMap<String, CancellationToken>>,
    unread_responses: AtomicUsize,
    /// Cancelled at the end of the conversation.
    ended: CancellationToken,
}

impl Callbacks {
    fn running(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent no longer wants an answer.
    pub(crate) fn cancel(&self, request_id: &str) {
        if let Some(token) = self.running().remove(request_id) {
            token.cancel();
        }
    }

    /// The conversation is over.
    pub(crate) fn cancel_all(&self) {
        self.ended.cancel();
    }
}

/// Answers a question of the agent, beside everything else.
pub(crate) fn handle_request(link: &Arc<ConversationState>, request: ControlRequest) {
    let id = request.request_id.clone();
    let token = link.callbacks.ended.child_token();
    {
        let mut running = link.callbacks.running();
        if running.len() >= MAX_RUNNING_CALLBACKS {
            drop(running);
            return send_response(link, ControlResponse::error(id, "too many requests at once"));
        }
        running.insert(id.clone(), token.clone());
    }
    let link = Arc::clone(link);
    tokio::spawn(async move {
        let _room = link.mailbox.expect_response();
        let context = CallbackContext { handle: Handle::new(Arc::clone(&link)), cancelled: token.clone() };
        // A callback that panics has answered that it failed; nobody else notices.
        let answering = AssertUnwindSafe(run_callback(&link, request, context)).catch_unwind();
        let response = tokio::select! {
            biased;
            () = token.cancelled() => return,
            response = answering => response.unwrap_or_else(|_| ControlResponse::error(&id, "the callback panicked")),
        };
        // Withdrawn while it was answered: nobody waits for it.
        if link.callbacks.running().remove(&id).is_some() {
            send_response(&link, response);
        }
    });
}

/// Says something to the agent, without waiting for it to listen. One that asks and asks
/// and never listens is not answered any more.
pub(crate) fn send_response(link: &Arc<ConversationState>, response: ControlResponse) {
    if link.callbacks.unread_responses.fetch_add(1, Ordering::Relaxed) >= MAX_UNREAD_RESPONSES {
        link.callbacks.unread_responses.fetch_sub(1, Ordering::Relaxed);
        let id = response.response.request_id().unwrap_or_default();
        return link.report_bad_line(id.as_bytes(), "a question of an agent that reads no answers");
    }
    let link = Arc::clone(link);
    tokio::spawn(async move {
        let line = Entry::ControlResponse(Box::new(response));
        let _ = link.write("writing an answer", &line, Duration::from_secs(600)).await;
        link.callbacks.unread_responses.fetch_sub(1, Ordering::Relaxed);
    });
}

async fn run_callback(
    link: &Arc<ConversationState>,
    request: ControlRequest,
    context: CallbackContext,
) -> ControlResponse {
    let id = request.request_id.clone();
    let answer = match request.request {
        RequestBody::CanUseTool(asked) if link.callbacks.permission.is_some() => {
            decide_permission(link, *asked, context).await
        }
        RequestBody::HookCallback(due) => run_hook(link, *due, context).await,
        RequestBody::McpMessage(message) => forward_to_server(link, *message).await,
        other => match &link.callbacks.on_request {
            Some(callback) => callback(other, context).await,
            None => return ControlResponse::unsupported(&ControlRequest::new(id, other)),
        },
    };
    match answer {
        Ok(answer) => ControlResponse::success(id, Some(answer)),
        Err(error) => ControlResponse::error(id, error),
    }
}

async fn decide_permission(
    link: &ConversationState,
    asked: CanUseTool,
    context: CallbackContext,
) -> Result<Json, String> {
    let Some(callback) = &link.callbacks.permission else { return Err("nobody to ask".to_owned()) };
    let input = asked.input.clone();
    let decision = with_timeout(link.callbacks.permission_timeout, callback(asked, context)).await;
    // Late is no.
    Ok(decision.unwrap_or_else(|| Decision::deny("No answer came in time.")).into_response(&input))
}

async fn run_hook(link: &ConversationState, due: HookCallback, context: CallbackContext) -> Result<Json, String> {
    let Some((hook, patience)) = link.callbacks.hooks.get(&due.callback_id) else {
        return Err(format!("no hook is called {}", due.callback_id));
    };
    with_timeout(*patience, hook(due, context)).await.unwrap_or_else(|| Err("the hook took too long".to_owned()))
}

async fn forward_to_server(link: &ConversationState, message: McpMessage) -> Result<Json, String> {
    let Some(server) = link.callbacks.mcp_servers.get(&message.server_name) else {
        return Err(format!("no MCP server is called {}", message.server_name));
    };
    server.exchange(message.message).await
}

/// What a future gives, or none when it takes too long.
async fn with_timeout<T>(patience: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, future).await.ok(),
        None => Some(future.await),
    }
}
