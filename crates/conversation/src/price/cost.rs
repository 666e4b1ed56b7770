//! A request to be priced, and its cost.

use jiff::Timestamp;

use super::money::Usd;
use crate::tokens::Tokens;

/// Everything the price of one API request depends on.
///
/// ```
/// use quipu_conversation::Tokens;
/// use quipu_conversation::price::{BilledRequest, Prices};
/// let tokens = Tokens { input: 1_000_000, ..Tokens::default() };
/// let request = BilledRequest { model: "claude-haiku-4-5", tokens, ..BilledRequest::default() };
/// assert_eq!(Prices::bundled().cost(&request).usd().map(|usd| usd.as_f64()), Some(1.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BilledRequest<'a> {
    /// Model name as the message gives it; platform prefixes and dates are ignored.
    pub model: &'a str,
    /// Time of the message, which selects the price in force; `None` for the latest price.
    pub time: Option<Timestamp>,
    /// Token counts of this one request.
    pub tokens: Tokens,
    /// Web searches that the server ran.
    pub web_searches: u64,
    /// Value of `usage.speed`; `None` for the standard speed.
    pub speed: Option<&'a str>,
    /// Value of `usage.inference_geo`.
    pub geo: Option<&'a str>,
}

/// Cost of one request, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// All rates that the request needs are known.
    Priced {
        /// Total cost of the request.
        usd: Usd,
        /// Cost by kind of token; zero for a recorded cost.
        breakdown: CostBreakdown,
    },
    /// A rate is missing. The request is not free; its cost is unknown.
    Unpriced {
        /// Model name as the message gives it.
        model: String,
        /// Which rate is missing.
        reason: UnpricedReason,
    },
}

impl Cost {
    /// The cost in US dollars; `None` if it is not known.
    pub fn usd(&self) -> Option<Usd> {
        match self {
            Self::Priced { usd, .. } => Some(*usd),
            Self::Unpriced { .. } => None,
        }
    }
}

/// Cost of one request by kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostBreakdown {
    /// Prompt tokens outside the cache.
    pub input: Usd,
    /// Tokens the model wrote.
    pub output: Usd,
    /// Prompt tokens written to the five-minute cache.
    pub cache_write_5m: Usd,
    /// Prompt tokens written to the one-hour cache.
    pub cache_write_1h: Usd,
    /// Prompt tokens read from the cache.
    pub cache_read: Usd,
    /// Web searches that the server ran.
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
