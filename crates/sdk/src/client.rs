//! A conversation with an agent process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{Stream, stream};
use quipu_message::control::response::{InitializeResponse, InterruptResponse};
use quipu_message::stream::TurnResult;
use quipu_message::user_assistant::User;
use quipu_message::{Content, Entry, Uuid};

use crate::callbacks::CallbackRunner;
use crate::conversation_state::{ConversationState, StateOptions};
use crate::driver::{self, DriverOptions};
use crate::handle::Handle;
use crate::options::Options;
use crate::received::Received;
use crate::transport::Transport;
use crate::{Error, Exit, program};

/// A conversation with an agent. Dropping it kills the agent and every process that the
/// agent started; [`Client::close`] lets the agent exit by itself.
///
/// Reading needs `&mut Client`. Control requests are on [`Handle`], which other tasks can
/// use at the same time.
///
/// ```no_run
/// use quipu_sdk::{Client, Entry, Options};
/// # async fn example() -> Result<(), quipu_sdk::Error> {
/// let mut client = Client::connect(Options::new().allow_tool("Read")).await?;
/// client.send("What is in README.md?").await?;
/// while let Some(entry) = client.next_in_turn().await? {
///     if let Entry::Assistant(assistant) = entry {
///         println!("{}", assistant.message.content.to_text());
///     }
/// }
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
pub struct Client {
    handle: Handle,
    initialize_response: InitializeResponse,
    /// Whether the result of the turn that is read was returned already.
    is_turn_over: AtomicBool,
}

impl Client {
    /// Starts the agent program and initializes the conversation.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let command = options.command()?;
        Self::connect_over(command, options).await
    }

    /// Initializes a conversation over a transport. Options that become flags or
    /// environment variables of a program have no effect: see [`Options::command`].
    pub async fn connect_over(transport: impl Transport, options: Options) -> Result<Self, Error> {
        options.validate()?;
        let late = |_| Error::Timeout { what: "connecting".to_owned(), after: options.start_timeout };
        let connecting = Box::new(transport).connect();
        let connection = tokio::time::timeout(options.start_timeout, connecting).await.map_err(late)??;
        let (initialize, callbacks) = options.to_initialize();
        let (state, lines) = ConversationState::new(StateOptions {
            max_buffered_bytes: options.max_buffered_bytes,
            response_timeout: options.response_timeout,
            verbatim_prompts: options.verbatim_prompts,
            on_bad_line: options.on_bad_line.clone(),
        });
        let state = Arc::new(state);
        let driver_options = DriverOptions {
            max_line_bytes: options.max_line_bytes,
            close_timeout: options.close_timeout,
            on_stderr: options.on_stderr.clone(),
        };
        let runner = CallbackRunner::new(Arc::clone(&state), callbacks);
        driver::spawn_tasks(&state, runner, lines, connection, driver_options);
        // From here on, dropping the client kills the agent.
        let mut client = Self {
            handle: Handle::new(state),
            initialize_response: InitializeResponse::default(),
            is_turn_over: AtomicBool::new(false),
        };
        client.initialize_response = client.handle.with_timeout(options.start_timeout).request(initialize).await?;
        if !options.skip_version_check {
            program::check_version(client.initialize_response.claude_code_version.text().unwrap_or_default())?;
        }
        let guarded = options.hooks.iter().any(|hook| hook.blocks_on_failure);
        if guarded && !client.initialize_response.hook_on_failure_supported.is_true() {
            return Err(Error::invalid_options(
                "this agent does not support blocking_on_failure: it continues when a hook fails",
            ));
        }
        Ok(client)
    }

    /// The agent's response to `initialize`: its commands, models, subagents, version.
    pub fn initialize_response(&self) -> &InitializeResponse {
        &self.initialize_response
    }

    /// A handle for control requests and for other tasks. Its requests fail once the
    /// client is dropped.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Sends a prompt; see [`Handle::send`].
    pub async fn send(&self, content: impl Into<Content>) -> Result<Uuid, Error> {
        self.is_turn_over.store(false, Ordering::Relaxed);
        self.handle.send(content).await
    }

    /// Sends one user entry; see [`Handle::send_message`].
    pub async fn send_message(&self, message: User) -> Result<(), Error> {
        self.is_turn_over.store(false, Ordering::Relaxed);
        self.handle.send_message(message).await
    }

    /// Interrupts the running turn, which still ends with a result.
    pub async fn interrupt(&self) -> Result<InterruptResponse, Error> {
        self.handle.interrupt().await
    }

    /// The next message of any turn; `None` after the agent exited as expected. Messages
    /// that this crate has no type for are [`Entry::Unknown`].
    ///
    /// Cancel-safe: no message is lost if the future is dropped, as in a `select!`.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        Ok(self.next_received().await?.map(|message| message.entry))
    }

    /// Like [`Client::next`], with the line that the message was read from.
    pub async fn next_received(&mut self) -> Result<Option<Received>, Error> {
        let message = self.handle.state.mailbox.pop().await.transpose();
        *self.is_turn_over.get_mut() = false;
        message
    }

    /// The next message of this turn; `None` after its result, which is the last one.
    ///
    /// Reading that `None` is optional: a prompt sent by this client starts a new turn.
    pub async fn next_in_turn(&mut self) -> Result<Option<Entry>, Error> {
        if std::mem::take(self.is_turn_over.get_mut()) {
            return Ok(None);
        }
        let message = self.next().await?;
        *self.is_turn_over.get_mut() = matches!(message, Some(Entry::Result(_)));
        Ok(message)
    }

    /// Reads to the end of the turn and returns its result; earlier messages are skipped.
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

    /// Closes the agent's input and waits for it to exit; kills it after
    /// [`Options::close_timeout`].
    pub async fn close(self) -> Result<Exit, Error> {
        self.handle.state.mailbox.abandon();
        self.handle.close_after_turn();
        Ok(self.handle.wait_for_exit().await)
    }

    /// Closes the agent's input while messages are still read.
    pub(crate) fn close_after_turn(&self) {
        self.handle.close_after_turn();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.handle.state.mailbox.abandon();
        self.handle.state.abort.cancel();
    }
}
