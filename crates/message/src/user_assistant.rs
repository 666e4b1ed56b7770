//! What the person and the model say: `user` and `assistant` lines.

use serde_json::Number;

use crate::context_ref::{self, ContextRef};
use crate::macros::{open_str_enum, wire};
use crate::values::{
    DecisionOutcome, DecisionReasonType, DecisionSource, Effort, NonExecutionKind, OriginKind, PermissionMode,
    PromptSource, SettingsLocation,
};
use crate::{Envelope, Json, Maybe, Message, RequestId, ToolUseId, Usage, Uuid};

wire! {
    /// Where words come from, when not from the person.
    pub struct MessageOrigin {
        /// `task-notification` for the end of a background task.
        kind: req OriginKind,
        /// The run of the task.
        run_id: opt String = "runId",
    }
}

wire! {
    /// A `user` line: a person's words, tool results, or text the program adds
    /// on the person's side.
    pub struct User ["type" = "user"] with envelope: Envelope {
        /// The message.
        message: req Message,
        /// Meant for the model, hidden from the person.
        is_meta: opt bool = "isMeta",
        /// Shown to the person, never sent.
        is_virtual: opt bool = "isVirtual",
        /// Shown only when the transcript is opened.
        is_visible_in_transcript_only: opt bool = "isVisibleInTranscriptOnly",
        /// The summary that replaces what was compacted.
        is_compact_summary: opt bool = "isCompactSummary",
        /// What the tool gave, in its own form; `content` holds what the model is told.
        tool_use_result: opt Json = "toolUseResult" | "tool_use_result",
        /// The line of the call this answers.
        source_tool_assistant_uuid: opt Uuid = "sourceToolAssistantUUID",
        /// The call that caused this line.
        source_tool_use_id: opt ToolUseId = "sourceToolUseID",
        /// The permission mode when the person spoke.
        permission_mode: opt PermissionMode = "permissionMode",
        /// Where the words come from, when not from the person.
        origin: opt Json,
        /// The person's prompt that this line belongs to.
        prompt_id: opt String = "promptId",
        /// How the prompt came in.
        prompt_source: opt PromptSource = "promptSource",
        /// Which pasted pictures the message holds.
        image_paste_ids: opt Json = "imagePasteIds",
        /// What the MCP server said beside the result.
        mcp_meta: opt Json = "mcpMeta",
        /// Who allowed the tool, and why.
        permission_decision: opt Json = "permissionDecision",
        /// Whether a command ran in a sandbox.
        sandboxed: opt bool,
        /// Why the tool was refused.
        tool_denial_kind: opt NonExecutionKind = "toolDenialKind",
        /// Permission and other facts of each result (stream).
        tool_result_meta: opt Json,
        /// The program's words, not the person's (stream).
        is_synthetic: opt bool = "isSynthetic",
        /// An echo of what was sent (stream).
        is_replay: opt bool = "isReplay",
        /// What the person attached, in structured form.
        contexts: opt Vec<ContextRef>,
        /// Whether and how far to think (older files).
        thinking_metadata: opt Json = "thinkingMetadata",
        /// The task list at that time (older files).
        todos: opt Json,
        /// The plan the person accepted.
        plan_content: opt String = "planContent",
        /// The host put the words together: nothing in them is a command or a file (stream).
        client_composed: opt bool,
    }
}

impl User {
    /// Attaches context references: sets `contexts`, and writes their quote block before the
    /// first text of the message unless a block stands there already.
    #[must_use]
    pub fn with_contexts(mut self, contexts: Vec<ContextRef>) -> Self {
        context_ref::prepend_block(&mut self.message.content, &contexts);
        self.contexts = Maybe::Value(contexts);
        self
    }
}

