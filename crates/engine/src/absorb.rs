//! Prompts that arrive while a turn runs and become part of it.

use quipu_message::attachment::{Attachment, QueuedCommand};
use quipu_message::values::{CommandState, QueueAction, QueueReason};
use quipu_message::{Entry, Maybe, Uuid, factory};
use quipu_transcript::AppendError;

use crate::agent_context::AgentContext;
use crate::attachments::new_attachment;
use crate::clock::{Clock, new_id};
use crate::input::Prompt;

impl AgentContext<'_> {
    /// Takes prompts that came meanwhile into the running turn.
    pub(crate) async fn absorb_queued(&self) -> Result<(), AppendError> {
        let session = self.session;
        let (news, known): (Vec<Prompt>, Vec<Prompt>) =
            session.queue.take_plain_prompts().into_iter().partition(|prompt| session.is_unseen(prompt));
        for prompt in &known {
            session.record_queue_operation(QueueAction::Remove, Some(prompt), Some(QueueReason::AbsorbedMidTurn))?;
        }
        let absorbed: Vec<AbsorbedPrompt> = news.into_iter().map(AbsorbedPrompt::new).collect();
        // The words are in the conversation before they leave the queue.
        self.record(absorbed.iter().map(AbsorbedPrompt::to_entry).collect()).await?;
        for taken in &absorbed {
            session.record_absorbed(&taken.prompt, taken.uuid.clone(), taken.delivery_id.clone())?;
        }
        let said = || absorbed.iter().filter(|taken| taken.prompt.task_notice.is_none());
        if session.options.replay_user_messages {
            for taken in said() {
                let mut user = factory::user(taken.prompt.content.clone(), &mut Clock);
                user.envelope.uuid = Maybe::Value(taken.uuid.clone());
                self.emit_replay(&user);
            }
        }
        for uuid in said().filter_map(|taken| taken.prompt.uuid.as_ref()) {
            session.emit_lifecycle(Some(uuid), CommandState::Started);
            session.activity.add_absorbed(uuid.clone());
        }
        Ok(())
    }
}

/// A prompt that a running turn has taken in.
struct AbsorbedPrompt {
    prompt: Prompt,
    uuid: Uuid,
    /// Names this delivery in the file.
    delivery_id: String,
}

impl AbsorbedPrompt {
    fn new(prompt: Prompt) -> Self {
        let uuid = prompt.uuid.clone().unwrap_or_else(new_id);
        Self { prompt, uuid, delivery_id: new_id().to_string() }
    }

    fn to_entry(&self) -> Entry {
        let attached = QueuedCommand {
            prompt: Maybe::Value(self.prompt.content.clone()),
            source_uuid: Maybe::Value(self.uuid.clone()),
            delivery_id: Maybe::Value(self.delivery_id.clone()),
            command_mode: Maybe::Value(self.prompt.command_mode()),
            ..QueuedCommand::default()
        };
        Entry::Attachment(Box::new(new_attachment(Attachment::QueuedCommand(Box::new(attached)))))
    }
}
