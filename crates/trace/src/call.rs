//! One API call in parts.

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::price::{BilledRequest, Cost, Prices};
use quipu_message::StopReason;
use quipu_message::api::{CacheMissReason, ContextEdit};

use crate::prompt_store::{Breakpoint, MessageKey, PartKey, TextId};

/// One API call: request in parts, and what is known of its response.
#[derive(Debug, Clone)]
pub struct Call {
    /// Position in [`Trace::calls`](crate::Trace::calls), in the order of the source.
    pub index: usize,
    /// Id of the call in output: that of the source, or `call-N`. Unique in the trace.
    pub id: String,
    /// Position of its file in [`Trace::sources`](crate::Trace::sources).
    pub source: usize,
    /// Line of the source, from 1; 0 if the format has no lines.
    pub line: u64,
    /// When the request was sent.
    pub started_at: Option<Timestamp>,
    /// Milliseconds from the request to the end of the response.
    pub duration_ms: Option<u64>,
    /// Milliseconds from the request to the first event of the response.
    pub first_event_ms: Option<u64>,
    /// Which function of the API was called.
    pub endpoint: Endpoint,
    /// Path of the URL without scheme, host and query.
    pub path: String,
    /// Session, agent and account that made the call.
    pub identity: CallIdentity,
    /// Purpose of the call as Claude Code records it in session files, for example `sdk` or
    /// `agent:builtin:general-purpose`.
    pub query_source: Option<String>,
    /// Values of `anthropic-beta`, in the order of the request.
    pub betas: Vec<String>,
    /// The request; `None` if its body was not recorded or is no request for a message.
    pub request: Option<RequestParts>,
    /// The response as far as it was recorded.
    pub response: CallResponse,
    /// Whether the call was derived from entries of a session file and not recorded.
    pub is_reconstructed: bool,
}

impl Call {
    /// Whether the call asked the model for a message and its request is known.
    pub fn is_message_call(&self) -> bool {
        self.endpoint == Endpoint::Messages && self.request.is_some()
    }

    /// Model that answered, or else the requested one.
    pub fn model(&self) -> Option<&str> {
        let requested = self.request.as_ref().map(|request| request.model.as_str());
        self.response.model.as_deref().or(requested).filter(|model| !model.is_empty())
    }

    /// Cost of the call; `None` if its response had no token counts.
    pub fn cost(&self, prices: &Prices) -> Option<Cost> {
        Some(prices.cost(&self.billed_request(self.response.tokens?)))
    }

    /// What the price of the call depends on, with these token counts.
    pub(crate) fn billed_request(&self, tokens: Tokens) -> BilledRequest<'_> {
        BilledRequest {
            model: self.model().unwrap_or_default(),
            time: self.started_at,
            tokens,
            web_searches: self.response.web_searches,
            speed: self.response.speed.as_deref(),
            geo: self.response.geo.as_deref(),
        }
    }
}

/// Function of the API, by the path of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// Creation of a message: `POST /v1/messages`.
    Messages,
    /// Token count of a prompt: `POST /v1/messages/count_tokens`.
    CountTokens,
    /// Any other path or method.
    Other,
}

/// Session, agent and account that made a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallIdentity {
    /// From the header `x-claude-code-session-id`, else from `metadata.user_id`.
    pub session_id: Option<String>,
    /// From the header `x-claude-code-agent-id`; set on calls of subagents.
    pub agent_id: Option<String>,
    /// From the header `x-claude-code-parent-agent-id`.
    pub parent_agent_id: Option<String>,
    /// Hash of the credential; equal for calls with the same credential.
    pub account: Option<u64>,
}

/// A request in parts. Parts are ids into the trace's [`PromptStore`](crate::PromptStore).
#[derive(Debug, Clone, Default)]
pub struct RequestParts {
    /// Id of the requested model.
    pub model: String,
    /// Tool definitions, in order.
    pub tools: Vec<PartKey>,
    /// System blocks in order, without the billing line.
    pub system: Vec<PartKey>,
    /// Billing line, the first system block of Claude Code's requests. The server removes it,
    /// so it is no part of the cached prefix.
    pub billing_line: Option<TextId>,
    /// Messages in order.
    pub messages: Vec<MessageKey>,
    /// `tool_choice` as compact JSON.
    pub tool_choice: Option<TextId>,
    /// `thinking` as compact JSON.
    pub thinking: Option<TextId>,
    /// `output_config` as compact JSON.
    pub output_config: Option<TextId>,
    /// `context_management` as compact JSON.
    pub context_management: Option<TextId>,
    /// Breakpoint that the server places at the end of the request by itself.
    pub automatic_breakpoint: Option<Breakpoint>,
    /// `speed`, for example `fast`.
    pub speed: Option<String>,
    /// Limit of output tokens.
    pub max_tokens: Option<u64>,
    /// Whether the response was to be streamed; false if the source does not record it.
    pub is_stream: bool,
    /// Bytes of the whole body; of its parts if the request was rebuilt.
    pub body_bytes: u64,
}

/// The response of a call as far as it was recorded.
#[derive(Debug, Clone, Default)]
pub struct CallResponse {
    /// HTTP status; `None` if no response arrived.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub end: CallEnd,
    /// Id of the message.
    pub message_id: Option<String>,
    /// Id of the request, as the server gives it in a header or an error.
    pub request_id: Option<String>,
    /// Model that answered.
    pub model: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// Token counts; `None` if the response had none.
    pub tokens: Option<Tokens>,
    /// `speed` of the usage, for its price.
    pub speed: Option<String>,
    /// `inference_geo` of the usage, for its price.
    pub geo: Option<String>,
    /// Web searches that the server ran.
    pub web_searches: u64,
    /// Content blocks of the message.
    pub blocks: Vec<PartKey>,
    /// Tool calls of the message that the client runs.
    pub tool_calls: Vec<ToolCallRef>,
    /// Type of the API's error, for example `overloaded_error`.
    pub error: Option<String>,
    /// The server's own diagnosis of a cache miss.
    pub cache_diagnosis: Option<CacheMissReason>,
    /// What the server cleared from the context of the request.
    pub context_edits: Vec<ContextEdit>,
}

/// A tool call of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallRef {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallEnd {
    /// The response was complete.
    Completed,
    /// The client closed the connection first.
    ClientAborted,
    /// The server closed the connection in the middle of the response.
    UpstreamClosed,
    /// No response arrived.
    Failed,
    /// The source does not say.
    #[default]
    Unknown,
}
