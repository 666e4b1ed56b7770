//! What the user and the model say: `user` and `assistant` lines.

use serde::Deserialize;
use serde_json::Number;

use crate::context_ref::{self, ContextRef};
use crate::macros::{open_str_enum, wire};
use crate::values::{
    ApiErrorType, DecisionOutcome, DecisionReasonType, DecisionSource, Effort, NonExecutionKind, OriginKind,
    PermissionMode, PromptSource, SettingsLocation,
};
use crate::{Envelope, Json, Maybe, Message, RequestId, ToolUseId, Usage, Uuid};

wire! {
    /// Who wrote a `user` entry, if not the user.
    pub struct MessageOrigin {
        /// Kind of author.
        kind: req OriginKind,
        /// Run of the background task that has ended.
        run_id: opt String = "runId",
    }
}

wire! {
    /// A `user` entry: a user prompt, tool results, or text the program adds on the user's side.
    pub struct User ["type" = "user"] with envelope: Envelope {
        /// The message in role `user`.
        message: req Message,
        /// Whether the text is for the model only, hidden from the user.
        is_meta: opt bool = "isMeta",
        /// Whether the text is for the user only, never sent to the model.
        is_virtual: opt bool = "isVirtual",
        /// Whether the entry is hidden until the user opens the full transcript.
        is_visible_in_transcript_only: opt bool = "isVisibleInTranscriptOnly",
        /// Whether this is the summary that replaces compacted entries.
        is_compact_summary: opt bool = "isCompactSummary",
        /// Result in the tool's own form; the message holds what the model is given.
        tool_use_result: opt Json = "toolUseResult" | "tool_use_result",
        /// UUID of the assistant entry with the tool call that this result belongs to.
        source_tool_assistant_uuid: opt Uuid = "sourceToolAssistantUUID",
        /// Id of the tool call that caused the program to add this entry.
        source_tool_use_id: opt ToolUseId = "sourceToolUseID",
        /// Permission mode when the prompt was sent.
        permission_mode: opt PermissionMode = "permissionMode",
        /// Author, if not the user; see [`User::message_origin`].
        origin: opt Json,
        /// Id of the user prompt that the entry belongs to.
        prompt_id: opt String = "promptId",
        /// How the prompt reached the agent.
        prompt_source: opt PromptSource = "promptSource",
        /// Ids of the pasted images in the message.
        image_paste_ids: opt Json = "imagePasteIds",
        /// `_meta` and structured content of an MCP tool's result.
        mcp_meta: opt Json = "mcpMeta",
        /// Why the tool call was permitted or denied; see [`User::decision_record`].
        permission_decision: opt Json = "permissionDecision",
        /// Whether the command ran in a sandbox.
        sandboxed: opt bool,
        /// Why the tool call did not run; absent if it ran.
        tool_denial_kind: opt NonExecutionKind = "toolDenialKind",
        /// Permission decision of each result (stream); see [`User::result_meta`].
        tool_result_meta: opt Json,
        /// Whether the program wrote the text (stream).
        is_synthetic: opt bool = "isSynthetic",
        /// Whether the entry repeats a prompt the host sent (stream).
        is_replay: opt bool = "isReplay",
        /// Context references that the user attached.
        contexts: opt Vec<ContextRef>,
        /// Thinking settings at that time (older files).
        thinking_metadata: opt Json = "thinkingMetadata",
        /// Task list at that time (older files).
        todos: opt Json,
        /// Plan that the user accepted.
        plan_content: opt String = "planContent",
        /// Whether the host composed the text, so that it holds no commands or file mentions
        /// (stream).
        client_composed: opt bool,
    }
}

impl User {
    /// Attaches context references: sets `contexts`, and writes their quote block before the first
    /// text of the message unless the text already begins with such a block.
    #[must_use]
    pub fn with_contexts(mut self, contexts: Vec<ContextRef>) -> Self {
        context_ref::prepend_block(&mut self.message.content, &contexts);
        self.contexts = Maybe::Value(contexts);
        self
    }
}

