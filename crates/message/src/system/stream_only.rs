//! `system` lines that only the live stream carries.

use serde_json::Number;

use crate::hook::HookRunOutcome;
use crate::macros::wire;
use crate::values::{
    ActivityStatus, CompactResult, DecisionReasonType, PermissionMode, SessionActivity, TaskState, TaskType,
};
use crate::{AgentId, Envelope, Json, ToolName, ToolUseId};

wire! {
    /// The agent's current step, or a change of the permission mode.
    pub struct Status ["type" = "system", "subtype" = "status"] with envelope: Envelope {
        /// Current step; `null` when it is done.
        status: opt ActivityStatus,
        /// New permission mode.
        permission_mode: opt PermissionMode = "permissionMode",
        /// How the compaction ended.
        compact_result: opt CompactResult,
        /// Error message, if the compaction failed.
        compact_error: opt String,
    }
}

wire! {
    /// Thinking tokens of the running response so far.
    pub struct ThinkingTokens ["type" = "system", "subtype" = "thinking_tokens"] with envelope: Envelope {
        /// Estimated number of tokens.
        estimated_tokens: opt u64,
        /// Change since the previous entry.
        estimated_tokens_delta: opt i64,
    }
}

wire! {
    /// A subagent or background command started.
    pub struct TaskStarted ["type" = "system", "subtype" = "task_started"] with envelope: Envelope {
        /// Id of the task; for a subagent its agent id.
        task_id: opt AgentId,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Id of the tool call that started the task.
        tool_use_id: opt ToolUseId,
        /// Task in a few words.
        description: opt String,
        /// Kind of task.
        task_type: opt TaskType,
        /// Whether the turn continues without waiting for the task.
        is_backgrounded: opt bool,
        /// Prompt of the subagent.
        prompt: opt String,
        /// Nesting depth: 1 for a subagent of the main agent.
        spawn_depth: opt u64,
    }
}

wire! {
    /// Progress of a running task.
    pub struct TaskProgress ["type" = "system", "subtype" = "task_progress"] with envelope: Envelope {
        /// Id of the task.
        task_id: opt AgentId,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Id of the tool call that started the task.
        tool_use_id: opt ToolUseId,
        /// Current step of the task.
        description: opt String,
        /// Usage so far; a [`TaskUsage`](crate::tool::TaskUsage).
        usage: opt Json,
        /// Name of the tool the task called last.
        last_tool_name: opt ToolName,
    }
}

wire! {
    /// The state of a task changed.
    pub struct TaskUpdated ["type" = "system", "subtype" = "task_updated"] with envelope: Envelope {
        /// Id of the task.
        task_id: opt AgentId,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Changed fields; a [`TaskPatch`](crate::tool::TaskPatch).
        patch: opt Json,
    }
}

wire! {
    /// A task ended.
    pub struct TaskNotification ["type" = "system", "subtype" = "task_notification"] with envelope: Envelope {
        /// Id of the task.
        task_id: opt AgentId,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Id of the tool call that started the task.
        tool_use_id: opt ToolUseId,
        /// How the task ended.
        status: opt TaskState,
        /// Path of the file with the task's output.
        output_file: opt String,
        /// Result of the task in one sentence.
        summary: opt String,
        /// Usage of the task; a [`TaskUsage`](crate::tool::TaskUsage).
        usage: opt Json,
    }
}

wire! {
    /// The list of background tasks changed.
    pub struct BackgroundTasksChanged ["type" = "system", "subtype" = "background_tasks_changed"] with envelope: Envelope {
        /// All background tasks; each a [`BackgroundTask`](crate::tool::BackgroundTask).
        tasks: opt Json,
    }
}

wire! {
    /// A hook started.
    pub struct HookStarted ["type" = "system", "subtype" = "hook_started"] with envelope: Envelope {
        /// Id of this run of the hook.
        hook_id: opt String,
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String,
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String,
    }
}

wire! {
    /// Output of a running hook.
    pub struct SystemHookProgress ["type" = "system", "subtype" = "hook_progress"] with envelope: Envelope {
        /// Id of this run of the hook.
        hook_id: opt String,
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String,
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String,
        /// Standard output of the hook.
        stdout: opt String,
        /// Standard error of the hook.
        stderr: opt String,
        /// Standard output and standard error together.
        output: opt String,
    }
}

