//! Finds the parent of each node.

use std::collections::HashMap;

use quipu_message::Block;

use super::NodeList;
use crate::id_key::IdKey;
use crate::node::{EntryNode, NodeKind};

/// The parent of each node, by position. The result has no circles: if entries name each
/// other in one, those that name a later entry follow the entry before them instead.
pub(super) fn link_parents<N: EntryNode>(nodes: &NodeList<'_, N>) -> Vec<Option<u32>> {
    // If no entry names a parent, as on a stream, each follows the one before it.
    let is_chained = nodes.positions().any(|i| nodes.facts(i).parent.is_some());
    // Sized in advance: growing would hash every UUID again.
    let mut latest: HashMap<IdKey, u32> = HashMap::with_capacity(nodes.len());
    let mut parents: Vec<Option<u32>> = Vec::with_capacity(nodes.len());
    let (mut roots, mut unseen) = (Vec::new(), Vec::new());
    let mut leaf = None;
    let mut only_summary = true;
    for i in nodes.positions() {
        let facts = nodes.facts(i);
        let mut parent = i.checked_sub(1);
        if let Some(uuid) = facts.parent {
            // If a UUID was used twice, its latest entry is meant.
            match latest.get(&uuid) {
                Some(&known) => parent = Some(known),
                None => unseen.push((i, uuid)),
            }
        } else if is_chained && facts.is_root && !(only_summary && i > 0) {
            parent = leaf;
            roots.push(i);
        }
        parents.push(parent);
        // Old compactions start a new file with the summary; it is not a root.
        only_summary &= matches!(facts.kind, NodeKind::Summary | NodeKind::System | NodeKind::CompactBoundary);
        if facts.kind != NodeKind::Progress {
            leaf = Some(i);
        }
        latest.extend(facts.uuid.map(|uuid| (uuid, i)));
    }
    let later: Vec<(u32, u32)> =
        unseen.into_iter().filter_map(|(i, uuid)| Some((i, *latest.get(&uuid)?))).filter(|(i, p)| i != p).collect();
    later.iter().for_each(|&(i, parent)| parents[i as usize] = Some(parent));
    if !later.is_empty() && has_circle(&parents) {
        later.iter().for_each(|&(i, _)| parents[i as usize] = i.checked_sub(1));
    }
    if roots.iter().any(|&root| root > 0) {
        replace_repeated_trees(nodes, &mut parents, &roots);
    }
    parents
}

fn has_circle(parents: &[Option<u32>]) -> bool {
    let parents: Vec<Option<usize>> = parents.iter().map(|parent| parent.map(|i| i as usize)).collect();
    !circles(&parents).is_empty()
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
fn replace_repeated_trees<N: EntryNode>(nodes: &NodeList<'_, N>, parents: &mut [Option<u32>], roots: &[u32]) {
    let tops = tree_roots(parents, roots);
    let mut first_in: HashMap<IdKey, u32> = HashMap::new();
    let mut root_by_start: HashMap<(String, String), u32> = HashMap::new();
    let mut repeats: HashMap<u32, u32> = HashMap::new();
    let mut repeat = |top: u32, earlier: u32| {
        if earlier < top {
            repeats.entry(top).and_modify(|known| *known = earlier.min(*known)).or_insert(earlier);
        }
    };
    for &root in roots {
        let Some(node) = nodes.load(root) else { continue };
        if let Some(time) = node.timestamp() {
            let text = node.blocks().first().and_then(Block::text).unwrap_or_default();
            repeat(root, *root_by_start.entry((time.to_owned(), text.to_owned())).or_insert(root));
        }
    }
    for i in nodes.positions() {
        if let Some(id) = nodes.facts(i).message {
            let top = tops[i as usize];
            repeat(top, *first_in.entry(id).or_insert(top));
        }
    }
    for root in roots {
        if let Some(&earlier) = repeats.get(root) {
            parents[*root as usize] = parents[earlier as usize];
        }
    }
}

/// The root of the tree that each node is in.
fn tree_roots(parents: &[Option<u32>], roots: &[u32]) -> Vec<u32> {
    let mut tops = vec![u32::MAX; parents.len()];
    roots.iter().for_each(|&root| tops[root as usize] = root);
    for start in 0..parents.len() as u32 {
        let mut walked = Vec::new();
        let mut at = start;
        while tops[at as usize] == u32::MAX {
            walked.push(at);
            match parents[at as usize] {
                Some(parent) => at = parent,
                None => tops[at as usize] = at,
            }
        }
        let top = tops[at as usize];
        walked.into_iter().for_each(|i| tops[i as usize] = top);
    }
    tops
}
