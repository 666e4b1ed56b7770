//! `system` lines that only the live stream carries.

use serde_json::Number;

use crate::hook::HookOutcome;
use crate::macros::wire;
use crate::values::{
    ActivityStatus, CompactResult, DecisionReasonType, PermissionMode, SessionActivity, TaskState, TaskType,
};
use crate::{AgentId, Envelope, Json, ToolUseId};

wire! {
    /// What the program is doing.
    pub struct Status ["type" = "system", "subtype" = "status"] with envelope: Envelope {
        /// `requesting`, `compacting`, or `null` when done.
        status: opt ActivityStatus,
        /// The new permission mode.
        permission_mode: opt PermissionMode = "permissionMode",
        /// How the compaction ended.
        compact_result: opt CompactResult,
        /// Why it failed.
        compact_error: opt String,
    }
}

wire! {
    /// How much the model has thought so far.
    pub struct ThinkingTokens ["type" = "system", "subtype" = "thinking_tokens"] with envelope: Envelope {
        /// Tokens.
        estimated_tokens: opt u64,
        /// Tokens since the last one.
        estimated_tokens_delta: opt i64,
    }
}

wire! {
    /// A subagent or background command began.
    pub struct TaskStarted ["type" = "system", "subtype" = "task_started"] with envelope: Envelope {
        /// The task; a subagent's id.
        task_id: opt AgentId,
        /// The run.
        run_id: opt String,
        /// The call that began it.
        tool_use_id: opt ToolUseId,
        /// What it does.
        description: opt String,
        /// Its kind.
        task_type: opt TaskType,
        /// Whether the turn goes on without it.
        is_backgrounded: opt bool,
        /// What the subagent was asked.
        prompt: opt String,
        /// How deep it is nested.
        spawn_depth: opt u64,
    }
}

wire! {
    /// A task goes on.
    pub struct TaskProgress ["type" = "system", "subtype" = "task_progress"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId,
        /// The run.
        run_id: opt String,
        /// The call that began it.
        tool_use_id: opt ToolUseId,
        /// What it does.
        description: opt String,
        /// What it used.
        usage: opt Json,
        /// The tool it used last.
        last_tool_name: opt String,
    }
}

wire! {
    /// A task changed.
    pub struct TaskUpdated ["type" = "system", "subtype" = "task_updated"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId,
        /// The run.
        run_id: opt String,
        /// What changed.
        patch: opt Json,
    }
}

wire! {
    /// A task ended.
    pub struct TaskNotification ["type" = "system", "subtype" = "task_notification"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId,
        /// The run.
        run_id: opt String,
        /// The call that began it.
        tool_use_id: opt ToolUseId,
        /// How it ended.
        status: opt TaskState,
        /// Where its output is.
        output_file: opt String,
        /// What it did.
        summary: opt String,
        /// What it used.
        usage: opt Json,
    }
}

wire! {
    /// The list of background tasks changed.
    pub struct BackgroundTasksChanged ["type" = "system", "subtype" = "background_tasks_changed"] with envelope: Envelope {
        /// The tasks.
        tasks: opt Json,
    }
}

wire! {
    /// A hook began.
    pub struct HookStarted ["type" = "system", "subtype" = "hook_started"] with envelope: Envelope {
        /// The run.
        hook_id: opt String,
        /// The hook.
        hook_name: opt String,
        /// The event.
        hook_event: opt String,
    }
}

wire! {
    /// A hook prints something.
    pub struct SystemHookProgress ["type" = "system", "subtype" = "hook_progress"] with envelope: Envelope {
        /// The run.
        hook_id: opt String,
        /// The hook.
        hook_name: opt String,
        /// The event.
        hook_event: opt String,
        /// What it printed.
        stdout: opt String,
        /// What it complained.
        stderr: opt String,
        /// Both.
        output: opt String,
    }
}

