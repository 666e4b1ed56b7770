//! A handle on a running conversation, for any task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use quipu_message::control::response::{
    GetContextUsageResponse, GetSessionCostResponse, GetUsageResponse, InterruptResponse, McpSetServersResponse,
    McpStatusResponse, RewindFilesResponse, SetModelResponse, SetPermissionModeResponse,
};
use quipu_message::control::setup::McpServerConfig;
use quipu_message::control::{HostRequest, RequestBody, request};
use quipu_message::user_assistant::User;
use quipu_message::values::PermissionMode;
use quipu_message::{Content, Entry, Json, Maybe, Uuid};
use serde::Serialize;

use crate::conversation_state::ConversationState;
use crate::prompt;
use crate::{Error, Exit};

/// Sends prompts and control requests to an agent, from any task and also while another
/// task reads messages. Cheap to clone.
///
/// A control request fails if its response takes longer than
/// [`Options::response_timeout`](crate::Options::response_timeout).
#[derive(Clone)]
pub struct Handle {
    pub(crate) state: Arc<ConversationState>,
    timeout: Duration,
}

impl Handle {
    pub(crate) fn new(state: Arc<ConversationState>) -> Self {
        Self { timeout: state.response_timeout, state }
    }

    /// A handle on the same conversation with another timeout for control requests.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Sends a prompt: text, or blocks with images and documents. Returns its UUID, which
    /// [`rewind_files`](Self::rewind_files) takes. During a turn the agent queues it.
    ///
    /// If the future is dropped, the prompt was sent completely or not at all.
    pub async fn send(&self, content: impl Into<Content>) -> Result<Uuid, Error> {
        let id = Uuid::from(uuid::Uuid::new_v4().to_string());
        self.send_message(prompt::user_message_with_id(content.into(), id.clone())).await?;
        Ok(id)
    }

    /// Sends every message of a stream, each as soon as the stream yields it.
    pub async fn send_all(&self, messages: impl Stream<Item = User>) -> Result<(), Error> {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = messages.next().await {
            self.send_message(message).await?;
        }
        Ok(())
    }

    /// Sends one user entry, such as [`user_message`](crate::user_message) makes.
    pub async fn send_message(&self, mut message: User) -> Result<(), Error> {
        if self.state.verbatim_prompts {
            message.client_composed = Maybe::Value(true);
        }
        self.state.is_in_turn.store(true, Ordering::Release);
        self.send_line(&Entry::User(Box::new(message))).await
    }

    /// Writes any value as one line of JSON to the agent.
    pub async fn send_line(&self, line: &impl Serialize) -> Result<(), Error> {
        self.state.write("writing a message", line, self.timeout).await
    }

