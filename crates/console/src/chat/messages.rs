//! Messages of the agent.

use std::time::Instant;

use quipu_message::system::System;
use quipu_message::values::{CommandState, SessionActivity};
use quipu_message::{Entry, Maybe, Uuid};
use quipu_sdk::{Received, user_message};

use super::Chat;

impl Chat {
    /// Adds a message to the conversation.
    pub(super) fn receive(&mut self, received: Received) {
        let Received { entry, line, .. } = received;
        self.is_changed = true;
        self.status.count(&entry, &line);
        match &entry {
            Entry::CommandLifecycle(lifecycle) => {
                if let (Some(CommandState::Started), Some(uuid)) = (lifecycle.state.get(), lifecycle.command_uuid.get())
                {
                    self.show_started(uuid);
                }
            }
            Entry::User(user) if user.is_replay.is_true() => {
                if let Some(uuid) = user.envelope.uuid.get() {
                    self.show_started(uuid);
                    // It was shown as it was typed.
                    if self.queue.is_shown(uuid) {
                        return;
                    }
                }
            }
            Entry::System(system) => {
                if let System::SessionStateChanged(change) = &**system {
                    self.set_running(change.state.get() != Some(&SessionActivity::Idle));
                }
            }
            Entry::Result(_) => {
                if let Some((uuid, text)) = self.queue.end_turn() {
                    self.show_prompt(uuid, &text);
                } else if self.queue.is_empty() {
                    self.set_running(false);
                }
            }
            _ => {}
        }
        if let Some(id) = entry.envelope().and_then(|envelope| envelope.session_id.text()).filter(|id| !id.is_empty()) {
            self.session_id = Some(id.to_owned());
        }
        self.push(entry, line.len());
    }

    fn set_running(&mut self, is_running: bool) {
        if is_running { self.status.start(Instant::now()) } else { self.status.stop() }
    }

    /// Shows a prompt that was waiting, as the agent starts with it.
    fn show_started(&mut self, uuid: &Uuid) {
        if let Some(text) = self.queue.start(uuid) {
            self.show_prompt(uuid.clone(), &text);
        }
    }

    /// Shows a prompt in the conversation as it was typed. The agent repeats prompts, but some
    /// only after their answer.
    pub(super) fn show_prompt(&mut self, uuid: Uuid, text: &str) {
        let mut user = user_message(text);
        user.envelope.uuid = Maybe::Value(uuid.clone());
        self.queue.mark_shown(uuid);
        self.push(Entry::User(Box::new(user)), text.len());
    }

    fn push(&mut self, entry: Entry, bytes: usize) {
        self.line_number += 1;
        self.is_changed = true;
        let is_partial = matches!(entry, Entry::StreamEvent(_));
        self.live.push(self.line_number, entry, bytes);
        if !is_partial {
            // After each message, so that items of subagents stay between those of the agent.
            self.new_items.append(&mut self.live.changes());
        }
    }
}
