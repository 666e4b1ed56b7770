//! Ranks texts by how well they match what a user typed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// A text that matches: its index in the list, and the characters that matched.
pub(crate) struct Ranked {
    pub(crate) index: usize,
    /// Indices of characters, ascending.
    pub(crate) positions: Vec<u32>,
}

/// The best `limit` of a list by the text of each, best first. Upper case in the query makes it case-sensitive; words
/// separated by spaces must all match. Among equal scores the shorter text is first, then the
/// earlier one.
pub(crate) fn rank<'a, T>(
    query: &str,
    list: &'a [T],
    text: impl Fn(&'a T) -> &'a str,
    limit: usize,
    config: Config,
) -> Vec<Ranked> {
    let mut matcher = Matcher::new(config);
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    // The worst of the best is on top, so that a list of 100,000 is not sorted for ten rows.
    let mut best = BinaryHeap::with_capacity(limit + 1);
    for (index, text) in list.iter().map(&text).enumerate() {
        let Some(score) = pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher) else { continue };
        best.push((Reverse(score), text.len(), index));
        if best.len() > limit {
            best.pop();
        }
    }
    let to_ranked = |(.., index): (_, _, usize)| {
        let mut positions = Vec::new();
        pattern.indices(Utf32Str::new(text(&list[index]), &mut buffer), &mut matcher, &mut positions);
        positions.sort_unstable();
        positions.dedup();
        Ranked { index, positions }
    };
    best.into_sorted_vec().into_iter().map(to_ranked).collect()
}
