//! The usage of one API message.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::price::{BilledRequest, Cost, Prices, Usd};
use crate::tokens::Tokens;

/// Identifies an API message: the hash of its message id, or of its request id if the line
/// has no message id.
pub type MessageKey = u64;

/// Times of the lines of a message. Most messages have few lines, so they need no memory of their own.
pub type LineTimes = SmallVec<[i64; 3]>;

/// How a message was served: everything its price depends on apart from its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ServingInfo {
    /// Model name as the line gives it; empty if it has none.
    pub model: String,
    /// Value of `usage.speed`; `None` for the standard speed.
    pub speed: Option<Box<str>>,
    /// Region the model ran in (`usage.inference_geo`).
    pub geo: Option<Box<str>>,
}

/// Usage of one API message in one session.
#[derive(Debug, Clone, Default)]
pub struct MessageUsage {
    /// Key of the message; `None` if its lines have neither a message id nor a request id.
    pub key: Option<MessageKey>,
    /// Whether any of its lines has a `usage` object or a cost.
    pub has_usage: bool,
    /// Whether the message occurs only in `progress` lines. Its output is then the number
    /// of tokens streamed when the line was written.
    pub is_progress: bool,
    /// Model, speed and region.
    pub serving: Arc<ServingInfo>,
    /// Tokens of the line with the most output.
    pub tokens: Tokens,
    /// Time of its earliest line; `None` if no line has a time.
    pub earliest_time: Option<Timestamp>,
    /// Cost in US dollars as the transcript records it (`costUSD`, old versions only).
    pub recorded_cost_usd: Option<f64>,
    /// Web searches by the counter in `usage`.
    pub reported_searches: u64,
    /// Web searches that the message called and that have a successful result.
    pub answered_searches: u64,
    /// Distinct times of its lines, in milliseconds since 1970.
    pub line_times_ms: LineTimes,
    /// Hashes of the UUIDs of its first and last line; 0 if they have none.
    pub line_hashes: [u64; 2],
    /// Names of the tools it calls, each once, in the order of the calls.
    pub tools: Vec<Arc<str>>,
    /// Id of the subagent that made the API call, or of the tool call that started the
    /// subagent; `None` for the main conversation.
    pub agent: Option<Arc<str>>,
    /// Number of its turn, from 1; 0 before the first prompt, and for subagents.
    pub turn: u32,
}

impl MessageUsage {
    /// Removes the usage that came from `progress` lines.
    pub(super) fn clear_usage(&mut self) {
        *self = Self {
            key: self.key,
            tools: std::mem::take(&mut self.tools),
            agent: self.agent.take(),
            turn: self.turn,
            answered_searches: self.answered_searches,
            ..Self::default()
        };
    }

    /// Joins the copies of one message in several sessions; the credited copy comes first. Borrowed if it
    /// has everything that the others have, as most do.
    ///
    /// The result has the tokens of the copy with the most output, the earliest time, and
    /// the tool calls of the copy with the most. Copies in lines of their own take precedence
    /// over copies in `progress` lines.
    pub fn merge_copies<'a>(first: &'a Self, others: &[&Self]) -> Cow<'a, Self> {
        let mut merged = Cow::Borrowed(first);
        for copy in others {
            if (!copy.is_progress, copy.tokens.output) > (!merged.is_progress, merged.tokens.output) {
                let merged = merged.to_mut();
                (merged.tokens, merged.serving) = (copy.tokens, Arc::clone(&copy.serving));
                (merged.reported_searches, merged.is_progress) = (copy.reported_searches, copy.is_progress);
                merged.recorded_cost_usd = copy.recorded_cost_usd.or(merged.recorded_cost_usd);
            }
            let earliest = merged.earliest_time.into_iter().chain(copy.earliest_time).min();
            if earliest != merged.earliest_time {
                merged.to_mut().earliest_time = earliest;
            }
            if copy.answered_searches > merged.answered_searches {
                merged.to_mut().answered_searches = copy.answered_searches;
            }
            if copy.tools.len() > merged.tools.len() {
                merged.to_mut().tools.clone_from(&copy.tools);
            }
        }
        merged
    }

    /// The number of web searches: the larger of both counts, because the counter in
    /// `usage` is often zero although a search was made.
    pub fn web_searches(&self) -> u64 {
        self.reported_searches.max(self.answered_searches)
    }

    /// The recorded cost if there is one, or else the cost by `prices`.
    pub fn cost(&self, prices: &Prices) -> Cost {
        self.cost_and_cache_savings(prices).0
    }

    /// The [cost](Self::cost), and what the prompt cache saved compared with sending every token
    /// uncached: 0 if the message has no price.
    pub fn cost_and_cache_savings(&self, prices: &Prices) -> (Cost, Usd) {
        let (cost, savings) = prices.cost_and_cache_savings(&self.billed_request());
        let recorded =
            self.recorded_cost_usd.map(|usd| Cost::Priced { usd: Usd::from_f64(usd), breakdown: Default::default() });
        (recorded.unwrap_or(cost), savings)
    }

    /// Values that a copy of the message in another session shares: the times of its lines
    /// and the hashes of its first and last UUID.
    ///
    /// Two messages with the same key are copies only if they share one of these, because
    /// gateways and test servers give several messages the same id. Forks keep both times
    /// and UUIDs; some resumes write new UUIDs with the old times.
    pub fn copy_marks(&self) -> impl Iterator<Item = u64> {
        let times = self.line_times_ms.iter().map(|time| time.cast_unsigned());
        times.chain(self.line_hashes.into_iter().filter(|line| *line != 0))
    }

    fn billed_request(&self) -> BilledRequest<'_> {
        let ServingInfo { model, speed, geo } = &*self.serving;
        BilledRequest {
            model,
            time: self.earliest_time,
            tokens: self.tokens,
            web_searches: self.web_searches(),
            speed: speed.as_deref(),
            geo: geo.as_deref(),
        }
    }
}
