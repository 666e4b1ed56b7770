//! What a session is doing: its turn, the prompt of the turn, the tool calls under way.

use parking_lot::Mutex;
use quipu_message::values::SessionActivity;
use quipu_message::{Entry, ToolUseId, Uuid};
use tokio_util::sync::CancellationToken;

/// What a session is doing.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<ActivityState>,
}

#[derive(Debug, Default)]
struct ActivityState {
    /// `idle`, `running` or `requires_action`; empty before the first change, which means `idle`.
    status: Option<SessionActivity>,
    /// Id of the prompt under way, which all its entries carry.
    prompt_id: Option<String>,
    /// The text of the last prompt, for the session list.
    last_prompt: Option<String>,
    /// Interrupts the running turn; `None` if no turn runs.
    turn_cancel: Option<CancellationToken>,
    /// UUID that the host gave the prompt being answered, until its result is emitted.
    answering_uuid: Option<Uuid>,
    /// UUIDs that the host gave the prompts which the running turn has absorbed.
    absorbed_uuids: Vec<Uuid>,
    /// The tool calls under way, each with the token that moves it to the background.
    running_calls: Vec<(ToolUseId, CancellationToken)>,
    /// Tokens in the context at the last API call.
    context_tokens: u64,
    /// Prompts answered in this session, earlier runs included.
    turn_count: u64,
    /// Entries to record before the next prompt, such as a model that the host chose.
    pending_entries: Vec<Entry>,
    /// Whether the host has sent `initialize`.
    is_initialized: bool,
}

impl Activity {
    /// The activity of a session that has answered `turn_count` prompts before.
    pub(crate) fn new(turn_count: u64) -> Self {
        Self { state: Mutex::new(ActivityState { turn_count, ..ActivityState::default() }) }
    }

    /// `idle`, `running` or `requires_action`.
    pub(crate) fn status(&self) -> SessionActivity {
        self.state.lock().status.clone().unwrap_or(SessionActivity::Idle)
    }

    /// Sets what the session is doing. Returns whether it did something else before.
    pub(crate) fn set_status(&self, status: SessionActivity) -> bool {
        let before = self.state.lock().status.replace(status.clone());
        before.unwrap_or(SessionActivity::Idle) != status
    }

    /// A turn begins that answers the prompt of this UUID; `cancel` interrupts it.
    pub(crate) fn begin_turn(&self, prompt: Option<Uuid>, cancel: CancellationToken) {
        let mut state = self.state.lock();
        (state.answering_uuid, state.turn_cancel) = (prompt, Some(cancel));
    }

    /// The turn is over. Returns the UUIDs of the prompts that it absorbed.
    pub(crate) fn end_turn(&self) -> Vec<Uuid> {
        let mut state = self.state.lock();
        state.turn_cancel = None;
        std::mem::take(&mut state.absorbed_uuids)
    }

    /// The token that interrupts the running turn; `None` if no turn runs.
    pub(crate) fn turn_cancel(&self) -> Option<CancellationToken> {
        self.state.lock().turn_cancel.clone()
    }

    /// Whether a turn runs.
    pub(crate) fn is_turn_running(&self) -> bool {
        self.state.lock().turn_cancel.is_some()
    }

    /// Removes and returns the UUID of the prompt being answered.
    pub(crate) fn take_answered(&self) -> Option<Uuid> {
        self.state.lock().answering_uuid.take()
    }

    /// As [`take_answered`](Self::take_answered), but `None` while a turn runs.
    pub(crate) fn take_answered_if_over(&self) -> Option<Uuid> {
        let mut state = self.state.lock();
        if state.turn_cancel.is_none() { state.answering_uuid.take() } else { None }
    }

    /// The running turn has absorbed the prompt of this UUID.
    pub(crate) fn add_absorbed(&self, uuid: Uuid) {
        self.state.lock().absorbed_uuids.push(uuid);
    }

    /// Id of the prompt under way.
    pub(crate) fn prompt_id(&self) -> Option<String> {
        self.state.lock().prompt_id.clone()
    }

    /// Sets the id of the prompt under way.
    pub(crate) fn set_prompt_id(&self, id: String) {
        self.state.lock().prompt_id = Some(id);
    }

    /// The text of the last prompt.
    pub(crate) fn last_prompt(&self) -> Option<String> {
        self.state.lock().last_prompt.clone()
    }

    /// Sets the text of the last prompt.
    pub(crate) fn set_last_prompt(&self, text: String) {
        self.state.lock().last_prompt = Some(text);
    }

    /// A tool call begins that `move_to_background` moves to the background.
    pub(crate) fn add_call(&self, id: ToolUseId, move_to_background: CancellationToken) {
        self.state.lock().running_calls.push((id, move_to_background));
    }

    /// A tool call is over.
    pub(crate) fn remove_call(&self, id: &ToolUseId) {
        self.state.lock().running_calls.retain(|(running, _)| running != id);
    }

    /// Moves one call to the background, or all; calls that cannot run there stay.
    pub(crate) fn move_to_background(&self, only: Option<&ToolUseId>) {
        let state = self.state.lock();
        let selected = state.running_calls.iter().filter(|(id, _)| only.is_none_or(|only| only == id));
        selected.for_each(|(_, move_to_background)| move_to_background.cancel());
    }

    /// Tokens in the context at the last API call; 0 if there was none since a compaction.
    pub(crate) fn context_tokens(&self) -> u64 {
        self.state.lock().context_tokens
    }

    /// Sets the tokens in the context at the last API call.
    pub(crate) fn set_context_tokens(&self, tokens: u64) {
        self.state.lock().context_tokens = tokens;
    }

    /// Prompts answered in this session.
    pub(crate) fn turn_count(&self) -> u64 {
        self.state.lock().turn_count
    }

    /// Counts one more prompt.
    pub(crate) fn count_turn(&self) {
        self.state.lock().turn_count += 1;
    }

    /// Adds entries to record before the next prompt.
    pub(crate) fn add_pending(&self, entries: impl IntoIterator<Item = Entry>) {
        self.state.lock().pending_entries.extend(entries);
    }

    /// Removes and returns the entries to record before the next prompt.
    pub(crate) fn take_pending(&self) -> Vec<Entry> {
        std::mem::take(&mut self.state.lock().pending_entries)
    }

    /// The host has sent `initialize`. Returns whether it had done so before.
    pub(crate) fn mark_initialized(&self) -> bool {
        std::mem::replace(&mut self.state.lock().is_initialized, true)
    }

    /// Forgets what belongs to the conversation, for a new one.
    pub(crate) fn clear_conversation(&self) {
        let mut state = self.state.lock();
        (state.last_prompt, state.context_tokens, state.turn_count) = (None, 0, 0);
    }
}
