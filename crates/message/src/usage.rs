//! What a call of the API used.

use serde_json::Number;

use crate::Json;
use crate::macros::wire;

wire! {
    /// Tokens and requests of one API message, or the sum of a turn.
    pub struct Usage {
        /// Prompt tokens neither read from nor written to the cache.
        input_tokens: opt u64,
        /// Tokens the model wrote.
        output_tokens: opt u64,
        /// Prompt tokens written to the cache, whatever their lifetime.
        cache_creation_input_tokens: opt u64,
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: opt u64,
        /// The cache writes by lifetime; older versions leave it out.
        cache_creation: opt CacheCreation,
        /// Requests of tools that run on the server.
        server_tool_use: opt ServerToolUsage,
        /// The tier that served the call.
        service_tier: opt String,
        /// Where the model ran.
        inference_geo: opt String,
        /// `standard` or `fast`.
        speed: opt String,
        /// The steps of a call that took several.
        iterations: opt Json,
        /// Output tokens by kind.
        output_tokens_details: opt Json,
    }
}

wire! {
    /// Cache writes by lifetime.
    pub struct CacheCreation {
        /// Kept five minutes.
        ephemeral_5m_input_tokens: opt u64,
        /// Kept one hour.
        ephemeral_1h_input_tokens: opt u64,
    }
}

wire! {
    /// Requests of tools that run on the server.
    pub struct ServerToolUsage {
        /// Web searches.
        web_search_requests: opt u64,
        /// Web fetches.
        web_fetch_requests: opt u64,
    }
}

wire! {
    /// What one model used, as a `result` or `cost-state` line sums it up.
    pub struct ModelUsage {
        /// Uncached prompt tokens.
        input_tokens: opt u64 = "inputTokens",
        /// Tokens the model wrote.
        output_tokens: opt u64 = "outputTokens",
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: opt u64 = "cacheReadInputTokens",
        /// Prompt tokens written to the cache.
        cache_creation_input_tokens: opt u64 = "cacheCreationInputTokens",
        /// Of those, kept five minutes.
        cache_creation_5m: opt u64 = "cacheCreationEphemeral5mInputTokens",
        /// Of those, kept one hour.
        cache_creation_1h: opt u64 = "cacheCreationEphemeral1hInputTokens",
        /// Web searches.
        web_search_requests: opt u64 = "webSearchRequests",
        /// What the program says it cost.
        cost_usd: opt Number = "costUSD",
        /// The model's name as prices list it.
        canonical_model: opt String = "canonicalModel",
        /// How much the model can read.
        context_window: opt u64 = "contextWindow",
        /// How much the model can write.
        max_output_tokens: opt u64 = "maxOutputTokens",
        /// Of the output, tokens spent thinking.
        thinking_tokens: opt u64 = "thinkingTokens",
    }
}
