//! Prompts that were sent during a turn and that the agent has not started yet.

use std::collections::{BTreeSet, VecDeque};

use quipu_message::Uuid;

/// Prompts of the user that wait for the agent, and those that are shown already.
#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    waiting: VecDeque<(Uuid, String)>,
    shown: BTreeSet<Uuid>,
    /// Whether the agent reports when it starts with a prompt.
    has_reports: bool,
}

impl PromptQueue {
    /// Adds a prompt that waits.
    pub(crate) fn push(&mut self, uuid: Uuid, text: String) {
        self.waiting.push_back((uuid, text));
    }

    /// Texts of the prompts that wait, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|(_, text)| text.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Notes that a prompt is shown in the conversation.
    pub(crate) fn mark_shown(&mut self, uuid: Uuid) {
        self.shown.insert(uuid);
    }

    /// Whether a prompt is shown in the conversation.
    pub(crate) fn is_shown(&self, uuid: &Uuid) -> bool {
        self.shown.contains(uuid)
    }

    /// The agent starts with a prompt. Returns its text if it was waiting.
    pub(crate) fn start(&mut self, uuid: &Uuid) -> Option<String> {
        self.has_reports = true;
        let at = self.waiting.iter().position(|(waiting, _)| waiting == uuid)?;
        self.waiting.remove(at).map(|(_, text)| text)
    }

    /// A turn has ended. If the agent reports no starts, the next prompt is taken to have started.
    pub(crate) fn end_turn(&mut self) -> Option<(Uuid, String)> {
        if self.has_reports { None } else { self.waiting.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_waits_until_the_agent_starts_with_it() {
        let mut queue = PromptQueue::default();
        queue.push(Uuid::from("a"), "one".into());
        queue.push(Uuid::from("b"), "two".into());
        assert_eq!(queue.start(&Uuid::from("b")).as_deref(), Some("two"));
        assert_eq!(queue.start(&Uuid::from("b")), None);
        assert_eq!(queue.texts().collect::<Vec<_>>(), ["one"]);
        assert_eq!(queue.end_turn(), None);
    }

    #[test]
    fn without_reports_the_end_of_a_turn_starts_the_next_prompt() {
        let mut queue = PromptQueue::default();
        queue.push(Uuid::from("a"), "one".into());
        assert_eq!(queue.end_turn(), Some((Uuid::from("a"), "one".into())));
        assert!(queue.is_empty() && queue.end_turn().is_none());
    }
}
