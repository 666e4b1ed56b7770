//! A conversation with an agent.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use quipu_message::control::response::{
    GetContextUsageResponse, GetSessionCostResponse, GetUsageResponse, InitializeResponse, InterruptResponse,
    McpSetServersResponse, McpStatusResponse, RewindFilesResponse, SetModelResponse, SetPermissionModeResponse,
};
use quipu_message::control::setup::McpServerConfig;
use quipu_message::control::{HostRequest, RequestBody, request};
use quipu_message::stream::TurnResult;
use quipu_message::user_assistant::User;
use quipu_message::{Content, Entry, Json, Maybe, Uuid};
use serde::Serialize;

use crate::conversation_state::ConversationState;
use crate::driver::{self, DriverOptions};
use crate::options::{Options, PermissionMode};
use crate::prompt;
use crate::received::Received;
use crate::transport::Transport;
use crate::{Error, Exit, program};

/// A conversation with an agent, as long as you like. Dropping it ends the agent at once,
/// with everything it started; [`Client::close`] lets it end by itself.
///
/// What can be said at any time, also while messages are read, is on [`Handle`].
///
/// ```no_run
/// use quipu_sdk::{Client, Entry, Options};
/// # async fn talk() -> Result<(), quipu_sdk::Error> {
/// let mut client = Client::connect(Options::new().allow_tool("Read")).await?;
/// client.send("What is in README.md?").await?;
/// while let Some(message) = client.next_in_turn().await? {
///     if let Entry::Assistant(said) = message {
///         println!("{}", said.message.content.to_text());
///     }
/// }
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
pub struct Client {
    handle: Handle,
    initialize_response: InitializeResponse,
}

impl Client {
    /// Starts a program and opens the conversation.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let command = options.command()?;
        Self::connect_over(command, options).await
    }

    /// Opens a conversation over a transport. Of the options, those count that are not
    /// flags or environment of a program: see [`Options::command`].
    pub async fn connect_over(transport: impl Transport, options: Options) -> Result<Self, Error> {
        options.validate()?;
        let late = |_| Error::Timeout { what: "connecting".to_owned(), after: options.start_timeout };
        let connecting = Box::new(transport).connect();
        let connection = tokio::time::timeout(options.start_timeout, connecting).await.map_err(late)??;
        let (hello, callbacks) = options.to_initialize();
        let (link, lines) = ConversationState::new(&options, callbacks);
        let link = Arc::new(link);
        let driving = DriverOptions {
            max_line_bytes: options.max_line_bytes,
            close_timeout: options.close_timeout,
            on_stderr: options.on_stderr.clone(),
        };
        driver::spawn_tasks(&link, lines, connection, driving);
        // From here on, dropping the client ends the agent.
        let mut client = Self { handle: Handle::for_client(link), initialize_response: InitializeResponse::default() };
        client.initialize_response = client.with_timeout(options.start_timeout).request(hello).await?;
        if !options.skip_version_check {
            program::check_version(client.initialize_response.claude_code_version.text().unwrap_or_default())?;
        }
        let guarded = options.hooks.iter().any(|hook| hook.blocks_on_failure);
        if guarded && !client.initialize_response.hook_on_failure_supported.is_true() {
            return Err(Error::invalid_options(
                "this agent goes on when a hook fails: blocking_on_failure cannot be kept",
            ));
        }
        Ok(client)
    }

    /// What the agent says of itself: its commands, models, subagents, version.
    pub fn initialize_response(&self) -> &InitializeResponse {
        &self.initialize_response
    }

    /// The conversation, for other tasks. It says nothing any more once the client is gone.
    pub fn handle(&self) -> Handle {
        Handle { is_turn_over: None, ..self.handle.clone() }
    }

    /// The next message, whatever turn it belongs to; none when the agent has ended as it
    /// should. Messages that this crate does not know come as [`Entry::Unknown`].
    ///
    /// May be dropped at any time, as in a `select!`: no message is lost.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        Ok(self.next_received().await?.map(|message| message.entry))
    }

    /// As [`Client::next`], with the line that the message was read from.
    pub async fn next_received(&mut self) -> Result<Option<Received>, Error> {
        let message = self.handle.state.mailbox.pop().await.transpose();
        self.handle.set_turn_over(false);
        message
    }

    /// The next message of this turn; none after its result, which is the last. Once you
    /// have seen the result you may also leave it at that: a prompt that this client sends
    /// begins a turn of its own.
    pub async fn next_in_turn(&mut self) -> Result<Option<Entry>, Error> {
        if self.handle.set_turn_over(false) {
            return Ok(None);
        }
        let message = self.next().await?;
        self.handle.set_turn_over(matches!(message, Some(Entry::Result(_))));
        Ok(message)
    }

    /// Reads on to the end of the turn and returns its result; the messages before it are
    /// passed over.
    pub async fn read_result(&mut self) -> Result<TurnResult, Error> {
        loop {
            match self.next().await? {
                Some(Entry::Result(result)) => return Ok(*result),
                Some(_) => {}
                None => return Err(self.handle.state.closed_error()),
            }
        }
    }

    /// The messages as a stream.
    pub fn messages(&mut self) -> impl Stream<Item = Result<Entry, Error>> + Send + '_ {
        stream::unfold(self, |client| async move { client.next().await.transpose().map(|message| (message, client)) })
    }

    /// Says that nothing more comes and lets the agent end; after
    /// [`Options::close_timeout`] it is made to.
    pub async fn close(self) -> Result<Exit, Error> {
        self.handle.state.mailbox.abandon();
        self.handle.close_after_turn();
        Ok(self.handle.wait_for_exit().await)
    }
}