wire! {
    /// An `assistant` entry: one or more blocks of a model's message.
    ///
    /// One API message may span several lines that share `message.id`; in files
    /// each of them repeats the final usage.
    pub struct Assistant ["type" = "assistant"] with envelope: Envelope {
        /// The message in role `assistant`; its content may be a part of the API message.
        message: req Message,
        /// Id of the API request.
        request_id: opt RequestId = "requestId" | "request_id",
        /// Id of the `api-request` entry that describes the request.
        request_ref: opt String = "requestRef",
        /// Index in the API message of the first block of this entry.
        api_block_index: opt u64 = "apiBlockIndex",
        /// Whether the program wrote this entry to show a failed API call.
        is_api_error_message: opt bool = "isApiErrorMessage" | "is_api_error_message",
        /// Kind of failure.
        error: opt AssistantErrorKind,
        /// Details of the failure.
        error_details: opt Json = "errorDetails",
        /// Error message (older files).
        api_error: opt String = "apiError",
        /// HTTP status of the failed call.
        api_error_status: opt Number = "apiErrorStatus" | "api_error_status",
        /// Error type as the API reports it, for example `overloaded_error`.
        api_error_type: opt ApiErrorType = "apiErrorType" | "api_error_type",
        /// Whether the text is for the user only, never sent to the model.
        is_virtual: opt bool = "isVirtual",
        /// Whether the text is for the model only, hidden from the user.
        is_meta: opt bool = "isMeta",
        /// Model that was requested, if another one answered.
        requested_model: opt String = "requestedModel",
        /// Effort that was requested.
        effort: opt Effort,
        /// Duration of thinking in milliseconds.
        thinking_duration_ms: opt Number = "thinkingDurationMs" | "thinking_duration_ms",
        /// Whether the response was interrupted (file).
        is_aborted_mid_stream: opt bool = "isAbortedMidStream",
        /// Whether the response was interrupted (stream).
        aborted: opt bool,
        /// Local command whose output this is (stream).
        local_command_source: opt String,
        /// Name and arguments of that command (stream).
        local_command_run: opt CommandRun,
        /// Display names of the MCP tool calls in the message (stream).
        tool_use_meta: opt Vec<ToolUseMeta>,
        /// UUID of the prompt that is answered, if the host gave one (stream).
        user_message_uuid: opt Uuid,
        /// Cost of the API call in US dollars (1.0 files).
        cost_usd: opt Number = "costUSD" | "cost",
        /// Duration of the API call in milliseconds (1.0 files).
        duration_ms: opt Number = "durationMs",
        /// Usage outside of the message (older tools).
        usage: opt Usage,
    }
}

wire! {
    /// A slash command that ran without the model.
    pub struct CommandRun {
        /// Name of the command, without the slash.
        command: req String,
        /// Text after the name.
        args: opt String,
    }
}

wire! {
    /// Display names of an MCP tool call.
    pub struct ToolUseMeta {
        /// Id of the tool call.
        id: req ToolUseId,
        /// Name of the tool as shown.
        display_name: opt String,
        /// Name of the server as shown.
        server_display_name: opt String,
        /// Name of the tool on its server.
        tool_name: opt String,
    }
}

wire! {
    /// Why a tool call was permitted or denied.
    pub struct PermissionDecisionRecord {
        /// Whether the call was permitted.
        decision: req DecisionOutcome,
        /// Who decided.
        source: opt DecisionSource,
        /// Kind of reason.
        reason_type: opt DecisionReasonType = "reasonType" | "reason_type",
        /// Where the matching rule is stored (file).
        rule_source: opt SettingsLocation = "ruleSource",
        /// Reason in short form, for example `mode:plan` or `rule:userSettings` (file).
        reason_code: opt String = "reasonCode",
    }
}

wire! {
    /// Permission decision of one tool result (stream).
    pub struct ToolResultMeta {
        /// Id of the tool call.
        id: req ToolUseId,
        /// Why the tool did not run; absent if it ran.
        non_execution_kind: opt NonExecutionKind,
        /// Why the call was permitted or denied.
        permission_decision: opt PermissionDecisionRecord,
    }
}

impl User {
    /// Whether the entry reports the end of a background task to the model.
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

    /// How long the tool ran, in milliseconds, if its result records it.
    pub fn tool_duration_ms(&self) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Duration {
            #[serde(alias = "totalDurationMs")]
            duration_ms: Option<f64>,
            duration_seconds: Option<f64>,
        }
        let duration: Duration = self.tool_use_result.get()?.read().ok()?;
        let milliseconds = duration.duration_ms.or(duration.duration_seconds.map(|seconds| seconds * 1000.0))?;
        Some(milliseconds as u64)
    }

    /// `tool_result_meta`, typed; empty if it is absent or has another form.
    pub fn result_meta(&self) -> Vec<ToolResultMeta> {
        self.tool_result_meta.get().and_then(|meta| meta.read().ok()).unwrap_or_default()
    }
}

impl Assistant {
    /// Whether the program wrote this entry to show a failed API call.
    pub fn is_api_error(&self) -> bool {
        self.is_api_error_message.is_true() || self.error.is_value()
    }
}

open_str_enum! {
    /// Kind of failure that an assistant entry reports.
    pub enum AssistantErrorKind {
        /// The key or login was rejected.
        "authentication_failed" => AuthenticationFailed,
        /// The account has no credit.
        "billing_error" => Billing,
        /// Too many requests.
        "rate_limit" => RateLimit,
        /// The server has too much to do; only retries report it.
        "overloaded" => Overloaded,
        /// The API rejected the request.
        "invalid_request" => InvalidRequest,
        /// The model does not exist or is not available to the account.
        "model_not_found" => ModelNotFound,
        /// The server failed.
        "server_error" => Server,
        /// The output limit was reached.
        "max_output_tokens" => MaxOutputTokens,
        /// The program could not classify the failure.
        "unknown" => Unknown,
    }
}
