//! What a host configures: hooks, subagents, MCP servers.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::Json;
use crate::macros::{open_enum, wire};
use crate::values::{HookFailurePolicy, MemoryScope, PermissionMode};

wire! {
    /// Hooks of the host for one event, by their callback ids.
    pub struct HookMatcher {
        /// Tools or sources that the hooks are limited to; `null` means all.
        matcher: opt String,
        /// Ids with which the agent calls the hooks.
        hook_callback_ids: req Vec<String> = "hookCallbackIds",
        /// Seconds that the agent waits for the response.
        timeout: opt Number,
        /// What the agent does if a hook fails; it continues if absent.
        on_failure: opt HookFailurePolicy = "onFailure",
    }
}

wire! {
    /// Definition of a subagent.
    pub struct AgentDefinition {
        /// When the model should use the subagent.
        description: req String,
        /// System prompt of the subagent.
        prompt: req String,
        /// Names of its tools; absent means all.
        tools: opt Vec<String>,
        /// Names of tools that it may not use.
        disallowed_tools: opt Vec<String> = "disallowedTools",
        /// Model of the subagent; absent means the session's.
        model: opt String,
        /// Names of skills that are loaded at its start.
        skills: opt Vec<String>,
        /// Where it stores its memory; it has none if absent.
        memory: opt MemoryScope,
        /// MCP servers of the subagent: names, or configurations by name.
        mcp_servers: opt Json = "mcpServers",
        /// First prompt of a session that runs as this agent.
        initial_prompt: opt String = "initialPrompt",
        /// Maximum number of its turns.
        max_turns: opt u64 = "maxTurns",
        /// Whether it always runs in the background.
        background: opt bool,
        /// Effort of its model: a level or a number.
        effort: opt Json,
        /// Permission mode of the subagent.
        permission_mode: opt PermissionMode = "permissionMode",
    }
}

open_enum! {
    /// Configuration of an MCP server, by transport.
    pub enum McpServerConfig by "type" {
        /// A program, through its stdin and stdout.
        "stdio" => Stdio(McpStdio),
        /// A URL, with the SSE transport.
        "sse" => Sse(McpSse),
        /// A URL, with the streamable HTTP transport.
        "http" => Http(McpHttp),
        /// A server inside the host.
        "sdk" => Sdk(McpSdk),
    }
}

wire! {
    /// Configuration of an MCP server that is a program.
    pub struct McpStdio ["type" = "stdio"] {
        /// Path or name of the program.
        command: req String,
        /// Arguments of the program.
        args: opt Vec<String>,
        /// Additional environment variables of the program.
        env: opt BTreeMap<String, String>,
    }
}

wire! {
    /// Configuration of an MCP server with the SSE transport.
    pub struct McpSse ["type" = "sse"] {
        /// URL of the server.
        url: req String,
        /// Additional headers of each request.
        headers: opt BTreeMap<String, String>,
    }
}

wire! {
    /// Configuration of an MCP server with the HTTP transport.
    pub struct McpHttp ["type" = "http"] {
        /// URL of the server.
        url: req String,
        /// Additional headers of each request.
        headers: opt BTreeMap<String, String>,
    }
}

wire! {
    /// Configuration of an MCP server inside the host.
    pub struct McpSdk ["type" = "sdk"] {
        /// Name of the server.
        name: req String,
    }
}

wire! {
    /// MCP servers by name, as in `--mcp-config` and `.mcp.json`. Each is a [`McpServerConfig`] and is parsed
    /// separately, so that one invalid server does not affect the others.
    pub struct McpConfig {
        /// The servers by name.
        servers: req BTreeMap<String, Json> = "mcpServers",
    }
}

impl McpServerConfig {
    /// Reads the configuration of a server. Without a type, it is HTTP if it has a `url` and a program
    /// otherwise.
    pub fn from_json(json: &Json) -> serde_json::Result<Self> {
        match json.read()? {
            Self::Unknown(typeless) if typeless.tag().is_empty() => {
                match crate::text::find_string_field(json.text(), "url")? {
                    Some(_) => json.read().map(Self::Http),
                    None => json.read().map(Self::Stdio),
                }
            }
            typed => Ok(typed),
        }
    }
}
