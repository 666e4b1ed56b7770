//! The tree of entries by parent, the leaf that a resume continues from, and the path to it.

use std::collections::HashMap;
use std::mem;

use crate::id_key::IdKey;
use crate::node::{EntryNode, Facts, NodeKind, ToolRole};

mod children;
mod node_list;
mod parents;

use children::Children;
pub(crate) use node_list::NodeList;
pub use parents::circles;

/// The tree of a list of nodes. All methods use positions in that list.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Position of the parent of each node.
    parents: Vec<Option<u32>>,
    children: Children,
    leaf: Option<u32>,
}

impl Tree {
    /// Links nodes to their parents.
    ///
    /// An entry without a parent, as on a stream, or with a parent that is not in the list
    /// follows the entry before it. A root (a message whose parent is `null`) continues from
    /// the leaf before it, because old versions compacted that way; but if its tree repeats
    /// an earlier one, it replaces that tree.
    pub(crate) fn new<N: EntryNode>(nodes: &NodeList<'_, N>) -> Self {
        let parents = parents::link_parents(nodes);
        let children = Children::new(&parents);
        let leaf = nodes.positions().rev().find(|&i| nodes.facts(i).kind != NodeKind::Progress);
        Self { parents, children, leaf }
    }

    /// The node that a resume continues from: the last one that is not `progress`. `None` if
    /// there is none.
    pub(crate) fn leaf(&self) -> Option<u32> {
        self.leaf
    }

    /// The chain of parents from a root to `leaf`.
    fn chain(&self, leaf: u32) -> Vec<u32> {
        let mut seen = vec![false; self.parents.len()];
        let mut chain = Vec::new();
        let mut next = Some(leaf);
        while let Some(i) = next.filter(|&i| !mem::replace(&mut seen[i as usize], true)) {
            chain.push(i);
            next = self.parents[i as usize];
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
    pub(crate) fn path<N: EntryNode>(&self, nodes: &NodeList<'_, N>, leaf: u32) -> Vec<u32> {
        let chain = self.chain(leaf);
        let mut rank: Vec<Option<u32>> = vec![None; nodes.len()];
        for (r, &i) in (0..).zip(&chain) {
            rank[i as usize] = Some(r);
        }
        let mut known = PathMembers::new(nodes, &rank);
        chain.iter().for_each(|&i| known.add(nodes, i));
        let (mut path, mut queue) = (chain.clone(), chain.clone());
        while let Some(i) = queue.pop() {
            for &child in self.children.children_of(i) {
                if rank[child as usize].is_some() || !known.includes(nodes, child) {
                    continue;
                }
                known.add(nodes, child);
                rank[child as usize] = rank[i as usize];
                path.push(child);
                queue.push(child);
            }
        }
        if chain.is_sorted() {
            path.sort_unstable();
        } else {
            path.sort_by_key(|&i| (rank[i as usize], i));
        }
        path
    }

    /// All nodes that are not on `path`, grouped by the child or root where they leave it,
    /// each group in the order of the file. Groups of `progress` alone are omitted.
    pub(crate) fn branches<N: EntryNode>(&self, nodes: &NodeList<'_, N>, path: &[u32]) -> Vec<Vec<u32>> {
        let mut taken = vec![false; nodes.len()];
        path.iter().for_each(|&i| taken[i as usize] = true);
        let roots = nodes.positions().filter(|&i| self.parents[i as usize].is_none());
        let beside = path.iter().flat_map(|&i| self.children.children_of(i).iter().copied());
        let mut starts: Vec<u32> = roots.chain(beside).filter(|&i| !taken[i as usize]).collect();
        starts.sort_unstable();
        let mut branches = Vec::new();
        for start in starts {
            let mut branch = Vec::new();
            let mut queue = vec![start];
            while let Some(i) = queue.pop() {
                if !mem::replace(&mut taken[i as usize], true) {
                    branch.push(i);
                    queue.extend(self.children.children_of(i));
                }
            }
            branch.sort_unstable();
            if branch.iter().any(|&i| nodes.facts(i).kind != NodeKind::Progress) {
                branches.push(branch);
            }
        }
        branches
    }
}

/// A block is compared with at most this many others of its message. Real messages have fewer;
/// the limit keeps a damaged file with a single message id linear.
const MAX_COMPARED_BLOCKS: usize = 64;

/// The messages and tool calls on the path so far, as far as nodes beside the chain refer to
/// them: on a long path only a few do.
struct PathMembers {
    /// Positions by the id of the API message they hold a block of.
    messages: HashMap<IdKey, Vec<u32>>,
    /// Whether each call is on the path.
    calls: HashMap<IdKey, bool>,
}

impl PathMembers {
    /// Looks for what the nodes without a rank refer to.
    fn new<N: EntryNode>(nodes: &NodeList<'_, N>, rank: &[Option<u32>]) -> Self {
        let (mut messages, mut calls) = (HashMap::new(), HashMap::new());
        for i in nodes.positions().filter(|&i| rank[i as usize].is_none()) {
            messages.extend(nodes.facts(i).message.map(|id| (id, Vec::new())));
            nodes.get(i).visit_tools(|link| {
                if link.role == ToolRole::Result {
                    calls.insert(link.call, false);
                }
            });
        }
        Self { messages, calls }
    }

    fn add<N: EntryNode>(&mut self, nodes: &NodeList<'_, N>, i: u32) {
        if let Some(others) = nodes.facts(i).message.and_then(|id| self.messages.get_mut(&id)) {
            others.push(i);
        }
        nodes.get(i).visit_tools(|link| {
            if link.role == ToolRole::Call
                && let Some(is_on_path) = self.calls.get_mut(&link.call)
            {
                *is_on_path = true;
            }
        });
    }

    /// Whether a node beside the chain belongs to the same conversation.
    fn includes<N: EntryNode>(&self, nodes: &NodeList<'_, N>, child: u32) -> bool {
        let Facts { kind, message, .. } = nodes.facts(child);
        match kind {
            NodeKind::Progress | NodeKind::Attachment | NodeKind::System => true,
            // Another block of a message on the path; the same block again is a copy.
            NodeKind::Assistant => {
                let others = message.and_then(|id| self.messages.get(&id)).filter(|others| !others.is_empty());
                let is_copy = |&other: &u32| nodes.has_same_content(other, child);
                others.is_some_and(|others| !others.iter().rev().take(MAX_COMPARED_BLOCKS).any(is_copy))
            }
            NodeKind::User => {
                let (mut results, mut missing) = (0, 0);
                nodes.get(child).visit_tools(|link| {
                    if link.role == ToolRole::Result {
                        results += 1;
                        missing += usize::from(self.calls.get(&link.call) != Some(&true));
                    }
                });
                results > 0 && missing == 0
            }
            NodeKind::CompactBoundary | NodeKind::Summary | NodeKind::Other => false,
        }
    }
}
