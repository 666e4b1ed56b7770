//! A followed session together with its conversation.

use std::collections::VecDeque;

use quipu_conversation::{LiveConversation, LiveItem, LiveSubagent};

use super::{FollowEvent, LineSource, SessionFollower};
use crate::problem::FileError;

/// A followed session and its conversation so far.
#[derive(Debug)]
pub struct LiveSession {
    follower: SessionFollower,
    live: LiveConversation,
    /// Whether the file is read from its start again, because it was truncated or replaced.
    is_restarted: bool,
}

impl LiveSession {
    /// A session of which no line has been read yet.
    pub fn new(follower: SessionFollower) -> Self {
        Self { follower, live: LiveConversation::default(), is_restarted: false }
    }

    /// The files of the session.
    pub fn follower(&self) -> &SessionFollower {
        &self.follower
    }

    /// The conversation so far.
    pub fn conversation(&self) -> &LiveConversation {
        &self.live
    }

    /// Reads new lines; false if there are none. A large file is read in parts: call again until it
    /// returns false.
    pub fn read_new_lines(&mut self) -> Result<bool, FileError> {
        let events = self.follower.poll()?;
        let any = !events.is_empty();
        for (source, event) in events {
            match (source, event) {
                (LineSource::Session, FollowEvent::Line { number, bytes, .. }) => {
                    self.live.push_line(number, &String::from_utf8_lossy(&bytes));
                }
                (LineSource::Session, FollowEvent::Truncated | FollowEvent::Replaced) => {
                    self.live = LiveConversation::default();
                    self.is_restarted = true;
                }
                (LineSource::Subagent(file), FollowEvent::Line { number, bytes, .. }) => {
                    let task = file.description.or(file.agent_type);
                    let agent = LiveSubagent { agent_id: Some(file.agent_id), tool_use_id: file.tool_use_id, task };
                    self.live.push_agent_line(&agent, number, &String::from_utf8_lossy(&bytes));
                }
                (LineSource::Subagent(_), _) => {}
            }
        }
        Ok(any)
    }

    /// New items; the last `tail` items if the file is read from its start again.
    pub fn new_items(&mut self, tail: usize) -> Result<Vec<LiveItem>, FileError> {
        if std::mem::take(&mut self.is_restarted) { self.read_to_end(tail) } else { Ok(self.live.changes()) }
    }

    /// Reads to the end of the file and returns the last `tail` items by time.
    pub fn read_to_end(&mut self, tail: usize) -> Result<Vec<LiveItem>, FileError> {
        let (mut own, mut of_agents) = (VecDeque::new(), VecDeque::new());
        loop {
            for change in self.live.changes() {
                let list = if change.agent.is_some() { &mut of_agents } else { &mut own };
                keep_last(list, change, tail);
            }
            if !self.read_new_lines()? {
                break;
            }
        }
        self.is_restarted = false;
        let mut items: Vec<LiveItem> = own.into_iter().chain(of_agents).collect();
        items.sort_by(|a, b| a.item.timestamp.cmp(&b.item.timestamp));
        items.drain(..items.len().saturating_sub(tail));
        Ok(items)
    }
}

/// Keeps the last items; an updated tool call replaces its earlier version.
fn keep_last(list: &mut VecDeque<LiveItem>, change: LiveItem, max_items: usize) {
    let id = |item: &LiveItem| item.item.tool.as_ref().map(|tool| tool.id.clone());
    if change.is_update {
        if let Some(known) = list.iter_mut().find(|item| id(item) == id(&change)) {
            *known = change;
        }
        return;
    }
    list.push_back(change);
    if list.len() > max_items {
        list.pop_front();
    }
}
