//! The nodes that a tree is built of.

use std::borrow::Cow;

use crate::node::{EntryNode, Facts, Node};

/// Nodes by position, and how to read their entries.
pub(crate) struct NodeList<'a, N: EntryNode> {
    nodes: Vec<&'a N>,
    reader: &'a N::Reader,
    file: u32,
}

impl<'a, N: EntryNode> NodeList<'a, N> {
    pub(crate) fn new(nodes: Vec<&'a N>, reader: &'a N::Reader, file: u32) -> Self {
        Self { nodes, reader, file }
    }

    /// The nodes at some positions, in this order.
    pub(crate) fn part(&self, positions: &[u32]) -> Self {
        Self { nodes: positions.iter().map(|&i| self.get(i)).collect(), ..*self }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn positions(&self) -> impl DoubleEndedIterator<Item = u32> + use<N> {
        0..self.nodes.len() as u32
    }

    pub(crate) fn get(&self, i: u32) -> &'a N {
        self.nodes[i as usize]
    }

    pub(crate) fn facts(&self, i: u32) -> Facts {
        self.get(i).facts()
    }

    /// The whole entry; `None` if it can no longer be read.
    pub(crate) fn load(&self, i: u32) -> Option<Cow<'a, Node>> {
        self.get(i).load(self.reader, self.file)
    }

    /// Whether two `assistant` entries have the same content.
    pub(super) fn has_same_content(&self, a: u32, b: u32) -> bool {
        let (Some(a), Some(b)) = (self.load(a), self.load(b)) else { return false };
        matches!((a.assistant(), b.assistant()), (Some(a), Some(b)) if a.message.content == b.message.content)
    }
}
