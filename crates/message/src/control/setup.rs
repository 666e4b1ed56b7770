//! What a host sets an agent up with: hooks, subagents, MCP servers.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::Json;
use crate::macros::{open_enum, wire};
use crate::values::PermissionMode;

wire! {
    /// Hooks of the host for one event, by the names it will be called by.
    pub struct HookMatcher {
        /// Which tools or sources they are for; `null` means all.
        matcher: opt String,
        /// The names.
        hook_callback_ids: req Vec<String> = "hookCallbackIds",
        /// Seconds the agent waits for an answer.
        timeout: opt Number,
        /// What a hook that fails does: `block` or `continue`.
        on_failure: opt String = "onFailure",
    }
}

wire! {
    /// A subagent.
    pub struct AgentDefinition {
        /// When to use it.
        description: req String,
        /// Its system prompt.
        prompt: req String,
        /// Its tools; absent means all.
        tools: opt Vec<String>,
        /// Tools it must not use.
        disallowed_tools: opt Vec<String> = "disallowedTools",
        /// Its model; absent means the session's.
        model: opt String,
        /// Skills it begins with.
        skills: opt Vec<String>,
        /// Where it keeps what it learns: `user`, `project` or `local`.
        memory: opt String,
        /// Its MCP servers: names, or configurations by name.
        mcp_servers: opt Json = "mcpServers",
        /// What it is asked first.
        initial_prompt: opt String = "initialPrompt",
        /// How many turns it may take.
        max_turns: opt u64 = "maxTurns",
        /// Whether it always runs in the background.
        background: opt bool,
        /// How hard it thinks.
        effort: opt Json,
        /// Its permission mode.
        permission_mode: opt PermissionMode = "permissionMode",
    }
}

open_enum! {
    /// How an MCP server is reached.
    pub enum McpServerConfig by "type" {
        /// A program, over its stdin and stdout.
        "stdio" => Stdio(McpStdio),
        /// An address that streams events.
        "sse" => Sse(McpSse),
        /// An address.
        "http" => Http(McpHttp),
        /// The host has it.
        "sdk" => Sdk(McpSdk),
    }
}

wire! {
    /// An MCP server that is a program.
    pub struct McpStdio ["type" = "stdio"] {
        /// The program.
        command: req String,
        /// What it is started with.
        args: opt Vec<String>,
        /// What it finds in its environment.
        env: opt BTreeMap<String, String>,
    }
}

wire! {
    /// An MCP server at an address that streams events.
    pub struct McpSse ["type" = "sse"] {
        /// The address.
        url: req String,
        /// What to send with each request.
        headers: opt BTreeMap<String, String>,
    }
}

wire! {
    /// An MCP server at an address.
    pub struct McpHttp ["type" = "http"] {
        /// The address.
        url: req String,
        /// What to send with each request.
        headers: opt BTreeMap<String, String>,
    }
}

wire! {
    /// An MCP server inside the host.
    pub struct McpSdk ["type" = "sdk"] {
        /// Its name.
        name: req String,
    }
}

wire! {
    /// MCP servers by name, as `--mcp-config` and `.mcp.json` have them. Each is a
    /// [`McpServerConfig`], read by itself so that a mistake in one costs that one.
    pub struct McpConfig {
        /// The servers.
        servers: req BTreeMap<String, Json> = "mcpServers",
    }
}

impl McpServerConfig {
    /// Reads how a server is reached; without a type it is a program or an address.
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