wire! {
    /// A hook ended.
    pub struct HookResponse ["type" = "system", "subtype" = "hook_response"] with envelope: Envelope {
        /// The run.
        hook_id: opt String,
        /// The hook.
        hook_name: opt String,
        /// The event.
        hook_event: opt String,
        /// What it said.
        output: opt String,
        /// What it printed.
        stdout: opt String,
        /// What it complained.
        stderr: opt String,
        /// How it ended.
        exit_code: opt Number,
        /// `success`, `error` …
        outcome: opt HookOutcome,
    }
}

wire! {
    /// A notice for the person.
    pub struct SystemNotification ["type" = "system", "subtype" = "notification"] with envelope: Envelope {
        /// Which notice.
        key: opt String,
        /// The words.
        text: opt String,
        /// How pressing.
        priority: opt String,
    }
}

wire! {
    /// A tool was refused.
    pub struct SystemPermissionDenied ["type" = "system", "subtype" = "permission_denied"] with envelope: Envelope {
        /// The tool.
        tool_name: opt String,
        /// The call.
        tool_use_id: opt ToolUseId,
        /// What the model is told.
        message: opt String,
        /// Why, as a kind.
        decision_reason_type: opt DecisionReasonType,
        /// Why, in words.
        decision_reason: opt String,
    }
}

wire! {
    /// The session is idle, running or waits for the host.
    pub struct SessionStateChanged ["type" = "system", "subtype" = "session_state_changed"] with envelope: Envelope {
        /// Which.
        state: opt SessionActivity,
        /// Meant for the host, not for the person.
        sdk_host_only: opt bool,
    }
}

wire! {
    /// The session has a new title.
    pub struct SessionTitleChanged ["type" = "system", "subtype" = "session_title_changed"] with envelope: Envelope {
        /// The title.
        title: opt String,
    }
}

wire! {
    /// A control request takes long.
    pub struct ControlRequestProgress ["type" = "system", "subtype" = "control_request_progress"] with envelope: Envelope {
        /// The request.
        request_id: opt String,
        /// How it stands.
        status: opt String,
    }
}

wire! {
    /// The slash commands changed.
    pub struct CommandsChanged ["type" = "system", "subtype" = "commands_changed"] with envelope: Envelope {
        /// The commands.
        commands: opt Json,
    }
}

wire! {
    /// Files were stored.
    pub struct FilesPersisted ["type" = "system", "subtype" = "files_persisted"] with envelope: Envelope {
        /// The files.
        files: opt Json,
        /// Those that were not.
        failed: opt Json,
    }
}

wire! {
    /// Something was found in memory.
    pub struct MemoryRecall ["type" = "system", "subtype" = "memory_recall"] with envelope: Envelope {
    }
}

wire! {
    /// The host's copy of the transcript failed.
    pub struct MirrorError ["type" = "system", "subtype" = "mirror_error"] with envelope: Envelope {
        /// Why.
        error: opt Json,
    }
}

wire! {
    /// A plugin is being installed.
    pub struct PluginInstall ["type" = "system", "subtype" = "plugin_install"] with envelope: Envelope {
        /// The plugin.
        name: opt String,
        /// How it stands.
        status: opt String,
    }
}

wire! {
    /// An MCP server's question was answered.
    pub struct ElicitationComplete ["type" = "system", "subtype" = "elicitation_complete"] with envelope: Envelope {
        /// The server.
        mcp_server_name: opt String,
        /// The question.
        elicitation_id: opt String,
    }
}

wire! {
    /// The program is about to end.
    pub struct WorkerShuttingDown ["type" = "system", "subtype" = "worker_shutting_down"] with envelope: Envelope {
    }
}

wire! {
    /// Lines could not be written to the session file.
    pub struct SessionWritesLost ["type" = "system", "subtype" = "session_writes_lost"] with envelope: Envelope {
    }
}

wire! {
    /// Says that the host should draw its interface again.
    pub struct UiInvalidate ["type" = "system", "subtype" = "ui_invalidate"] with envelope: Envelope {
        /// What to draw, for example `ui.render`.
        event: opt String,
    }
}
