//! The API itself: what is asked, what is answered, and the stream in between.

use crate::macros::{open_enum, wire};
use crate::values::{CacheLifetime, Effort, StopReason, ThinkingKind};
use crate::{Block, Json, Message, RequestId, SessionId, Usage};

wire! {
    /// A request for one message.
    pub struct Request {
        /// The model.
        model: req String,
        /// The conversation so far.
        messages: req Vec<Message>,
        /// The system prompt: text or text blocks.
        system: opt Json,
        /// The tools on offer.
        tools: opt Vec<Tool>,
        /// Which tool must or may be used.
        tool_choice: opt Json,
        /// Who asks.
        metadata: opt Json,
        /// How much may be written.
        max_tokens: opt u64,
        /// What ends the answer when the model writes it.
        stop_sequences: opt Vec<String>,
        /// Whether and how far to think.
        thinking: opt Json,
        /// What to clear from the context.
        context_management: opt Json,
        /// Effort and form of the answer.
        output_config: opt Json,
        /// How freely to choose words.
        temperature: opt serde_json::Number,
        /// Whether to stream.
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
    /// A tool on offer.
    pub struct Tool {
        /// Its name.
        name: req String,
        /// Its kind, when it runs on the server.
        kind: opt String = "type",
        /// What it does.
        description: opt String,
        /// What it takes.
        input_schema: opt Json,
        /// Whether it is loaded on demand.
        defer_loading: opt bool,
        /// Domains that a search on the server keeps to.
        allowed_domains: opt Vec<String>,
        /// Domains that a search on the server leaves out.
        blocked_domains: opt Vec<String>,
        /// How often the server may run it in one answer.
        max_uses: opt u64,
        /// Marks the end of a cached prefix.
        cache_control: opt Json,
    }
}

wire! {
    /// Marks the end of a cached prefix.
    pub struct CacheControl {
        /// `ephemeral`.
        kind: req String = "type",
        /// How long to keep it: `5m`, unless it says `1h`.
        ttl: opt CacheLifetime,
    }
}

wire! {
    /// Whether and how far to think.
    pub struct ThinkingConfig {
        /// `adaptive`, `enabled` or `disabled`.
        kind: req ThinkingKind = "type",
        /// How much of the answer may be thinking.
        budget_tokens: opt u64,
        /// How it is shown: `summarized`, `omitted` …
        display: opt String,
    }
}

wire! {
    /// How much a whole task may take.
    pub struct TaskBudget {
        /// `tokens`.
        kind: req String = "type",
        /// How many.
        total: req u64,
    }
}

wire! {
    /// Which tool must or may be used.
    pub struct ToolChoice {
        /// `auto`, `any`, `tool` or `none`.
        kind: req String = "type",
        /// The tool.
        name: opt String,
    }
}

wire! {
    /// Effort and form of the answer.
    pub struct OutputConfig {
        /// `low`, `medium`, `high` …
        effort: opt Effort,
        /// The form, such as a JSON schema.
        format: opt Json,
        /// How much the whole task may take.
        task_budget: opt TaskBudget,
    }
}

wire! {
    /// Who asks.
    pub struct Metadata {
        /// A [`MetadataUserId`] as JSON, in a string.
        user_id: opt String,
    }
}

wire! {
    /// Who asks, as agents tell it.
    pub struct MetadataUserId {
        /// The installation.
        device_id: req String,
        /// The account; empty with a key.
        account_uuid: req String,
        /// The session.
        session_id: req SessionId,
    }
}

wire! {
    /// How large a request would be.
    pub struct TokenCount {
        /// Tokens of the whole prompt.
        input_tokens: req u64,
    }
}

wire! {
    /// One recorded call: the request, and the answer whole or as it was streamed.
    pub struct RecordedApiCall {
        /// Its place in the recording.
        number: opt u64 = "n",
        /// The HTTP method.
        method: opt String,
        /// The path, with its query.
        path: opt String,
        /// Names and values of the headers.
        headers: opt Vec<(String, String)>,
        /// What was asked.
        body: opt Json,
        /// The HTTP status.
        status: opt u16,
        /// The events of a streamed answer.
        sse: opt Vec<Json>,
        /// An answer that was not streamed.
        response: opt Json,
        /// Whether the connection was cut after the events.
        cut: opt bool,
        /// Whether the one who asked left before the rest was sent.
        client_gone: opt Json,
    }
}

open_enum! {
    /// One event of a streamed answer.
    pub enum StreamEvent by "type" {
        /// The message begins.
        "message_start" => MessageStart(MessageStart),
        /// A block begins.
        "content_block_start" => BlockStart(BlockStart),
        /// A block grows.
        "content_block_delta" => BlockDelta(BlockDelta),
        /// A block ends.
        "content_block_stop" => BlockStop(BlockStop),
        /// The message's end is known: stop reason and usage.
        "message_delta" => MessageDelta(MessageDelta),
        /// The message ends.
        "message_stop" => MessageStop(MessageStop),
        /// Nothing new; the server is still there.
        "ping" => Ping(Ping),
        /// The answer cannot go on.
        "error" => Error(StreamError),
    }
}

wire! {
    /// The message begins.
    pub struct MessageStart ["type" = "message_start"] {
        /// The message without content.
        message: req Message,
    }
}

wire! {
    /// A block begins.
    pub struct BlockStart ["type" = "content_block_start"] {
        /// Which block.
        index: req usize,
        /// The block, still empty.
        content_block: req Block,
    }
}

wire! {
    /// A block grows.
    pub struct BlockDelta ["type" = "content_block_delta"] {
        /// Which block.
        index: req usize,
        /// By what.
        delta: req Delta,
    }
}

wire! {
    /// A block ends.
    pub struct BlockStop ["type" = "content_block_stop"] {
        /// Which block.
        index: req usize,
    }
}

wire! {
    /// The message's end is known.
    pub struct MessageDelta ["type" = "message_delta"] {
        /// Stop reason and other fields of the message that change.
        delta: req MessageDeltaFields,
        /// The final usage; fields left out keep their first value.
        usage: opt Usage,
        /// What the server cleared from the context.
        context_management: opt Json,
    }
}

wire! {
    /// Fields of the message that change at its end.
    pub struct MessageDeltaFields {
        /// Why the model stopped.
        stop_reason: opt StopReason,
        /// The sequence that stopped it.
        stop_sequence: opt String,
        /// More about the stop.
        stop_details: opt Json,
        /// The container that code ran in.
        container: opt Json,
    }
}

wire! {
    /// The message ends.
    pub struct MessageStop ["type" = "message_stop"] {}
}

wire! {
    /// Nothing new.
    pub struct Ping ["type" = "ping"] {}
}

wire! {
    /// The answer cannot go on; also the body of a failed call.
    pub struct StreamError ["type" = "error"] {
        /// Why.
        error: req ApiErrorBody,
        /// The call that failed.
        request_id: opt RequestId,
    }
}

wire! {
    /// The API's own words for a failure.
    pub struct ApiErrorBody {
        /// `overloaded_error`, `rate_limit_error` …
        kind: opt String = "type",
        /// In words.
        message: opt String,
    }
}

open_enum! {
    /// What a block grows by.
    pub enum Delta by "type" {
        /// Words.
        "text_delta" => Text(TextDelta),
        /// Reasoning.
        "thinking_delta" => Thinking(ThinkingDelta),
        /// The proof of the reasoning.
        "signature_delta" => Signature(SignatureDelta),
        /// A piece of the input's JSON.
        "input_json_delta" => InputJson(InputJsonDelta),
        /// A source.
        "citations_delta" => Citations(CitationsDelta),
    }
}

wire! {
    /// Words.
    pub struct TextDelta ["type" = "text_delta"] {
        /// The words.
        text: req String,
    }
}

wire! {
    /// Reasoning.
    pub struct ThinkingDelta ["type" = "thinking_delta"] {
        /// The reasoning.
        thinking: req String,
    }
}

wire! {
    /// The proof of the reasoning.
    pub struct SignatureDelta ["type" = "signature_delta"] {
        /// The proof.
        signature: req String,
    }
}

wire! {
    /// A piece of the input's JSON.
    pub struct InputJsonDelta ["type" = "input_json_delta"] {
        /// The piece; the pieces joined are the JSON.
        partial_json: req String,
    }
}

wire! {
    /// A source.
    pub struct CitationsDelta ["type" = "citations_delta"] {
        /// The source.
        citation: req Json,
    }
}
