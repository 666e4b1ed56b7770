//! All calls of a trace in time order, and their replay against the documented rules.

use jiff::Timestamp;
use quipu_conversation::Tokens;

use super::links::{CallLink, call_links};
use super::model_rules::minimum_prefix;
use super::policy::Policy;
use super::positions::Prompt;
use super::stable_tools::StableTools;
use super::store::{CacheStore, CallTimes};
use super::token_counts::TokenCounts;
use crate::call::{Call, RequestParts};
use crate::structure::Structure;
use crate::trace::Trace;

/// The calls of a trace, ready to be compared with the rules of the prompt cache.
#[derive(Debug)]
pub struct CacheAnalysis<'a> {
    pub(super) trace: &'a Trace,
    /// Branch and predecessor of each call; `None` for calls in no branch.
    pub(super) links: Vec<Option<CallLink>>,
    pub(super) times: Vec<CallTimes>,
    /// Calls with a recorded request and usage, by the start of the request.
    pub(super) order: Vec<usize>,
    counts: TokenCounts,
}

/// One call in a replay, before its writes are recorded.
pub(super) struct ReplayStep<'s> {
    pub(super) call: usize,
    /// Positions of the request.
    pub(super) prompt: &'s Prompt,
    /// The cache as the call found it.
    pub(super) store: &'s CacheStore,
    /// Index of the longest prefix that the call reads by the rules.
    pub(super) hit: Option<usize>,
}

impl<'a> CacheAnalysis<'a> {
    /// Prepares the calls of a trace. Linear in the number of messages of all requests.
    pub fn new(trace: &'a Trace, structure: &Structure) -> Self {
        let times = call_times(&trace.calls);
        let links = call_links(trace, structure);
        let has_counts = |call: &Call| call.request.is_some() && call.response.tokens.is_some();
        let is_usable = |index: &usize| links[*index].is_some() && has_counts(&trace.calls[*index]);
        let mut order: Vec<usize> = (0..trace.calls.len()).filter(is_usable).collect();
        order.sort_by_key(|index| times[*index].start);
        let mut analysis = Self { trace, links, times, order, counts: TokenCounts::default() };
        analysis.learn_token_counts();
        analysis
    }

    fn learn_token_counts(&mut self) {
        let mut counts = TokenCounts::default();
        for (call, request) in self.order.iter().filter_map(|index| self.call_and_request(*index)) {
            let prompt = Prompt::read(call, request, &request.tools, &self.trace.prompts);
            counts.learn_last_breakpoint(&prompt, &call.response.tokens.unwrap_or_default());
        }
        self.counts = counts;
        // Reads at other places than a last breakpoint are recognised by the rules.
        let mut reads = Vec::new();
        self.replay(Policy::Recorded, |step, _| {
            let (read, positions) = (self.recorded(step.call).cache_read, &step.prompt.positions);
            let is_known = positions.iter().any(|position| position.tokens == read);
            reads.extend(step.hit.filter(|_| !is_known).map(|hit| (positions[hit], read)));
        });
        reads.into_iter().for_each(|(position, read)| self.counts.learn_read(&position, read));
    }

    /// Calls `visit` for each call with a recorded usage, in time order, with the tokens that
    /// it has under the policy.
    pub(super) fn replay(&self, policy: Policy, mut visit: impl FnMut(&ReplayStep<'_>, Tokens)) {
        let stable_tools = (policy == Policy::StableTools).then(|| StableTools::of(self));
        let mut store = CacheStore::default();
        for &index in &self.order {
            let is_side = self.links[index].is_some_and(|link| link.is_side);
            if policy == Policy::NoSideCalls && is_side {
                continue;
            }
            let Some((call, request)) = self.call_and_request(index) else { continue };
            let mut prompt = self.prompt(call, request);
            if let Some(stable_tools) = &stable_tools {
                prompt = stable_tools.apply(self, call, request, prompt);
            }
            policy.set_breakpoints(&mut prompt);
            let times = self.times[index];
            let hit = store.find(&prompt, times.start);
            let minimum = minimum_prefix(&request.model).unwrap_or_default();
            let tokens = Tokens { output: self.recorded(index).output, ..prompt.tokens_by_price(hit, minimum) };
            visit(&ReplayStep { call: index, prompt: &prompt, store: &store, hit }, tokens);
            store.record(&prompt, hit, times, minimum);
        }
    }

    /// Token counts that each call would have under a policy, by the documented rules; `None`
    /// for calls without a recorded usage and for those that the policy leaves out.
    pub fn simulate(&self, policy: Policy) -> Vec<Option<Tokens>> {
        let mut simulated = vec![None; self.trace.calls.len()];
        self.replay(policy, |step, tokens| simulated[step.call] = Some(tokens));
        simulated
    }

    /// Recorded token counts of a call; zero if there are none.
    pub(super) fn recorded(&self, index: usize) -> Tokens {
        self.trace.calls[index].response.tokens.unwrap_or_default()
    }

    /// First call of the conversation that a call continues.
    pub(super) fn conversation(&self, index: usize) -> usize {
        let predecessor = |index: &usize| self.links[*index].and_then(|link| link.predecessor);
        std::iter::successors(Some(index), predecessor).last().unwrap_or(index)
    }

    fn call_and_request(&self, index: usize) -> Option<(&'a Call, &'a RequestParts)> {
        let call = &self.trace.calls[index];
        call.request.as_ref().map(|request| (call, request))
    }

    fn prompt(&self, call: &Call, request: &RequestParts) -> Prompt {
        let mut prompt = Prompt::read(call, request, &request.tools, &self.trace.prompts);
        let total = call.response.tokens.map(|tokens| tokens.prompt());
        self.counts.fill(&mut prompt, total, &self.trace.prompts);
        prompt
    }
}

/// Start of each request and of its response. A call without a time has that of the call
/// before it; a response without a first event begins at its end.
fn call_times(calls: &[Call]) -> Vec<CallTimes> {
    let mut last = 0;
    let times = calls.iter().map(|call| {
        let start = call.started_at.map_or(last, Timestamp::as_millisecond);
        last = start;
        let wait = call.first_event_ms.or(call.duration_ms).unwrap_or_default();
        CallTimes { start, response: start.saturating_add_unsigned(wait) }
    });
    times.collect()
}
