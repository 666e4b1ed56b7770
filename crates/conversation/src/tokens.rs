//! Token counts.

use quipu_message::Usage;
use quipu_message::view::UsageView;
use serde::{Deserialize, Serialize};

/// Token counts of one API message, or a sum of several.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Prompt tokens that were neither written to the cache nor read from it.
    pub input: u64,
    /// Tokens the model wrote.
    pub output: u64,
    /// Prompt tokens written to the five-minute cache, including those whose lifetime
    /// is not recorded.
    pub cache_write_5m: u64,
    /// Prompt tokens written to the one-hour cache.
    pub cache_write_1h: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
}

impl Tokens {
    /// The counts of one `usage` object.
    pub(crate) fn from_usage(usage: &UsageView) -> Self {
        let split = Self {
            input: usage.input,
            output: usage.output,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
            cache_read: usage.cache_read,
        };
        split.with_cache_write_total(usage.cache_write)
    }

    /// Adds the part of a cache-write total that the split by lifetime does not cover.
    ///
    /// `usage` holds the total and, in newer versions, a split; the split may be absent or
    /// incomplete. The rest counts as five-minute writes, which is the default lifetime.
    pub fn with_cache_write_total(self, total: u64) -> Self {
        let rest = total.saturating_sub(self.cache_write_1h);
        Self { cache_write_5m: self.cache_write_5m.max(rest), ..self }
    }

    /// All tokens of the prompt: uncached, written to the cache and read from it.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_write()).saturating_add(self.cache_read)
    }

    /// Prompt tokens written to the cache, whatever their lifetime.
    pub fn cache_write(&self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// All tokens: the prompt and the output.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Adds `other` to each count.
    pub fn add(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_write_5m += other.cache_write_5m;
        self.cache_write_1h += other.cache_write_1h;
        self.cache_read += other.cache_read;
    }
}

impl From<&Usage> for Tokens {
    fn from(usage: &Usage) -> Self {
        let count = |count: Option<&u64>| count.copied().unwrap_or_default();
        let split = usage.cache_creation.get();
        let tokens = Self {
            input: count(usage.input_tokens.get()),
            output: count(usage.output_tokens.get()),
            cache_write_5m: count(split.and_then(|split| split.ephemeral_5m_input_tokens.get())),
            cache_write_1h: count(split.and_then(|split| split.ephemeral_1h_input_tokens.get())),
            cache_read: count(usage.cache_read_input_tokens.get()),
        };
        tokens.with_cache_write_total(count(usage.cache_creation_input_tokens.get()))
    }
}
