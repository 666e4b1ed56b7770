//! Which entries belong to the conversation as it stands: the tree of parents,
//! the leaf a resume goes on from, and the path that leads to it.

use std::collections::{HashMap, HashSet};
use std::mem;

use quipu_message::system::System;
use quipu_message::{Block, Content, Entry, Maybe, ToolUseId, Uuid};

use crate::Node;

/// The tree over some nodes, by position in their list.
#[derive(Debug)]
pub struct Tree {
    parents: Vec<Option<usize>>,
    children: Children,
    leaf: Option<usize>,
    /// Nodes whose parent is not in the file.
    pub orphans: Vec<usize>,
}

impl Tree {
    /// Links nodes to their parents. A line of the stream names no parent: it
    /// follows the one before it. So does a line whose parent is missing.
    pub fn new(nodes: &[&Node]) -> Self {
        // Room for all: growing would hash every id again.
        let mut by_uuid: HashMap<&Uuid, usize> = HashMap::with_capacity(nodes.len());
        by_uuid.extend(nodes.iter().enumerate().filter_map(|(i, node)| Some((node.uuid()?, i))));
        let mut parents = vec![None; nodes.len()];
        let mut orphans = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let before = i.checked_sub(1);
            let Some(envelope) = node.entry.envelope() else {
                parents[i] = before;
                continue;
            };
            let named = match &envelope.parent_uuid {
                Maybe::Value(parent) => Some(parent),
                Maybe::Null => match envelope.logical_parent_uuid.get() {
                    Some(parent) => Some(parent),
                    None if begins_branch(node) && !follows_summary(nodes, i) => continue,
                    None => None,
                },
                Maybe::Absent => None,
            };
            parents[i] = match named.map(|uuid| by_uuid.get(uuid).copied().filter(|&p| p != i)) {
                Some(Some(parent)) => Some(parent),
                Some(None) => {
                    orphans.push(i);
                    before
                }
                None => before,
            };
        }
        let children = Children::new(&parents);
        let leaf = nodes.iter().rposition(|node| !matches!(node.entry, Entry::Progress(_)));
        Self { parents, children, leaf, orphans }
    }

    /// The node a resume goes on from.
    pub fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    /// The chain from a root to `leaf`.
    pub fn chain(&self, leaf: usize) -> Vec<usize> {
        let mut seen = vec![false; self.parents.len()];
        let mut chain = Vec::new();
        let mut at = Some(leaf);
        while let Some(i) = at.filter(|&i| !mem::replace(&mut seen[i], true)) {
            chain.push(i);
            at = self.parents[i];
        }
        chain.reverse();
        chain
    }

    /// The conversation that ends in `leaf`: its chain, and what hangs beside
    /// the chain without being another branch (results of parallel calls, hooks,
    /// progress, notices). In the order of the file.
    pub fn path(&self, nodes: &[&Node], leaf: usize) -> Vec<usize> {
        let chain = self.chain(leaf);
        let mut rank = vec![None; nodes.len()];
        let mut messages = HashSet::with_capacity(chain.len());
        let mut calls = HashSet::with_capacity(chain.len());
        for (r, &i) in chain.iter().enumerate() {
            rank[i] = Some(r);
            messages.extend(nodes[i].message_id());
            calls.extend(self::calls(&nodes[i].entry));
        }
        let mut path = chain.clone();
        let mut queue = chain.clone();
        while let Some(i) = queue.pop() {
            for &child in self.children.of(i) {
                if rank[child].is_some() || !hangs_on(nodes[child], &messages, &calls) {
                    continue;
                }
                messages.extend(nodes[child].message_id());
                calls.extend(self::calls(&nodes[child].entry));
                rank[child] = rank[i];
                path.push(child);
                queue.push(child);
            }
        }
        if chain.is_sorted() {
            path.sort_unstable();
        } else {
            path.sort_by_key(|&i| (rank[i], i));
        }
        path
    }

    /// Where the conversation was rewound: nodes from which another branch,
    /// begun by a person, leaves the path.
    pub fn branches(&self, nodes: &[&Node], path: &[usize]) -> Vec<usize> {
        let mut on_path = vec![false; nodes.len()];
        path.iter().for_each(|&i| on_path[i] = true);
        let off = |i: &usize| !on_path[*i] && !matches!(nodes[*i].entry, Entry::Progress(_));
        let roots = (0..nodes.len()).filter(|&i| self.parents[i].is_none());
        let beside = path.iter().flat_map(|&i| self.children.of(i).iter().copied());
        let mut starts: Vec<usize> = roots.chain(beside).filter(off).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}

/// Whether a line without a parent begins another branch: a prompt said instead of
/// the first one does. A hook or a notice there begins a cleared context, and what
/// came before is still the same conversation.
fn begins_branch(node: &Node) -> bool {
    matches!(node.entry, Entry::User(_) | Entry::Assistant(_))
}

/// Whether nothing but the summary of an earlier file stands before: the old layout
/// of a compaction, in which the new file begins with it.
fn follows_summary(nodes: &[&Node], i: usize) -> bool {
    i > 0 && nodes[..i].iter().all(|node| matches!(node.entry, Entry::Summary(_) | Entry::System(_)))
}

/// The children of every node, in the order of the file: those of all nodes in
/// one list, and where each node's begin.
#[derive(Debug)]
struct Children {
    starts: Vec<usize>,
    list: Vec<usize>,
}

impl Children {
    fn new(parents: &[Option<usize>]) -> Self {
        let mut starts = vec![0; parents.len() + 1];
        parents.iter().flatten().for_each(|&parent| starts[parent + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut free = starts.clone();
        let mut list = vec![0; starts[parents.len()]];
        for (i, parent) in parents.iter().enumerate() {
            if let Some(parent) = *parent {
                list[free[parent]] = i;
                free[parent] += 1;
            }
        }
        Self { starts, list }
    }

    fn of(&self, parent: usize) -> &[usize] {
        &self.list[self.starts[parent]..self.starts[parent + 1]]
    }
}

/// Whether a node beside the chain belongs to it.
fn hangs_on(node: &Node, messages: &HashSet<&str>, calls: &HashSet<&ToolUseId>) -> bool {
    match &node.entry {
        Entry::Progress(_) | Entry::Attachment(_) => true,
        Entry::System(system) => !matches!(system.as_ref(), System::CompactBoundary(_)),
        Entry::Assistant(_) => node.message_id().is_some_and(|id| messages.contains(id)),
        Entry::User(user) => {
            let mut results = user.message.content.blocks().iter().filter_map(Block::tool_result).peekable();
            results.peek().is_some() && results.all(|result| calls.contains(&result.tool_use_id))
        }
        _ => false,
    }
}

/// The tool calls a line makes.
fn calls(entry: &Entry) -> impl Iterator<Item = &ToolUseId> {
    let content: &[Block] = match entry {
        Entry::Assistant(line) => match &line.message.content {
            Content::Blocks(blocks) => blocks,
            Content::Text(_) => &[],
        },
        _ => &[],
    };
    content.iter().filter_map(|block| block.tool_use().map(|call| &call.id))
}
