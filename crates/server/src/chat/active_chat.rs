//! A chat while its agent runs: its state, and what requests do to it.

use std::sync::Arc;

use jiff::Zoned;
use parking_lot::{Mutex, MutexGuard};
use quipu_message::user_assistant::User;
use quipu_sdk::Handle;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::pages::{PageCount, PageGuard};
use super::prompts::PromptReply;
use super::runner::Control;
use super::settings::ChatSettings;
use super::state::ChatState;
use super::view::{ChatPhase, Prompt, QueuedMessage};
use crate::error::ApiError;
use crate::event::Event;

/// Messages that may wait for the agent.
const MAX_QUEUED: usize = 50;
/// Prompts that may wait for the user; further ones are denied.
const MAX_PROMPTS: usize = 100;
/// Bytes of their inputs together.
const MAX_PROMPT_BYTES: usize = 32 << 20;

/// A new random id.
pub(super) fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A chat. Requests and the task that runs its agent share it.
#[derive(Debug)]
pub(crate) struct ActiveChat {
    pub(crate) id: String,
    state: Mutex<ChatState>,
    /// Version of the state.
    changed: watch::Sender<u64>,
    /// Messages for the agent.
    outbox: mpsc::UnboundedSender<User>,
    control: mpsc::Sender<Control>,
    /// The running agent; `None` before it has started and after its end.
    pub(super) agent: watch::Sender<Option<Handle>>,
    /// True after the agent has ended and everything is cleaned up.
    pub(super) is_done: watch::Sender<bool>,
    pub(super) context: ChatContext,
    /// Clients that follow this chat.
    pub(super) viewers: PageCount,
}

/// What all chats of a server share.
#[derive(Debug, Clone)]
pub(crate) struct ChatContext {
    pub(super) now: fn() -> Zoned,
    pub(super) prices: Arc<quipu_conversation::price::Prices>,
    pub(super) events: broadcast::Sender<Event>,
    /// Pages that are connected to the server.
    pub(super) pages: PageCount,
    pub(super) settings: ChatSettings,
}

/// The ends of a chat that its task reads.
#[derive(Debug)]
pub(super) struct ChatInputs {
    pub(super) outbox: mpsc::UnboundedReceiver<User>,
    pub(super) control: mpsc::Receiver<Control>,
}

/// Counts a client of a chat until it is dropped.
#[derive(Debug)]
pub(crate) struct ViewerGuard {
    _viewer: PageGuard,
    _page: PageGuard,
}

impl ActiveChat {
    pub(super) fn new(state: ChatState, context: ChatContext) -> (Arc<Self>, ChatInputs) {
        let (outbox, messages) = mpsc::unbounded_channel();
        let (control, controls) = mpsc::channel(8);
        let chat = Self {
            id: state.chat.id.clone(),
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            outbox,
            control,
            agent: watch::Sender::new(None),
            is_done: watch::Sender::new(false),
            context,
            viewers: PageCount::default(),
        };
        (Arc::new(chat), ChatInputs { outbox: messages, control: controls })
    }

