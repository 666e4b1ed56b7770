//! `system` lines: what the program says of itself.
//!
//! Those that are part of the conversation are here and occur in files too; those
//! that only the live stream carries are in [`stream_only`].

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::values::{CompactTrigger, MessageLevel, PermissionMode};
use crate::{Envelope, Extra, Json, RequestId, ToolUseId, Uuid};

pub mod stream_only;
use stream_only::*;

open_enum! {
    /// A `system` line, by `subtype`.
    pub enum System by "subtype" {
        /// A turn begins; says what the program offers. Once per turn, not once per process.
        "init" => Init(Init),
        /// A phase begins (older tools).
        "start" => Start(Start),
        /// A phase ends (older tools).
        "end" => End(End),
        /// What stands before was compacted.
        "compact_boundary" => CompactBoundary(CompactBoundary),
        /// Old tool results were cleared from the context.
        "microcompact_boundary" => MicrocompactBoundary(MicrocompactBoundary),
        /// A slash command ran without the model.
        "local_command" => LocalCommand(LocalCommand),
        /// What a local command printed.
        "local_command_output" => LocalCommandOutput(LocalCommandOutput),
        /// A call failed and is tried again (file).
        "api_error" => ApiError(ApiError),
        /// A call failed and is tried again (stream).
        "api_retry" => ApiRetry(ApiRetry),
        /// The program tells the person something.
        "informational" => Informational(Informational),
        /// Something was put into memory.
        "memory_saved" => MemorySaved(MemorySaved),
        /// The hooks that ran when the turn ended.
        "stop_hook_summary" => StopHookSummary(StopHookSummary),
        /// How long a turn took.
        "turn_duration" => TurnDuration(TurnDuration),
        /// How fast the API answered.
        "api_metrics" => ApiMetrics(ApiMetrics),
        /// A refused command was allowed after all.
        "permission_retry" => PermissionRetry(PermissionRetry),
        /// The link to a remote session changed.
        "bridge_status" => BridgeStatus(BridgeStatus),
        /// What happened while the person was away.
        "away_summary" => AwaySummary(AwaySummary),
        /// Background agents were stopped.
        "agents_killed" => AgentsKilled(AgentsKilled),
        /// A scheduled task came due.
        "scheduled_task_fire" => ScheduledTaskFire(ScheduledTaskFire),
        /// Another model took over.
        "model_fallback" => ModelFallback(ModelFallback),
        /// Another model took over after a refusal.
        "model_refusal_fallback" => ModelRefusalFallback(ModelRefusalFallback),
        /// The model refused and no other took over.
        "model_refusal_no_fallback" => ModelRefusal(ModelRefusal),
        /// What the program is doing.
        "status" => Status(Status),
        /// How much the model has thought so far.
        "thinking_tokens" => ThinkingTokens(ThinkingTokens),
        /// A subagent or background command began.
        "task_started" => TaskStarted(TaskStarted),
        /// A task goes on.
        "task_progress" => TaskProgress(TaskProgress),
        /// A task changed.
        "task_updated" => TaskUpdated(TaskUpdated),
        /// A task ended.
        "task_notification" => TaskNotification(TaskNotification),
        /// The list of background tasks changed.
        "background_tasks_changed" => BackgroundTasksChanged(BackgroundTasksChanged),
        /// A hook began.
        "hook_started" => HookStarted(HookStarted),
        /// A hook prints something.
        "hook_progress" => HookProgress(SystemHookProgress),
        /// A hook ended.
        "hook_response" => HookResponse(HookResponse),
        /// A notice for the person.
        "notification" => Notification(SystemNotification),
        /// A tool was refused.
        "permission_denied" => PermissionDenied(SystemPermissionDenied),
        /// The session is idle, running or waits for the host.
        "session_state_changed" => SessionStateChanged(SessionStateChanged),
        /// The session has a new title.
        "session_title_changed" => SessionTitleChanged(SessionTitleChanged),
        /// A control request takes long.
        "control_request_progress" => ControlRequestProgress(ControlRequestProgress),
        /// The slash commands changed.
        "commands_changed" => CommandsChanged(CommandsChanged),
        /// Files were stored.
        "files_persisted" => FilesPersisted(FilesPersisted),
        /// Something was found in memory.
        "memory_recall" => MemoryRecall(MemoryRecall),
        /// The host's copy of the transcript failed.
        "mirror_error" => MirrorError(MirrorError),
        /// A plugin is being installed.
        "plugin_install" => PluginInstall(PluginInstall),
        /// An MCP server's question was answered.
        "elicitation_complete" => ElicitationComplete(ElicitationComplete),
        /// The program is about to end.
        "worker_shutting_down" => WorkerShuttingDown(WorkerShuttingDown),
        /// Lines could not be written to the session file.
        "session_writes_lost" => SessionWritesLost(SessionWritesLost),
        /// The host should draw its interface again.
        "ui_invalidate" => UiInvalidate(UiInvalidate),
        /// A notice of version 1.0, which has no subtype.
        "" => LegacyNotice(LegacyNotice),
    }
}

