//! The one rule by which a message that several sessions hold is credited: which copies
//! are the same message. [`MessageUse::merged`] says what it then counts with.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use quipu_conversation::usage::MessageUsage;

use crate::hashing::IntegerHasher;

/// Groups the holders of one key: those that share a time or the id of a line, directly
/// or through others, are copies of one message. Gateways and test servers give several
/// messages one key. Groups and their members keep the order of the holders; the first
/// member of a group is the one to credit.
pub(crate) fn group_copies(holders: &[&MessageUsage]) -> Vec<Vec<usize>> {
    // The group of each holder, as the first member known so far.
    let mut first: Vec<usize> = (0..holders.len()).collect();
    let mut by_mark: HashMap<u64, usize, BuildHasherDefault<IntegerHasher>> = HashMap::default();
    for (at, holder) in holders.iter().enumerate() {
        for mark in holder.copy_marks() {
            let other = *by_mark.entry(mark).or_insert(at);
            let (a, b) = (group_root(&first, at), group_root(&first, other));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for at in 0..holders.len() {
        let group = *place.entry(group_root(&first, at)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at);
    }
    groups
}

fn group_root(first: &[usize], mut at: usize) -> usize {
    while first[at] != at {
        at = first[at];
    }
    at
}

/// Whether a message counts with other figures than its own line says.
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
        MessageUsage { line_times_ms: times.to_vec(), ..MessageUsage::default() }
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
