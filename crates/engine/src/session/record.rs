//! What a session writes to its transcript besides the conversation.

use quipu_message::bookkeeping::{
    AgentName, AgentSetting, CustomTitle, LastPrompt, QueueOperation, ToolsUsed, WorktreeSession, WorktreeState,
};
use quipu_message::system::{System, stream_only};
use quipu_message::values::{CommandState, QueueAction, QueueReason};
use quipu_message::{Entry, Maybe, ToolName, Uuid};
use quipu_transcript::AppendError;

use super::Session;
use crate::clock::now;
use crate::conversation_log::PendingWrite;
use crate::input::Prompt;

impl Session {
    /// Records entries in the main conversation, and returns when they are written.
    pub(crate) async fn record(&self, entries: Vec<Entry>) -> Result<(), AppendError> {
        let recorded = self.log().record(entries)?;
        recorded.wait().await
    }

    /// Returns when all bookkeeping entries are written.
    pub(crate) async fn wait_for_bookkeeping(&self) -> Result<(), AppendError> {
        let noted = self.log().bookkeeping_written()?;
        noted.wait().await
    }

    /// Returns when everything recorded is on stable storage.
    pub(crate) async fn flush(&self) -> Result<(), AppendError> {
        let flushed = self.log().flush();
        flushed.wait().await
    }

    /// Records a queue operation, such as `dequeue`.
    pub(crate) fn record_queue_operation(
        &self,
        operation: QueueAction,
        prompt: Option<&Prompt>,
        reason: Option<QueueReason>,
    ) -> Result<(), AppendError> {
        let line = self.queue_operation_entry(operation, prompt, reason);
        self.log().record_bookkeeping(&[Entry::QueueOperation(Box::new(line))])
    }

    /// Records that the running turn has absorbed a prompt.
    pub(crate) fn record_absorbed(&self, prompt: &Prompt, uuid: Uuid, delivery: String) -> Result<(), AppendError> {
        let line = QueueOperation {
            command_uuid: Maybe::Value(uuid),
            delivery_id: Maybe::Value(delivery),
            ..self.queue_operation_entry(QueueAction::Remove, Some(prompt), Some(QueueReason::AbsorbedMidTurn))
        };
        self.log().record_bookkeeping(&[Entry::QueueOperation(Box::new(line))])
    }

    /// Records that a prompt is queued. Once written, that is on stable storage.
    pub(crate) fn record_enqueued(&self, prompt: &Prompt) -> Result<PendingWrite, AppendError> {
        let mut lines = Vec::new();
        if self.identity.take_agent_unrecorded() {
            lines.extend(self.agent_setting_entry());
            lines.extend(self.worktree_state_entry());
        }
        lines.push(Entry::QueueOperation(Box::new(self.queue_operation_entry(
            QueueAction::Enqueue,
            Some(prompt),
            None,
        ))));
        self.log().record_bookkeeping_synced(&lines)
    }

    fn queue_operation_entry(
        &self,
        operation: QueueAction,
        prompt: Option<&Prompt>,
        reason: Option<QueueReason>,
    ) -> QueueOperation {
        let may_wait = self.activity.is_turn_running() || self.hooks.has_hooks_for("UserPromptSubmit");
        QueueOperation {
            operation,
            timestamp: Maybe::Value(now()),
            session_id: Maybe::Value(self.identity.id()),
            content: prompt.map(|prompt| prompt.queue_content(may_wait)).unwrap_or_default(),
            reason: reason.into(),
            ..QueueOperation::default()
        }
    }

    /// The entry that names the agent which the session runs as; `None` if it is the engine's own.
    fn agent_setting_entry(&self) -> Option<Entry> {
        let agent = self.agent_config().agent.as_ref()?.name.clone();
        let session_id = Maybe::Value(self.identity.id());
        Some(Entry::AgentSetting(Box::new(AgentSetting { agent, session_id, ..AgentSetting::default() })))
    }

