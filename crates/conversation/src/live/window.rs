//! The last entries of a conversation, and those that still wait for something.

use std::collections::{HashMap, HashSet};
use std::mem;

use quipu_message::{Entry, ToolUseId, Uuid};

use super::activity::{self, Activity};
use crate::conversation::{Conversation, Fault, Node};
use crate::pair::{Results, Status};
use crate::screen::{Kind, ScreenItem};

/// With more entries than this, or more bytes, the older ones are dropped.
const MAX_NODES: usize = 48;
const MAX_BYTES: usize = 1 << 20;
/// So many of the latest are always kept: lines that belong together are close together.
const KEPT_NODES: usize = 16;
/// So many tool calls without a result are kept; a crash can leave some without one forever.
const KEPT_CALLS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Window {
    talk: Conversation,
    /// Bytes taken since entries were last dropped.
    bytes: usize,
    /// Which items have been given, with their status then.
    given: HashMap<Key, Option<Status>>,
    has_changed: bool,
    is_used: bool,
}

/// What tells an item from others: its line, and which of the line's items it is.
type Key = (Origin, usize);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Origin {
    Entry(Uuid),
    Line(u64),
}

impl Window {
    /// Whether nothing has come yet that could be shown.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_used
    }

    /// How many entries are held.
    pub(super) fn size(&self) -> usize {
        self.talk.nodes.len()
    }

    /// Takes an entry or event.
    pub(super) fn push(&mut self, line: u64, entry: Entry, bytes: usize) {
        // Pieces of an answer change nothing but what is being written.
        let is_piece = matches!(entry, Entry::StreamEvent(_));
        let nodes = self.talk.nodes.len();
        self.talk.push(line, entry);
        self.bytes += bytes;
        self.is_used |= self.talk.nodes.len() > nodes;
        self.has_changed |= !is_piece;
    }

    /// Takes a node as part of this conversation, whatever its entry says.
    pub(super) fn add(&mut self, node: Node, bytes: usize) {
        self.bytes += bytes;
        (self.is_used, self.has_changed) = (true, true);
        // Pieces of a subagent's answer are not shown: its lines come soon enough.
        if !matches!(node.entry, Entry::StreamEvent(_)) {
            self.talk.add(node);
        }
    }

    pub(super) fn push_fault(&mut self, fault: Fault) {
        self.talk.push_fault(fault);
        self.has_changed = true;
    }

    /// The items that are new, and the changed ones with `true`.
    pub(super) fn changes(&mut self) -> Vec<(ScreenItem, bool)> {
        if !mem::take(&mut self.has_changed) {
            return Vec::new();
        }
        let mut seen: HashMap<Origin, usize> = HashMap::new();
        let mut changes = Vec::new();
        for item in self.talk.for_ui().into_iter().filter(|item| !is_growing(item) && item.kind != Kind::Branch) {
            let origin = origin(&item);
            let nth = seen.entry(origin.clone()).or_default();
            let status = item.tool.as_ref().map(|card| card.status);
            let before = self.given.insert((origin, *nth), status);
            *nth += 1;
            match before {
                None => changes.push((item, false)),
                Some(before) if before != status => changes.push((item, true)),
                Some(_) => {}
            }
        }
        self.drop_old();
        changes
    }

    /// The items of an answer that is being written.
    pub(super) fn growing(&self) -> Vec<ScreenItem> {
        if self.talk.writing().is_none() {
            return Vec::new();
        }
        self.talk.for_ui().into_iter().filter(is_growing).collect()
    }

    pub(super) fn activity(&self) -> Activity {
        activity::of(&self.talk.path())
    }

    /// Drops what nothing later can refer to.
    fn drop_old(&mut self) {
        let count = self.talk.nodes.len();
        let is_large = count > MAX_NODES || self.bytes > MAX_BYTES;
        // How much of an answer has come as lines is counted in them.
        if !is_large || count <= KEPT_NODES || self.talk.writing().is_some() {
            return;
        }
        let old = mem::take(&mut self.talk);
        let waiting = waiting_calls(&old.nodes);
        // Once a message was split, all later ids are derived: one split message is kept.
        let split = old.nodes.iter().position(is_split);
        self.talk.withdrawn = old.withdrawn;
        let mut kept = HashSet::new();
        for (i, node) in old.nodes.into_iter().enumerate() {
            let waits = node.tool_uses().any(|call| waiting.contains(&call.id));
            if i + KEPT_NODES >= count || waits || Some(i) == split {
                kept.extend([node.uuid().cloned().map(Origin::Entry), Some(Origin::Line(node.line))]);
                self.talk.add(node);
            }
        }
        self.given.retain(|(origin, _), _| kept.contains(&Some(origin.clone())));
        self.bytes = 0;
    }
}

/// Whether a line has not brought the item yet.
fn is_growing(item: &ScreenItem) -> bool {
    item.line == u64::MAX
}

fn origin(item: &ScreenItem) -> Origin {
    match item.derived_from.as_ref().or(item.uuid.as_ref()) {
        Some(uuid) => Origin::Entry(uuid.clone()),
        None => Origin::Line(item.line),
    }
}

fn is_split(node: &Node) -> bool {
    let content = match (node.user(), node.assistant()) {
        (Some(user), _) => &user.message.content,
        (_, Some(assistant)) => &assistant.message.content,
        _ => return false,
    };
    content.blocks().len() > 1
}

/// The latest calls that have no result.
fn waiting_calls(nodes: &[Node]) -> HashSet<ToolUseId> {
    let results = Results::new(nodes);
    let calls = nodes.iter().rev().flat_map(|node| node.tool_uses());
    let waiting = calls.map(|call| &call.id).filter(|id| results.get(id).is_none());
    waiting.take(KEPT_CALLS).cloned().collect()
}
