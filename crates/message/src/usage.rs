//! What a call of the API used.

use serde_json::Number;

use crate::Json;
use crate::macros::wire;

wire! {
    /// Tokens and requests of one API message, or the sum of a turn.
    pub struct Usage {
        /// Prompt tokens neither read from nor written to the cache.
        input_tokens: opt u64 = "input_tokens",
        /// Tokens the model wrote.
        output_tokens: opt u64 = "output_tokens",
        /// Prompt tokens written to the cache, whatever their lifetime.
        cache_creation_input_tokens: opt u64 = "cache_creation_input_tokens",
        /// Prompt tokens read from the cache.
        cache_read_input_tokens: opt u64 = "cache_read_input_tokens",
        /// The cache writes by lifetime; older versions leave it out.
        cache_creation: opt CacheCreation = "cache_creation",
        /// Requests of tools that run on the server.
        server_tool_use: opt ServerToolUse = "server_tool_use",
        /// The tier that served the call.
        service_tier: opt String = "service_tier",
        /// Where the model ran.
        inference_geo: opt String = "inference_geo",
        /// `standard` or `fast`.
        speed: opt String = "speed",
        /// The steps of a call that took several.
        iterations: opt Json = "iterations",
        /// Output tokens by kind.
        output_tokens_details: opt Json = "output_tokens_details",
    }
}

wire! {
    /// Cache writes by lifetime.
    pub struct CacheCreation {
        /// Kept five minutes.
        ephemeral_5m_input_tokens: opt u64 = "ephemeral_5m_input_tokens",
        /// Kept one hour.
        ephemeral_1h_input_tokens: opt u64 = "ephemeral_1h_input_tokens",
    }
}

wire! {
    /// Requests of tools that run on the server.
    pub struct ServerToolUse {
        /// Web searches.
        web_search_requests: opt u64 = "web_search_requests",
        /// Web fetches.
        web_fetch_requests: opt u64 = "web_fetch_requests",
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
