//! Finds the parent of each node.

use std::collections::HashMap;

use quipu_message::{Block, Entry, Maybe, Uuid};

use crate::Node;

/// The parent of each node, by position. The result has no circles: if entries name each
/// other in one, those that name a later entry follow the entry before them instead.
pub(super) fn link_parents(nodes: &[&Node]) -> Vec<Option<usize>> {
    // If no entry names a parent, as on a stream, each follows the one before it.
    let is_chained = nodes.iter().any(|node| named_parent(node).is_some());
    // Sized in advance: growing would hash every UUID again.
    let mut latest: HashMap<&Uuid, usize> = HashMap::with_capacity(nodes.len());
    let mut parents = vec![None; nodes.len()];
    let (mut roots, mut unseen) = (Vec::new(), Vec::new());
    let mut leaf = None;
    let mut only_summary = true;
    for (i, node) in nodes.iter().enumerate() {
        parents[i] = i.checked_sub(1);
        if let Some(uuid) = named_parent(node) {
            // If a UUID was used twice, its latest entry is meant.
            match latest.get(uuid) {
                Some(&parent) => parents[i] = Some(parent),
                None => unseen.push((i, uuid)),
            }
        } else if is_chained && is_root(node) && !(only_summary && i > 0) {
            parents[i] = leaf;
            roots.push(i);
        }
        // Old compactions start a new file with the summary; it is not a root.
        only_summary &= matches!(node.entry, Entry::Summary(_) | Entry::System(_));
        if !matches!(node.entry, Entry::Progress(_)) {
            leaf = Some(i);
        }
        latest.extend(node.uuid().map(|uuid| (uuid, i)));
    }
    let later: Vec<(usize, usize)> =
        unseen.into_iter().filter_map(|(i, uuid)| Some((i, *latest.get(uuid)?))).filter(|(i, p)| i != p).collect();
    later.iter().for_each(|&(i, parent)| parents[i] = Some(parent));
    if !later.is_empty() && !circles(&parents).is_empty() {
        later.iter().for_each(|&(i, _)| parents[i] = i.checked_sub(1));
    }
    if roots.iter().any(|&root| root > 0) {
        replace_repeated_trees(nodes, &mut parents, &roots);
    }
    parents
}

/// UUID of the parent that an entry names.
fn named_parent(node: &Node) -> Option<&Uuid> {
    let envelope = node.entry.envelope()?;
    envelope.parent_uuid.get().or(envelope.logical_parent_uuid.get().filter(|_| envelope.parent_uuid == Maybe::Null))
}

/// Whether an entry starts a tree: a message whose parent is `null`. A hook or notice without a
/// parent starts a cleared context in the same tree.
pub(crate) fn is_root(node: &Node) -> bool {
    let is_message = matches!(node.entry, Entry::User(_) | Entry::Assistant(_));
    is_message && named_parent(node).is_none() && node.entry.envelope().is_some_and(|e| e.parent_uuid == Maybe::Null)
}

/// Finds the circles in a list of parents; each circle once, as a list of positions.
pub fn circles(parents: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut circles = Vec::new();
    // The walk that visited a node first; visiting it twice in one walk is a circle.
    let mut walk = vec![usize::MAX; parents.len()];
    for start in 0..parents.len() {
        let mut next = Some(start);
        while let Some(i) = next.filter(|&i| walk[i] == usize::MAX) {
            walk[i] = start;
            next = parents[i];
        }
        if let Some(met) = next.filter(|&i| walk[i] == start) {
            let parent = |&i: &usize| parents[i].filter(|&parent| parent != met);
            circles.push(std::iter::successors(Some(met), parent).collect());
        }
    }
    circles
}

/// Gives each root that repeats an earlier tree the parent of that tree, so that it replaces
/// it. Editor extensions copy the conversation so far under new UUIDs. A tree repeats an earlier
/// one if it holds the same API message, or starts with the same text at the same time.
fn replace_repeated_trees(nodes: &[&Node], parents: &mut [Option<usize>], roots: &[usize]) {
    let tops = tree_roots(parents, roots);
    let mut first_in: HashMap<&str, usize> = HashMap::new();
    let mut root_by_start: HashMap<(&str, String), usize> = HashMap::new();
    let mut repeats: HashMap<usize, usize> = HashMap::new();
    let mut repeat = |top: usize, earlier: usize| {
        if earlier < top {
            repeats.entry(top).and_modify(|known| *known = earlier.min(*known)).or_insert(earlier);
        }
    };
    for &root in roots {
        if let Some(time) = nodes[root].timestamp() {
            let text = nodes[root].blocks().first().and_then(Block::text).unwrap_or_default();
            repeat(root, *root_by_start.entry((time, text.to_owned())).or_insert(root));
        }
    }
    for (i, node) in nodes.iter().enumerate() {
        if let Some(id) = node.message_id() {
            repeat(tops[i], *first_in.entry(id).or_insert(tops[i]));
        }
    }
    for root in roots {
        if let Some(&earlier) = repeats.get(root) {
            parents[*root] = parents[earlier];
        }
    }
}

/// The root of the tree that each node is in.
fn tree_roots(parents: &[Option<usize>], roots: &[usize]) -> Vec<usize> {
    let mut tops = vec![usize::MAX; parents.len()];
    roots.iter().for_each(|&root| tops[root] = root);
    for start in 0..parents.len() {
        let mut walked = Vec::new();
        let mut at = start;
        while tops[at] == usize::MAX {
            walked.push(at);
            match parents[at] {
                Some(parent) => at = parent,
                None => tops[at] = at,
            }
        }
        let top = tops[at];
        walked.into_iter().for_each(|i| tops[i] = top);
    }
    tops
}
