//! `system` lines: notices of the agent.
//!
//! Those that also occur in files are here; those of the live stream only are in [`stream_only`].

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::user_assistant::AssistantErrorKind;
use crate::values::{CompactTrigger, MessageLevel, PermissionMode, RetrySource};
use crate::{Envelope, Extra, Json, RequestId, ToolName, ToolUseId, Uuid};

pub mod stream_only;
use stream_only::*;

open_enum! {
    /// A `system` entry, by `subtype`.
    pub enum System by "subtype" {
        /// Sent at the start of each turn: model, tools and other capabilities of the session.
        "init" => Init(Init),
        /// Start of a phase (older tools).
        "start" => Start(Start),
        /// End of a phase (older tools).
        "end" => End(End),
        /// The entries before this one were compacted.
        "compact_boundary" => CompactBoundary(CompactBoundary),
        /// Old tool results were cleared from the context.
        "microcompact_boundary" => MicrocompactBoundary(MicrocompactBoundary),
        /// A slash command that ran without the model.
        "local_command" => LocalCommand(LocalCommand),
        /// Output of a local command.
        "local_command_output" => LocalCommandOutput(LocalCommandOutput),
        /// An API call failed and is retried (file).
        "api_error" => ApiError(ApiError),
        /// An API call failed and is retried (stream).
        "api_retry" => ApiRetry(ApiRetry),
        /// A message for the user.
        "informational" => Informational(Informational),
        /// Something was written to a memory file.
        "memory_saved" => MemorySaved(MemorySaved),
        /// Hooks that ran at the end of the turn.
        "stop_hook_summary" => StopHookSummary(StopHookSummary),
        /// Duration of a turn.
        "turn_duration" => TurnDuration(TurnDuration),
        /// Speed of an API call.
        "api_metrics" => ApiMetrics(ApiMetrics),
        /// A denied command was allowed afterwards.
        "permission_retry" => PermissionRetry(PermissionRetry),
        /// The connection to a remote session changed.
        "bridge_status" => BridgeStatus(BridgeStatus),
        /// Summary of what happened while the user was away.
        "away_summary" => AwaySummary(AwaySummary),
        /// Background agents were stopped.
        "agents_killed" => AgentsKilled(AgentsKilled),
        /// A scheduled task is due.
        "scheduled_task_fire" => ScheduledTaskFire(ScheduledTaskFire),
        /// Another model is used, usually because the first is overloaded.
        "model_fallback" => ModelFallback(ModelFallback),
        /// Another model is used after a refusal.
        "model_refusal_fallback" => ModelRefusalFallback(ModelRefusalFallback),
        /// The model refused and no other model was used.
        "model_refusal_no_fallback" => ModelRefusal(ModelRefusal),
        /// The agent's current step, or a change of the permission mode.
        "status" => Status(Status),
        /// Thinking tokens of the running response so far.
        "thinking_tokens" => ThinkingTokens(ThinkingTokens),
        /// A subagent or background command started.
        "task_started" => TaskStarted(TaskStarted),
        /// Progress of a running task.
        "task_progress" => TaskProgress(TaskProgress),
        /// The state of a task changed.
        "task_updated" => TaskUpdated(TaskUpdated),
        /// A task ended.
        "task_notification" => TaskNotification(TaskNotification),
        /// The list of background tasks changed.
        "background_tasks_changed" => BackgroundTasksChanged(BackgroundTasksChanged),
        /// A hook started.
        "hook_started" => HookStarted(HookStarted),
        /// Output of a running hook.
        "hook_progress" => HookProgress(SystemHookProgress),
        /// A hook ended.
        "hook_response" => HookResponse(HookResponse),
        /// A notification for the user.
        "notification" => Notification(SystemNotification),
        /// A tool call was denied without asking.
        "permission_denied" => PermissionDenied(SystemPermissionDenied),
        /// The session became idle, running or waits for the host.
        "session_state_changed" => SessionStateChanged(SessionStateChanged),
        /// The session has a new title.
        "session_title_changed" => SessionTitleChanged(SessionTitleChanged),
        /// A control request is still being handled.
        "control_request_progress" => ControlRequestProgress(ControlRequestProgress),
        /// The list of slash commands changed.
        "commands_changed" => CommandsChanged(CommandsChanged),
        /// Files were uploaded.
        "files_persisted" => FilesPersisted(FilesPersisted),
        /// Something was read from memory.
        "memory_recall" => MemoryRecall(MemoryRecall),
        /// The host could not store mirrored entries.
        "mirror_error" => MirrorError(MirrorError),
        /// Progress of a plugin installation.
        "plugin_install" => PluginInstall(PluginInstall),
        /// The user answered a question of an MCP server.
        "elicitation_complete" => ElicitationComplete(ElicitationComplete),
        /// The agent is about to exit.
        "worker_shutting_down" => WorkerShuttingDown(WorkerShuttingDown),
        /// Entries could not be written to the session file.
        "session_writes_lost" => SessionWritesLost(SessionWritesLost),
        /// The host should redraw its interface.
        "ui_invalidate" => UiInvalidate(UiInvalidate),
        /// A notice of version 1.0, such as a change of the model: a `system` entry without a
        /// subtype.
        "" => LegacyNotice(LegacyNotice),
    }
}

