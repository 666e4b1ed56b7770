//! Child lists of a tree.

/// The children of every node, in the order of the file. They are stored in one list with
/// the offset of each node's part, which needs two allocations instead of one for each node.
#[derive(Debug)]
pub(super) struct Children {
    offsets: Vec<usize>,
    children: Vec<usize>,
}

impl Children {
    pub(super) fn new(parents: &[Option<usize>]) -> Self {
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
        Self { offsets: starts, children: list }
    }

    pub(super) fn children_of(&self, parent: usize) -> &[usize] {
        &self.children[self.offsets[parent]..self.offsets[parent + 1]]
    }
}
