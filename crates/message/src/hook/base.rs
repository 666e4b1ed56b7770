//! What the events share.

use crate::macros::{embedded_fields, wire};
use crate::values::{Effort, PermissionMode, TaskState};
use crate::{AgentId, Json, SessionId, ToolUseId};

embedded_fields! {
    /// Input fields that all hook events share.
    pub struct HookInputBase {
        /// Session the entry belongs to.
        session_id: SessionId,
        /// The session's file.
        transcript_path: String,
        /// The working directory.
        cwd: String,
        /// The prompt under way; none before the first.
        prompt_id: String,
        /// The permission mode.
        permission_mode: PermissionMode,
        /// How hard the model thinks, where it can be told to.
        effort: HookEffort,
        /// The subagent; none in the main conversation.
        agent_id: AgentId,
        /// Which kind of agent.
        agent_type: String,
    }
}

wire! {
    /// How hard the model thinks.
    pub struct HookEffort {
        /// Severity.
        level: opt Effort,
    }
}

wire! {
    /// The MCP server a tool belongs to.
    pub struct HookMcpServer {
        /// The server.
        name: opt String,
        /// Who configured it: `sdk`, `user`, `project`, `plugin` …
        source: opt String,
    }
}

wire! {
    /// One call of an answer, as a hook sees it.
    pub struct HookToolCall {
        /// Name of the tool.
        tool_name: req String,
        /// What the model called it with.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// Text that the model is given.
        tool_response: opt Json,
    }
}

wire! {
    /// Work that goes on when a turn ends.
    pub struct HookBackgroundTask {
        /// The task.
        id: opt String,
        /// `shell`, `subagent`, `monitor`, `workflow` …
        kind: opt String = "type",
        /// How it stands.
        status: opt TaskState,
        /// What it does.
        description: opt String,
        /// A shell's command.
        command: opt String,
        /// A subagent's kind.
        agent_type: opt String,
        /// The MCP server that works.
        server: opt String,
        /// Its tool.
        tool: opt String,
        /// A workflow's name.
        name: opt String,
    }
}

wire! {
    /// A time at which the session wakes up again.
    pub struct SessionCron {
        /// The entry.
        id: opt String,
        /// When, as a cron expression.
        schedule: opt String,
        /// Whether it comes again and again.
        recurring: opt bool,
        /// What is asked then.
        prompt: opt String,
    }
}
