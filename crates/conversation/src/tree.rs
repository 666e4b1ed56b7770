//! Which entries belong to the conversation as it stands: the tree of parents,
//! the leaf a resume goes on from, and the path that leads to it.

use std::collections::{HashMap, HashSet};
use std::mem;

use quipu_message::system::System;
use quipu_message::{Entry, ToolUseId};

use crate::Node;

mod children;
mod parents;

use children::Children;
pub use parents::circles;
pub(crate) use parents::is_root;

/// The tree over some nodes, by position in their list.
#[derive(Debug)]
pub struct Tree {
    parents: Vec<Option<usize>>,
    children: Children,
    leaf: Option<usize>,
}

impl Tree {
    /// Links nodes to their parents.
    ///
    /// A line of the stream names no parent: it follows the one before it. So does a
    /// line whose parent is missing. A line that begins a tree of its own goes on from
    /// the leaf before it, because old versions compacted that way; but where it repeats
    /// an earlier tree, it takes that tree's place.
    pub fn new(nodes: &[&Node]) -> Self {
        let parents = parents::link_parents(nodes);
        let children = Children::new(&parents);
        let leaf = nodes.iter().rposition(|node| !matches!(node.entry, Entry::Progress(_)));
        Self { parents, children, leaf }
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
        let mut messages = HashMap::with_capacity(chain.len());
        let mut calls = HashSet::with_capacity(chain.len());
        for (r, &i) in chain.iter().enumerate() {
            rank[i] = Some(r);
            record_message(nodes[i], i, &mut messages);
            calls.extend(nodes[i].tool_uses().map(|call| &call.id));
        }
        let mut path = chain.clone();
        let mut queue = chain.clone();
        while let Some(i) = queue.pop() {
            for &child in self.children.children_of(i) {
                if rank[child].is_some() || !belongs_to_path(nodes, child, &messages, &calls) {
                    continue;
                }
                record_message(nodes[child], child, &mut messages);
                calls.extend(nodes[child].tool_uses().map(|call| &call.id));
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

    /// The branches that a rewind left: for each place where another branch leaves the
    /// path or stands beside it, all its nodes in the order of the file.
    pub fn branches(&self, nodes: &[&Node], path: &[usize]) -> Vec<Vec<usize>> {
        let mut taken = vec![false; nodes.len()];
        path.iter().for_each(|&i| taken[i] = true);
        let roots = (0..nodes.len()).filter(|&i| self.parents[i].is_none());
        let beside = path.iter().flat_map(|&i| self.children.children_of(i).iter().copied());
        let mut starts: Vec<usize> = roots.chain(beside).filter(|&i| !taken[i]).collect();
        starts.sort_unstable();
        let mut branches = Vec::new();
        for start in starts {
            let mut branch = Vec::new();
            let mut queue = vec![start];
            while let Some(i) = queue.pop() {
                if !mem::replace(&mut taken[i], true) {
                    branch.push(i);
                    queue.extend(self.children.children_of(i));
                }
            }
            branch.sort_unstable();
            if branch.iter().any(|&i| !matches!(nodes[i].entry, Entry::Progress(_))) {
                branches.push(branch);
            }
        }
        branches
    }
}

/// With how many blocks of a message another is compared: all of a real message, not all
/// of a file that has one message.
const MAX_COMPARED_BLOCKS: usize = 64;

/// The API messages of the path, each with the nodes that hold its blocks.
type NodesByMessage<'a> = HashMap<&'a str, Vec<usize>>;

fn record_message<'a>(node: &'a Node, i: usize, messages: &mut NodesByMessage<'a>) {
    if let Some(id) = node.message_id() {
        messages.entry(id).or_default().push(i);
    }
}

/// Whether a node beside the chain belongs to it.
fn belongs_to_path(nodes: &[&Node], child: usize, messages: &NodesByMessage<'_>, calls: &HashSet<&ToolUseId>) -> bool {
    let node = nodes[child];
    match &node.entry {
        Entry::Progress(_) | Entry::Attachment(_) => true,
        Entry::System(system) => !matches!(system.as_ref(), System::CompactBoundary(_)),
        // Another block of the same message; the same block again is a copy of it.
        Entry::Assistant(line) => {
            let others = node.message_id().and_then(|id| messages.get(id));
            let is_copy = |&i: &usize| nodes[i].assistant().is_some_and(|o| o.message.content == line.message.content);
            others.is_some_and(|others| !others.iter().rev().take(MAX_COMPARED_BLOCKS).any(is_copy))
        }
        Entry::User(user) => {
            let mut results = user.message.content.blocks().iter().filter_map(|block| block.tool_result()).peekable();
            results.peek().is_some() && results.all(|result| calls.contains(&result.tool_use_id))
        }
        _ => false,
    }
}