impl System {
    /// The same line with its fields lifted out of `data`, where some programs nest
    /// them; fields that stand at the top win. `None` when there is no such object.
    pub fn flatten_data(&self) -> Option<Self> {
        let data: BTreeMap<String, Json> = self.parts()?.1.get("data")?.read().ok()?;
        let mut fields: BTreeMap<String, Json> = Json::from_serialize(self).read().ok()?;
        for (key, value) in data {
            fields.entry(key).or_insert(value);
        }
        Json::from_serialize(&fields).read().ok()
    }

    /// Whether the line is meant for the model and hidden from the user.
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
    /// The tool calls whose results were cleared from the context.
    pub fn cleared_tool_use_ids(&self) -> Vec<ToolUseId> {
        self.metadata_list("compactedToolIds")
    }

    /// The attachments that were cleared from the context.
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
            /// What stands around the payload; `None` when the subtype is unknown and the line
            /// has no id.
            pub fn envelope(&self) -> Option<&Envelope> {
                match self {
                    Self::Unknown(line) => line.envelope(),
                    _ => self.parts().map(|(envelope, _)| envelope),
                }
            }

            /// The same, to be filled in.
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
    /// A notice of version 1.0, such as a change of the model: a `system` line without a
    /// subtype.
    pub struct LegacyNotice ["type" = "system"] with envelope: Envelope {
        /// Text of the notice.
        content: opt String,
        /// `info`, `warning` or `error`.
        level: opt MessageLevel,
        /// Hidden from the user.
        is_meta: opt bool = "isMeta",
        /// The tool call it is about.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// How a compaction was done and what was kept.
    pub struct CompactMetadata {
        /// `manual` or `auto`.
        trigger: opt CompactTrigger,
        /// Tokens before.
        pre_tokens: opt u64 = "preTokens" | "pre_tokens",
        /// Tokens after.
        post_tokens: opt u64 = "postTokens" | "post_tokens",
        /// How long it took.
        duration_ms: opt Number = "durationMs" | "duration_ms",
        /// The kept lines, by their ends.
        preserved_segment: opt PreservedSegment = "preservedSegment" | "preserved_segment",
        /// The kept lines, each by its id.
        preserved_messages: opt PreservedMessages = "preservedMessages" | "preserved_messages",
    }
}

wire! {
    /// The kept lines, by their ends; they hang after the anchor.
    pub struct PreservedSegment {
        /// The first kept line.
        head_uuid: opt Uuid = "headUuid" | "head_uuid",
        /// The line they hang after: the summary.
        anchor_uuid: opt Uuid = "anchorUuid" | "anchor_uuid",
        /// The last kept line.
        tail_uuid: opt Uuid = "tailUuid" | "tail_uuid",
    }
}

wire! {
    /// The kept lines, each by its id.
    pub struct PreservedMessages {
        /// The line they hang after: the summary.
        anchor_uuid: opt Uuid = "anchorUuid" | "anchor_uuid",
        /// The kept messages.
        uuids: opt Vec<Uuid>,
        /// The kept messages and what hangs between them.
        all_uuids: opt Vec<Uuid> = "allUuids" | "all_uuids",
    }
}

wire! {
    /// A turn begins; says what the program offers. Once per turn, not once per process.
    pub struct Init ["type" = "system", "subtype" = "init"] with envelope: Envelope {
        /// The model.
        model: opt String,
        /// The tools; `Task` here is `Agent` in calls.
        tools: opt Vec<String>,
        /// MCP servers and their status.
        mcp_servers: opt Json,
        /// The permission mode.
        permission_mode: opt PermissionMode = "permissionMode" | "permission_mode",
        /// Where the key is from.
        api_key_source: opt String = "apiKeySource" | "api_key_source",
        /// The program's version.
        claude_code_version: opt String,
        /// The slash commands.
        slash_commands: opt Vec<String>,
        /// The output style.
        output_style: opt String,
        /// The subagents.
        agents: opt Json,
        /// The skills.
        skills: opt Json,
        /// The plugins.
        plugins: opt Json,
        /// What hosts may rely on.
        capabilities: opt Vec<String>,
        /// Folders allowed beside the working directory.
        additional_directories: opt Vec<String>,
        /// The prompts that began the turn, when the host named them.
        user_message_uuids: opt Vec<Uuid>,
    }
}

wire! {
    /// A phase begins (older tools).
    pub struct Start ["type" = "system", "subtype" = "start"] with envelope: Envelope {
    }
}

wire! {
    /// A phase ends (older tools).
    pub struct End ["type" = "system", "subtype" = "end"] with envelope: Envelope {
    }
}

wire! {
    /// What stands before was compacted.
    pub struct CompactBoundary ["type" = "system", "subtype" = "compact_boundary"] with envelope: Envelope {
        /// The words shown.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
        /// How it was done and what was kept.
        compact_metadata: opt CompactMetadata = "compactMetadata" | "compact_metadata",
    }
}

wire! {
    /// Old tool results were cleared from the context.
    pub struct MicrocompactBoundary ["type" = "system", "subtype" = "microcompact_boundary"] with envelope: Envelope {
        /// The words shown.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
        /// What was cleared.
        microcompact_metadata: opt Json = "microcompactMetadata" | "microcompact_metadata",
    }
}

wire! {
    /// A slash command ran without the model.
    pub struct LocalCommand ["type" = "system", "subtype" = "local_command"] with envelope: Envelope {
        /// Its words in tags.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
        /// The run.
        command_run: opt crate::user_assistant::CommandRun = "commandRun",
        /// What `/context` counted.
        context_usage: opt Json = "contextUsage",
    }
}

wire! {
    /// What a local command printed.
    pub struct LocalCommandOutput ["type" = "system", "subtype" = "local_command_output"] with envelope: Envelope {
        /// The words.
        content: opt String,
    }
}

wire! {
    /// A call failed and is tried again (file).
    pub struct ApiError ["type" = "system", "subtype" = "api_error"] with envelope: Envelope {
        /// How grave.
        level: opt MessageLevel,
        /// What failed.
        error: opt Json,
        /// Why.
        cause: opt Json,
        /// When it is tried again.
        retry_in_ms: opt Number = "retryInMs",
        /// Which attempt.
        retry_attempt: opt u64 = "retryAttempt",
        /// How many there may be.
        max_retries: opt u64 = "maxRetries",
        /// Which call.
        source: opt String,
    }
}

wire! {
    /// A call failed and is tried again (stream).
    pub struct ApiRetry ["type" = "system", "subtype" = "api_retry"] with envelope: Envelope {
        /// Which attempt.
        attempt: opt u64,
        /// How many there may be.
        max_retries: opt u64,
        /// When it is tried again.
        retry_delay_ms: opt Number,
        /// The HTTP status.
        error_status: opt Number,
        /// What failed.
        error: opt String,
    }
}

wire! {
    /// The program tells the person something.
    pub struct Informational ["type" = "system", "subtype" = "informational"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
        /// The call it is about.
        tool_use_id: opt ToolUseId = "toolUseID" | "tool_use_id",
    }
}

wire! {
    /// Something was put into memory.
    pub struct MemorySaved ["type" = "system", "subtype" = "memory_saved"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// The files.
        written_paths: opt Json = "writtenPaths",
    }
}

wire! {
    /// The hooks that ran when the turn ended.
    pub struct StopHookSummary ["type" = "system", "subtype" = "stop_hook_summary"] with envelope: Envelope {
        /// How many.
        hook_count: opt u64 = "hookCount",
        /// Which.
        hook_infos: opt Json = "hookInfos",
        /// What failed.
        hook_errors: opt Json = "hookErrors",
        /// Whether one of them stopped the turn.
        prevented_continuation: opt bool = "preventedContinuation",
        /// Why.
        stop_reason: opt String = "stopReason",
        /// Whether they said something.
        has_output: opt bool = "hasOutput",
        /// How grave.
        level: opt MessageLevel,
        /// Joins them to their progress.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// How long a turn took.
    pub struct TurnDuration ["type" = "system", "subtype" = "turn_duration"] with envelope: Envelope {
        /// Milliseconds.
        duration_ms: opt Number = "durationMs",
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
    }
}

wire! {
    /// How fast the API answered.
    pub struct ApiMetrics ["type" = "system", "subtype" = "api_metrics"] with envelope: Envelope {
        /// Time to the first token.
        ttft_ms: opt Number = "ttftMs",
        /// Output tokens a second.
        otps: opt Number,
    }
}

wire! {
    /// A refused command was allowed after all.
    pub struct PermissionRetry ["type" = "system", "subtype" = "permission_retry"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// Which commands.
        commands: opt Json,
    }
}

wire! {
    /// The link to a remote session changed.
    pub struct BridgeStatus ["type" = "system", "subtype" = "bridge_status"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// Its address.
        url: opt String,
    }
}

wire! {
    /// What happened while the person was away.
    pub struct AwaySummary ["type" = "system", "subtype" = "away_summary"] with envelope: Envelope {
        /// The words.
        content: opt String,
    }
}

wire! {
    /// Background agents were stopped.
    pub struct AgentsKilled ["type" = "system", "subtype" = "agents_killed"] with envelope: Envelope {
    }
}

wire! {
    /// A scheduled task came due.
    pub struct ScheduledTaskFire ["type" = "system", "subtype" = "scheduled_task_fire"] with envelope: Envelope {
        /// The words.
        content: opt String,
    }
}

wire! {
    /// Another model took over.
    pub struct ModelFallback ["type" = "system", "subtype" = "model_fallback"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// Why.
        trigger: opt String,
        /// The model that failed.
        original_model: opt String = "originalModel" | "original_model",
        /// The model that took over.
        fallback_model: opt String = "fallbackModel" | "fallback_model",
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
    }
}

wire! {
    /// Another model took over after a refusal.
    pub struct ModelRefusalFallback ["type" = "system", "subtype" = "model_refusal_fallback"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// The model that refused.
        original_model: opt String = "originalModel" | "original_model",
        /// The model that took over.
        fallback_model: opt String = "fallbackModel" | "fallback_model",
    }
}

wire! {
    /// The model refused and no other took over.
    pub struct ModelRefusal ["type" = "system", "subtype" = "model_refusal_no_fallback"] with envelope: Envelope {
        /// The words.
        content: opt String,
        /// How grave.
        level: opt MessageLevel,
        /// The model that refused.
        original_model: opt String = "originalModel" | "original_model",
        /// The call.
        request_id: opt RequestId = "requestId" | "request_id",
        /// The prompt it refused.
        refused_user_message_uuid: opt Uuid = "refusedUserMessageUuid" | "refused_user_message_uuid",
        /// Hidden from the person.
        is_meta: opt bool = "isMeta",
    }
}
