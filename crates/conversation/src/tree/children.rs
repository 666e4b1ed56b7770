//! Child lists of a tree.

/// The children of every node, in the order of the file. They are stored in one list with
/// the offset of each node's part, which needs two allocations instead of one for each node.
#[derive(Debug)]
pub(super) struct Children {
    offsets: Vec<u32>,
    children: Vec<u32>,
}

impl Children {
    pub(super) fn new(parents: &[Option<u32>]) -> Self {
        let mut offsets = vec![0; parents.len() + 1];
        parents.iter().flatten().for_each(|&parent| offsets[parent as usize + 1] += 1);
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let mut free = offsets.clone();
        let mut children = vec![0; offsets[parents.len()] as usize];
        for (i, parent) in (0..).zip(parents) {
            if let Some(parent) = *parent {
                let slot = &mut free[parent as usize];
                children[*slot as usize] = i;
                *slot += 1;
            }
        }
        Self { offsets, children }
    }

    pub(super) fn children_of(&self, parent: u32) -> &[u32] {
        let parent = parent as usize;
        &self.children[self.offsets[parent] as usize..self.offsets[parent + 1] as usize]
    }
}
