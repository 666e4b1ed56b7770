//! Lines that only the live stream carries.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::api::StreamEvent;
use crate::macros::{open_str_enum, wire};
use crate::usage::ModelUsage;
use crate::values::{ApiErrorType, CommandState, StopReason, TerminalReason};
use crate::{Envelope, Json, MessageId, SessionId, ToolName, ToolUseId, Usage, Uuid};

open_str_enum! {
    /// How a turn ended.
    pub enum TurnOutcome {
        /// With an answer, or with a failed API call (then `is_error` is set).
        "success" => Success,
        /// At the limit of API calls.
        "error_max_turns" => MaxTurns,
        /// By an interrupt or an internal error.
        "error_during_execution" => DuringExecution,
        /// At the limit of money.
        "error_max_budget_usd" => MaxBudget,
        /// Without a structured output that matches the schema.
        "error_max_structured_output_retries" => MaxStructuredOutputRetries,
    }
}

wire! {
    /// A `result` entry: the end of a turn.
    pub struct TurnResult ["type" = "result"] with envelope: Envelope {
        /// How the turn ended.
        subtype: req TurnOutcome,
        /// Whether the turn failed.
        is_error: req bool,
        /// Duration of the turn in milliseconds.
        duration_ms: opt Number,
        /// Of that, time spent in API calls.
        duration_api_ms: opt Number,
        /// Number of API calls that the turn counts.
        num_turns: opt u64,
        /// Text of the final answer.
        result: opt String,
        /// Why the model stopped.
        stop_reason: opt StopReason,
        /// Cost of the session so far in US dollars.
        total_cost_usd: opt Number,
        /// Usage of this turn.
        usage: opt Usage,
        /// Usage of the session so far, by model.
        model_usage: opt BTreeMap<String, ModelUsage> = "modelUsage",
        /// Tool calls that were denied; see [`TurnResult::denied_tool_calls`].
        permission_denials: opt Json,
        /// Error messages.
        errors: opt Json,
        /// Answer in the requested JSON schema.
        structured_output: opt Json,
        /// Why the turn ended, in more detail than `subtype`.
        terminal_reason: opt TerminalReason,
        /// HTTP status of the failed API call.
        api_error_status: opt Number,
        /// Error type as the API reports it, for example `overloaded_error`.
        api_error_type: opt ApiErrorType,
        /// Local command that ran instead of the model.
        local_command: opt String,
        /// Author of the prompt, if not the user; a
        /// [`MessageOrigin`](crate::user_assistant::MessageOrigin).
        origin: opt Json,
        /// Time to the first token in milliseconds.
        ttft_ms: opt Number,
        /// Index of this result in the process, from 0.
        result_index: opt u64,
        /// Usage since the previous result, by model.
        model_usage_since_last_result: opt BTreeMap<String, ModelUsage>,
        /// UUID of the prompt that started the turn, if the host gave one.
        user_message_uuid: opt Uuid,
        /// UUIDs of all prompts the turn answered.
        user_message_uuids: opt Vec<Uuid>,
    }
}

impl TurnResult {
    /// `permission_denials`, typed; empty if it is absent or has another form.
    pub fn denied_tool_calls(&self) -> Vec<DeniedToolCall> {
        self.permission_denials.get().and_then(|denials| denials.read().ok()).unwrap_or_default()
    }
}

wire! {
    /// A tool call that was denied, as a `result` lists it.
    pub struct DeniedToolCall {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// Arguments of the tool call.
        tool_input: req Json,
    }
}

wire! {
    /// One API event of a response that is being streamed.
    pub struct StreamEventEntry ["type" = "stream_event"] with envelope: Envelope {
        /// Event as the API sent it.
        event: req StreamEvent,
        /// Id of the API message that the event belongs to.
        api_message_id: opt MessageId,
        /// Time to the first token in milliseconds.
        ttft_ms: opt Number,
        /// On the `message_stop` of an interrupted response: blocks that were started but will not
        /// be completed.
        abandoned_blocks: opt AbandonedBlocks,
    }
}