    /// The entry that names the git worktree of the session; `None` if it has none.
    fn worktree_state_entry(&self) -> Option<Entry> {
        let session_id = Maybe::Value(self.identity.id());
        let worktree = WorktreeSession { session_id: session_id.clone(), ..self.worktree.clone()? };
        let entry = WorktreeState { worktree: Some(worktree), session_id, ..WorktreeState::default() };
        Some(Entry::WorktreeState(Box::new(entry)))
    }

    /// Records the use of a tool, the first time it is used.
    pub(crate) fn record_tool_used(&self, name: &ToolName) -> Result<(), AppendError> {
        let Some(tools) = self.identity.add_tool_used(name) else { return Ok(()) };
        let line = ToolsUsed { tools, session_id: Maybe::Value(self.identity.id()), ..ToolsUsed::default() };
        self.log().record_bookkeeping(&[Entry::ToolsUsed(Box::new(line))])
    }

    /// Records where a resume continues from; with `final_costs` also the cost of the session.
    pub(crate) fn record_session_end(&self, final_costs: bool) -> Result<(), AppendError> {
        let (id, last) = (self.identity.id(), self.activity.last_prompt());
        let settings = self.agent_setting_entry().into_iter().chain(self.worktree_state_entry());
        let settings: Vec<Entry> = settings.collect();
        let mut log = self.log();
        if !log.is_open() {
            return Ok(());
        }
        let mut lines = Vec::new();
        if let Some(last) = last {
            let leaf: Option<Uuid> = log.leaf_uuid().cloned();
            lines.push(Entry::LastPrompt(Box::new(LastPrompt {
                last_prompt: Maybe::Value(last),
                leaf_uuid: leaf.into(),
                session_id: Maybe::Value(id.clone()),
                ..LastPrompt::default()
            })));
        }
        if final_costs {
            lines.extend(settings);
            lines.push(Entry::CostState(Box::new(self.usage().to_cost_state(id))));
        }
        log.record_bookkeeping(&lines)
    }

    /// Records a prompt and adds it to the queue. It is queued even if it cannot be recorded; its turn
    /// then reports the error.
    pub(crate) async fn enqueue_prompt(&self, prompt: Prompt) {
        let noted = self.record_enqueued(&prompt);
        // Acknowledged to the host once it is on stable storage.
        if let (Some(uuid), Ok(noted)) = (&prompt.uuid, noted)
            && noted.wait().await.is_ok()
        {
            self.emit_lifecycle(Some(uuid), CommandState::Queued);
        }
        self.queue.push(prompt);
    }

    /// Sets the title of the session, emits and records it.
    pub(crate) fn rename(&self, title: &str) -> Result<(), AppendError> {
        self.identity.set_title(title);
        self.emit_system(System::SessionTitleChanged(Box::new(stream_only::SessionTitleChanged {
            title: Maybe::Value(title.to_owned()),
            envelope: self.output.envelope(),
            ..stream_only::SessionTitleChanged::default()
        })));
        self.record_title(title)
    }

    fn record_title(&self, title: &str) -> Result<(), AppendError> {
        let id = Maybe::Value(self.identity.id());
        let custom = CustomTitle { title: title.to_owned(), session_id: id.clone(), ..CustomTitle::default() };
        let name = AgentName { name: title.to_owned(), session_id: id, ..AgentName::default() };
        self.log().record_bookkeeping(&[Entry::CustomTitle(Box::new(custom)), Entry::AgentName(Box::new(name))])
    }

    /// Records the file checkpoints made since the last call.
    pub(crate) fn record_checkpoints(&self) -> Result<(), AppendError> {
        let entries =
            self.checkpoints.as_ref().map(|checkpoints| checkpoints.take_pending_entries()).unwrap_or_default();
        if entries.is_empty() { Ok(()) } else { self.log().record_bookkeeping(&entries) }
    }
}
