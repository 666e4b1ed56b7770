//! How the messages of a request differ from those of its predecessor.

use std::collections::HashSet;

use super::positions::Place;
use crate::call::RequestParts;
use crate::prompt_store::{PromptMessage, PromptStore};

/// How the messages of a request differ from those that its predecessor had cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HistoryChange {
    /// The cached messages are unchanged.
    Same,
    /// Messages in front of kept ones were removed; the place is the first difference.
    Truncated(Place),
    /// Messages from this place on were replaced by new ones, as after going back.
    Rewound(Place),
    /// Only the first message, or a part of it, changed.
    FirstMessage(Place),
    /// A later message changed.
    Edited(Place),
}

impl HistoryChange {
    /// Compares the messages of two requests up to the last breakpoint of the first one.
    pub(super) fn find(before: &RequestParts, now: &RequestParts, limit: Place, prompts: &PromptStore) -> Self {
        let Place::Block { message: last, block: last_block } = limit else { return Self::Same };
        let message =
            |request: &RequestParts, index: usize| request.messages.get(index).map(|key| prompts.message(*key));
        for index in 0..=last {
            let Some(old) = message(before, index) else { break };
            let blocks = if index == last { last_block + 1 } else { usize::MAX };
            if let Some(block) = first_difference(old, message(now, index), blocks) {
                return Self::classify(before, now, Place::Block { message: index, block }, index, prompts);
            }
        }
        Self::Same
    }

    fn classify(before: &RequestParts, now: &RequestParts, place: Place, index: usize, prompts: &PromptStore) -> Self {
        let step = |request: &RequestParts, index: usize| prompts.message(request.messages[index]).history_hash;
        let kept: HashSet<u64> = (index + 1..before.messages.len()).map(|later| step(before, later)).collect();
        let is_kept = |later: usize| kept.contains(&step(now, later));
        if index < now.messages.len() && is_kept(index) {
            return Self::Truncated(place);
        }
        let continues = (index + 1..now.messages.len()).any(is_kept);
        let (old_len, new_len) = (before.messages.len(), now.messages.len());
        if !continues && (new_len < old_len || new_len == old_len && index > 0) {
            return Self::Rewound(place);
        }
        if index == 0 { Self::FirstMessage(place) } else { Self::Edited(place) }
    }
}

/// Index of the first of `limit` blocks that differ. A message that only grew at its end
/// differs at the first new block, unless the limit is before it.
fn first_difference(old: &PromptMessage, new: Option<&PromptMessage>, limit: usize) -> Option<usize> {
    let is_same_kind = |new: &&PromptMessage| new.role == old.role && new.extra == old.extra;
    let Some(new) = new.filter(is_same_kind) else { return Some(0) };
    if new.cache_hash == old.cache_hash {
        return None;
    }
    let same = old.blocks.iter().zip(&new.blocks).take_while(|(old, new)| old.text == new.text).count();
    (same < limit && (same < old.blocks.len() || same < new.blocks.len())).then_some(same)
}
