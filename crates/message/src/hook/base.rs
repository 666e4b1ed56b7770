//! Types that several events share.

use crate::macros::{embedded_fields, wire};
use crate::values::{Effort, PermissionMode, TaskState};
use crate::{AgentId, Json, SessionId, ToolName, ToolUseId};

embedded_fields! {
    /// Input fields that all hook events share.
    pub struct HookInputBase {
        /// Id of the session.
        session_id: SessionId,
        /// Path of the session's file.
        transcript_path: String,
        /// Working directory.
        cwd: String,
        /// Id of the current prompt; absent before the first.
        prompt_id: String,
        /// Permission mode of the session.
        permission_mode: PermissionMode,
        /// Effort of the model, if the model supports it.
        effort: HookEffort,
        /// Id of the subagent; absent in the main conversation.
        agent_id: AgentId,
        /// Type of the agent.
        agent_type: String,
    }
}

wire! {
    /// Effort of the model.
    pub struct HookEffort {
        /// Effort level.
        level: opt Effort,
    }
}

wire! {
    /// The MCP server of a tool.
    pub struct HookMcpServer {
        /// Name of the server.
        name: opt String,
        /// Where the server is configured: `sdk`, `user`, `project`, `plugin` …
        source: opt String,
    }
}

wire! {
    /// One tool call of an answer.
    pub struct HookToolCall {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Input from the model, before any hook changed it.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// Result of the tool.
        tool_response: opt Json,
    }
}

wire! {
    /// A background task that runs when a turn ends.
    pub struct HookBackgroundTask {
        /// Id of the task.
        id: opt String,
        /// Kind of task: `shell`, `subagent`, `monitor`, `workflow` …
        kind: opt String = "type",
        /// Status of the task.
        status: opt TaskState,
        /// Description of the task.
        description: opt String,
        /// Command of a shell task.
        command: opt String,
        /// Type of a subagent.
        agent_type: opt String,
        /// Name of the MCP server of the task.
        server: opt String,
        /// Name of the MCP tool of the task.
        tool: opt String,
        /// Name of a workflow.
        name: opt String,
    }
}

wire! {
    /// A scheduled prompt of the session.
    pub struct SessionCron {
        /// Id of the schedule.
        id: opt String,
        /// Time, as a cron expression.
        schedule: opt String,
        /// Whether it repeats.
        recurring: opt bool,
        /// The prompt that is submitted.
        prompt: opt String,
    }
}
