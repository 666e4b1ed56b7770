//! The task of a chat: starts the agent, applies what it sends, ends it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, OptionFuture};
use quipu_sdk::{Client, Entry, Error, Exit};
use quipu_transcript::error_chain;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::LOG_TARGET;
use super::active_chat::{ActiveChat, ChatInputs, new_id};
use super::capture::RunningCapture;
use super::launch::{Launch, SessionOrigin};
use super::partial::PartialMessages;
use super::view::{ChatEnd, ChatPhase, EndReason, NoteLevel};

/// How long an agent may take to end its turn before its input is closed.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// What a request wants of the task.
#[derive(Debug)]
pub(super) enum Control {
    /// Ends the agent.
    End(EndReason),
    /// Ends the agent and starts it again: at an entry of the session, or in a new one.
    Restart { last_uuid: Option<String>, reply: RestartReply },
}

/// Gets an error if an agent does not start.
type RestartReply = oneshot::Sender<Result<(), String>>;

/// How one agent process ended.
enum Outcome {
    Ended(ChatEnd),
    Restart { last_uuid: Option<String>, reply: RestartReply },
}

/// Runs a chat until its agent ends.
pub(super) async fn run(chat: Arc<ActiveChat>, mut launch: Launch, mut inputs: ChatInputs) {
    let end = match start_capture(&chat, &launch).await {
        Ok(capture) => {
            let end = run_agents(&chat, &mut launch, capture.as_ref(), &mut inputs).await;
            if let Some(capture) = capture {
                chat.update(|state| state.touch().capture = Some(capture.view()));
                capture.finish().await;
            }
            end
        }
        Err(message) => ChatEnd { reason: EndReason::StartFailed, message, stderr: Vec::new() },
    };
    tracing::debug!(target: LOG_TARGET, chat = chat.id, reason = ?end.reason, "the chat ended");
    chat.update(|state| {
        state.withdraw_incomplete(true);
        state.progress.clear();
        let chat = state.touch();
        chat.state = ChatPhase::Ended;
        chat.turn_started_at = None;
        chat.prompts.clear();
        chat.ended = Some(end);
        state.responders.clear();
    });
    chat.is_done.send_replace(true);
}

/// Starts to capture calls, if that was asked for.
async fn start_capture(chat: &ActiveChat, launch: &Launch) -> Result<Option<RunningCapture>, String> {
    let Some(options) = &launch.capture else { return Ok(None) };
    let capture = RunningCapture::start(options, (chat.context.now)().timestamp()).await?;
    chat.update(|state| state.touch().capture = Some(capture.view()));
    Ok(Some(capture))
}

/// Runs agent processes, one after the other, until one ends.
async fn run_agents(
    chat: &Arc<ActiveChat>,
    launch: &mut Launch,
    capture: Option<&RunningCapture>,
    inputs: &mut ChatInputs,
) -> ChatEnd {
    let mut restarted = None;
    loop {
        match run_agent(chat, launch, capture, inputs, restarted.take()).await {
            Outcome::Ended(end) => return end,
            Outcome::Restart { last_uuid, reply } => {
                restarted = Some(reply);
                restart_at(chat, launch, last_uuid);
            }
        }
    }
}

/// Prepares the next start of an agent, with the model and mode that are set.
fn restart_at(chat: &ActiveChat, launch: &mut Launch, last_uuid: Option<String>) {
    chat.update(|state| {
        let shown = state.touch();
        launch.permission_mode.clone_from(&shown.permission_mode);
        launch.model.clone_from(&shown.model);
        launch.origin = match last_uuid.clone() {
            Some(at) => SessionOrigin::Resume { session_id: shown.session_id.clone(), at: Some(at) },
            None => SessionOrigin::New { session_id: new_id() },
        };
        if last_uuid.is_none() {
            launch.origin.session_id().clone_into(&mut shown.session_id);
            shown.key.clone_from(&shown.session_id);
        }
        shown.state = ChatPhase::Starting;
        shown.rewound_to = last_uuid;
        shown.todos.clear();
        state.partial = PartialMessages::default();
    });
}

/// Runs one agent process.
async fn run_agent(
    chat: &Arc<ActiveChat>,
    launch: &Launch,
    capture: Option<&RunningCapture>,
    inputs: &mut ChatInputs,
    restarted: Option<RestartReply>,
) -> Outcome {
    let connecting = Client::connect(launch.options(chat, capture.map(RunningCapture::url)));
    let connected = tokio::select! {
        connected = connecting => connected,
        // Dropping the future ends the program.
        control = inputs.control.recv() => return interrupted_start(control),
    };
    let mut client = match connected {
        Ok(client) => client,
        Err(error) => {
            let end = end_after_error(EndReason::StartFailed, &error);
            if let Some(reply) = restarted {
                let _ = reply.send(Err(end.message.clone()));
            }
            return Outcome::Ended(end);
        }
    };
    chat.update(|state| state.apply_initialize(client.initialize_response()));
    chat.agent.send_replace(Some(client.handle()));
    if let Some(reply) = restarted {
        let _ = reply.send(Ok(()));
    }
    let outcome = serve(chat, &mut client, capture, inputs).await;
    chat.agent.send_replace(None);
    match outcome {
        Served::AgentEnded(end) => Outcome::Ended(end),
        Served::Controlled(Control::End(reason)) => {
            let exit = close(chat, client).await;
            Outcome::Ended(ChatEnd {
                reason,
                message: end_message(reason).to_owned(),
                stderr: stderr_lines(&exit.stderr),
            })
        }
        Served::Controlled(Control::Restart { last_uuid, reply }) => {
            close(chat, client).await;
            Outcome::Restart { last_uuid, reply }
        }
    }
}

