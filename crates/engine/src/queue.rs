//! The queue of prompts.

use std::collections::{BTreeSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use quipu_message::Uuid;
use tokio::sync::Notify;

use crate::input::Prompt;
use crate::typed_command::TypedCommand;

/// A queue of prompts in the order they arrived, and the background tasks that will add one.
#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    prompts: VecDeque<Prompt>,
    /// Task ids of the subagents whose end was not taken from the queue yet; results are held back until
    /// then.
    expected_subagents: BTreeSet<String>,
    /// Task ids of the commands whose end was not taken from the queue yet.
    expected_commands: BTreeSet<String>,
    is_closed: bool,
}

impl PromptQueue {
    /// Adds a prompt at the end.
    pub(crate) fn push(&self, prompt: Prompt) {
        self.lock().prompts.push_back(prompt);
        self.changed.notify_one();
    }

    /// Closes the queue: no more prompts will arrive on stdin.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next prompt; `None` if the queue is closed and no task is expected.
    pub(crate) async fn next(&self) -> Option<Prompt> {
        loop {
            {
                let mut state = self.lock();
                if let Some(prompt) = state.prompts.pop_front() {
                    state.clear_notice(&prompt);
                    return Some(prompt);
                }
                if state.is_closed && state.expected_subagents.is_empty() && state.expected_commands.is_empty() {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until the queue has a prompt or is closed.
    pub(crate) async fn wait_for_prompt(&self) {
        loop {
            {
                let state = self.lock();
                if !state.prompts.is_empty() || state.is_closed {
                    break;
                }
            }
            self.changed.notified().await;
        }
        // This call has used up the notification that `next` may be waiting for.
        self.changed.notify_one();
    }

    /// Removes and returns the prompts up to the first slash command, for a running turn.
    pub(crate) fn take_plain_prompts(&self) -> Vec<Prompt> {
        let mut state = self.lock();
        let plain = |prompt: &Prompt| TypedCommand::from_content(&prompt.content).is_none();
        let count = state.prompts.iter().take_while(|prompt| plain(prompt)).count();
        let taken: Vec<Prompt> = state.prompts.drain(..count).collect();
        taken.iter().for_each(|prompt| state.clear_notice(prompt));
        taken
    }

    /// Expects the end of a background subagent.
    pub(crate) fn expect_subagent(&self, task: &str) {
        self.lock().expected_subagents.insert(task.to_owned());
    }

    /// Expects the end of a background command, after the last prompt.
    pub(crate) fn expect_command(&self, task: &str) {
        self.lock().expected_commands.insert(task.to_owned());
    }

    /// Stops expecting the end of a task, because the model has seen its result.
    pub(crate) fn clear_expected(&self, task: &str) {
        let mut state = self.lock();
        state.expected_subagents.remove(task);
        state.expected_commands.remove(task);
        drop(state);
        self.changed.notify_one();
    }

    /// Whether the end of a subagent is expected.
    pub(crate) fn is_expecting_subagents(&self) -> bool {
        !self.lock().expected_subagents.is_empty()
    }

    /// Stops expecting tasks.
    pub(crate) fn clear_all_expected(&self) {
        let mut state = self.lock();
        state.expected_subagents.clear();
        state.expected_commands.clear();
        drop(state);
        self.changed.notify_one();
    }

    /// Removes a prompt; `None` if it is not in the queue.
    pub(crate) fn cancel(&self, uuid: &Uuid) -> Option<Prompt> {
        let mut state = self.lock();
        let at = state.prompts.iter().position(|prompt| prompt.uuid.as_ref() == Some(uuid))?;
        state.prompts.remove(at)
    }

    /// Removes and returns all prompts but those of background tasks.
    pub(crate) fn cancel_prompts(&self) -> Vec<Prompt> {
        let mut state = self.lock();
        let (notices, prompts) = state.prompts.drain(..).partition(|prompt| prompt.task_notice.is_some());
        state.prompts = notices;
        let prompts: VecDeque<Prompt> = prompts;
        prompts.into()
    }

    /// Removes everything and closes the queue.
    pub(crate) fn shut_down(&self) {
        *self.lock() = QueueState { is_closed: true, ..QueueState::default() };
        self.changed.notify_one();
    }

    /// UUIDs of the prompts in the queue.
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
    async fn a_running_turn_takes_prompts_up_to_the_first_command() {
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
    async fn the_end_of_a_cleared_task_does_not_clear_another() {
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
