//! Prompts that were still queued when a session ended.

use std::collections::VecDeque;

use quipu_message::attachment::{Attachment, QueuedCommand};
use quipu_message::bookkeeping::QueueOperation;
use quipu_message::system::{Informational, System};
use quipu_message::values::{CommandMode, MessageLevel, QueueAction, QueueReason};
use quipu_message::{Block, Content, Entry, Maybe};
use quipu_transcript::AppendError;

use crate::attachments::new_attachment;
use crate::input::Prompt;
use crate::session::Session;

/// Replays the queue operations of a transcript.
#[derive(Debug, Default)]
pub(crate) struct QueueReplay {
    queue: VecDeque<Content>,
    /// The prompt that has left the queue and is not recorded yet.
    dequeued: Option<Content>,
}

impl QueueReplay {
    /// Applies an entry of the transcript.
    pub(crate) fn read_entry(&mut self, entry: &Entry) {
        match entry {
            Entry::QueueOperation(line) => self.apply_operation(line),
            Entry::User(user) if !user.is_meta.is_true() && !has_tool_result(&user.message.content) => {
                self.dequeued = None
            }
            Entry::Attachment(line) => {
                if let Attachment::QueuedCommand(taken_in) = &line.attachment {
                    self.remove(Some(taken_in.prompt.get().cloned().unwrap_or_default()));
                }
            }
            // The turn is over, even if a hook denied its prompt.
            Entry::LastPrompt(_) => self.dequeued = None,
            _ => {}
        }
    }

    fn apply_operation(&mut self, line: &QueueOperation) {
        let content = line.content.get().and_then(|json| json.read::<Content>().ok());
        match line.operation.as_str() {
            "enqueue" => self.queue.push_back(content.unwrap_or_default()),
            "dequeue" => self.dequeued = self.queue.pop_front(),
            "remove" => self.remove(content),
            _ => self.queue.clear(),
        }
    }

    /// Removes a prompt from the queue; the first one if `content` is `None`.
    fn remove(&mut self, content: Option<Content>) {
        let Some(content) = content else {
            self.queue.pop_front();
            return;
        };
        if let Some(at) = self.queue.iter().position(|waits| *waits == content) {
            self.queue.remove(at);
        } else if self.dequeued.as_ref() == Some(&content) {
            self.dequeued = None;
        }
    }

    /// The prompts that were not answered. Slash commands and task notifications are left out.
    pub(crate) fn into_unanswered(self) -> Vec<Content> {
        let said = |content: &Content| {
            let text = content.to_text();
            let silent = text.is_empty() && content.blocks().is_empty();
            !silent && !text.starts_with("<task-notification>") && !text.starts_with('/')
        };
        self.dequeued.into_iter().chain(self.queue).filter(said).collect()
    }
}

fn has_tool_result(content: &Content) -> bool {
    content.blocks().iter().any(|block| matches!(block, Block::ToolResult(_)))
}

/// Adds unanswered prompts of an earlier run to the conversation, before the next prompt, and informs
/// the user about each.
pub(crate) async fn resume_unanswered(session: &Session, left: Vec<Content>) -> Result<(), AppendError> {
    for content in left {
        session.emit_system(System::Informational(Box::new(Informational {
            content: Maybe::Value(format!("Not answered before the session ended: {}", content.to_text())),
            level: MessageLevel::Notice.into(),
            envelope: session.output.envelope(),
            ..Informational::default()
        })));
        let prompt = Prompt { content, ..Prompt::from(String::new()) };
        let attached = QueuedCommand {
            prompt: Maybe::Value(prompt.content.clone()),
            command_mode: Maybe::Value(CommandMode::Prompt),
            ..QueuedCommand::default()
        };
        let line = new_attachment(Attachment::QueuedCommand(Box::new(attached)));
        // Recorded before it leaves the queue, so that a kill in between loses nothing.
        session.record(vec![Entry::Attachment(Box::new(line))]).await?;
        session.record_queue_operation(QueueAction::Remove, Some(&prompt), Some(QueueReason::Resumed))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expect: &[&str]) {
        let mut waiting = QueueReplay::default();
        for line in lines {
            let line = match line.split_once(' ') {
                Some(("said", text)) => format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#),
                Some((word, text)) => {
                    format!(r#"{{"type":"queue-operation","operation":"{word}","content":"{text}"}}"#)
                }
                None if *line == "over" => r#"{"type":"last-prompt","lastPrompt":"x"}"#.to_owned(),
                None => format!(r#"{{"type":"queue-operation","operation":"{line}"}}"#),
            };
            waiting.read_entry(&Entry::read(&line).unwrap());
        }
        assert_eq!(waiting.into_unanswered().iter().map(Content::to_text).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn what_is_neither_begun_nor_taken_back_is_left() {
        check(&["enqueue a", "dequeue", "said a", "enqueue b", "enqueue c", "over"], &["b", "c"]);
        check(&["enqueue a", "enqueue b", "remove b"], &["a"]);
        check(&["enqueue a", "enqueue b", "remove"], &["b"]);
        check(&["enqueue a", "popAll"], &[]);
        check(&["enqueue a", "dequeue", "enqueue b", "enqueue c", "remove a", "remove b"], &["c"]);
    }

    #[test]
    fn what_was_taken_but_not_recorded_is_left_unless_its_turn_is_over() {
        check(&["enqueue a", "dequeue"], &["a"]);
        check(&["enqueue a", "dequeue", "over"], &[]);
        check(&["enqueue a", "dequeue", "said a"], &[]);
    }

    #[test]
    fn notices_and_commands_are_not_sent_again() {
        check(&["enqueue <task-notification>x", "enqueue /clear", "enqueue"], &[]);
    }
}