impl System {
    /// The same entry with the fields of its `data` object moved to the top level, where some
    /// programs nest them; existing top-level fields win. `None` if there is no such object.
    pub fn flatten_data(&self) -> Option<Self> {
        let data: BTreeMap<String, Json> = self.parts()?.1.get("data")?.read().ok()?;
        let mut fields: BTreeMap<String, Json> = Json::from_serialize(self).read().ok()?;
        for (key, value) in data {
            fields.entry(key).or_insert(value);
        }
        Json::from_serialize(&fields).read().ok()
    }

    /// Whether the entry is hidden from the user.
    pub fn is_meta(&self) -> bool {
        let own = match self {
            Self::CompactBoundary(line) => &line.is_meta,
            Self::MicrocompactBoundary(line) => &line.is_meta,
            Self::LocalCommand(line) => &line.is_meta,
            Self::Informational(line) => &line.is_meta,
            Self::TurnDuration(line) => &line.is_meta,
            Self::ModelFallback(line) => &line.is_meta,
            Self::ModelRefusal(line) => &line.is_meta,
            Self::LegacyNotice(line) => &line.is_meta,
            _ => return self.envelope().is_some_and(|envelope| envelope.is_meta.is_true()),
        };
        own.is_true()
    }
}

impl MicrocompactBoundary {
    /// Ids of the tool calls whose results were cleared from the context.
    pub fn cleared_tool_use_ids(&self) -> Vec<ToolUseId> {
        self.metadata_list("compactedToolIds")
    }

    /// UUIDs of the attachments that were cleared from the context.
    pub fn cleared_attachment_uuids(&self) -> Vec<Uuid> {
        self.metadata_list("clearedAttachmentUUIDs")
    }

    fn metadata_list<T: serde::de::DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let fields: Option<BTreeMap<String, Json>> = self.microcompact_metadata.get().and_then(|meta| meta.read().ok());
        fields.and_then(|fields| fields.get(key)?.read().ok()).unwrap_or_default()
    }
}

/// Gives every modelled subtype's envelope and extras by one match.
macro_rules! system_accessors {
    ($($variant:ident),+ $(,)?) => {
        impl System {
            /// Envelope of the entry; `None` if the subtype is unknown and the entry has no UUID.
            pub fn envelope(&self) -> Option<&Envelope> {
                match self {
                    Self::Unknown(line) => line.envelope(),
                    _ => self.parts().map(|(envelope, _)| envelope),
                }
            }

            /// Envelope to be filled in; `None` if the subtype is unknown.
            pub fn envelope_mut(&mut self) -> Option<&mut Envelope> {
                match self {
                    $( Self::$variant(line) => Some(&mut line.envelope), )+
                    Self::Unknown(_) => None,
                }
            }

            fn parts(&self) -> Option<(&Envelope, &Extra)> {
                match self {
                    $( Self::$variant(line) => Some((&line.envelope, &line.extra)), )+
                    Self::Unknown(_) => None,
                }
            }
        }
    };
}