    /// The state, locked. It must not be held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock()
    }

    /// Changes the state and wakes the clients.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut ChatState) -> T) -> T {
        let mut state = self.state.lock();
        let summary = |state: &ChatState| (state.chat.state, state.chat.prompts.len());
        let before = summary(&state);
        let result = change(&mut state);
        state.version += 1;
        let (version, is_listed_change) = (state.version, summary(&state) != before);
        drop(state);
        self.changed.send_replace(version);
        if is_listed_change {
            // Fails if there are no clients.
            let _ = self.context.events.send(Event::Chats);
        }
        result
    }

    /// Becomes changed with each change of the state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Counts a client that follows this chat.
    pub(crate) fn add_viewer(&self) -> ViewerGuard {
        ViewerGuard { _viewer: self.viewers.add(), _page: self.context.pages.add() }
    }

    pub(super) fn now(&self) -> String {
        (self.context.now)().timestamp().to_string()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().chat.state == ChatPhase::Ended
    }

    /// Queues a message for the agent. Fails if the chat has ended or too many messages wait.
    pub(crate) fn send(&self, message: User, text: String) -> Result<QueuedMessage, ApiError> {
        let uuid = message.envelope.uuid.text().unwrap_or_default().to_owned();
        let queued = QueuedMessage { uuid, text };
        self.update(|state| {
            if state.chat.state == ChatPhase::Ended {
                return Err(ended_error());
            }
            if state.chat.queued.len() >= MAX_QUEUED {
                return Err(ApiError::conflict("queue.full", format!("{MAX_QUEUED} messages wait already"))
                    .with_hint("wait until the agent has answered some of them"));
            }
            state.touch().queued.push(queued.clone());
            // Under the lock, so that messages are sent in the order of the queue.
            self.outbox.send(message).map_err(|_| ended_error())
        })?;
        Ok(queued)
    }

    pub(crate) fn remove_from_queue(&self, uuid: &str) {
        self.update(|state| state.touch().queued.retain(|message| message.uuid != uuid));
    }

    pub(crate) fn set_permission_mode(&self, mode: &str) {
        self.update(|state| mode.clone_into(&mut state.touch().permission_mode));
    }

    pub(crate) fn set_model(&self, model: &str) {
        self.update(|state| state.touch().model = Some(model.to_owned()));
    }

    /// Asks the user and waits for the reply. Denies after some time without a connected page. The
    /// prompt is removed when the future is dropped, because the agent withdrew its request.
    pub(super) async fn ask(&self, prompt: Prompt) -> PromptReply {
        let (respond, reply) = oneshot::channel();
        let id = prompt.id.clone();
        let is_added = self.update(|state| {
            let prompts = state.chat.prompts.iter().chain([&prompt]);
            let bytes: usize = prompts.map(|prompt| prompt.input.text().len()).sum();
            let is_allowed = state.chat.prompts.len() < MAX_PROMPTS && bytes <= MAX_PROMPT_BYTES;
            if is_allowed {
                state.add_prompt(prompt, respond);
            }
            is_allowed
        });
        if !is_added {
            return PromptReply::deny("Too many requests wait for the user.");
        }
        let _guard = PromptGuard { chat: self, id };
        tokio::select! {
            reply = reply => reply.unwrap_or_else(|_| PromptReply::deny("The chat was ended.")),
            () = self.context.pages.absent_for(self.context.settings.prompt_timeout) => {
                PromptReply::deny("No page of quipu was open, so the user could not be asked.")
            }
        }
    }

    /// Replies to a prompt. Fails if it was replied to already or withdrawn.
    pub(crate) fn reply(&self, prompt: &str, reply: PromptReply) -> Result<(), ApiError> {
        let gone = || {
            ApiError::not_found("prompt.gone", "this was decided already, or the agent does not wait for it any more")
        };
        let suggestion = match &reply {
            PromptReply::Allow { suggestion, .. } => *suggestion,
            PromptReply::Deny { .. } => None,
        };
        let respond = self.update(|state| {
            let known = state.chat.prompts.iter().find(|known| known.id == prompt).ok_or_else(gone)?;
            if suggestion.is_some_and(|index| index >= known.suggestions.len()) {
                return Err(ApiError::bad_request("prompt.suggestion", "there is no such suggestion"));
            }
            state.remove_prompt(prompt).ok_or_else(gone)
        })?;
        respond.send(reply).map_err(|_| gone())
    }

    /// Denies everything that waits for the user, and ends the turn.
    pub(super) fn deny_prompts(&self, message: &str) {
        let responders = self.update(|state| {
            if !state.chat.prompts.is_empty() {
                state.touch().prompts.clear();
            }
            std::mem::take(&mut state.responders)
        });
        for respond in responders.into_values() {
            let _ = respond.send(PromptReply::Deny { message: Some(message.to_owned()), interrupt: true });
        }
    }

    /// Fails while a turn is running.
    pub(crate) fn check_idle(&self) -> Result<(), ApiError> {
        match self.state().chat.state {
            ChatPhase::Starting | ChatPhase::Idle => Ok(()),
            ChatPhase::Ended => Err(ended_error()),
            ChatPhase::Running | ChatPhase::Compacting => {
                Err(ApiError::conflict("chat.busy", "a turn is running").with_hint("interrupt it first"))
            }
        }
    }

    /// Starts the agent again so that the conversation ends with an entry; without one, in a new
    /// session. Fails if the agent does not start, which ends the chat.
    pub(crate) async fn rewind_conversation(&self, last_uuid: Option<String>) -> Result<(), ApiError> {
        let (reply, started) = oneshot::channel();
        let control = Control::Restart { last_uuid, reply };
        if !self.control(control).await {
            return Err(ended_error());
        }
        let started = started.await.map_err(|_| ended_error())?;
        started.map_err(|message| ApiError::conflict("agent.not_started", message))
    }

    /// A handle on the agent; waits while it is being started. Fails if the chat has ended.
    pub(crate) async fn agent(&self) -> Result<Handle, ApiError> {
        let mut agent = self.agent.subscribe();
        let mut is_done = self.is_done.subscribe();
        tokio::select! {
            biased;
            agent = agent.wait_for(Option::is_some) => agent.ok().and_then(|agent| agent.clone()).ok_or_else(ended_error),
            _ = is_done.wait_for(|is_done| *is_done) => Err(ended_error()),
        }
    }

    /// Sends a control to the task of the chat; `false` if it has ended.
    pub(super) async fn control(&self, control: Control) -> bool {
        self.control.send(control).await.is_ok()
    }

    /// Waits until the agent has exited.
    pub(super) async fn done(&self) {
        // Fails only if the chat is gone.
        let _ = self.is_done.subscribe().wait_for(|is_done| *is_done).await;
    }
}

pub(super) fn ended_error() -> ApiError {
    ApiError::conflict("chat.ended", "the agent of this chat has ended")
        .with_hint("start a chat that resumes the session")
}

/// Removes a prompt when its future is dropped.
struct PromptGuard<'a> {
    chat: &'a ActiveChat,
    id: String,
}

impl Drop for PromptGuard<'_> {
    fn drop(&mut self) {
        let is_shown = self.chat.state().responders.contains_key(&self.id);
        if is_shown {
            self.chat.update(|state| drop(state.remove_prompt(&self.id)));
        }
    }
}