wire! {
    /// An `assistant` line: one or more blocks of what the model said.
    ///
    /// One API message may span several lines that share `message.id`; in files
    /// each of them repeats the final usage.
    pub struct Assistant ["type" = "assistant"] with envelope: Envelope {
        /// The message.
        message: req Message,
        /// The call of the API.
        request_id: opt RequestId = "requestId" | "request_id",
        /// The `api-request` line of that call.
        request_ref: opt String = "requestRef",
        /// Which block of the API message this line holds.
        api_block_index: opt u64 = "apiBlockIndex",
        /// Written by the program to show a failed call.
        is_api_error_message: opt bool = "isApiErrorMessage" | "is_api_error_message",
        /// What failed.
        error: opt AssistantErrorKind,
        /// More about what failed.
        error_details: opt Json = "errorDetails",
        /// What failed, in words (older files).
        api_error: opt String = "apiError",
        /// The HTTP status of the failure.
        api_error_status: opt Number = "apiErrorStatus" | "api_error_status",
        /// The API's name for the failure.
        api_error_type: opt String = "apiErrorType" | "api_error_type",
        /// Shown to the person, never sent.
        is_virtual: opt bool = "isVirtual",
        /// Meant for the model, hidden from the person.
        is_meta: opt bool = "isMeta",
        /// The model that was asked for.
        requested_model: opt String = "requestedModel",
        /// How hard the model was asked to think.
        effort: opt Effort,
        /// How long it thought.
        thinking_duration_ms: opt Number = "thinkingDurationMs" | "thinking_duration_ms",
        /// Broken off while the model wrote (file).
        is_aborted_mid_stream: opt bool = "isAbortedMidStream",
        /// Broken off while the model wrote (stream).
        aborted: opt bool,
        /// The local command whose output this is (stream).
        local_command_source: opt String,
        /// The run of that command (stream).
        local_command_run: opt CommandRun,
        /// How calls of MCP tools are shown (stream).
        tool_use_meta: opt Vec<ToolUseMeta>,
        /// The prompt this answers, when the host named it (stream).
        user_message_uuid: opt Uuid,
        /// What the call cost, in dollars (1.0 files).
        cost_usd: opt Number = "costUSD" | "cost",
        /// How long the call took (1.0 files).
        duration_ms: opt Number = "durationMs",
        /// Usage beside the message instead of in it (older tools).
        usage: opt Usage,
    }
}

wire! {
    /// A slash command that ran without the model.
    pub struct CommandRun {
        /// Its name, without the slash.
        command: req String,
        /// What was typed after it.
        args: opt String,
    }
}

wire! {
    /// How a call of an MCP tool is shown.
    pub struct ToolUseMeta {
        /// The call.
        id: req ToolUseId,
        /// The tool as shown.
        display_name: opt String,
        /// The server as shown.
        server_display_name: opt String,
        /// The tool as its server names it.
        tool_name: opt String,
    }
}

wire! {
    /// Who allowed or refused a tool, and why.
    pub struct PermissionDecisionRecord {
        /// `accept` or `reject`.
        decision: req DecisionOutcome,
        /// `config`, `hook`, `user_temporary`, `user_reject` …
        source: opt DecisionSource,
        /// `rule`, `mode`, `hook` …
        reason_type: opt DecisionReasonType = "reasonType" | "reason_type",
        /// Where the rule stands (file).
        rule_source: opt SettingsLocation = "ruleSource",
        /// Why, in one word (file).
        reason_code: opt String = "reasonCode",
    }
}

wire! {
    /// Facts about one result (stream).
    pub struct ToolResultMeta {
        /// The call.
        id: req ToolUseId,
        /// Why the tool did not run.
        non_execution_kind: opt NonExecutionKind,
        /// Who allowed or refused it.
        permission_decision: opt PermissionDecisionRecord,
    }
}

impl User {
    /// Whether the line tells the model that a background task has ended.
    pub fn is_task_notification(&self) -> bool {
        self.message_origin().is_some_and(|origin| origin.kind == OriginKind::TaskNotification)
    }

    /// `origin`, typed; `None` if it is absent or has another form.
    pub fn message_origin(&self) -> Option<MessageOrigin> {
        self.origin.get()?.read().ok()
    }

    /// `permission_decision`, typed; `None` if it is absent or has another form.
    pub fn decision_record(&self) -> Option<PermissionDecisionRecord> {
        self.permission_decision.get()?.read().ok()
    }

    /// `tool_result_meta`, typed; empty if it is absent or has another form.
    pub fn result_meta(&self) -> Vec<ToolResultMeta> {
        self.tool_result_meta.get().and_then(|meta| meta.read().ok()).unwrap_or_default()
    }
}

impl Assistant {
    /// Whether the program wrote this to show a failed call.
    pub fn is_api_error(&self) -> bool {
        self.is_api_error_message.is_true() || self.error.is_value()
    }
}

open_str_enum! {
    /// What kind of failure an assistant line reports.
    pub enum AssistantErrorKind {
        /// The key or login was refused.
        "authentication_failed" => AuthenticationFailed,
        /// The account cannot pay.
        "billing_error" => Billing,
        /// Too many requests.
        "rate_limit" => RateLimit,
        /// The request was wrong.
        "invalid_request" => InvalidRequest,
        /// There is no such model, or it may not be used.
        "model_not_found" => ModelNotFound,
        /// The server failed.
        "server_error" => Server,
        /// The model wrote as much as it may.
        "max_output_tokens" => MaxOutputTokens,
        /// The program does not know.
        "unknown" => Unknown,
    }
}