/// Why messages of an agent are no longer read.
enum Served {
    AgentEnded(ChatEnd),
    Controlled(Control),
}

/// Applies what the agent sends and sends it messages, until it ends or is to end.
async fn serve(
    chat: &Arc<ActiveChat>,
    client: &mut Client,
    capture: Option<&RunningCapture>,
    inputs: &mut ChatInputs,
) -> Served {
    let handle = client.handle();
    // Messages are sent while entries are read: an agent may not read before it could write.
    let mut sending: OptionFuture<BoxFuture<'_, Result<(), Error>>> = None.into();
    let mut is_sending = false;
    let mut idle_since = Instant::now();
    loop {
        let idle_end = idle_since + chat.context.settings.idle_time;
        tokio::select! {
            entry = client.next() => match entry {
                Ok(Some(entry)) => {
                    let now = chat.now();
                    chat.update(|state| {
                        state.apply(&entry, &now, &chat.context.prices);
                        if matches!(entry, Entry::Result(_)) && capture.is_some() {
                            state.touch().capture = capture.map(RunningCapture::view);
                        }
                    });
                    idle_since = Instant::now();
                }
                Ok(None) => return Served::AgentEnded(ChatEnd {
                    reason: EndReason::Exited,
                    message: end_message(EndReason::Exited).to_owned(),
                    stderr: Vec::new(),
                }),
                Err(error) => return Served::AgentEnded(end_after_error(EndReason::Failed, &error)),
            },
            Some(sent) = &mut sending, if is_sending => {
                (sending, is_sending) = (None.into(), false);
                if let Err(error) = sent {
                    chat.update(|state| state.add_note(NoteLevel::Error, &format!("a message was not sent: {}", error_chain(&error))));
                }
            }
            Some(message) = inputs.outbox.recv(), if !is_sending => {
                let handle = handle.clone();
                let send: BoxFuture<'_, _> = Box::pin(async move { handle.send_message(message).await });
                (sending, is_sending) = (Some(send).into(), true);
                idle_since = Instant::now();
            }
            control = inputs.control.recv() => {
                return Served::Controlled(control.unwrap_or(Control::End(EndReason::Stopped)));
            }
            () = tokio::time::sleep_until(idle_end) => {
                if is_unused(chat) {
                    return Served::Controlled(Control::End(EndReason::Idle));
                }
                idle_since = Instant::now();
            }
        }
    }
}

/// Whether no turn is running and no page shows the chat.
fn is_unused(chat: &ActiveChat) -> bool {
    let state = chat.state();
    state.chat.state == ChatPhase::Idle && state.background_tasks == 0 && chat.viewers.current() == 0
}

/// Ends a turn that is running, and then the agent.
async fn close(chat: &ActiveChat, client: Client) -> Exit {
    chat.deny_prompts("The chat was ended.");
    let is_running = !matches!(chat.state().chat.state, ChatPhase::Idle | ChatPhase::Starting);
    if is_running {
        // An agent that does not react is killed below.
        let _ = client.handle().with_timeout(INTERRUPT_TIMEOUT).interrupt().await;
    }
    client.close().await.unwrap_or_default()
}

fn interrupted_start(control: Option<Control>) -> Outcome {
    match control {
        Some(Control::Restart { last_uuid, reply }) => Outcome::Restart { last_uuid, reply },
        Some(Control::End(reason)) => {
            Outcome::Ended(ChatEnd { reason, message: end_message(reason).to_owned(), stderr: Vec::new() })
        }
        None => interrupted_start(Some(Control::End(EndReason::Stopped))),
    }
}

fn end_message(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Stopped => "the chat was ended",
        EndReason::Idle => "the chat was not used for some time",
        EndReason::ServerStopped => "the server was stopped",
        EndReason::Exited => "the agent exited",
        EndReason::StartFailed => "the agent did not start",
        EndReason::Failed => "the agent failed",
    }
}

fn end_after_error(reason: EndReason, error: &Error) -> ChatEnd {
    match error {
        Error::Ended(exit) => {
            let mut status = exit.clone();
            status.stderr.clear();
            let message = format!("{}: {status}", end_message(reason));
            ChatEnd { reason, message, stderr: stderr_lines(&exit.stderr) }
        }
        error => ChatEnd { reason, message: error_chain(error), stderr: Vec::new() },
    }
}

fn stderr_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].iter().map(|line| (*line).to_owned()).collect()
}
