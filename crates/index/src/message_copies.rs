//! The one rule for copies of a message: which holders have the same message, which of them
//! is credited with it, and with what usage. The index and `--no-index` both use it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use quipu_conversation::usage::MessageUsage;

use crate::hashing::IntegerHasher;

/// How one holder of a message counts in its session.
#[derive(Debug, Clone)]
pub(crate) enum Credit {
    /// With its own usage.
    Own,
    /// Not at all: an earlier session holds the message.
    Copy,
    /// With the usage joined from all copies, because one of them is more complete.
    Merged(Box<MessageUsage>),
}

/// Decides how each holder of one key counts. The first holder of each message is credited,
/// so `holders` must be in the order of precedence.
pub(crate) fn credit_holders(holders: &[&MessageUsage]) -> Vec<Credit> {
    let mut credits = vec![Credit::Copy; holders.len()];
    for group in group_copies(holders) {
        let first = holders[group[0]];
        let others: Vec<&MessageUsage> = group[1..].iter().map(|index| holders[*index]).collect();
        credits[group[0]] = match MessageUsage::merge_copies(first, &others) {
            Cow::Owned(merged) if differs_from_own(first, &merged) => Credit::Merged(Box::new(merged)),
            _ => Credit::Own,
        };
    }
    credits
}

/// Groups the holders of one key into messages.
///
/// Holders that share a [mark](MessageUsage::copy_marks), directly or through others, have
/// the same message; gateways and test servers give several messages one key. This is a
/// union-find over the marks. Groups and their members keep the order of the holders, and no
/// group is empty.
fn group_copies(holders: &[&MessageUsage]) -> Vec<Vec<usize>> {
    // Nearly always all of them are copies of the first one.
    let shares_mark = |a: &MessageUsage, b: &MessageUsage| a.copy_marks().any(|mark| b.copy_marks().any(|m| m == mark));
    if holders.iter().skip(1).all(|holder| shares_mark(holders[0], holder)) {
        return vec![(0..holders.len()).collect()];
    }
    // For each holder an earlier member of its group, or itself.
    let mut first: Vec<usize> = (0..holders.len()).collect();
    let mut by_mark: HashMap<u64, usize, BuildHasherDefault<IntegerHasher>> = HashMap::default();
    for (index, holder) in holders.iter().enumerate() {
        for mark in holder.copy_marks() {
            let other = *by_mark.entry(mark).or_insert(index);
            let (a, b) = (group_root(&first, index), group_root(&first, other));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_by_root: HashMap<usize, usize> = HashMap::new();
    for index in 0..holders.len() {
        let group = *group_by_root.entry(group_root(&first, index)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(index);
    }
    groups
}

fn group_root(first: &[usize], mut index: usize) -> usize {
    while first[index] != index {
        index = first[index];
    }
    index
}

/// Whether the joined usage of a message differs from its own.
pub(crate) fn differs_from_own(own: &MessageUsage, merged: &MessageUsage) -> bool {
    let counts = |m: &MessageUsage| {
        (m.tokens, m.earliest_time, m.recorded_cost_usd.map(f64::to_bits), m.reported_searches, m.answered_searches)
    };
    counts(own) != counts(merged) || own.serving != merged.serving || own.tools != merged.tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_at(times: &[i64]) -> MessageUsage {
        MessageUsage { line_times_ms: times.into(), ..MessageUsage::default() }
    }

    #[test]
    fn copies_are_found_through_others_whatever_the_order() {
        let check = |times: &[&[i64]], expect: &[&[usize]]| {
            let holders: Vec<MessageUsage> = times.iter().map(|times| usage_at(times)).collect();
            let holders: Vec<&MessageUsage> = holders.iter().collect();
            assert_eq!(group_copies(&holders), expect, "{times:?}");
        };
        check(&[&[1], &[1, 2], &[2]], &[&[0, 1, 2]]);
        check(&[&[1], &[2], &[1, 2]], &[&[0, 1, 2]]);
        check(&[&[1], &[3], &[2], &[3, 1], &[]], &[&[0, 1, 3], &[2], &[4]]);
    }
}
