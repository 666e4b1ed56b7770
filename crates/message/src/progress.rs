//! `progress` lines: what a tool or hook did while it ran.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::{AgentId, Envelope, Json, ToolUseId};

wire! {
    /// A `progress` entry: what a tool or hook did while it ran.
    pub struct Progress ["type" = "progress"] with envelope: Envelope {
        /// Data of the tool or hook.
        data: req ProgressData,
        /// Id of the tool call that made progress.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Id of the tool call of the main conversation that it belongs to.
        parent_tool_use_id: opt ToolUseId = "parentToolUseID",
    }
}

/// Progress data: one of the known kinds, or any other kept whole.
///
/// Data without a string `type` is legal: tools choose their own form.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgressData {
    /// Data that names its kind.
    Tagged(ProgressKind),
    /// Data in a tool's own form.
    Untagged(Json),
}

impl Default for ProgressData {
    fn default() -> Self {
        Self::Untagged(Json::default())
    }
}

impl ProgressData {
    /// Reads the data as a tool's own type.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<T> {
        match self {
            Self::Untagged(json) => json.read(),
            Self::Tagged(kind) => Json::from_serialize(kind).read(),
        }
    }
}

impl<'de> Deserialize<'de> for ProgressData {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(d)?;
        let tagged = matches!(crate::text::find_string_field(json.text(), "type"), Ok(Some(_)));
        if tagged { json.read().map(Self::Tagged).map_err(serde::de::Error::custom) } else { Ok(Self::Untagged(json)) }
    }
}

impl Serialize for ProgressData {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tagged(kind) => kind.serialize(s),
            Self::Untagged(json) => json.serialize(s),
        }
    }
}

open_enum! {
    /// Known kinds of progress data.
    pub enum ProgressKind by "type" {
        /// A hook is running.
        "hook_progress" => Hook(HookProgress),
        /// A shell command is running.
        "bash_progress" => Bash(BashProgress),
        /// A message of a running subagent; older files keep its messages here.
        "agent_progress" => Agent(AgentProgress),
        /// An MCP tool is running.
        "mcp_progress" => Mcp(McpProgress),
        /// A web search was started.
        "query_update" => Query(QueryUpdate),
        /// A web search returned results.
        "search_results_received" => SearchResults(SearchResultsReceived),
        /// A background task is being waited for.
        "waiting_for_task" => Waiting(WaitingForTask),
    }
}

wire! {
    /// A hook is running.
    pub struct HookProgress ["type" = "hook_progress"] {
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// The event and what it matched.
        hook_name: opt String = "hookName",
        /// Command of the hook.
        command: opt String,
    }
}

wire! {
    /// A shell command is running.
    pub struct BashProgress ["type" = "bash_progress"] {
        /// Last lines of the output.
        output: opt String,
        /// Whole output so far.
        full_output: opt String = "fullOutput",
        /// Running time so far in seconds.
        elapsed_time_seconds: opt Number = "elapsedTimeSeconds",
        /// Number of lines so far.
        total_lines: opt u64 = "totalLines",
    }
}

wire! {
    /// A message of a running subagent; older files keep its messages here.
    pub struct AgentProgress ["type" = "agent_progress"] {
        /// Entry of the subagent.
        message: opt Json,
        /// The same entry, split for display.
        normalized_messages: opt Json = "normalizedMessages",
        /// Prompt of the subagent.
        prompt: opt String,
        /// Id of the subagent.
        agent_id: opt AgentId = "agentId",
    }
}

wire! {
    /// An MCP tool is running.
    pub struct McpProgress ["type" = "mcp_progress"] {
        /// `started`, `completed`, `failed`.
        status: opt String,
        /// Name of the MCP server.
        server_name: opt String = "serverName",
        /// Name of the tool.
        tool_name: opt String = "toolName",
        /// Running time so far in milliseconds.
        elapsed_time_ms: opt Number = "elapsedTimeMs",
    }
}

wire! {
    /// A web search was started.
    pub struct QueryUpdate ["type" = "query_update"] {
        /// Search query.
        query: opt String,
    }
}

wire! {
    /// A web search returned results.
    pub struct SearchResultsReceived ["type" = "search_results_received"] {
        /// Number of results.
        result_count: opt u64 = "resultCount",
        /// Search query.
        query: opt String,
    }
}

wire! {
    /// A background task is being waited for.
    pub struct WaitingForTask ["type" = "waiting_for_task"] {
        /// Description of the task.
        task_description: opt String = "taskDescription",
        /// Kind of task.
        task_type: opt String = "taskType",
    }
}
