//! Differences between byte strings, so that a capture stores what a request repeats only once.
//!
//! Each request of a conversation repeats the one before it: it ends in more messages, and
//! cache breakpoints move. The difference to the earlier request is found by comparing bytes
//! from both ends, and in the middle by looking a few kilobytes ahead. That costs about as
//! much as one comparison of the two, far less than hashing, and needs no knowledge of JSON.

/// One step of a difference: number of new bytes, then position and number of bytes that are
/// copied from the base.
pub(super) type Step = [usize; 3];

/// Shorter copies cost more than they save.
const MIN_COPY_BYTES: usize = 32;

/// How far both texts are searched for the place where they are the same again.
const RESYNC_WINDOW_BYTES: usize = 16 << 10;

/// Distance of the places in the base that the search looks for.
const RESYNC_STRIDE: usize = 16;

/// Describes `new` by `base`. The parts with new bytes are appended to `literals`.
pub(super) fn encode<'n>(base: &[u8], new: &'n [u8], literals: &mut Vec<&'n [u8]>) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut at, mut in_base, mut literal_start) = (0, 0, 0);
    let mut suffix = None;
    loop {
        let same = common_prefix(&base[in_base..], &new[at..]);
        if same >= MIN_COPY_BYTES {
            literals.push(&new[literal_start..at]);
            steps.push([at - literal_start, in_base, same]);
            literal_start = at + same;
        }
        at += same;
        in_base += same;
        // The common end is left out of the search: most requests only have more messages.
        let suffix = *suffix.get_or_insert_with(|| common_suffix(&base[in_base..], &new[at..]));
        let (base_end, new_end) = (base.len() - suffix, new.len() - suffix);
        if in_base >= base_end || at >= new_end {
            break;
        }
        let Some((skip_base, skip_new)) = resync(&base[in_base..base_end], &new[at..new_end]) else { break };
        in_base += skip_base;
        at += skip_new;
    }
    let rest = &new[literal_start..];
    if !rest.is_empty() {
        let suffix = common_suffix(&base[in_base..], rest);
        let copied = if suffix >= MIN_COPY_BYTES { suffix } else { 0 };
        let (literal, _) = rest.split_at(rest.len() - copied);
        literals.push(literal);
        steps.push([literal.len(), base.len() - copied, copied]);
    }
    steps
}

/// Rebuilds a text from its base; takes new bytes from the start of `literals`. `None` if the
/// steps do not fit the base or the literals.
pub(super) fn decode(base: &[u8], steps: &[Step], literals: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for &[literal, start, copied] in steps {
        let (new_bytes, rest) = literals.split_at_checked(literal)?;
        text.extend_from_slice(new_bytes);
        *literals = rest;
        text.extend_from_slice(base.get(start..start.checked_add(copied)?)?);
    }
    Some(text)
}

/// Number of bytes that two texts have in common at their starts.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count();
    let start = blocks * BLOCK;
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}

/// Number of bytes that two texts have in common at their ends.
pub(super) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - blocks * BLOCK], &b[..b.len() - blocks * BLOCK]);
    blocks * BLOCK + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Finds the nearest place where the texts are the same for [`MIN_COPY_BYTES`], and returns how
/// many bytes of each are before it.
fn resync(base: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    let base_window = &base[..base.len().min(RESYNC_WINDOW_BYTES)];
    let new_window = &new[..new.len().min(RESYNC_WINDOW_BYTES)];
    let key = |text: &[u8]| text.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let mut places: Vec<(u64, usize)> =
        (0..base_window.len()).step_by(RESYNC_STRIDE).filter_map(|at| Some((key(&base_window[at..])?, at))).collect();
    places.sort_unstable();
    for at in 0..new_window.len() {
        let wanted = key(&new_window[at..])?;
        let first = places.partition_point(|(key, _)| *key < wanted);
        let candidates = places[first..].iter().take_while(|(key, _)| *key == wanted).take(4);
        for &(_, in_base) in candidates {
            if common_prefix(&base[in_base..], &new[at..]) >= MIN_COPY_BYTES {
                // The texts may already be the same a little earlier.
                let earlier = common_suffix(&base[..in_base], &new[..at]);
                return Some((in_base - earlier, at - earlier));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode, encode};

    fn check(base: &[u8], new: &[u8]) -> usize {
        let mut literals = Vec::new();
        let steps = encode(base, new, &mut literals);
        let literals = literals.concat();
        let mut rest = literals.as_slice();
        assert_eq!(decode(base, &steps, &mut rest).as_deref(), Some(new));
        assert!(rest.is_empty());
        literals.len()
    }

    fn request(messages: usize, breakpoint: usize) -> Vec<u8> {
        let message = |index: usize| {
            let control = if index == breakpoint { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
            let text: String = (0..60).map(|word| format!("word{} ", index * 60 + word)).collect();
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"{control}}}]}}"#)
        };
        let messages: Vec<String> = (0..messages).map(message).collect();
        let system = "You are an agent. ".repeat(500);
        format!(r#"{{"messages":[{}],"system":"{system}","stream":true}}"#, messages.join(",")).into_bytes()
    }

    #[test]
    fn a_longer_conversation_costs_its_new_messages() {
        assert_eq!(check(&request(40, 39), &request(40, 39)), 0);
        // A breakpoint that moved costs nothing but its own bytes.
        let literals = check(&request(40, 39), &request(41, 40));
        assert!(literals < 1000, "{literals}");
        let literals = check(&request(40, 38), &request(42, 41));
        assert!(literals < 2000, "{literals}");
    }

    #[test]
    fn edits_at_both_ends_and_in_the_middle_are_found() {
        let base = request(20, 3);
        let text = String::from_utf8(base.clone()).unwrap();
        let edited = text.replace("word450 ", "another word ").replace("true}", "false}");
        assert!(check(&base, edited.as_bytes()) < 200);
        check(&base, b"");
        check(b"", &base);
    }

    proptest! {
        #[test]
        fn every_text_is_rebuilt(base in "[ab]{0,300}", new in "[ab]{0,300}") {
            check(base.as_bytes(), new.as_bytes());
        }

        #[test]
        fn a_cut_and_changed_text_is_rebuilt(
            base in proptest::collection::vec(any::<u8>(), 0..3000),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..5),
        ) {
            let mut new = base.clone();
            for (from, to) in cuts {
                let (from, to) = (from.index(new.len() + 1), to.index(new.len() + 1));
                new.splice(from.min(to)..from.max(to), *b"inserted");
            }
            check(&base, &new);
        }
    }
}
