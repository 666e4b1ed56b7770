//! The API itself: what is asked, what is answered, and the stream in between.

use crate::macros::{open_enum, wire};
use crate::values::{ApiErrorType, CacheLifetime, Effort, StopReason, ThinkingDisplay, ThinkingKind, ToolChoiceKind};
use crate::{Block, Json, Message, RequestId, SessionId, ToolName, Usage};

wire! {
    /// Body of a `POST /v1/messages` request.
    pub struct Request {
        /// Model id.
        model: req String,
        /// Conversation so far, in alternating roles.
        messages: req Vec<Message>,
        /// System prompt: a string or text blocks.
        system: opt Json,
        /// Tools the model may call.
        tools: opt Vec<Tool>,
        /// Whether a tool must be called; see [`ToolChoice`].
        tool_choice: opt Json,
        /// Caller of the API; see [`Metadata`].
        metadata: opt Json,
        /// Limit of output tokens.
        max_tokens: opt u64,
        /// Texts that end the response when the model writes one of them.
        stop_sequences: opt Vec<String>,
        /// Whether the model thinks first; see [`ThinkingConfig`].
        thinking: opt Json,
        /// Which old content the server clears from the context.
        context_management: opt Json,
        /// Effort and format of the response; see [`OutputConfig`].
        output_config: opt Json,
        /// Sampling temperature, from 0 to 1.
        temperature: opt serde_json::Number,
        /// Whether the response is streamed as events.
        stream: opt bool,
    }
}

impl Request {
    /// `thinking`, typed; `None` if it is absent or has another form.
    pub fn thinking_config(&self) -> Option<ThinkingConfig> {
        self.thinking.get()?.read().ok()
    }

    /// `output_config`, typed; `None` if it is absent or has another form.
    pub fn output_settings(&self) -> Option<OutputConfig> {
        self.output_config.get()?.read().ok()
    }

    /// `tool_choice`, typed; `None` if it is absent or has another form.
    pub fn tool_choice_config(&self) -> Option<ToolChoice> {
        self.tool_choice.get()?.read().ok()
    }
}

wire! {
    /// Definition of a tool in a request.
    pub struct Tool {
        /// Name the model calls the tool by.
        name: req ToolName,
        /// Type and version of a tool that runs on the server; absent for others.
        kind: opt String = "type",
        /// What the tool does, for the model.
        description: opt String,
        /// JSON schema of the arguments.
        input_schema: opt Json,
        /// Whether the definition is only sent after a tool search finds it.
        defer_loading: opt bool,
        /// Domains that a web search on the server is limited to.
        allowed_domains: opt Vec<String>,
        /// Domains that a web search on the server leaves out.
        blocked_domains: opt Vec<String>,
        /// How often the server may run the tool in one response.
        max_uses: opt u64,
        /// Marks the end of a cached prefix; see [`CacheControl`].
        cache_control: opt Json,
    }
}

wire! {
    /// Cache breakpoint: the request up to here is cached.
    pub struct CacheControl {
        /// `ephemeral`, the only kind.
        kind: req String = "type",
        /// How long the prefix is kept; five minutes if absent.
        ttl: opt CacheLifetime,
    }
}

wire! {
    /// Whether the model thinks before it answers.
    pub struct ThinkingConfig {
        /// When the model thinks.
        kind: req ThinkingKind = "type",
        /// Limit of thinking tokens for `enabled`.
        budget_tokens: opt u64,
        /// How thinking is returned.
        display: opt ThinkingDisplay,
    }
}

wire! {
    /// Token budget of a whole task, which the API passes on to the model.
    pub struct TaskBudget {
        /// `tokens`, the only kind.
        kind: req String = "type",
        /// Number of tokens.
        total: req u64,
    }
}

wire! {
    /// Whether the model must call a tool.
    pub struct ToolChoice {
        /// Whether the model must call a tool.
        kind: req ToolChoiceKind = "type",
        /// Tool to call, for `tool`.
        name: opt ToolName,
    }
}

wire! {
    /// Effort and format of the response.
    pub struct OutputConfig {
        /// How much work the model puts in.
        effort: opt Effort,
        /// Format of the response, such as a JSON schema.
        format: opt Json,
        /// Token budget for the whole task.
        task_budget: opt TaskBudget,
    }
}

wire! {
    /// Caller of the API, for abuse detection.
    pub struct Metadata {
        /// A [`MetadataUserId`] serialised as JSON.
        user_id: opt String,
    }
}

wire! {
    /// Caller of the API, as agents report it.
    pub struct MetadataUserId {
        /// Random id of the installation.
        device_id: req String,
        /// UUID of the account; empty with an API key.
        account_uuid: req String,
        /// Session that makes the request.
        session_id: req SessionId,
    }
}

wire! {
    /// Response of `POST /v1/messages/count_tokens`.
    pub struct TokenCount {
        /// Tokens of the whole prompt.
        input_tokens: req u64,
    }
}

wire! {
    /// One API call of a recording: the request, and the response whole or as a stream.
    pub struct RecordedApiCall {
        /// Position in the recording, from 1.
        number: opt u64 = "n",
        /// Start of the call in seconds since 1970.
        time: opt serde_json::Number = "t",
        /// HTTP method.
        method: opt String,
        /// Path of the URL with its query.
        path: opt String,
        /// Names and values of the request headers.
        headers: opt Vec<(String, String)>,
        /// Body of the request.
        body: opt Json,
        /// HTTP status of the response.
        status: opt u16,
        /// Events of a streamed response.
        sse: opt Vec<Json>,
        /// Body of a response that was not streamed.
        response: opt Json,
        /// Whether the connection was cut after the events.
        cut: opt bool,
        /// Whether the client disconnected before the rest was sent.
        client_gone: opt Json,
    }
}