system_accessors! {
    Init, Start, End, CompactBoundary, MicrocompactBoundary, LocalCommand,
    LocalCommandOutput, ApiError, ApiRetry, Informational, MemorySaved, StopHookSummary,
    TurnDuration, ApiMetrics, PermissionRetry, BridgeStatus, AwaySummary, AgentsKilled,
    ScheduledTaskFire, ModelFallback, ModelRefusalFallback, ModelRefusal, Status, ThinkingTokens,
    TaskStarted, TaskProgress, TaskUpdated, TaskNotification, BackgroundTasksChanged, HookStarted,
    HookProgress, HookResponse, Notification, PermissionDenied, SessionStateChanged, SessionTitleChanged,
    ControlRequestProgress, CommandsChanged, FilesPersisted, MemoryRecall, MirrorError, PluginInstall,
    ElicitationComplete, WorkerShuttingDown, SessionWritesLost, UiInvalidate, LegacyNotice,
}

wire! {
    /// A notice of version 1.0, such as a change of the model: a `system` entry without a subtype.
    pub struct LegacyNotice ["type" = "system"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity of the notice.
        level: opt MessageLevel,
        /// Whether the notice is hidden from the user.
        is_meta: opt bool = "isMeta",
        /// Id of the tool call the notice is about.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// How a compaction was done and which entries it preserved.
    pub struct CompactMetadata {
        /// What started the compaction.
        trigger: opt CompactTrigger,
        /// Tokens in the context before.
        pre_tokens: opt u64 = "preTokens" | "pre_tokens",
        /// Tokens in the context after.
        post_tokens: opt u64 = "postTokens" | "post_tokens",
        /// Duration in milliseconds.
        duration_ms: opt Number = "durationMs" | "duration_ms",
        /// Preserved entries, by the first and last of them.
        preserved_segment: opt PreservedSegment = "preservedSegment" | "preserved_segment",
        /// Preserved entries, each by its UUID.
        preserved_messages: opt PreservedMessages = "preservedMessages" | "preserved_messages",
    }
}

wire! {
    /// Entries that a compaction preserved, by the first and last; they follow the anchor.
    pub struct PreservedSegment {
        /// UUID of the first preserved entry.
        head_uuid: opt Uuid = "headUuid" | "head_uuid",
        /// UUID of the entry they follow: the summary.
        anchor_uuid: opt Uuid = "anchorUuid" | "anchor_uuid",
        /// UUID of the last preserved entry.
        tail_uuid: opt Uuid = "tailUuid" | "tail_uuid",
    }
}

wire! {
    /// Entries that a compaction preserved, each by its UUID.
    pub struct PreservedMessages {
        /// UUID of the entry they follow: the summary.
        anchor_uuid: opt Uuid = "anchorUuid" | "anchor_uuid",
        /// UUIDs of the preserved messages.
        uuids: opt Vec<Uuid>,
        /// UUIDs of the preserved messages and the entries between them.
        all_uuids: opt Vec<Uuid> = "allUuids" | "all_uuids",
    }
}

wire! {
    /// Sent at the start of each turn: model, tools and other capabilities of the session.
    pub struct Init ["type" = "system", "subtype" = "init"] with envelope: Envelope {
        /// Model of the session.
        model: opt String,
        /// Names of the tools; `Task` here is `Agent` in tool calls.
        tools: opt Vec<ToolName>,
        /// MCP servers with their state.
        mcp_servers: opt Json,
        /// Permission mode of the session.
        permission_mode: opt PermissionMode = "permissionMode" | "permission_mode",
        /// Where the API key comes from, for example `ANTHROPIC_API_KEY` or `none`.
        api_key_source: opt String = "apiKeySource" | "api_key_source",
        /// Version of the agent.
        claude_code_version: opt String,
        /// Names of the slash commands, without the slash.
        slash_commands: opt Vec<String>,
        /// Name of the output style.
        output_style: opt String,
        /// Names of the subagents.
        agents: opt Json,
        /// Names of the skills.
        skills: opt Json,
        /// Plugins with name and path.
        plugins: opt Json,
        /// Optional protocol features the agent supports.
        capabilities: opt Vec<String>,
        /// Folders allowed in addition to the working directory.
        additional_directories: opt Vec<String>,
        /// UUIDs of the prompts that started the turn, if the host gave them.
        user_message_uuids: opt Vec<Uuid>,
    }
}

wire! {
    /// Start of a phase (older tools).
    pub struct Start ["type" = "system", "subtype" = "start"] with envelope: Envelope {
    }
}

wire! {
    /// End of a phase (older tools).
    pub struct End ["type" = "system", "subtype" = "end"] with envelope: Envelope {
    }
}

wire! {
    /// The entries before this one were compacted.
    pub struct CompactBoundary ["type" = "system", "subtype" = "compact_boundary"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
        /// How the compaction was done and which entries it preserved.
        compact_metadata: opt CompactMetadata = "compactMetadata" | "compact_metadata",
    }
}

wire! {
    /// Old tool results were cleared from the context.
    pub struct MicrocompactBoundary ["type" = "system", "subtype" = "microcompact_boundary"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
        /// What was cleared.
        microcompact_metadata: opt Json = "microcompactMetadata" | "microcompact_metadata",
    }
}

wire! {
    /// A slash command that ran without the model.
    pub struct LocalCommand ["type" = "system", "subtype" = "local_command"] with envelope: Envelope {
        /// Command name, arguments or output, in tags.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
        /// Name and arguments of the command.
        command_run: opt crate::user_assistant::CommandRun = "commandRun",
        /// Figures of `/context`.
        context_usage: opt Json = "contextUsage",
    }
}

wire! {
    /// Output of a local command.
    pub struct LocalCommandOutput ["type" = "system", "subtype" = "local_command_output"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
    }
}

wire! {
    /// An API call failed and is retried (file).
    pub struct ApiError ["type" = "system", "subtype" = "api_error"] with envelope: Envelope {
        /// Severity.
        level: opt MessageLevel,
        /// Error with message and status.
        error: opt Json,
        /// Underlying error.
        cause: opt Json,
        /// Milliseconds until the retry.
        retry_in_ms: opt Number = "retryInMs",
        /// Number of the retry, from 1.
        retry_attempt: opt u64 = "retryAttempt",
        /// Limit of retries.
        max_retries: opt u64 = "maxRetries",
        /// What is retried.
        source: opt RetrySource,
    }
}

impl ApiError {
    /// HTTP status of the failed call; `None` if there was no response.
    pub fn status(&self) -> Option<u16> {
        #[derive(serde::Deserialize)]
        struct Failure {
            status: Option<u16>,
        }
        self.error.get()?.read::<Failure>().ok()?.status
    }
}

wire! {
    /// An API call failed and is retried (stream).
    pub struct ApiRetry ["type" = "system", "subtype" = "api_retry"] with envelope: Envelope {
        /// Number of the retry, from 1.
        attempt: opt u64,
        /// Limit of retries.
        max_retries: opt u64,
        /// Milliseconds until the retry.
        retry_delay_ms: opt Number,
        /// HTTP status of the failed call; `null` if there was no response.
        error_status: opt Number,
        /// Kind of failure.
        error: opt AssistantErrorKind,
    }
}

wire! {
    /// A message for the user.
    pub struct Informational ["type" = "system", "subtype" = "informational"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
        /// Id of the tool call the message is about.
        tool_use_id: opt ToolUseId = "toolUseID" | "tool_use_id",
    }
}

wire! {
    /// Something was written to a memory file.
    pub struct MemorySaved ["type" = "system", "subtype" = "memory_saved"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Paths of the memory files.
        written_paths: opt Json = "writtenPaths",
    }
}

wire! {
    /// Hooks that ran at the end of the turn.
    pub struct StopHookSummary ["type" = "system", "subtype" = "stop_hook_summary"] with envelope: Envelope {
        /// Number of hooks.
        hook_count: opt u64 = "hookCount",
        /// Commands of the hooks.
        hook_infos: opt Json = "hookInfos",
        /// Error messages of failed hooks.
        hook_errors: opt Json = "hookErrors",
        /// Whether a hook ended the turn.
        prevented_continuation: opt bool = "preventedContinuation",
        /// Reason that hook gave.
        stop_reason: opt String = "stopReason",
        /// Whether the hooks printed anything.
        has_output: opt bool = "hasOutput",
        /// Severity.
        level: opt MessageLevel,
        /// Id that their progress entries share.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// Duration of a turn.
    pub struct TurnDuration ["type" = "system", "subtype" = "turn_duration"] with envelope: Envelope {
        /// Duration in milliseconds.
        duration_ms: opt Number = "durationMs",
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
    }
}

wire! {
    /// Speed of an API call.
    pub struct ApiMetrics ["type" = "system", "subtype" = "api_metrics"] with envelope: Envelope {
        /// Time to the first token in milliseconds.
        ttft_ms: opt Number = "ttftMs",
        /// Output tokens per second.
        otps: opt Number,
    }
}

wire! {
    /// A denied command was allowed afterwards.
    pub struct PermissionRetry ["type" = "system", "subtype" = "permission_retry"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Commands that are now allowed.
        commands: opt Json,
    }
}

wire! {
    /// The connection to a remote session changed.
    pub struct BridgeStatus ["type" = "system", "subtype" = "bridge_status"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Address of the remote session.
        url: opt String,
    }
}

wire! {
    /// Summary of what happened while the user was away.
    pub struct AwaySummary ["type" = "system", "subtype" = "away_summary"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
    }
}

wire! {
    /// Background agents were stopped.
    pub struct AgentsKilled ["type" = "system", "subtype" = "agents_killed"] with envelope: Envelope {
    }
}

wire! {
    /// A scheduled task is due.
    pub struct ScheduledTaskFire ["type" = "system", "subtype" = "scheduled_task_fire"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
    }
}

wire! {
    /// Another model is used, usually because the first is overloaded.
    pub struct ModelFallback ["type" = "system", "subtype" = "model_fallback"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Why the model was changed, for example `overloaded`.
        trigger: opt String,
        /// Model that was asked first.
        original_model: opt String = "originalModel" | "original_model",
        /// Model that is used instead.
        fallback_model: opt String = "fallbackModel" | "fallback_model",
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
    }
}

wire! {
    /// Another model is used after a refusal.
    pub struct ModelRefusalFallback ["type" = "system", "subtype" = "model_refusal_fallback"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Model that refused.
        original_model: opt String = "originalModel" | "original_model",
        /// Model that is used instead.
        fallback_model: opt String = "fallbackModel" | "fallback_model",
    }
}

wire! {
    /// The model refused and no other model was used.
    pub struct ModelRefusal ["type" = "system", "subtype" = "model_refusal_no_fallback"] with envelope: Envelope {
        /// Text that is shown.
        content: opt String,
        /// Severity.
        level: opt MessageLevel,
        /// Model that refused.
        original_model: opt String = "originalModel" | "original_model",
        /// Id of the API request.
        request_id: opt RequestId = "requestId" | "request_id",
        /// UUID of the refused prompt.
        refused_user_message_uuid: opt Uuid = "refusedUserMessageUuid" | "refused_user_message_uuid",
        /// Whether the entry is hidden from the user.
        is_meta: opt bool = "isMeta",
    }
}
