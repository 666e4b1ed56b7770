//! What goes into a price, and what comes out.

use super::money::Usd;

/// What one request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Prompt tokens outside the cache.
    pub input: u64,
    /// Answer tokens.
    pub output: u64,
    /// Prompt tokens written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Prompt tokens written to the one-hour cache.
    pub cache_write_1h: u64,
    /// Prompt tokens written to either; the split may be absent or cover only part.
    pub cache_write_total: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Web searches the server ran.
    pub web_searches: u64,
}

impl UsageCounts {
    /// All tokens written to the cache: the total or the split, whichever is larger.
    pub fn cache_write_tokens(&self) -> u64 {
        self.charged_cache_write_5m().saturating_add(self.cache_write_1h)
    }

    /// The size of the whole prompt.
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_write_tokens()).saturating_add(self.cache_read)
    }

    /// What is charged as a five-minute write, the unsplit rest of the total included.
    pub(super) fn charged_cache_write_5m(&self) -> u64 {
        let rest = self.cache_write_total.saturating_sub(self.cache_write_1h);
        rest.max(self.cache_write_5m)
    }
}

/// What one request cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The price is known.
    Priced {
        /// The whole cost.
        usd: Usd,
        /// Its parts.
        breakdown: CostBreakdown,
    },
    /// The price is not known, which is not the same as free.
    Unpriced {
        /// The model as the message names it.
        model: String,
        /// What is missing.
        reason: UnpricedReason,
    },
}

impl Cost {
    /// The amount, if it is known.
    pub fn usd(&self) -> Option<Usd> {
        match self {
            Self::Priced { usd, .. } => Some(*usd),
            Self::Unpriced { .. } => None,
        }
    }
}

/// The parts of a cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostBreakdown {
    /// Prompt tokens outside the cache.
    pub input: Usd,
    /// Answer tokens.
    pub output: Usd,
    /// Five-minute cache writes, with those of unknown kind.
    pub cache_write_5m: Usd,
    /// One-hour cache writes.
    pub cache_write_1h: Usd,
    /// Cache reads.
    pub cache_read: Usd,
    /// Web searches.
    pub web_search: Usd,
}

impl CostBreakdown {
    /// The sum of the parts.
    pub fn total(&self) -> Usd {
        let Self { input, output, cache_write_5m, cache_write_1h, cache_read, web_search } = *self;
        input + output + cache_write_5m + cache_write_1h + cache_read + web_search
    }
}

/// Why a request has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpricedReason {
    /// The table does not name the model.
    #[error("the model is not in the price table")]
    UnknownModel,
    /// The message is older than the model's first price.
    #[error("the model has no price for that time")]
    NotInForce,
    /// The model has no price for the speed.
    #[error("the model has no price for that speed")]
    UnknownSpeed,
    /// The model has no rate for a kind of tokens that were used.
    #[error("the model has no {kind} rate")]
    NoRate {
        /// The kind, as in `cache read`.
        kind: &'static str,
    },
}