open_enum! {
    /// One event of a streamed response.
    pub enum StreamEvent by "type" {
        /// First event: the message without content.
        "message_start" => MessageStart(MessageStart),
        /// Starts a content block.
        "content_block_start" => BlockStart(BlockStart),
        /// Appends to a content block.
        "content_block_delta" => BlockDelta(BlockDelta),
        /// Ends a content block.
        "content_block_stop" => BlockStop(BlockStop),
        /// Stop reason and final usage, sent after the last block.
        "message_delta" => MessageDelta(MessageDelta),
        /// Last event of a message.
        "message_stop" => MessageStop(MessageStop),
        /// Keeps the connection alive.
        "ping" => Ping(Ping),
        /// The response failed; also the body of a failed HTTP response.
        "error" => Error(StreamError),
    }
}

wire! {
    /// First event: the message without content.
    pub struct MessageStart ["type" = "message_start"] {
        /// The message with its id, model and first usage figures.
        message: req Message,
    }
}

wire! {
    /// Starts a content block.
    pub struct BlockStart ["type" = "content_block_start"] {
        /// Index of the block in the message.
        index: req usize,
        /// The block, still empty.
        content_block: req Block,
    }
}

wire! {
    /// Appends to a content block.
    pub struct BlockDelta ["type" = "content_block_delta"] {
        /// Index of the block in the message.
        index: req usize,
        /// What is appended.
        delta: req Delta,
    }
}

wire! {
    /// Ends a content block.
    pub struct BlockStop ["type" = "content_block_stop"] {
        /// Index of the block in the message.
        index: req usize,
    }
}

wire! {
    /// Stop reason and final usage, sent after the last block.
    pub struct MessageDelta ["type" = "message_delta"] {
        /// Fields of the message that change.
        delta: req MessageDeltaFields,
        /// Final usage; absent fields keep their value from `message_start`.
        usage: opt Usage,
        /// What the server cleared from the context.
        context_management: opt Json,
    }
}

wire! {
    /// What the server cleared from the context: `context_management` of a response.
    pub struct ContextEdits {
        /// Edits that were applied to the request; empty if the server cleared nothing.
        applied_edits: opt Vec<ContextEdit>,
    }
}

wire! {
    /// One edit that the server applied to the context of a request.
    pub struct ContextEdit {
        /// Kind of edit with its date, for example `clear_tool_uses_20250919`.
        kind: opt String = "type",
        /// Tool calls whose results were cleared.
        cleared_tool_uses: opt u64,
        /// Assistant turns whose thinking was cleared.
        cleared_thinking_turns: opt u64,
        /// Tokens that the prompt lost.
        cleared_input_tokens: opt u64,
    }
}

wire! {
    /// The server's own diagnosis of a call: `diagnostics` of a response.
    pub struct Diagnostics {
        /// Why less was read from the prompt cache than the server expected.
        cache_miss_reason: opt CacheMissReason,
    }
}

wire! {
    /// Why the server read less from the prompt cache than it expected.
    pub struct CacheMissReason {
        /// For example `tools_changed` or `messages_changed`.
        kind: opt String = "type",
        /// Tokens that were not read.
        cache_missed_input_tokens: opt u64,
    }
}

wire! {
    /// Fields of the message that are known at its end.
    pub struct MessageDeltaFields {
        /// Why the model stopped.
        stop_reason: opt StopReason,
        /// Stop sequence that the model wrote.
        stop_sequence: opt String,
        /// Details of the stop, for example of a refusal.
        stop_details: opt Json,
        /// Container that code execution used.
        container: opt Json,
    }
}

wire! {
    /// Last event of a message.
    pub struct MessageStop ["type" = "message_stop"] {}
}

wire! {
    /// Keeps the connection alive.
    pub struct Ping ["type" = "ping"] {}
}

wire! {
    /// The response failed; also the body of a failed HTTP response.
    pub struct StreamError ["type" = "error"] {
        /// Type and message of the error.
        error: req ApiErrorBody,
        /// Id of the failed request.
        request_id: opt RequestId,
    }
}

wire! {
    /// Error as the API reports it.
    pub struct ApiErrorBody {
        /// Type of the error.
        kind: opt ApiErrorType = "type",
        /// Error message for the user.
        message: opt String,
    }
}

open_enum! {
    /// What a `content_block_delta` event appends.
    pub enum Delta by "type" {
        /// Text of a text block.
        "text_delta" => Text(TextDelta),
        /// Text of a thinking block.
        "thinking_delta" => Thinking(ThinkingDelta),
        /// Signature of a thinking block.
        "signature_delta" => Signature(SignatureDelta),
        /// Part of a tool call's arguments as JSON text.
        "input_json_delta" => InputJson(InputJsonDelta),
        /// A citation of a text block.
        "citations_delta" => Citations(CitationsDelta),
    }
}

wire! {
    /// Text of a text block.
    pub struct TextDelta ["type" = "text_delta"] {
        /// Text to append.
        text: req String,
    }
}

wire! {
    /// Text of a thinking block.
    pub struct ThinkingDelta ["type" = "thinking_delta"] {
        /// Text to append.
        thinking: req String,
    }
}

wire! {
    /// Signature of a thinking block.
    pub struct SignatureDelta ["type" = "signature_delta"] {
        /// The signature, whole.
        signature: req String,
    }
}

wire! {
    /// Part of a tool call's arguments as JSON text.
    pub struct InputJsonDelta ["type" = "input_json_delta"] {
        /// Text to append; the block's parts joined are the JSON.
        partial_json: req String,
    }
}

wire! {
    /// A citation of a text block.
    pub struct CitationsDelta ["type" = "citations_delta"] {
        /// The citation.
        citation: req Json,
    }
}