    /// Sends a control request and returns its typed response.
    ///
    /// ```no_run
    /// # use quipu_sdk::{Handle, control::request};
    /// # async fn example(handle: Handle) -> Result<(), quipu_sdk::Error> {
    /// let models = handle.request(request::ListModels::default()).await?;
    /// println!("{} models", models.models.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request<R: HostRequest>(&self, request: R) -> Result<R::Response, Error> {
        let body: RequestBody = request.into();
        let request = body.tag().to_owned();
        let response = self.state.send_request(body, self.timeout).await?;
        // A response without content counts as an object without fields.
        let read = if response.is_null() { serde_json::from_str("{}") } else { response.read() };
        read.map_err(|error| Error::BadResponse { request, response, source: Arc::new(error) })
    }

    /// Sends a control request that this crate has no types for: any JSON object with a
    /// `subtype`. Returns the response as JSON.
    ///
    /// ```no_run
    /// # async fn example(handle: quipu_sdk::Handle) -> Result<(), quipu_sdk::Error> {
    /// let response = handle.request_raw(&serde_json::json!({ "subtype": "get_weather", "at": "sea" })).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request_raw(&self, request: &impl Serialize) -> Result<Json, Error> {
        let body = Json::from_serialize(request).read().map_err(|error| Error::Serialise(Arc::new(error)))?;
        self.state.send_request(body, self.timeout).await
    }

    /// Interrupts the running turn, which still ends with a result.
    pub async fn interrupt(&self) -> Result<InterruptResponse, Error> {
        self.request(request::Interrupt::default()).await
    }

    /// Changes the permission mode.
    pub async fn set_permission_mode(
        &self,
        mode: impl Into<PermissionMode>,
    ) -> Result<SetPermissionModeResponse, Error> {
        let mode = mode.into();
        self.request(request::SetPermissionMode { mode, ..request::SetPermissionMode::default() }).await
    }

    /// Changes the model; `None` lets the agent choose.
    pub async fn set_model(&self, model: Option<&str>) -> Result<SetModelResponse, Error> {
        let model = model.map(str::to_owned).map_or(Maybe::Null, Maybe::Value);
        self.request(request::SetModel { model, ..request::SetModel::default() }).await
    }

    /// Limits thinking to so many tokens; `None` lifts the limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<(), Error> {
        let max_thinking_tokens = tokens.map_or(Maybe::Null, Maybe::Value);
        let limit = request::SetMaxThinkingTokens { max_thinking_tokens, ..Default::default() };
        self.request(limit).await.map(drop)
    }

    /// Returns the connection status of each MCP server.
    pub async fn mcp_status(&self) -> Result<McpStatusResponse, Error> {
        self.request(request::McpStatus::default()).await
    }

    /// Replaces the MCP servers that were added by this request before.
    pub async fn set_mcp_servers(
        &self,
        servers: impl IntoIterator<Item = (String, McpServerConfig)>,
    ) -> Result<McpSetServersResponse, Error> {
        let servers: std::collections::BTreeMap<_, _> = servers.into_iter().collect();
        self.request(request::McpSetServers { servers: Json::from_serialize(&servers), ..Default::default() }).await
    }

    /// Reconnects an MCP server by name.
    pub async fn reconnect_mcp_server(&self, name: &str) -> Result<(), Error> {
        self.request(request::McpReconnect { server_name: name.to_owned(), ..Default::default() }).await.map(drop)
    }

    /// Enables or disables an MCP server.
    pub async fn toggle_mcp_server(&self, name: &str, enabled: bool) -> Result<(), Error> {
        let toggle = request::McpToggle { server_name: name.to_owned(), enabled, ..Default::default() };
        self.request(toggle).await.map(drop)
    }

    /// Restores the files as they were before a prompt; needs
    /// [`Options::file_checkpointing`](crate::Options::file_checkpointing).
    pub async fn rewind_files(&self, prompt: &Uuid) -> Result<RewindFilesResponse, Error> {
        self.request(request::RewindFiles { user_message_id: prompt.clone(), ..Default::default() }).await
    }

    /// Returns what [`Handle::rewind_files`] would change, and changes nothing.
    pub async fn preview_rewind(&self, prompt: &Uuid) -> Result<RewindFilesResponse, Error> {
        let dry = request::RewindFiles { user_message_id: prompt.clone(), dry_run: true.into(), ..Default::default() };
        self.request(dry).await
    }

    /// Returns how many tokens each part of the context takes.
    pub async fn context_usage(&self) -> Result<GetContextUsageResponse, Error> {
        self.request(request::GetContextUsage::default()).await
    }

    /// Returns token usage and rate limits of the session.
    pub async fn usage(&self) -> Result<GetUsageResponse, Error> {
        self.request(request::GetUsage::default()).await
    }

    /// Returns the cost of the session as text.
    pub async fn session_cost(&self) -> Result<GetSessionCostResponse, Error> {
        self.request(request::GetSessionCost::default()).await
    }

    /// Stops a background task by its ID.
    pub async fn stop_task(&self, task: &str) -> Result<(), Error> {
        self.request(request::StopTask { task_id: task.to_owned(), ..Default::default() }).await.map(drop)
    }

    /// Closes the agent's input; the agent exits after the turns it still has to do.
    pub fn end_input(&self) {
        self.state.input_closed.cancel();
    }

    /// Closes the agent's input and kills it if it does not exit within the close timeout.
    pub(crate) fn close_after_turn(&self) {
        self.state.finish.cancel();
    }

    /// Waits until the agent has exited. The exit is noticed after all output was read, so
    /// another task must read the messages or have dropped the client.
    pub async fn wait_for_exit(&self) -> Exit {
        let mut ended = self.state.ending.subscribe();
        let ending = ended.wait_for(Option::is_some).await;
        ending.ok().and_then(|ending| ending.as_ref().map(|ending| ending.exit.clone())).unwrap_or_default()
    }
}
