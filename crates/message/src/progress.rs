//! `progress` lines: what a tool or hook did while it ran.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::{AgentId, Envelope, Json, ToolUseId};

wire! {
    /// A `progress` line; `data` is the tool's own.
    pub struct Progress ["type" = "progress"] with envelope: Envelope {
        /// What happened.
        data: req ProgressData,
        /// The call that made progress.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// The call of the person's tree that it belongs to.
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
    /// The kinds of progress seen.
    pub enum ProgressKind by "type" {
        /// A hook runs.
        "hook_progress" => Hook(HookProgress),
        /// A shell command runs.
        "bash_progress" => Bash(BashProgress),
        /// A subagent says something.
        "agent_progress" => Agent(AgentProgress),
        /// An MCP tool runs.
        "mcp_progress" => Mcp(McpProgress),
        /// A web search was asked.
        "query_update" => Query(QueryUpdate),
        /// A web search answered.
        "search_results_received" => SearchResults(SearchResultsReceived),
        /// A background task is awaited.
        "waiting_for_task" => Waiting(WaitingForTask),
    }
}

wire! {
    /// A hook runs.
    pub struct HookProgress ["type" = "hook_progress"] {
        /// The event it listens to.
        hook_event: opt String = "hookEvent",
        /// The event and what it matched.
        hook_name: opt String = "hookName",
        /// The command.
        command: opt String,
    }
}

wire! {
    /// A shell command runs.
    pub struct BashProgress ["type" = "bash_progress"] {
        /// The newest output.
        output: opt String,
        /// All output so far.
        full_output: opt String = "fullOutput",
        /// How long it has run.
        elapsed_time_seconds: opt Number = "elapsedTimeSeconds",
        /// How many lines so far.
        total_lines: opt u64 = "totalLines",
    }
}

wire! {
    /// A subagent says something; older files keep its messages here.
    pub struct AgentProgress ["type" = "agent_progress"] {
        /// A whole line of the subagent.
        message: opt Json,
        /// The same, split for the screen.
        normalized_messages: opt Json = "normalizedMessages",
        /// What the subagent was asked.
        prompt: opt String,
        /// The subagent.
        agent_id: opt AgentId = "agentId",
    }
}

wire! {
    /// An MCP tool runs.
    pub struct McpProgress ["type" = "mcp_progress"] {
        /// `started`, `completed`, `failed`.
        status: opt String,
        /// The server.
        server_name: opt String = "serverName",
        /// The tool.
        tool_name: opt String = "toolName",
        /// How long it has run.
        elapsed_time_ms: opt Number = "elapsedTimeMs",
    }
}

wire! {
    /// A web search was asked.
    pub struct QueryUpdate ["type" = "query_update"] {
        /// The query.
        query: opt String,
    }
}

wire! {
    /// A web search answered.
    pub struct SearchResultsReceived ["type" = "search_results_received"] {
        /// How many results.
        result_count: opt u64 = "resultCount",
        /// The query.
        query: opt String,
    }
}

wire! {
    /// A background task is awaited.
    pub struct WaitingForTask ["type" = "waiting_for_task"] {
        /// The task.
        task_description: opt String = "taskDescription",
        /// Its kind.
        task_type: opt String = "taskType",
    }
}
