//! The last entries of a conversation, and those that still wait for something.

use std::collections::{HashMap, HashSet};
use std::mem;

use quipu_message::{Entry, ToolUseId, Uuid};

use super::activity::{self, Activity};
use crate::conversation::{Conversation, Node};
use crate::problem::Problem;
use crate::screen::{ItemKind, ScreenItem};
use crate::tool_results::{ToolResults, ToolStatus};

/// With more entries than this, or more bytes, the older ones are dropped.
const MAX_RETAINED_NODES: usize = 48;
const MAX_RETAINED_BYTES: usize = 1 << 20;
/// So many of the latest are always kept: lines that belong together are close together.
const MIN_RETAINED_NODES: usize = 16;
/// So many tool calls without a result are kept; a crash can leave some without one forever.
const MAX_PENDING_CALLS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct RecentEntries {
    conversation: Conversation,
    /// Bytes taken since entries were last dropped.
    bytes: usize,
    /// Which items have been given, with their status then.
    emitted: HashMap<ItemKey, Option<ToolStatus>>,
    has_changed: bool,
    is_used: bool,
}

/// What tells an item from others: its line, and which of the line's items it is.
type ItemKey = (ItemOrigin, usize);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ItemOrigin {
    Entry(Uuid),
    Line(u64),
}

impl RecentEntries {
    /// Whether nothing has come yet that could be shown.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_used
    }

    /// How many entries are held.
    pub(super) fn node_count(&self) -> usize {
        self.conversation.nodes.len()
    }

    /// Takes an entry or event.
    pub(super) fn push(&mut self, line: u64, entry: Entry, bytes: usize) {
        // Pieces of an answer change nothing but what is being written.
        let is_piece = matches!(entry, Entry::StreamEvent(_));
        let nodes = self.conversation.nodes.len();
        self.conversation.push(line, entry);
        self.bytes += bytes;
        self.is_used |= self.conversation.nodes.len() > nodes;
        self.has_changed |= !is_piece;
    }

    /// Takes a node as part of this conversation, whatever its entry says.
    pub(super) fn add_node(&mut self, node: Node, bytes: usize) {
        self.bytes += bytes;
        (self.is_used, self.has_changed) = (true, true);
        // Pieces of a subagent's answer are not shown: its lines come soon enough.
        if !matches!(node.entry, Entry::StreamEvent(_)) {
            self.conversation.add_node(node);
        }
    }

    pub(super) fn push_problem(&mut self, problem: Problem) {
        self.conversation.push_problem(problem);
        self.has_changed = true;
    }

    /// The items that are new, and the changed ones with `true`.
    pub(super) fn changes(&mut self) -> Vec<(ScreenItem, bool)> {
        if !mem::take(&mut self.has_changed) {
            return Vec::new();
        }
        let mut seen: HashMap<ItemOrigin, usize> = HashMap::new();
        let mut changes = Vec::new();
        for item in
            self.conversation.for_ui().into_iter().filter(|item| !is_partial(item) && item.kind != ItemKind::Branch)
        {
            let origin = item_origin(&item);
            let nth = seen.entry(origin.clone()).or_default();
            let status = item.tool.as_ref().map(|card| card.status);
            let before = self.emitted.insert((origin, *nth), status);
            *nth += 1;
            match before {
                None => changes.push((item, false)),
                Some(before) if before != status => changes.push((item, true)),
                Some(_) => {}
            }
        }
        self.drop_old_nodes();
        changes
    }

    /// The items of an answer that is being written.
    pub(super) fn partial_items(&self) -> Vec<ScreenItem> {
        if self.conversation.partial_message().is_none() {
            return Vec::new();
        }
        self.conversation.for_ui().into_iter().filter(is_partial).collect()
    }

    pub(super) fn activity(&self) -> Activity {
        activity::activity_from_path(&self.conversation.path())
    }

    /// Drops what nothing later can refer to.
    fn drop_old_nodes(&mut self) {
        let count = self.conversation.nodes.len();
        let is_large = count > MAX_RETAINED_NODES || self.bytes > MAX_RETAINED_BYTES;
        // How much of an answer has come as lines is counted in them.
        if !is_large || count <= MIN_RETAINED_NODES || self.conversation.partial_message().is_some() {
            return;
        }
        let old = mem::take(&mut self.conversation);
        let waiting = pending_calls(&old.nodes);
        // Once a message was split, all later ids are derived: one split message is kept.
        let split = old.nodes.iter().position(has_several_blocks);
        self.conversation.tombstoned = old.tombstoned;
        let mut kept = HashSet::new();
        for (i, node) in old.nodes.into_iter().enumerate() {
            let waits = node.tool_uses().any(|call| waiting.contains(&call.id));
            if i + MIN_RETAINED_NODES >= count || waits || Some(i) == split {
                kept.extend([node.uuid().cloned().map(ItemOrigin::Entry), Some(ItemOrigin::Line(node.line))]);
                self.conversation.add_node(node);
            }
        }
        self.emitted.retain(|(origin, _), _| kept.contains(&Some(origin.clone())));
        self.bytes = 0;
    }
}

/// Whether a line has not brought the item yet.
fn is_partial(item: &ScreenItem) -> bool {
    item.line == u64::MAX
}

fn item_origin(item: &ScreenItem) -> ItemOrigin {
    match item.derived_from.as_ref().or(item.uuid.as_ref()) {
        Some(uuid) => ItemOrigin::Entry(uuid.clone()),
        None => ItemOrigin::Line(item.line),
    }
}

fn has_several_blocks(node: &Node) -> bool {
    let content = match (node.user(), node.assistant()) {
        (Some(user), _) => &user.message.content,
        (_, Some(assistant)) => &assistant.message.content,
        _ => return false,
    };
    content.blocks().len() > 1
}

/// The latest calls that have no result.
fn pending_calls(nodes: &[Node]) -> HashSet<ToolUseId> {
    let results = ToolResults::new(nodes);
    let calls = nodes.iter().rev().flat_map(|node| node.tool_uses());
    let waiting = calls.map(|call| &call.id).filter(|id| results.get(id).is_none());
    waiting.take(MAX_PENDING_CALLS).cloned().collect()
}
