//! The one rule by which a message that several sessions hold is credited: which copies
//! are the same message. [`MessageUse::merged`] says what it then counts with.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use quipu_conversation::MessageUse;

use crate::hashed::Hashed;

/// Groups the holders of one key: those that share a time or the id of a line, directly
/// or through others, are copies of one message. Gateways and test servers give several
/// messages one key. Groups and their members keep the order of the holders; the first
/// member of a group is the one to credit.
pub(crate) fn groups(holders: &[&MessageUse]) -> Vec<Vec<usize>> {
    // The group of each holder, as the first member known so far.
    let mut first: Vec<usize> = (0..holders.len()).collect();
    let mut by_mark: HashMap<u64, usize, BuildHasherDefault<Hashed>> = HashMap::default();
    for (at, holder) in holders.iter().enumerate() {
        for mark in holder.marks() {
            let other = *by_mark.entry(mark).or_insert(at);
            let (a, b) = (root(&first, at), root(&first, other));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for at in 0..holders.len() {
        let group = *place.entry(root(&first, at)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at);
    }
    groups
}

fn root(first: &[usize], mut at: usize) -> usize {
    while first[at] != at {
        at = first[at];
    }
    at
}

/// Whether a message counts with other figures than its own line says.
pub(crate) fn differs(own: &MessageUse, merged: &MessageUse) -> bool {
    let counts = |m: &MessageUse| (m.tokens, m.time, m.recorded.map(f64::to_bits), m.searches_told, m.searches_found);
    counts(own) != counts(merged) || own.served != merged.served || own.tools != merged.tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(times: &[i64]) -> MessageUse {
        MessageUse { times: times.to_vec(), ..MessageUse::default() }
    }

    #[test]
    fn copies_are_found_through_others_whatever_the_order() {
        let check = |times: &[&[i64]], expect: &[&[usize]]| {
            let holders: Vec<MessageUse> = times.iter().map(|times| held(times)).collect();
            let holders: Vec<&MessageUse> = holders.iter().collect();
            assert_eq!(groups(&holders), expect, "{times:?}");
        };
        check(&[&[1], &[1, 2], &[2]], &[&[0, 1, 2]]);
        check(&[&[1], &[2], &[1, 2]], &[&[0, 1, 2]]);
        check(&[&[1], &[3], &[2], &[3, 1], &[]], &[&[0, 1, 3], &[2], &[4]]);
    }
}
