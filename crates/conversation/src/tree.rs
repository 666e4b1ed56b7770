//! The tree of entries by parent, the leaf that a resume continues from, and the path to it.

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

/// The tree of a list of nodes. All methods use positions in that list.
#[derive(Debug)]
pub struct Tree {
    parents: Vec<Option<usize>>,
    children: Children,
    leaf: Option<usize>,
}

impl Tree {
    /// Links nodes to their parents.
    ///
    /// An entry without a parent, as on a stream, or with a parent that is not in the list
    /// follows the entry before it. A root (a message whose parent is `null`) continues from
    /// the leaf before it, because old versions compacted that way; but if its tree repeats
    /// an earlier one, it replaces that tree.
    pub fn new(nodes: &[&Node]) -> Self {
        let parents = parents::link_parents(nodes);
        let children = Children::new(&parents);
        let leaf = nodes.iter().rposition(|node| !matches!(node.entry, Entry::Progress(_)));
        Self { parents, children, leaf }
    }

    /// The node that a resume continues from: the last one that is not `progress`. `None` if
    /// there is none.
    pub fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    /// The chain of parents from a root to `leaf`.
    pub fn chain(&self, leaf: usize) -> Vec<usize> {
        let mut seen = vec![false; self.parents.len()];
        let mut chain = Vec::new();
        let mut next = Some(leaf);
        while let Some(i) = next.filter(|&i| !mem::replace(&mut seen[i], true)) {
            chain.push(i);
            next = self.parents[i];
        }
        chain.reverse();
        chain
    }

    /// The conversation that ends in `leaf`, in the order of the file.
    ///
    /// A chain of parents alone is not the whole conversation: of several parallel tool calls
    /// each result has its own call as parent, so only one of them is on the chain, and hooks,
    /// progress and notices are children beside it. This walks down from the chain and adds
    /// children that belong to it; the others start another branch. If the chain goes back in
    /// the file (a parent written after its child), each added node stays with the chain node
    /// it hangs on instead.
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

    /// All nodes that are not on `path`, grouped by the child or root where they leave it,
    /// each group in the order of the file. Groups of `progress` alone are omitted.
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

/// A block is compared with at most this many others of its message. Real messages have fewer;
/// the limit keeps a damaged file with a single message id linear.
const MAX_COMPARED_BLOCKS: usize = 64;

/// Nodes of the path by the id of the API message they hold a block of.
type NodesByMessage<'a> = HashMap<&'a str, Vec<usize>>;

fn record_message<'a>(node: &'a Node, i: usize, messages: &mut NodesByMessage<'a>) {
    if let Some(id) = node.message_id() {
        messages.entry(id).or_default().push(i);
    }
}

/// Whether a node beside the chain belongs to the same conversation.
fn belongs_to_path(nodes: &[&Node], child: usize, messages: &NodesByMessage<'_>, calls: &HashSet<&ToolUseId>) -> bool {
    let node = nodes[child];
    match &node.entry {
        Entry::Progress(_) | Entry::Attachment(_) => true,
        Entry::System(system) => !matches!(system.as_ref(), System::CompactBoundary(_)),
        // Another block of a message on the path; the same block again is a copy.
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
