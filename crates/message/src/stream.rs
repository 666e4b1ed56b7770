//! Lines that only the live stream carries.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::api::StreamEvent;
use crate::entry::Entry;
use crate::macros::{open_str_enum, wire};
use crate::usage::ModelUsage;
use crate::values::{CommandState, StopReason, TerminalReason};
use crate::{Envelope, Json, MessageId, SessionId, ToolUseId, Usage, Uuid};

open_str_enum! {
    /// How a turn ended.
    pub enum TurnOutcome {
        /// With an answer; a failed call also ends so, with `is_error`.
        "success" => Success,
        /// At the limit of turns.
        "error_max_turns" => MaxTurns,
        /// Broken off, or by a fault.
        "error_during_execution" => DuringExecution,
        /// At the limit of money.
        "error_max_budget_usd" => MaxBudget,
        /// Without an answer in the asked-for form.
        "error_max_structured_output_retries" => MaxStructuredOutputRetries,
    }
}

wire! {
    /// A `result` line: the end of a turn.
    pub struct TurnResult ["type" = "result"] with envelope: Envelope {
        /// How it ended.
        subtype: req TurnOutcome,
        /// Whether it failed.
        is_error: req bool,
        /// How long it took.
        duration_ms: opt Number,
        /// Of that, time in calls.
        duration_api_ms: opt Number,
        /// How many steps it took.
        num_turns: opt u64,
        /// The final answer.
        result: opt String,
        /// Why the model stopped.
        stop_reason: opt StopReason,
        /// What the session has cost so far.
        total_cost_usd: opt Number,
        /// What this turn used.
        usage: opt Usage,
        /// What the session used so far, by model.
        model_usage: opt BTreeMap<String, ModelUsage> = "modelUsage",
        /// The tool calls that were refused.
        permission_denials: opt Json,
        /// What went wrong.
        errors: opt Json,
        /// The answer in the asked-for form.
        structured_output: opt Json,
        /// Why the turn ended, in one word.
        terminal_reason: opt TerminalReason,
        /// The HTTP status of a failed call.
        api_error_status: opt Number,
        /// The API's name for the failure.
        api_error_type: opt String,
        /// The local command that ran instead of the model.
        local_command: opt String,
        /// What began the turn, when not the person.
        origin: opt Json,
        /// Time to the first token.
        ttft_ms: opt Number,
        /// Which result of the process this is, counted from 0.
        result_index: opt u64,
        /// What was used since the last result, by model.
        model_usage_since_last_result: opt BTreeMap<String, ModelUsage>,
        /// The prompt that began the turn, when the host named it.
        user_message_uuid: opt Uuid,
        /// All prompts the turn answered.
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
    /// A tool call that was refused, as a `result` lists it.
    pub struct DeniedToolCall {
        /// The tool.
        tool_name: req String,
        /// The call.
        tool_use_id: req ToolUseId,
        /// What it was called with.
        tool_input: req Json,
    }
}

wire! {
    /// A piece of an answer as it is written.
    pub struct StreamEventEntry ["type" = "stream_event"] with envelope: Envelope {
        /// The API's event.
        event: req StreamEvent,
        /// The message it belongs to.
        api_message_id: opt MessageId,
        /// Time to the first token.
        ttft_ms: opt Number,
        /// On the `message_stop` of an interrupted answer: the blocks that will not come.
        abandoned_blocks: opt AbandonedBlocks,
    }
}

wire! {
    /// The blocks of an interrupted answer that will not come.
    pub struct AbandonedBlocks {
        /// The API message they belong to.
        api_message_id: opt MessageId,
        /// Index of the first of them.
        from_block_index: opt u64,
    }
}

wire! {
    /// Withdraws a line that was already shown: an appended event, not an edit.
    pub struct Tombstone ["type" = "tombstone"] with envelope: Envelope {
        /// The line, by its id or whole.
        message: req TombstoneTarget,
    }
}

wire! {
    /// The line a tombstone withdraws.
    pub struct TombstoneTarget {
        /// Its id.
        uuid: opt Uuid,
    }
}

wire! {
    /// A call of the API is about to be made.
    pub struct StreamRequestStart ["type" = "stream_request_start"] with envelope: Envelope {}
}

wire! {
    /// What a run of tool calls did, in one sentence.
    pub struct ToolUseSummary ["type" = "tool_use_summary"] with envelope: Envelope {
        /// The sentence.
        summary: req String,
        /// The calls.
        preceding_tool_use_ids: opt Vec<ToolUseId> = "toolUseIds" | "preceding_tool_use_ids",
    }
}

wire! {
    /// The stream cannot go on.
    pub struct ErrorEntry ["type" = "error"] with envelope: Envelope {
        /// What went wrong.
        error: opt Json,
        /// What went wrong, in words.
        message: opt Json,
    }
}

impl ErrorEntry {
    /// What went wrong, in words.
    pub fn to_text(&self) -> String {
        let said = self.message.get().or(self.error.get());
        said.map_or_else(|| "it does not say why".to_owned(), Json::extract_text)
    }
}

wire! {
    /// A tool runs.
    pub struct ToolProgress ["type" = "tool_progress"] with envelope: Envelope {
        /// The call.
        tool_use_id: opt ToolUseId,
        /// The tool.
        tool_name: opt String,
        /// How long it has run.
        elapsed_time_seconds: opt Number,
    }
}

wire! {
    /// How a login goes.
    pub struct AuthStatus ["type" = "auth_status"] with envelope: Envelope {
        /// Whether it is under way.
        is_authenticating: opt bool = "isAuthenticating",
        /// What it says.
        output: opt Json,
        /// Why it failed.
        error: opt String,
    }
}

wire! {
    /// How much of an allowance is left.
    pub struct RateLimitEvent ["type" = "rate_limit_event"] with envelope: Envelope {
        /// The allowance.
        rate_limit_info: opt Json,
    }
}

wire! {
    /// Says that the other side is still there.
    pub struct KeepAlive ["type" = "keep_alive"] with envelope: Envelope {}
}

wire! {
    /// The goal the agent works towards.
    pub struct ActiveGoal ["type" = "active_goal"] with envelope: Envelope {
        /// The goal.
        goal: opt Json,
    }
}

wire! {
    /// How a queued prompt stands.
    pub struct CommandLifecycle ["type" = "command_lifecycle"] with envelope: Envelope {
        /// The prompt.
        command_uuid: opt Uuid,
        /// `queued`, `started` or `completed`.
        state: opt CommandState,
    }
}

wire! {
    /// The conversation begins anew under another id.
    pub struct ConversationReset ["type" = "conversation_reset"] with envelope: Envelope {
        /// The new id.
        new_conversation_id: opt SessionId,
        /// The prompt that asked for it.
        user_message_uuid: opt Uuid,
        /// What asked for it.
        trigger: opt String,
    }
}

wire! {
    /// What the person might say next.
    pub struct PromptSuggestion ["type" = "prompt_suggestion"] with envelope: Envelope {
        /// The words.
        suggestion: req String,
    }
}

wire! {
    /// Entries just written to a session file, for a host that keeps its own copy.
    pub struct TranscriptMirror ["type" = "transcript_mirror"] {
        /// The file.
        file_path: opt String = "filePath",
        /// The entries.
        entries: req Vec<Entry>,
    }
}