wire! {
    /// Blocks of an interrupted response that will not be completed.
    pub struct AbandonedBlocks {
        /// Id of the API message they belong to.
        api_message_id: opt MessageId,
        /// Index of the first of them.
        from_block_index: opt u64,
    }
}

wire! {
    /// Withdraws an entry that was already sent.
    pub struct Tombstone ["type" = "tombstone"] with envelope: Envelope {
        /// Entry that is withdrawn, by its UUID or whole.
        message: req TombstoneTarget,
    }
}

wire! {
    /// Entry that a tombstone withdraws.
    pub struct TombstoneTarget {
        /// UUID of the withdrawn entry.
        uuid: opt Uuid,
    }
}

wire! {
    /// An API call is about to be made.
    pub struct StreamRequestStart ["type" = "stream_request_start"] with envelope: Envelope {}
}

wire! {
    /// One sentence about a series of tool calls.
    pub struct ToolUseSummary ["type" = "tool_use_summary"] with envelope: Envelope {
        /// The sentence.
        summary: req String,
        /// Ids of the tool calls.
        preceding_tool_use_ids: opt Vec<ToolUseId> = "toolUseIds" | "preceding_tool_use_ids",
    }
}

wire! {
    /// The stream ended with an error.
    pub struct ErrorEntry ["type" = "error"] with envelope: Envelope {
        /// Error object or text.
        error: opt Json,
        /// Error message, where `error` is absent.
        message: opt Json,
    }
}

impl ErrorEntry {
    /// The error as text.
    pub fn to_text(&self) -> String {
        let text = self.message.get().or(self.error.get());
        text.map_or_else(|| "it does not say why".to_owned(), Json::extract_text)
    }
}

wire! {
    /// A tool call is still running.
    pub struct ToolProgress ["type" = "tool_progress"] with envelope: Envelope {
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Name of the tool.
        tool_name: opt ToolName,
        /// Running time so far in seconds.
        elapsed_time_seconds: opt Number,
    }
}

wire! {
    /// Progress of a login.
    pub struct AuthStatus ["type" = "auth_status"] with envelope: Envelope {
        /// Whether the login is in progress.
        is_authenticating: opt bool = "isAuthenticating",
        /// Lines the login printed.
        output: opt Json,
        /// Error message, if the login failed.
        error: opt String,
    }
}

wire! {
    /// State of a rate limit.
    pub struct RateLimitEvent ["type" = "rate_limit_event"] with envelope: Envelope {
        /// Limit, usage and time of reset.
        rate_limit_info: opt Json,
    }
}

wire! {
    /// Keeps the connection alive.
    pub struct KeepAlive ["type" = "keep_alive"] with envelope: Envelope {}
}

wire! {
    /// Goal the agent works towards.
    pub struct ActiveGoal ["type" = "active_goal"] with envelope: Envelope {
        /// Description of the goal.
        goal: opt Json,
    }
}

wire! {
    /// State of a prompt that the host sent.
    pub struct CommandLifecycle ["type" = "command_lifecycle"] with envelope: Envelope {
        /// UUID of the prompt.
        command_uuid: opt Uuid,
        /// New state of the prompt.
        state: opt CommandState,
    }
}

wire! {
    /// The conversation starts again under a new id.
    pub struct ConversationReset ["type" = "conversation_reset"] with envelope: Envelope {
        /// Id of the new session.
        new_conversation_id: opt SessionId,
        /// UUID of the prompt that caused the reset.
        user_message_uuid: opt Uuid,
        /// What caused the reset, for example `clear`.
        trigger: opt String,
    }
}

wire! {
    /// Suggestion for the next prompt.
    pub struct PromptSuggestion ["type" = "prompt_suggestion"] with envelope: Envelope {
        /// Text of the suggested prompt.
        suggestion: req String,
    }
}
