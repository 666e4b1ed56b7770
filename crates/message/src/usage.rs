//! What a call of the API used.

use serde_json::Number;

use crate::Json;
use crate::macros::wire;
use crate::values::{ServiceTier, Speed};

wire! {
    /// Tokens and requests of one API message, or their sum over a turn.
    pub struct Usage {
        /// Prompt tokens neither read from nor written to the cache.
        input_tokens: opt u64,
        /// Tokens the model wrote, thinking included.
        output_tokens: opt u64,
        /// Prompt tokens written to the cache, whatever their lifetime.
        cache_creation_input_tokens: opt u64,
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: opt u64,
        /// Cache writes by lifetime; absent in older versions.
        cache_creation: opt CacheCreation,
        /// Requests of tools that ran on the server.
        server_tool_use: opt ServerToolUsage,
        /// Service tier that served the call.
        service_tier: opt ServiceTier,
        /// Region that the model ran in.
        inference_geo: opt String,
        /// Speed at which the model wrote.
        speed: opt Speed,
        /// Usage of each step, if the server ran several for one response.
        iterations: opt Json,
        /// Output tokens by kind.
        output_tokens_details: opt Json,
    }
}

wire! {
    /// Prompt tokens written to the cache, by lifetime.
    pub struct CacheCreation {
        /// Tokens kept for five minutes.
        ephemeral_5m_input_tokens: opt u64,
        /// Tokens kept for one hour.
        ephemeral_1h_input_tokens: opt u64,
    }
}

wire! {
    /// Requests of tools that ran on the server.
    pub struct ServerToolUsage {
        /// Number of web searches.
        web_search_requests: opt u64,
        /// Number of web fetches.
        web_fetch_requests: opt u64,
    }
}

wire! {
    /// Usage of one model, as `result` and `cost-state` entries sum it up.
    pub struct ModelUsage {
        /// Uncached prompt tokens.
        input_tokens: opt u64 = "inputTokens",
        /// Tokens the model wrote.
        output_tokens: opt u64 = "outputTokens",
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: opt u64 = "cacheReadInputTokens",
        /// Prompt tokens written to the cache.
        cache_creation_input_tokens: opt u64 = "cacheCreationInputTokens",
        /// Of the cache writes, tokens kept for five minutes.
        cache_creation_5m: opt u64 = "cacheCreationEphemeral5mInputTokens",
        /// Of the cache writes, tokens kept for one hour.
        cache_creation_1h: opt u64 = "cacheCreationEphemeral1hInputTokens",
        /// Number of web searches.
        web_search_requests: opt u64 = "webSearchRequests",
        /// Cost in US dollars, as the program computed it.
        cost_usd: opt Number = "costUSD",
        /// Model name as price lists have it.
        canonical_model: opt String = "canonicalModel",
        /// Size of the context window in tokens.
        context_window: opt u64 = "contextWindow",
        /// Limit of output tokens for one response.
        max_output_tokens: opt u64 = "maxOutputTokens",
        /// Of the output, thinking tokens.
        thinking_tokens: opt u64 = "thinkingTokens",
    }
}