wire! {
    /// A hook ended.
    pub struct HookResponse ["type" = "system", "subtype" = "hook_response"] with envelope: Envelope {
        /// Id of this run of the hook.
        hook_id: opt String,
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String,
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String,
        /// Standard output and standard error together.
        output: opt String,
        /// Standard output of the hook.
        stdout: opt String,
        /// Standard error of the hook.
        stderr: opt String,
        /// Exit code of the process.
        exit_code: opt Number,
        /// How the hook ended.
        outcome: opt HookRunOutcome,
    }
}

wire! {
    /// A notification for the user.
    pub struct SystemNotification ["type" = "system", "subtype" = "notification"] with envelope: Envelope {
        /// Identifies the kind of notification, for example `stop-hook-error`.
        key: opt String,
        /// Text of the notification.
        text: opt String,
        /// How urgent it is, for example `immediate`.
        priority: opt String,
    }
}

wire! {
    /// A tool call was denied without asking.
    pub struct SystemPermissionDenied ["type" = "system", "subtype" = "permission_denied"] with envelope: Envelope {
        /// Name of the tool.
        tool_name: opt ToolName,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Error text that the model is given.
        message: opt String,
        /// Kind of reason.
        decision_reason_type: opt DecisionReasonType,
        /// Reason for the user.
        decision_reason: opt String,
    }
}

wire! {
    /// The session became idle, running or waits for the host.
    pub struct SessionStateChanged ["type" = "system", "subtype" = "session_state_changed"] with envelope: Envelope {
        /// New state of the session.
        state: opt SessionActivity,
        /// Whether the entry is for the host, not the user.
        sdk_host_only: opt bool,
    }
}

wire! {
    /// The session has a new title.
    pub struct SessionTitleChanged ["type" = "system", "subtype" = "session_title_changed"] with envelope: Envelope {
        /// The new title.
        title: opt String,
    }
}

wire! {
    /// A control request is still being handled.
    pub struct ControlRequestProgress ["type" = "system", "subtype" = "control_request_progress"] with envelope: Envelope {
        /// Id of the control request.
        request_id: opt String,
        /// Current step, for example `started`.
        status: opt String,
    }
}

wire! {
    /// The list of slash commands changed.
    pub struct CommandsChanged ["type" = "system", "subtype" = "commands_changed"] with envelope: Envelope {
        /// All slash commands.
        commands: opt Json,
    }
}

wire! {
    /// Files were uploaded.
    pub struct FilesPersisted ["type" = "system", "subtype" = "files_persisted"] with envelope: Envelope {
        /// Files that were uploaded.
        files: opt Json,
        /// Files that could not be uploaded.
        failed: opt Json,
    }
}

wire! {
    /// Something was read from memory.
    pub struct MemoryRecall ["type" = "system", "subtype" = "memory_recall"] with envelope: Envelope {
    }
}

wire! {
    /// The host could not store mirrored entries.
    pub struct MirrorError ["type" = "system", "subtype" = "mirror_error"] with envelope: Envelope {
        /// Error message of the host.
        error: opt Json,
    }
}

wire! {
    /// Progress of a plugin installation.
    pub struct PluginInstall ["type" = "system", "subtype" = "plugin_install"] with envelope: Envelope {
        /// Name of the plugin.
        name: opt String,
        /// Current step of the installation.
        status: opt String,
    }
}

wire! {
    /// The user answered a question of an MCP server.
    pub struct ElicitationComplete ["type" = "system", "subtype" = "elicitation_complete"] with envelope: Envelope {
        /// Name of the MCP server.
        mcp_server_name: opt String,
        /// Id of the question.
        elicitation_id: opt String,
    }
}

wire! {
    /// The agent is about to exit.
    pub struct WorkerShuttingDown ["type" = "system", "subtype" = "worker_shutting_down"] with envelope: Envelope {
    }
}

wire! {
    /// Entries could not be written to the session file.
    pub struct SessionWritesLost ["type" = "system", "subtype" = "session_writes_lost"] with envelope: Envelope {
    }
}

wire! {
    /// The host should redraw its interface.
    pub struct UiInvalidate ["type" = "system", "subtype" = "ui_invalidate"] with envelope: Envelope {
        /// What to redraw, for example `ui.render`.
        event: opt String,
    }
}
