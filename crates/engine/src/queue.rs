//! Prompts that wait for their turn.

use std::collections::{BTreeSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use quipu_message::Uuid;
use tokio::sync::Notify;

use crate::input::Prompt;
use crate::typed_command::TypedCommand;

/// Prompts in the order they came.
#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    prompts: VecDeque<Prompt>,
    /// The subagents whose notices are still to be taken; results are held back meanwhile.
    expected_subagents: BTreeSet<String>,
    /// The commands whose notices are still to be taken.
    expected_commands: BTreeSet<String>,
    is_closed: bool,
}

impl PromptQueue {
    /// Adds a prompt at the end.
    pub(crate) fn push(&self, prompt: Prompt) {
        self.lock().prompts.push_back(prompt);
        self.changed.notify_one();
    }

    /// No more prompts will come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// The next prompt; none when there will be no more.
    pub(crate) async fn next(&self) -> Option<Prompt> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(prompt) = waiting.prompts.pop_front() {
                    waiting.clear_notice(&prompt);
                    return Some(prompt);
                }
                if waiting.is_closed && waiting.expected_subagents.is_empty() && waiting.expected_commands.is_empty() {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until a prompt waits, or none will come any more.
    pub(crate) async fn wait_for_prompt(&self) {
        loop {
            {
                let waiting = self.lock();
                if !waiting.prompts.is_empty() || waiting.is_closed {
                    break;
                }
            }
            self.changed.notified().await;
        }
        // Whoever waits for the next prompt shall hear of it too.
        self.changed.notify_one();
    }

    /// Takes the prompts at the head that are plain words, for a running turn.
    pub(crate) fn take_plain_prompts(&self) -> Vec<Prompt> {
        let mut waiting = self.lock();
        let plain = |prompt: &Prompt| TypedCommand::from_content(&prompt.content).is_none();
        let count = waiting.prompts.iter().take_while(|prompt| plain(prompt)).count();
        let taken: Vec<Prompt> = waiting.prompts.drain(..count).collect();
        taken.iter().for_each(|prompt| waiting.clear_notice(prompt));
        taken
    }

    /// A subagent works in the background: its notice is waited for.
    pub(crate) fn expect_subagent(&self, task: &str) {
        self.lock().expected_subagents.insert(task.to_owned());
    }

    /// A command runs in the background: its notice is waited for when no more prompts come.
    pub(crate) fn expect_command(&self, task: &str) {
        self.lock().expected_commands.insert(task.to_owned());
    }

    /// The model knows already what a notice would tell.
    pub(crate) fn clear_expected(&self, task: &str) {
        let mut waiting = self.lock();
        waiting.expected_subagents.remove(task);
        waiting.expected_commands.remove(task);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Whether notices of subagents are still to be taken.
    pub(crate) fn is_expecting_subagents(&self) -> bool {
        !self.lock().expected_subagents.is_empty()
    }

    /// Nobody waits for subagents any more.
    pub(crate) fn clear_all_expected(&self) {
        let mut waiting = self.lock();
        waiting.expected_subagents.clear();
        waiting.expected_commands.clear();
        drop(waiting);
        self.changed.notify_one();
    }

    /// Drops a waiting prompt; none when it does not wait.
    pub(crate) fn cancel(&self, uuid: &Uuid) -> Option<Prompt> {
        let mut waiting = self.lock();
        let at = waiting.prompts.iter().position(|prompt| prompt.uuid.as_ref() == Some(uuid))?;
        waiting.prompts.remove(at)
    }

    /// Drops every waiting prompt; notices stay.
    pub(crate) fn cancel_prompts(&self) -> Vec<Prompt> {
        let mut waiting = self.lock();
        let (notices, prompts) = waiting.prompts.drain(..).partition(|prompt| prompt.task_notice.is_some());
        waiting.prompts = notices;
        let prompts: VecDeque<Prompt> = prompts;
        prompts.into()
    }

    /// Nothing more is taken, neither prompts nor notices.
    pub(crate) fn shut_down(&self) {
        *self.lock() = QueueState { is_closed: true, ..QueueState::default() };
        self.changed.notify_one();
    }

    /// The ids of waiting prompts.
    pub(crate) fn uuids(&self) -> Vec<Uuid> {
        self.lock().prompts.iter().filter_map(|prompt| prompt.uuid.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }
}

impl QueueState {
    fn clear_notice(&mut self, prompt: &Prompt) {
        if let Some(notice) = &prompt.task_notice {
            self.expected_subagents.remove(&notice.task_id);
            self.expected_commands.remove(&notice.task_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::input::TaskNotice;

    fn prompt(text: &str) -> Prompt {
        Prompt { uuid: Some(Uuid::from(text)), ..Prompt::from(text.to_owned()) }
    }

    #[tokio::test]
    async fn a_running_turn_takes_words_up_to_the_first_command() {
        let queue = PromptQueue::default();
        ["a", "b", "/c", "d"].into_iter().for_each(|text| queue.push(prompt(text)));
        assert_eq!(queue.take_plain_prompts().len(), 2);
        assert!(queue.cancel(&"d".into()).is_some() && queue.cancel(&"d".into()).is_none());
        queue.close();
        assert_eq!(queue.next().await.map(|prompt| prompt.text()).as_deref(), Some("/c"));
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test]
    async fn a_closed_queue_waits_for_the_notices_of_subagents() {
        let queue = Arc::new(PromptQueue::default());
        queue.expect_subagent("a1");
        queue.close();
        let waiting = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { (queue.next().await, queue.next().await) }
        });
        let notice = TaskNotice { task_id: "a1".to_owned(), run_id: "1".to_owned() };
        queue.push(Prompt { task_notice: Some(notice), ..Prompt::from("done".to_owned()) });
        let (notice, after) = waiting.await.unwrap();
        assert_eq!((notice.map(|prompt| prompt.text()).as_deref(), after), (Some("done"), None));
        assert!(!queue.is_expecting_subagents());
    }

    #[tokio::test]
    async fn a_notice_nobody_waits_for_any_more_does_not_stand_for_another() {
        let queue = PromptQueue::default();
        queue.expect_subagent("a1");
        queue.clear_all_expected();
        queue.expect_subagent("a2");
        let notice = TaskNotice { task_id: "a1".to_owned(), run_id: "1".to_owned() };
        queue.push(Prompt { task_notice: Some(notice), ..Prompt::from("done".to_owned()) });
        assert!(queue.next().await.is_some() && queue.is_expecting_subagents());
        queue.clear_expected("a2");
        assert!(!queue.is_expecting_subagents());
    }
}
