//! `system` lines that only the live stream carries.

use serde_json::Number;

use crate::macros::wire;
use crate::{AgentId, Envelope, Json, ToolUseId};

wire! {
    /// What the program is doing.
    pub struct Status ["type" = "system", "subtype" = "status"] with envelope: Envelope {
        /// `requesting`, `compacting`, or `null` when done.
        status: opt String = "status",
        /// The new permission mode.
        permission_mode: opt String = "permissionMode",
        /// How the compaction ended.
        compact_result: opt String = "compact_result",
        /// Why it failed.
        compact_error: opt String = "compact_error",
    }
}

wire! {
    /// How much the model has thought so far.
    pub struct ThinkingTokens ["type" = "system", "subtype" = "thinking_tokens"] with envelope: Envelope {
        /// Tokens.
        estimated_tokens: opt u64 = "estimated_tokens",
        /// Tokens since the last one.
        estimated_tokens_delta: opt i64 = "estimated_tokens_delta",
    }
}

wire! {
    /// A subagent or background command began.
    pub struct TaskStarted ["type" = "system", "subtype" = "task_started"] with envelope: Envelope {
        /// The task; a subagent's id.
        task_id: opt AgentId = "task_id",
        /// The run.
        run_id: opt String = "run_id",
        /// The call that began it.
        tool_use_id: opt ToolUseId = "tool_use_id",
        /// What it does.
        description: opt String = "description",
        /// Its kind.
        task_type: opt String = "task_type",
        /// Whether the turn goes on without it.
        is_backgrounded: opt bool = "is_backgrounded",
        /// What the subagent was asked.
        prompt: opt String = "prompt",
        /// How deep it is nested.
        spawn_depth: opt u64 = "spawn_depth",
    }
}

wire! {
    /// A task goes on.
    pub struct TaskProgress ["type" = "system", "subtype" = "task_progress"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId = "task_id",
        /// The run.
        run_id: opt String = "run_id",
        /// The call that began it.
        tool_use_id: opt ToolUseId = "tool_use_id",
        /// What it does.
        description: opt String = "description",
        /// What it used.
        usage: opt Json = "usage",
        /// The tool it used last.
        last_tool_name: opt String = "last_tool_name",
    }
}

wire! {
    /// A task changed.
    pub struct TaskUpdated ["type" = "system", "subtype" = "task_updated"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId = "task_id",
        /// The run.
        run_id: opt String = "run_id",
        /// What changed.
        patch: opt Json = "patch",
    }
}

wire! {
    /// A task ended.
    pub struct TaskNotification ["type" = "system", "subtype" = "task_notification"] with envelope: Envelope {
        /// The task.
        task_id: opt AgentId = "task_id",
        /// The run.
        run_id: opt String = "run_id",
        /// The call that began it.
        tool_use_id: opt ToolUseId = "tool_use_id",
        /// How it ended.
        status: opt String = "status",
        /// Where its output is.
        output_file: opt String = "output_file",
        /// What it did.
        summary: opt String = "summary",
        /// What it used.
        usage: opt Json = "usage",
    }
}

wire! {
    /// The list of background tasks changed.
    pub struct BackgroundTasksChanged ["type" = "system", "subtype" = "background_tasks_changed"] with envelope: Envelope {
        /// The tasks.
        tasks: opt Json = "tasks",
    }
}

wire! {
    /// A hook began.
    pub struct HookStarted ["type" = "system", "subtype" = "hook_started"] with envelope: Envelope {
        /// The run.
        hook_id: opt String = "hook_id",
        /// The hook.
        hook_name: opt String = "hook_name",
        /// The event.
        hook_event: opt String = "hook_event",
    }
}

wire! {
    /// A hook prints something.
    pub struct HookProgress ["type" = "system", "subtype" = "hook_progress"] with envelope: Envelope {
        /// The run.
        hook_id: opt String = "hook_id",
        /// The hook.
        hook_name: opt String = "hook_name",
        /// The event.
        hook_event: opt String = "hook_event",
        /// What it printed.
        stdout: opt String = "stdout",
        /// What it complained.
        stderr: opt String = "stderr",
        /// Both.
        output: opt String = "output",
    }
}

wire! {
    /// A hook ended.
    pub struct HookResponse ["type" = "system", "subtype" = "hook_response"] with envelope: Envelope {
        /// The run.
        hook_id: opt String = "hook_id",
        /// The hook.
        hook_name: opt String = "hook_name",
        /// The event.
        hook_event: opt String = "hook_event",
        /// What it said.
        output: opt String = "output",
        /// What it printed.
        stdout: opt String = "stdout",
        /// What it complained.
        stderr: opt String = "stderr",
        /// How it ended.
        exit_code: opt Number = "exit_code",
        /// `success`, `error` …
        outcome: opt String = "outcome",
    }
}

wire! {
    /// A notice for the person.
    pub struct Notification ["type" = "system", "subtype" = "notification"] with envelope: Envelope {
        /// Which notice.
        key: opt String = "key",
        /// The words.
        text: opt String = "text",
        /// How pressing.
        priority: opt String = "priority",
    }
}

wire! {
    /// A tool was refused.
    pub struct PermissionDenied ["type" = "system", "subtype" = "permission_denied"] with envelope: Envelope {
        /// The tool.
        tool_name: opt String = "tool_name",
        /// The call.
        tool_use_id: opt ToolUseId = "tool_use_id",
        /// What the model is told.
        message: opt String = "message",
        /// Why, as a kind.
        decision_reason_type: opt String = "decision_reason_type",
        /// Why, in words.
        decision_reason: opt String = "decision_reason",
    }
}

wire! {
    /// The session is idle, running or waits for the host.
    pub struct SessionStateChanged ["type" = "system", "subtype" = "session_state_changed"] with envelope: Envelope {
        /// Which.
        state: opt String = "state",
        /// Meant for the host, not for the person.
        sdk_host_only: opt bool = "sdk_host_only",
    }
}

wire! {
    /// The session has a new title.
    pub struct SessionTitleChanged ["type" = "system", "subtype" = "session_title_changed"] with envelope: Envelope {
        /// The title.
        title: opt String = "title",
    }
}

wire! {
    /// A control request takes long.
    pub struct ControlRequestProgress ["type" = "system", "subtype" = "control_request_progress"] with envelope: Envelope {
        /// The request.
        request_id: opt String = "request_id",
        /// How it stands.
        status: opt String = "status",
    }
}

wire! {
    /// The slash commands changed.
    pub struct CommandsChanged ["type" = "system", "subtype" = "commands_changed"] with envelope: Envelope {
        /// The commands.
        commands: opt Json = "commands",
    }
}

wire! {
    /// Files were stored.
    pub struct FilesPersisted ["type" = "system", "subtype" = "files_persisted"] with envelope: Envelope {
        /// The files.
        files: opt Json = "files",
        /// Those that were not.
        failed: opt Json = "failed",
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
        error: opt Json = "error",
    }
}

wire! {
    /// A plugin is being installed.
    pub struct PluginInstall ["type" = "system", "subtype" = "plugin_install"] with envelope: Envelope {
        /// The plugin.
        name: opt String = "name",
        /// How it stands.
        status: opt String = "status",
    }
}

wire! {
    /// An MCP server's question was answered.
    pub struct ElicitationComplete ["type" = "system", "subtype" = "elicitation_complete"] with envelope: Envelope {
        /// The server.
        mcp_server_name: opt String = "mcp_server_name",
        /// The question.
        elicitation_id: opt String = "elicitation_id",
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
        event: opt String = "event",
    }
}
