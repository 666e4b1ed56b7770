//! What each call should have read from the cache, what it read, and why it read less.

use std::collections::BTreeMap;

use quipu_conversation::Tokens;
use quipu_conversation::price::{Prices, Usd};
use quipu_message::api::CacheMissReason;

use super::analysis::{CacheAnalysis, ReplayStep};
use super::cause::Cause;
use super::comparison::{Finding, beta_change, is_other_account, is_out_of_reach};
use super::expectation::{CachedPrefix, Target};
use super::policy::Policy;
use crate::prompt_store::Breakpoint;

/// What one call should have read from the prompt cache, and what it read.
#[derive(Debug, Clone, PartialEq)]
pub struct CallVerdict {
    /// Position in [`Trace::calls`](crate::Trace::calls).
    pub call: usize,
    /// Position in [`Structure::branches`](crate::structure::Structure::branches).
    pub branch: usize,
    /// Tokens read from the cache; `None` if the response has no usage.
    pub read: Option<u64>,
    /// Tokens written to the cache; `None` if the response has no usage.
    pub written: Option<u64>,
    /// Tokens that should have been read: what the predecessor had cached, at most what this
    /// request could read. Without a predecessor, what other calls had cached.
    pub expected_read: u64,
    /// Whether `expected_read` is an estimate and not the count of a response.
    pub is_estimate: bool,
    /// Why less was read than expected; `None` if nothing was missed or there is no
    /// predecessor.
    pub miss: Option<Miss>,
    /// The server's own diagnosis.
    pub server_diagnosis: Option<CacheMissReason>,
}

/// Tokens that a call should have read from the cache and did not.
#[derive(Debug, Clone, PartialEq)]
pub struct Miss {
    /// Why they were not read.
    pub cause: Cause,
    /// Where the request first differs from its predecessor; `None` if the cause is not in
    /// the request.
    pub at: Option<String>,
    /// Tokens that were not read.
    pub tokens: u64,
    /// What they cost more than a read; `None` if the model has no price.
    pub cost: Option<Usd>,
    /// What to do about it, in one sentence.
    pub advice: String,
}

/// Misses of one cause or one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissTotals {
    /// Number of misses.
    pub misses: usize,
    /// Tokens that were not read.
    pub tokens: u64,
    /// What they cost more than reads; misses without a price are left out.
    pub cost: Usd,
    /// Misses without a price.
    pub unpriced: usize,
}

impl MissTotals {
    /// Adds one miss.
    pub fn add(&mut self, miss: &Miss) {
        self.misses += 1;
        self.tokens += miss.tokens;
        match miss.cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    /// Sums by cause.
    pub fn by_cause<'v>(verdicts: impl IntoIterator<Item = &'v CallVerdict>) -> BTreeMap<Cause, Self> {
        let mut totals: BTreeMap<Cause, Self> = BTreeMap::new();
        for miss in verdicts.into_iter().filter_map(|verdict| verdict.miss.as_ref()) {
            totals.entry(miss.cause).or_default().add(miss);
        }
        totals
    }
}

