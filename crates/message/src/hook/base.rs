//! What the events share.

use crate::macros::{part, wire};
use crate::{AgentId, Json, SessionId, ToolUseId};

part! {
    /// What hooks of every event are told.
    pub struct HookBase {
        /// The session.
        session_id: SessionId = "session_id",
        /// The session's file.
        transcript_path: String = "transcript_path",
        /// The working directory.
        cwd: String = "cwd",
        /// The prompt under way; none before the first.
        prompt_id: String = "prompt_id",
        /// The permission mode.
        permission_mode: String = "permission_mode",
        /// How hard the model thinks, where it can be told to.
        effort: Effort = "effort",
        /// The subagent; none in the main conversation.
        agent_id: AgentId = "agent_id",
        /// Which kind of agent.
        agent_type: String = "agent_type",
    }
}

wire! {
    /// How hard the model thinks.
    pub struct Effort {
        /// `low`, `medium`, `high` …
        level: opt String = "level",
    }
}

wire! {
    /// The MCP server a tool belongs to.
    pub struct McpOrigin {
        /// The server.
        name: opt String = "name",
        /// Who configured it: `sdk`, `user`, `project`, `plugin` …
        source: opt String = "source",
    }
}

wire! {
    /// One call of an answer, as a hook sees it.
    pub struct HookCall {
        /// The tool.
        tool_name: req String = "tool_name",
        /// What the model called it with.
        tool_input: req Json = "tool_input",
        /// The call.
        tool_use_id: req ToolUseId = "tool_use_id",
        /// What the model is told.
        tool_response: opt Json = "tool_response",
    }
}

wire! {
    /// Work that goes on when a turn ends.
    pub struct BackgroundTask {
        /// The task.
        id: opt String = "id",
        /// `shell`, `subagent`, `monitor`, `workflow` …
        kind: opt String = "type",
        /// How it stands.
        status: opt String = "status",
        /// What it does.
        description: opt String = "description",
        /// A shell's command.
        command: opt String = "command",
        /// A subagent's kind.
        agent_type: opt String = "agent_type",
        /// The MCP server that works.
        server: opt String = "server",
        /// Its tool.
        tool: opt String = "tool",
        /// A workflow's name.
        name: opt String = "name",
    }
}

wire! {
    /// A time at which the session wakes up again.
    pub struct SessionCron {
        /// The entry.
        id: opt String = "id",
        /// When, as a cron expression.
        schedule: opt String = "schedule",
        /// Whether it comes again and again.
        recurring: opt bool = "recurring",
        /// What is asked then.
        prompt: opt String = "prompt",
    }
}