impl Deref for Client {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.handle.state.mailbox.abandon();
        self.handle.state.abort.cancel();
    }
}

/// What can be said in a conversation at any time. Cheap to clone.
///
/// Every request waits for its answer for [`Options::response_timeout`].
#[derive(Clone)]
pub struct Handle {
    state: Arc<ConversationState>,
    timeout: Duration,
    /// For the client's own: the turn that it reads has come to its end.
    is_turn_over: Option<Arc<AtomicBool>>,
}

impl Handle {
    pub(crate) fn new(link: Arc<ConversationState>) -> Self {
        Self { timeout: link.response_timeout, state: link, is_turn_over: None }
    }

    fn for_client(link: Arc<ConversationState>) -> Self {
        Self { is_turn_over: Some(Arc::default()), ..Self::new(link) }
    }

    /// Sets whether the turn that is read is over, and says whether it was.
    fn set_turn_over(&self, over: bool) -> bool {
        self.is_turn_over.as_ref().is_some_and(|turn_over| turn_over.swap(over, Ordering::Relaxed))
    }

    /// The same, waiting longer or shorter for answers.
    #[must_use]
    pub fn with_timeout(&self, patience: Duration) -> Self {
        Self { timeout: patience, ..self.clone() }
    }

    /// Says something: text, or blocks (with pictures and documents). Returns its id, by
    /// which files can be rewound to it. While a turn is under way the agent keeps what is
    /// said until it comes to it.
    ///
    /// Dropped before it is done, it may have been said or not, but never by half.
    pub async fn send(&self, words: impl Into<Content>) -> Result<Uuid, Error> {
        let id = Uuid::from(uuid::Uuid::new_v4().to_string());
        self.send_message(prompt::user_message_with_id(words.into(), id.clone())).await?;
        Ok(id)
    }

    /// Says the messages of a stream, each as it comes.
    pub async fn send_all(&self, messages: impl Stream<Item = User>) -> Result<(), Error> {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = messages.next().await {
            self.send_message(message).await?;
        }
        Ok(())
    }

    /// Says one message as it is; [`user`](crate::user_message) makes one.
    pub async fn send_message(&self, mut message: User) -> Result<(), Error> {
        if self.state.verbatim_prompts {
            message.client_composed = Maybe::Value(true);
        }
        self.state.is_in_turn.store(true, Ordering::Release);
        self.set_turn_over(false);
        self.send_line(&Entry::User(Box::new(message))).await
    }

    /// Writes any line.
    pub async fn send_line(&self, line: &impl Serialize) -> Result<(), Error> {
        self.state.write("writing a message", line, self.timeout).await
    }