impl CacheAnalysis<'_> {
    /// The verdicts of all calls that ask for a message, in the order of the trace.
    pub fn verdicts(&self, prices: &Prices) -> Vec<CallVerdict> {
        let mut verdicts: Vec<Option<CallVerdict>> = self
            .links
            .iter()
            .enumerate()
            .map(|(call, link)| {
                let link = link.as_ref()?;
                Some(CallVerdict {
                    call,
                    branch: link.branch,
                    read: None,
                    written: None,
                    expected_read: 0,
                    is_estimate: true,
                    miss: None,
                    server_diagnosis: self.trace.calls[call].response.cache_diagnosis.clone(),
                })
            })
            .collect();
        let mut cached: Vec<Option<CachedPrefix>> = vec![None; self.trace.calls.len()];
        self.replay(Policy::Recorded, |step, _| {
            cached[step.call] = CachedPrefix::of(step.prompt);
            let Some(verdict) = &mut verdicts[step.call] else { return };
            let tokens = self.recorded(step.call);
            (verdict.read, verdict.written) = (Some(tokens.cache_read), Some(tokens.cache_write()));
            let expectation = self.expectation(step, &cached);
            (verdict.expected_read, verdict.is_estimate) = (expectation.tokens, expectation.is_estimate);
            let missed = expectation.tokens.saturating_sub(tokens.cache_read);
            if let Some(target) = expectation.target.filter(|_| missed > 0) {
                let Finding { cause, at } = self.find_cause(step, &target, missed);
                let cost = self.cost_of_miss(step.call, missed, prices);
                let advice = self.advice(cause, step.call, &target);
                verdict.miss = Some(Miss { cause, at, tokens: missed, cost, advice });
            }
        });
        verdicts.into_iter().flatten().collect()
    }

    /// The first cause that applies, in the order of [`Cause`].
    fn find_cause(&self, step: &ReplayStep<'_>, target: &Target<'_>, missed: u64) -> Finding {
        let (before, call) = (&self.trace.calls[target.before], &self.trace.calls[step.call]);
        let start = self.times[step.call].start;
        let without_place = |cause| Finding { cause, at: None };
        if target.is_below_minimum {
            return without_place(Cause::BelowMinimum);
        }
        if target.entry.is_expired(start) {
            return without_place(Cause::TtlExpired);
        }
        let pair = target.pair;
        if let Some(finding) = pair.model_or_tools().or_else(|| pair.speed()) {
            return finding;
        }
        // A beta that adds a prefix invalidates all or most of the prompt.
        let is_most_missed = missed > self.recorded(step.call).cache_read;
        if let Some(at) = beta_change(before, call).filter(|_| is_most_missed) {
            return Finding { cause: Cause::BetaChanged, at: Some(at) };
        }
        let images = || pair.images(target.history).filter(|_| !target.is_compaction);
        let in_request = pair.system().or_else(|| pair.parameters()).or_else(images);
        if let Some(finding) = in_request.or_else(|| target.history_finding()) {
            return finding;
        }
        let edits = (&before.response.context_edits, &call.response.context_edits);
        if !edits.1.is_empty() && edits.0 != edits.1 {
            return without_place(Cause::ContextEdited);
        }
        if let Some(finding) = pair.dropped_thinking() {
            return finding;
        }
        if let Some(position) = target.position.filter(|position| is_out_of_reach(step.prompt, *position)) {
            let place = step.prompt.positions[position].place;
            return Finding { cause: Cause::Lookback, at: Some(place.describe(pair.now, pair.prompts)) };
        }
        if target.entry.available_at > start {
            return without_place(Cause::Concurrent);
        }
        without_place(if is_other_account(before, call) { Cause::AccountChanged } else { Cause::Unknown })
    }

    /// What the missed tokens cost more than if they had been read. They were charged as
    /// writes, the rest as uncached input.
    fn cost_of_miss(&self, index: usize, missed: u64, prices: &Prices) -> Option<Usd> {
        let call = &self.trace.calls[index];
        let recorded = self.recorded(index);
        let mut read = recorded;
        let mut rest = missed;
        for charged in [&mut read.cache_write_1h, &mut read.cache_write_5m, &mut read.input] {
            let moved = rest.min(*charged);
            *charged -= moved;
            rest -= moved;
        }
        read.cache_read += missed - rest;
        let cost = |tokens: Tokens| prices.cost(&call.billed_request(tokens)).usd();
        Some(cost(recorded)? - cost(read)?)
    }

    fn advice(&self, cause: Cause, index: usize, target: &Target<'_>) -> String {
        match cause {
            Cause::TtlExpired => {}
            Cause::Unknown if self.trace.calls[index].is_reconstructed => {
                return "older session files do not record requests; capture the calls to find the cause".to_owned();
            }
            _ => return cause.advice().to_owned(),
        }
        let pause = self.times[index].start - target.entry.used_at;
        let advice = if pause <= Breakpoint::OneHour.milliseconds() {
            "a lifetime of 1 hour would have kept it"
        } else {
            "no lifetime is that long, so begin a new conversation after long pauses"
        };
        let lifetime = if target.entry.lifetime == Breakpoint::OneHour { "1 hour" } else { "5 minutes" };
        format!("the entry was last used {} before and lives {lifetime}; {advice}", format_pause(pause))
    }
}

/// A pause in hours and minutes.
fn format_pause(milliseconds: i64) -> String {
    let minutes = milliseconds / 60_000;
    if minutes < 60 { format!("{minutes} min") } else { format!("{} h {} min", minutes / 60, minutes % 60) }
}
