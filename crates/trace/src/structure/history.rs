//! A prefix tree of message histories.

use std::collections::HashMap;

use quipu_message::Role;

use crate::call::RequestParts;
use crate::prompt_store::PromptStore;

/// Node of the tree: one history, from the first message to some message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct HistoryNode(u32);

/// Conversation that a call belongs to: calls of one session and one agent.
pub(super) type Lane = usize;

/// All histories of a trace. Messages with the role `system` are left out: they announce
/// facts such as the available tools, and may change when a request is sent again.
#[derive(Debug, Default)]
pub(super) struct HistoryTree {
    children: HashMap<(HistoryNode, u64), HistoryNode>,
    /// Number of nodes; node 0 is the empty history.
    len: u32,
    /// Last call whose whole history is the node, for each lane.
    calls: HashMap<(HistoryNode, Lane), usize>,
    /// Last call whose whole history is the node, in any lane.
    calls_of_any_lane: HashMap<HistoryNode, usize>,
}

impl HistoryTree {
    /// The nodes of a request's history, shortest first.
    pub(super) fn path(&mut self, request: &RequestParts, prompts: &PromptStore) -> Vec<HistoryNode> {
        let mut node = HistoryNode::default();
        let steps = request.messages.iter().map(|key| prompts.message(*key)).filter(|m| m.role != Role::System);
        steps
            .map(|message| {
                let child = self.children.entry((node, message.history_hash)).or_insert_with(|| {
                    self.len += 1;
                    HistoryNode(self.len)
                });
                node = *child;
                node
            })
            .collect()
    }

    /// The call of a lane with the longest history that `path` begins with, and the number
    /// of its messages.
    pub(super) fn longest_prefix(&self, path: &[HistoryNode], lane: Lane) -> Option<(usize, usize)> {
        let found = path.iter().enumerate().rev().find_map(|(i, node)| Some((i + 1, *self.calls.get(&(*node, lane))?)));
        found.map(|(len, call)| (call, len))
    }

    /// The call of any lane with the longest history that `path` continues.
    pub(super) fn longest_continued(&self, path: &[HistoryNode]) -> Option<usize> {
        path.iter().rev().skip(1).find_map(|node| self.calls_of_any_lane.get(node).copied())
    }

    /// Adds a call with the history at the end of `path`.
    pub(super) fn add_call(&mut self, path: &[HistoryNode], lane: Lane, call: usize) {
        if let Some(node) = path.last() {
            self.calls.insert((*node, lane), call);
            self.calls_of_any_lane.insert(*node, call);
        }
    }
}
