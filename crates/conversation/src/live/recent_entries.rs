//! The window of entries that a live view holds: the latest ones and pending tool calls.

use std::collections::{HashMap, HashSet};
use std::mem;

use quipu_message::{Entry, ToolUseId, Uuid};

use super::activity::{self, Activity};
use crate::conversation::Conversation;
use crate::node::Node;
use crate::problem::Problem;
use crate::screen::{ItemKind, ScreenItem};
use crate::tool_results::{ToolResults, ToolStatus};

/// Older entries are dropped when there are more entries, or more bytes, than these.
const MAX_RETAINED_NODES: usize = 48;
const MAX_RETAINED_BYTES: usize = 1 << 20;
/// The latest entries that are always kept: related entries are close together.
const MIN_RETAINED_NODES: usize = 16;
/// The latest tool calls without a result that are kept. After a crash some never get one.
const MAX_PENDING_CALLS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct RecentEntries {
    conversation: Conversation,
    /// Bytes of lines added since entries were last dropped.
    bytes: usize,
    /// Items that were returned, with their status at that time.
    emitted: HashMap<ItemKey, Option<ToolStatus>>,
    has_changed: bool,
    is_used: bool,
}

/// Identifies an item: its entry, and its index among the items of that entry.
type ItemKey = (ItemOrigin, usize);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ItemOrigin {
    Entry(Uuid),
    Line(u64),
}

impl RecentEntries {
    /// Whether no entry has been added yet.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_used
    }

    /// Number of entries held.
    pub(super) fn node_count(&self) -> usize {
        self.conversation.nodes.len()
    }

    /// Adds an entry or stream event.
    pub(super) fn push(&mut self, line: u64, entry: Entry, bytes: usize) {
        // Stream events change only the partial message.
        let is_piece = matches!(entry, Entry::StreamEvent(_));
        let nodes = self.conversation.nodes.len();
        self.conversation.push(line, entry);
        self.bytes += bytes;
        self.is_used |= self.conversation.nodes.len() > nodes;
        self.has_changed |= !is_piece;
    }

    /// Adds a node without looking for a sidechain.
    pub(super) fn add_node(&mut self, node: Node, bytes: usize) {
        self.bytes += bytes;
        (self.is_used, self.has_changed) = (true, true);
        // Stream events of subagents are not shown; their complete entries follow.
        if !matches!(node.entry, Entry::StreamEvent(_)) {
            self.conversation.add_node(node);
        }
    }

    pub(super) fn push_problem(&mut self, problem: Problem) {
        self.conversation.push_problem(problem);
        self.has_changed = true;
    }

    /// Returns new items, and changed items with `true`.
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

    /// Items of the message that is being streamed.
    pub(super) fn partial_items(&self) -> Vec<ScreenItem> {
        if self.conversation.partial_message().is_none() {
            return Vec::new();
        }
        self.conversation.for_ui().into_iter().filter(is_partial).collect()
    }

    pub(super) fn activity(&self) -> Activity {
        activity::activity_from_path(&self.conversation.path())
    }

    /// Drops old entries that later ones cannot refer to.
    ///
    /// The latest entries, pending tool calls and one split message stay. Rebuilding the
    /// conversation costs as much as the entries that stay, and happens once for each
    /// `MAX_RETAINED_NODES - MIN_RETAINED_NODES` lines.
    fn drop_old_nodes(&mut self) {
        let count = self.conversation.nodes.len();
        let is_large = count > MAX_RETAINED_NODES || self.bytes > MAX_RETAINED_BYTES;
        // The blocks of a partial message that already arrived as lines are counted here.
        if !is_large || count <= MIN_RETAINED_NODES || self.conversation.partial_message().is_some() {
            return;
        }
        let old = mem::take(&mut self.conversation);
        let pending = pending_calls(&old.nodes);
        // After a message with several blocks all item ids are derived, so one of them is kept.
        let split = old.nodes.iter().position(|node| node.blocks().len() > 1);
        self.conversation.tombstoned = old.tombstoned;
        let mut kept = HashSet::new();
        for (i, node) in old.nodes.into_iter().enumerate() {
            let is_pending = node.tool_uses().any(|call| pending.contains(&call.id));
            if i + MIN_RETAINED_NODES >= count || is_pending || Some(i) == split {
                kept.extend([node.uuid().cloned().map(ItemOrigin::Entry), Some(ItemOrigin::Line(node.line))]);
                self.conversation.add_node(node);
            }
        }
        self.emitted.retain(|(origin, _), _| kept.contains(&Some(origin.clone())));
        self.bytes = 0;
    }
}

/// Whether an item belongs to the partial message.
fn is_partial(item: &ScreenItem) -> bool {
    item.line == u64::MAX
}

fn item_origin(item: &ScreenItem) -> ItemOrigin {
    match item.derived_from.as_ref().or(item.uuid.as_ref()) {
        Some(uuid) => ItemOrigin::Entry(uuid.clone()),
        None => ItemOrigin::Line(item.line),
    }
}

/// The latest tool calls without a result.
fn pending_calls(nodes: &[Node]) -> HashSet<ToolUseId> {
    let results = ToolResults::new(nodes);
    let calls = nodes.iter().rev().flat_map(|node| node.tool_uses());
    let waiting = calls.map(|call| &call.id).filter(|id| results.get(id).is_none());
    waiting.take(MAX_PENDING_CALLS).cloned().collect()
}
