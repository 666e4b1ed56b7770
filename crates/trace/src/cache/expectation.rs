//! What a call should have read from the cache.

use super::analysis::{CacheAnalysis, ReplayStep};
use super::cause::Cause;
use super::comparison::{Finding, RequestPair};
use super::history::HistoryChange;
use super::model_rules::minimum_prefix;
use super::positions::{Place, Position, Prompt};
use super::store::CacheEntry;
use crate::prompt_store::Breakpoint;

/// What a call should have read.
pub(super) struct Expectation<'a> {
    pub(super) tokens: u64,
    pub(super) is_estimate: bool,
    /// `None` if a smaller read is no miss.
    pub(super) target: Option<Target<'a>>,
}

/// The cache entry that a call should have read.
pub(super) struct Target<'a> {
    /// The predecessor.
    pub(super) before: usize,
    /// Requests of the predecessor and of the call.
    pub(super) pair: RequestPair<'a>,
    pub(super) history: HistoryChange,
    pub(super) is_compaction: bool,
    /// Whether the prefix is too short to be cached.
    pub(super) is_below_minimum: bool,
    /// Index of its prefix in the request; `None` if the request does not begin with it.
    pub(super) position: Option<usize>,
    pub(super) entry: CacheEntry,
}

impl Target<'_> {
    /// Cause and place of a change in the messages.
    pub(super) fn history_finding(&self) -> Option<Finding> {
        let (cause, place) = match self.history {
            HistoryChange::Same => return None,
            HistoryChange::Truncated(place) | HistoryChange::Rewound(place) => (Cause::Truncated, place),
            HistoryChange::FirstMessage(place) => (Cause::FirstMessageChanged, place),
            HistoryChange::Edited(place) => (Cause::MessageEdited, place),
        };
        let cause = if self.is_compaction { Cause::Compacted } else { cause };
        Some(Finding { cause, at: Some(place.describe(self.pair.now, self.pair.prompts)) })
    }
}

/// The longest prefix that a call left in the cache for its successors.
#[derive(Clone, Copy)]
pub(super) struct CachedPrefix {
    prefix: u64,
    place: Place,
    lifetime: Breakpoint,
}

impl CachedPrefix {
    /// The prefix at the last breakpoint; `None` if the request has none.
    pub(super) fn of(prompt: &Prompt) -> Option<Self> {
        let Position { prefix, place, breakpoint, .. } = prompt.positions[prompt.last_breakpoint()?];
        breakpoint.map(|lifetime| Self { prefix, place, lifetime })
    }
}

impl CacheAnalysis<'_> {
    /// What a call should have read, given what the calls before it left in the cache.
    pub(super) fn expectation<'s>(&'s self, step: &ReplayStep<'_>, cached: &[Option<CachedPrefix>]) -> Expectation<'s> {
        let (call, tokens) = (&self.trace.calls[step.call], self.recorded(step.call));
        let by_rules = Expectation { tokens: step.prompt.tokens_at(step.hit), is_estimate: true, target: None };
        let Some(last) = step.prompt.last_breakpoint() else { return by_rules };
        let Some(link) = self.links[step.call] else { return by_rules };
        let before = link.predecessor.and_then(|before| Some((before, cached[before]?)));
        let requests =
            before.and_then(|(before, _)| self.trace.calls[before].request.as_ref()).zip(call.request.as_ref());
        let (Some((before, left)), Some((old, now))) = (before, requests) else { return by_rules };
        let pair = RequestPair { before: old, now, prompts: &self.trace.prompts, limit: left.place };
        let times = self.times[before];
        let assumed = CacheEntry { used_at: times.start, lifetime: left.lifetime, available_at: times.response };
        let mut target = Target {
            before,
            pair,
            history: pair.history(),
            is_compaction: link.is_compaction,
            is_below_minimum: false,
            position: step.prompt.positions.iter().rposition(|position| position.prefix == left.prefix),
            entry: step.store.entry(left.prefix).copied().unwrap_or(assumed),
        };
        let previous = self.recorded(before);
        let (available, used) =
            (previous.cache_read + previous.cache_write(), tokens.cache_read + tokens.cache_write());
        if available == 0 {
            let prefix = step.prompt.tokens_at(target.position.or(Some(last)));
            target.is_below_minimum = used == 0 && minimum_prefix(&now.model).is_some_and(|minimum| prefix < minimum);
            let expected = if target.is_below_minimum { prefix } else { 0 };
            return Expectation { tokens: expected, is_estimate: true, target: Some(target) };
        }
        if let HistoryChange::Rewound(place) = target.history
            && let Some(expected) = rewound_tokens(step, &mut target, place)
        {
            return Expectation { tokens: expected, is_estimate: true, target: Some(target) };
        }
        let readable = if used > 0 { used } else { step.prompt.tokens_at(Some(last)) };
        Expectation {
            tokens: available.min(readable),
            is_estimate: available > readable && used == 0,
            target: Some(target),
        }
    }
}

/// Tokens that a request should read of the history it went back to: the longest entry
/// there, or if there is none all of it. `None` if it shares no messages with its
/// predecessor.
fn rewound_tokens(step: &ReplayStep<'_>, target: &mut Target<'_>, place: Place) -> Option<u64> {
    if target.is_compaction || target.pair.before_messages().is_some() {
        return None;
    }
    let shared = step.prompt.positions.iter().take_while(|position| position.place < place);
    let shared = shared.collect::<Vec<_>>();
    let is_message = |position: &&&Position| matches!(position.place, Place::Block { .. });
    let last = shared.iter().rfind(is_message)?;
    let is_entry = |position: &&Position| step.store.entry(position.prefix).is_some();
    target.position = shared.iter().rposition(|position| is_message(&position) && is_entry(position));
    let Some(position) = target.position else { return Some(last.tokens) };
    // The entry is part of the request, so the way back does not explain a miss.
    target.history = HistoryChange::Same;
    target.entry = *step.store.entry(shared[position].prefix)?;
    Some(shared[position].tokens)
}
