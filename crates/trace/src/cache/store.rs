//! The prompt cache by its documented rules.

use std::collections::HashMap;

use super::positions::Prompt;
use crate::prompt_store::Breakpoint;

/// Positions that a breakpoint looks back over, itself included.
pub(super) const LOOKBACK: usize = 20;

/// A prefix that was written to the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheEntry {
    /// Start of the last request that wrote or read it, in milliseconds since 1970.
    pub(super) used_at: i64,
    pub(super) lifetime: Breakpoint,
    /// When the response to the request that wrote it began, in milliseconds since 1970.
    pub(super) available_at: i64,
}

impl CacheEntry {
    /// Whether the lifetime had passed at this time.
    pub(super) fn is_expired(&self, now: i64) -> bool {
        now - self.used_at > self.lifetime.milliseconds()
    }

    fn is_readable(&self, now: i64) -> bool {
        !self.is_expired(now) && self.available_at <= now
    }
}

/// All entries that were ever written, expired ones included.
#[derive(Debug, Default)]
pub(super) struct CacheStore {
    entries: HashMap<u64, CacheEntry>,
}

/// Times of a call, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTimes {
    pub(super) start: i64,
    /// When the response began.
    pub(super) response: i64,
}

impl CacheStore {
    /// The entry of a prefix, whether it is readable or not.
    pub(super) fn entry(&self, prefix: u64) -> Option<&CacheEntry> {
        self.entries.get(&prefix)
    }

    /// Index of the longest prefix that a request reads: the entry must be within the
    /// look-back of one of its breakpoints.
    pub(super) fn find(&self, prompt: &Prompt, now: i64) -> Option<usize> {
        let positions = &prompt.positions;
        let breakpoints = (0..positions.len()).rev().filter(|index| positions[*index].breakpoint.is_some());
        let hits = breakpoints.filter_map(|breakpoint| {
            let first = (breakpoint + 1).saturating_sub(LOOKBACK);
            (first..=breakpoint).rev().find(|index| {
                let entry = self.entries.get(&positions[*index].prefix);
                entry.is_some_and(|entry| entry.is_readable(now))
            })
        });
        hits.max()
    }

    /// Records a request that read the prefix up to `hit`: refreshes what it read and writes
    /// entries at its other breakpoints. Prefixes shorter than `minimum` are not cached.
    pub(super) fn record(&mut self, prompt: &Prompt, hit: Option<usize>, times: CallTimes, minimum: u64) {
        if let Some(entry) = hit.and_then(|hit| self.entries.get_mut(&prompt.positions[hit].prefix)) {
            entry.used_at = times.start;
        }
        for position in &prompt.positions {
            let Some(lifetime) = position.breakpoint.filter(|_| position.tokens >= minimum) else { continue };
            let written = CacheEntry { used_at: times.start, lifetime, available_at: times.response };
            let entry = self.entries.entry(position.prefix).or_insert(written);
            if entry.is_expired(times.start) {
                *entry = written;
            } else {
                entry.used_at = times.start;
                entry.lifetime = entry.lifetime.max(lifetime);
                entry.available_at = entry.available_at.min(times.response);
            }
        }
    }
}

impl Breakpoint {
    /// Lifetime in milliseconds.
    pub(super) fn milliseconds(self) -> i64 {
        match self {
            Self::FiveMinutes => 5 * 60 * 1000,
            Self::OneHour => 60 * 60 * 1000,
        }
    }
}
