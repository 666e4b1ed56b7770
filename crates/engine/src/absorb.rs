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
    /// Adds queued prompts up to the first slash command to the running turn. Prompts about tasks whose
    /// output the model has read are dropped.
    pub(crate) async fn absorb_queued(&self) -> Result<(), AppendError> {
        let session = self.session;
        let (unseen, seen): (Vec<Prompt>, Vec<Prompt>) =
            session.queue.take_plain_prompts().into_iter().partition(|prompt| session.is_unseen(prompt));
        for prompt in &seen {
            session.record_queue_operation(QueueAction::Remove, Some(prompt), Some(QueueReason::AbsorbedMidTurn))?;
        }
        let absorbed: Vec<AbsorbedPrompt> = unseen.into_iter().map(AbsorbedPrompt::new).collect();
        // Recorded before they leave the queue, so that a kill in between loses nothing.
        self.record(absorbed.iter().map(AbsorbedPrompt::to_entry).collect()).await?;
        for absorbed_prompt in &absorbed {
            session.record_absorbed(
                &absorbed_prompt.prompt,
                absorbed_prompt.uuid.clone(),
                absorbed_prompt.delivery_id.clone(),
            )?;
        }
        let said = || absorbed.iter().filter(|absorbed_prompt| absorbed_prompt.prompt.task_notice.is_none());
        if session.options.replay_user_messages {
            for absorbed_prompt in said() {
                let mut user = factory::user(absorbed_prompt.prompt.content.clone(), &mut Clock);
                user.envelope.uuid = Maybe::Value(absorbed_prompt.uuid.clone());
                self.emit_replay(&user);
            }
        }
        for uuid in said().filter_map(|absorbed_prompt| absorbed_prompt.prompt.uuid.as_ref()) {
            session.emit_lifecycle(Some(uuid), CommandState::Started);
            session.activity.add_absorbed(uuid.clone());
        }
        Ok(())
    }
}

/// A prompt that a running turn has absorbed.
struct AbsorbedPrompt {
    prompt: Prompt,
    uuid: Uuid,
    /// Id of this delivery in the transcript.
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