    /// Asks the agent something; the answer has the type that belongs to the question.
    ///
    /// ```no_run
    /// # use quipu_sdk::{Handle, control::request};
    /// # async fn ask(handle: Handle) -> Result<(), quipu_sdk::Error> {
    /// let models = handle.ask(request::ListModels::default()).await?;
    /// println!("{} models", models.models.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request<Q: HostRequest>(&self, question: Q) -> Result<Q::Response, Error> {
        let body: RequestBody = question.into();
        let request = body.tag().to_owned();
        let answer = self.state.send_request(body, self.timeout).await?;
        // An answer without content is an object without fields.
        let read = if answer.is_null() { serde_json::from_str("{}") } else { answer.read() };
        read.map_err(|error| Error::BadResponse { request, answer, source: Arc::new(error) })
    }

    /// Asks the agent something that this crate has no types for: any JSON object with a
    /// `subtype`. The answer is as it came.
    ///
    /// ```no_run
    /// # async fn ask(handle: quipu_sdk::Handle) -> Result<(), quipu_sdk::Error> {
    /// let answer = handle.ask_raw(&serde_json::json!({ "subtype": "get_weather", "at": "sea" })).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request_raw(&self, question: &impl Serialize) -> Result<Json, Error> {
        let body = Json::from_serialize(question).read().map_err(|error| Error::Serialise(Arc::new(error)))?;
        self.state.send_request(body, self.timeout).await
    }

    /// Stops the turn that is under way; it ends with a result all the same.
    pub async fn interrupt(&self) -> Result<InterruptResponse, Error> {
        self.request(request::Interrupt::default()).await
    }

    /// Changes what may be done without asking.
    pub async fn set_permission_mode(
        &self,
        mode: impl Into<PermissionMode>,
    ) -> Result<SetPermissionModeResponse, Error> {
        let mode = mode.into();
        self.request(request::SetPermissionMode { mode, ..request::SetPermissionMode::default() }).await
    }

    /// Changes the model; none is the agent's own choice.
    pub async fn set_model(&self, model: Option<&str>) -> Result<SetModelResponse, Error> {
        let model = model.map(str::to_owned).map_or(Maybe::Null, Maybe::Value);
        self.request(request::SetModel { model, ..request::SetModel::default() }).await
    }

    /// Changes how far the model thinks; none lifts the limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<(), Error> {
        let max_thinking_tokens = tokens.map_or(Maybe::Null, Maybe::Value);
        let limit = request::SetMaxThinkingTokens { max_thinking_tokens, ..Default::default() };
        self.request(limit).await.map(drop)
    }

    /// How the MCP servers stand.
    pub async fn mcp_status(&self) -> Result<McpStatusResponse, Error> {
        self.request(request::McpStatus::default()).await
    }

    /// Puts these MCP servers in the place of those given before.
    pub async fn set_mcp_servers(
        &self,
        servers: impl IntoIterator<Item = (String, McpServerConfig)>,
    ) -> Result<McpSetServersResponse, Error> {
        let servers: std::collections::BTreeMap<_, _> = servers.into_iter().collect();
        self.request(request::McpSetServers { servers: Json::from_serialize(&servers), ..Default::default() }).await
    }

    /// Connects an MCP server again.
    pub async fn reconnect_mcp_server(&self, name: &str) -> Result<(), Error> {
        self.request(request::McpReconnect { server_name: name.to_owned(), ..Default::default() }).await.map(drop)
    }

    /// Turns an MCP server on or off.
    pub async fn toggle_mcp_server(&self, name: &str, enabled: bool) -> Result<(), Error> {
        let toggle = request::McpToggle { server_name: name.to_owned(), enabled, ..Default::default() };
        self.request(toggle).await.map(drop)
    }

    /// Puts files back to where they were before a prompt; needs
    /// [`Options::file_checkpointing`].
    pub async fn rewind_files(&self, prompt: &Uuid) -> Result<RewindFilesResponse, Error> {
        self.request(request::RewindFiles { user_message_id: prompt.clone(), ..Default::default() }).await
    }

    /// What [`Handle::rewind_files`] would change.
    pub async fn preview_rewind(&self, prompt: &Uuid) -> Result<RewindFilesResponse, Error> {
        let dry = request::RewindFiles { user_message_id: prompt.clone(), dry_run: true.into(), ..Default::default() };
        self.request(dry).await
    }

    /// What fills the context.
    pub async fn context_usage(&self) -> Result<GetContextUsageResponse, Error> {
        self.request(request::GetContextUsage::default()).await
    }

    /// What the session has used.
    pub async fn usage(&self) -> Result<GetUsageResponse, Error> {
        self.request(request::GetUsage::default()).await
    }

    /// What the session has cost, in words.
    pub async fn session_cost(&self) -> Result<GetSessionCostResponse, Error> {
        self.request(request::GetSessionCost::default()).await
    }

    /// Stops a task in the background.
    pub async fn stop_task(&self, task: &str) -> Result<(), Error> {
        self.request(request::StopTask { task_id: task.to_owned(), ..Default::default() }).await.map(drop)
    }

    /// Says that nothing more will be said; the agent ends when it has answered.
    pub fn end_input(&self) {
        self.state.input_closed.cancel();
    }

    /// Says that nothing more will be said, and sees to it that the agent ends.
    pub(crate) fn close_after_turn(&self) {
        self.state.finish.cancel();
    }

    /// Waits until the agent has ended. That is known once everything it said was read:
    /// somebody must take the messages, or have dropped the client.
    pub async fn wait_for_exit(&self) -> Exit {
        let mut ended = self.state.ending.subscribe();
        let ending = ended.wait_for(Option::is_some).await;
        ending.ok().and_then(|ending| ending.as_ref().map(|ending| ending.exit.clone())).unwrap_or_default()
    }
}
