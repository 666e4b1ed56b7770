//! Control requests of both sides.

use serde_json::Number;

use super::PermissionUpdate;
use crate::macros::{open_enum, wire};
use crate::values::{DecisionReasonType, PermissionMode, SettingsLocation, ThinkingDisplay};
use crate::{AgentId, Json, ToolName, ToolUseId, Uuid};

open_enum! {
    /// A control request, by `subtype`. Either side may send one.
    pub enum RequestBody by "subtype" {
        /// Asks whether a tool call may run. Agent to host.
        "can_use_tool" => CanUseTool(CanUseTool),
        /// Runs a hook of the host. Agent to host.
        "hook_callback" => HookCallback(HookCallback),
        /// Sends a message to an MCP server inside the host. Agent to host.
        "mcp_message" => McpMessage(McpMessage),
        /// Requests input from the user for an MCP server. Agent to host.
        "elicitation" => Elicitation(ElicitationRequest),
        /// Requests a dialog with the user. Agent to host.
        "request_user_dialog" => RequestUserDialog(RequestUserDialog),
        /// Starts the session. Host to agent.
        "initialize" => Initialize(Initialize),
        /// Interrupts the running turn. Host to agent.
        "interrupt" => Interrupt(Interrupt),
        /// Changes the permission mode. Host to agent.
        "set_permission_mode" => SetPermissionMode(SetPermissionMode),
        /// Changes the model. Host to agent.
        "set_model" => SetModel(SetModel),
        /// Sets the limit on thinking tokens. Host to agent.
        "set_max_thinking_tokens" => SetMaxThinkingTokens(SetMaxThinkingTokens),
        /// Returns the status of the MCP servers. Host to agent.
        "mcp_status" => McpStatus(McpStatus),
        /// Replaces the MCP servers. Host to agent.
        "mcp_set_servers" => McpSetServers(McpSetServers),
        /// Connects to an MCP server again. Host to agent.
        "mcp_reconnect" => McpReconnect(McpReconnect),
        /// Turns an MCP server on or off. Host to agent.
        "mcp_toggle" => McpToggle(McpToggle),
        /// Calls a tool of an MCP server. Host to agent.
        "mcp_call" => McpCall(McpCall),
        /// Reads a resource of an MCP server. Host to agent.
        "mcp_read_resource" => McpReadResource(McpReadResource),
        /// Restores files to their state before a prompt. Host to agent.
        "rewind_files" => RewindFiles(RewindFiles),
        /// Returns the token counts of the context. Host to agent.
        "get_context_usage" => GetContextUsage(GetContextUsage),
        /// Returns usage and cost of the session. Host to agent.
        "get_usage" => GetUsage(GetUsage),
        /// Returns the cost of the session as text. Host to agent.
        "get_session_cost" => GetSessionCost(GetSessionCost),
        /// Returns the available models. Host to agent.
        "list_models" => ListModels(ListModels),
        /// Returns the settings and their sources. Host to agent.
        "get_settings" => GetSettings(GetSettings),
        /// Returns the configured hooks and the hook events. Host to agent.
        "get_hooks_listing" => GetHooksListing(GetHooksListing),
        /// Returns the permission rules. Host to agent.
        "list_permission_rules" => ListPermissionRules(ListPermissionRules),
        /// Returns the version of the agent. Host to agent.
        "get_binary_version" => GetBinaryVersion(GetBinaryVersion),
        /// Returns the content of a file. Host to agent.
        "read_file" => ReadFile(ReadFile),
        /// Returns files that match a query. Host to agent.
        "file_suggestions" => FileSuggestions(FileSuggestions),
        /// Marks a file as read by the model. Host to agent.
        "seed_read_state" => SeedReadState(SeedReadState),
        /// Sets the title of the session. Host to agent.
        "rename_session" => RenameSession(RenameSession),
        /// Stops a background task. Host to agent.
        "stop_task" => StopTask(StopTask),
        /// Moves running tool calls to the background. Host to agent.
        "background_tasks" => BackgroundTasks(BackgroundTasks),
        /// Returns the output of a background task. Host to agent.
        "get_task_output" => GetTaskOutput(GetTaskOutput),
        /// Reads the plugins again. Host to agent.
        "reload_plugins" => ReloadPlugins(ReloadPlugins),
        /// Reads the skills again. Host to agent.
        "reload_skills" => ReloadSkills(ReloadSkills),
        /// Reads the output styles again. Host to agent.
        "reload_output_styles" => ReloadOutputStyles(ReloadOutputStyles),
        /// Adds a repository as a working folder. Host to agent.
        "register_repo_root" => RegisterRepoRoot(RegisterRepoRoot),
        /// Changes settings of the session, as `--settings` does. Host to agent.
        "apply_flag_settings" => ApplyFlagSettings(ApplyFlagSettings),
        /// Changes settings in a settings file. Host to agent.
        "update_settings" => UpdateSettings(UpdateSettings),
        /// Sets whether a client is subscribed to the session. Host to agent.
        "set_has_subscribers" => SetHasSubscribers(SetHasSubscribers),
        /// Removes a queued prompt. Host to agent.
        "cancel_async_message" => CancelAsyncMessage(CancelAsyncMessage),
        /// Generates a title for the session. Host to agent.
        "generate_session_title" => GenerateSessionTitle(GenerateSessionTitle),
        /// Asks the model a question outside the conversation. Host to agent.
        "side_question" => SideQuestion(SideQuestion),
        /// Sets the colour of the session. Host to agent.
        "set_color" => SetColor(SetColor),
        /// Ends the session. Host to agent.
        "end_session" => EndSession(EndSession),
    }
}

wire! {
    /// Asks whether a tool call may run. Agent to host.
    pub struct CanUseTool ["subtype" = "can_use_tool"] {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Name of the tool as shown.
        display_name: opt String,
        /// What the call does, in a few words.
        description: opt String,
        /// Rule changes that the host may return; see [`CanUseTool::suggestions`].
        permission_suggestions: opt Json,
        /// Path that needs permission.
        blocked_path: opt String,
        /// Why permission is needed.
        decision_reason: opt Json,
        /// Kind of that reason.
        decision_reason_type: opt DecisionReasonType,
        /// Subagent that made the call; absent for the main agent.
        agent_id: opt AgentId,
        /// Whether the user must answer; a host must not decide by itself.
        requires_user_interaction: opt bool,
    }
}

wire! {
    /// Runs a hook of the host. Agent to host.
    pub struct HookCallback ["subtype" = "hook_callback"] {
        /// Id under which the host registered the hook.
        callback_id: req String,
        /// Input of the hook; a [`HookInput`](crate::hook::HookInput).
        input: req Json,
        /// Id of the tool call, or a generated id for events without one.
        tool_use_id: opt ToolUseId,
    }
}

wire! {
    /// Sends a message to an MCP server inside the host. Agent to host.
    pub struct McpMessage ["subtype" = "mcp_message"] {
        /// Name of the MCP server.
        server_name: req String,
        /// The JSON-RPC message.
        message: req Json,
    }
}

wire! {
    /// Requests input from the user for an MCP server. Agent to host.
    pub struct ElicitationRequest ["subtype" = "elicitation"] {
        /// Name of the MCP server.
        mcp_server_name: opt String,
        /// The question to the user.
        message: opt String,
        /// JSON schema of the answer.
        requested_schema: opt Json,
    }
}

wire! {
    /// Requests a dialog with the user. Agent to host.
    pub struct RequestUserDialog ["subtype" = "request_user_dialog"] {}
}

wire! {
    /// Starts the session. Host to agent.
    pub struct Initialize ["subtype" = "initialize"] {
        /// Hooks of the host, by event; lists of [`HookMatcher`](super::setup::HookMatcher).
        hooks: opt Json,
        /// Subagents of the host, by name; see [`AgentDefinition`](super::setup::AgentDefinition).
        agents: opt Json,
        /// Names of MCP servers inside the host.
        sdk_mcp_servers: opt Json = "sdkMcpServers",
        /// JSON schema of the answer.
        json_schema: opt Json = "jsonSchema",
        /// System prompt that replaces the default one.
        system_prompt: opt Json = "systemPrompt",
        /// Text that is appended to the system prompt.
        append_system_prompt: opt String = "appendSystemPrompt",
        /// Initialization and tool lists of those servers, so that the agent need not request them.
        sdk_mcp_server_manifests: opt Json = "sdkMcpServerManifests",
        /// Names of the skills to offer; absent means all.
        skills: opt Vec<String>,
        /// Whether text and thinking of subagents are forwarded.
        forward_subagent_text: opt bool = "forwardSubagentText",
        /// Whether sections that change from run to run are left out of the system prompt.
        exclude_dynamic_sections: opt bool = "excludeDynamicSections",
        /// Whether the system prompt is recorded once and sent unchanged from then on; absent means yes.
        system_prompt_snapshot: opt bool = "systemPromptSnapshot",
        /// Plugins to load; used if the agent was started with `--await-initialize`.
        plugins: opt Vec<PluginConfig>,
        /// Settings of the host that can only restrict; used if the agent was started with
        /// `--managed-settings-in-initialize`.
        managed_settings: opt Json = "managedSettings",
    }
}

wire! {
    /// A plugin to load.
    pub struct PluginConfig {
        /// Path of its folder.
        path: req String,
        /// Whether its MCP servers are not loaded.
        skip_mcp_discovery: opt bool = "skipMcpDiscovery",
    }
}

wire! {
    /// Interrupts the running turn. Host to agent.
    pub struct Interrupt ["subtype" = "interrupt"] {
        /// Whether queued prompts are removed too.
        cancel_queued: opt bool,
    }
}

wire! {
    /// Changes the permission mode. Host to agent.
    pub struct SetPermissionMode ["subtype" = "set_permission_mode"] {
        /// New permission mode.
        mode: req PermissionMode,
    }
}

wire! {
    /// Changes the model. Host to agent.
    pub struct SetModel ["subtype" = "set_model"] {
        /// New model; the default if absent.
        model: opt String,
    }
}

wire! {
    /// Sets the limit on thinking tokens. Host to agent.
    pub struct SetMaxThinkingTokens ["subtype" = "set_max_thinking_tokens"] {
        /// The limit; `null` removes it.
        max_thinking_tokens: opt u64,
        /// How thinking is shown.
        thinking_display: opt ThinkingDisplay,
    }
}

wire! {
    /// Returns the status of the MCP servers. Host to agent.
    pub struct McpStatus ["subtype" = "mcp_status"] {}
}

wire! {
    /// Replaces the MCP servers. Host to agent.
    pub struct McpSetServers ["subtype" = "mcp_set_servers"] {
        /// The servers by name; see [`McpServerConfig`](super::setup::McpServerConfig).
        servers: req Json,
    }
}

wire! {
    /// Connects to an MCP server again. Host to agent.
    pub struct McpReconnect ["subtype" = "mcp_reconnect"] {
        /// Name of the MCP server.
        server_name: req String = "serverName",
    }
}

wire! {
    /// Turns an MCP server on or off. Host to agent.
    pub struct McpToggle ["subtype" = "mcp_toggle"] {
        /// Name of the MCP server.
        server_name: req String = "serverName",
        /// `true` turns the server on, `false` off.
        enabled: req bool,
    }
}

wire! {
    /// Calls a tool of an MCP server. Host to agent.
    pub struct McpCall ["subtype" = "mcp_call"] {
        /// Name of the tool, as the model calls it.
        tool: opt ToolName,
        /// Arguments of the tool.
        arguments: opt Json,
    }
}

wire! {
    /// Reads a resource of an MCP server. Host to agent.
    pub struct McpReadResource ["subtype" = "mcp_read_resource"] {
        /// Name of the MCP server.
        server_name: opt String = "serverName",
        /// URI of the resource.
        uri: opt String,
    }
}

wire! {
    /// Restores files to their state before a prompt. Host to agent.
    pub struct RewindFiles ["subtype" = "rewind_files"] {
        /// UUID of the prompt.
        user_message_id: req Uuid,
        /// Whether to report the changes without making them.
        dry_run: opt bool,
    }
}

wire! {
    /// Returns the token counts of the context. Host to agent.
    pub struct GetContextUsage ["subtype" = "get_context_usage"] {
        /// Level of detail: `summary` or `full`.
        detail: opt String,
    }
}

wire! {
    /// Returns usage and cost of the session. Host to agent.
    pub struct GetUsage ["subtype" = "get_usage"] {
        /// Whether to leave out `behaviors`.
        skip_behaviors: opt bool,
    }
}

wire! {
    /// Returns the cost of the session as text. Host to agent.
    pub struct GetSessionCost ["subtype" = "get_session_cost"] {}
}

wire! {
    /// Returns the available models. Host to agent.
    pub struct ListModels ["subtype" = "list_models"] {}
}

wire! {
    /// Returns the settings and their sources. Host to agent.
    pub struct GetSettings ["subtype" = "get_settings"] {}
}

wire! {
    /// Returns the configured hooks and the hook events. Host to agent.
    pub struct GetHooksListing ["subtype" = "get_hooks_listing"] {}
}

wire! {
    /// Returns the permission rules. Host to agent.
    pub struct ListPermissionRules ["subtype" = "list_permission_rules"] {}
}

wire! {
    /// Returns the version of the agent. Host to agent.
    pub struct GetBinaryVersion ["subtype" = "get_binary_version"] {}
}

wire! {
    /// Returns the content of a file. Host to agent.
    pub struct ReadFile ["subtype" = "read_file"] {
        /// Path of the file.
        path: req String,
    }
}

wire! {
    /// Returns files that match a query. Host to agent.
    pub struct FileSuggestions ["subtype" = "file_suggestions"] {
        /// Text to match.
        query: req String,
    }
}

wire! {
    /// Marks a file as read by the model. Host to agent.
    pub struct SeedReadState ["subtype" = "seed_read_state"] {
        /// Path of the file.
        path: req String,
        /// Modification time of the file that the host has read.
        mtime: opt Number,
    }
}

wire! {
    /// Sets the title of the session. Host to agent.
    pub struct RenameSession ["subtype" = "rename_session"] {
        /// The new title.
        title: req String,
    }
}

wire! {
    /// Stops a background task. Host to agent.
    pub struct StopTask ["subtype" = "stop_task"] {
        /// Id of the task.
        task_id: req String,
    }
}

wire! {
    /// Moves running tool calls to the background. Host to agent.
    pub struct BackgroundTasks ["subtype" = "background_tasks"] {
        /// Id of the tool call; absent means all running calls.
        tool_use_id: opt ToolUseId,
    }
}

wire! {
    /// Returns the output of a background task. Host to agent.
    pub struct GetTaskOutput ["subtype" = "get_task_output"] {
        /// Id of the task.
        task_id: req String,
    }
}

wire! {
    /// Reads the plugins again. Host to agent.
    pub struct ReloadPlugins ["subtype" = "reload_plugins"] {}
}

wire! {
    /// Reads the skills again. Host to agent.
    pub struct ReloadSkills ["subtype" = "reload_skills"] {}
}

wire! {
    /// Reads the output styles again. Host to agent.
    pub struct ReloadOutputStyles ["subtype" = "reload_output_styles"] {}
}

wire! {
    /// Adds a repository as a working folder. Host to agent.
    pub struct RegisterRepoRoot ["subtype" = "register_repo_root"] {
        /// Path of the repository.
        directory: opt String,
        /// Whether to read the instruction files again.
        reload_claude_md: opt bool,
        /// Whether to read the plugins again.
        reload_plugins: opt bool,
        /// Whether to read the skills again.
        reload_skills: opt bool,
    }
}

wire! {
    /// Changes settings of the session, as `--settings` does. Host to agent.
    pub struct ApplyFlagSettings ["subtype" = "apply_flag_settings"] {
        /// The settings to change.
        settings: opt Json,
    }
}

wire! {
    /// Changes settings in a settings file. Host to agent.
    pub struct UpdateSettings ["subtype" = "update_settings"] {
        /// The settings file.
        source: opt SettingsLocation,
        /// The settings to change.
        settings: opt Json,
    }
}

wire! {
    /// Sets whether a client is subscribed to the session. Host to agent.
    pub struct SetHasSubscribers ["subtype" = "set_has_subscribers"] {
        /// Whether a client is subscribed.
        has_subscribers: opt bool,
    }
}

wire! {
    /// Removes a queued prompt. Host to agent.
    pub struct CancelAsyncMessage ["subtype" = "cancel_async_message"] {
        /// UUID of the prompt.
        message_uuid: opt Uuid,
    }
}

wire! {
    /// Generates a title for the session. Host to agent.
    pub struct GenerateSessionTitle ["subtype" = "generate_session_title"] {
        /// Description of the session.
        description: opt String,
        /// Whether to store the title in the session file.
        persist: opt bool,
    }
}

wire! {
    /// Asks the model a question outside the conversation. Host to agent.
    pub struct SideQuestion ["subtype" = "side_question"] {
        /// Text of the question.
        question: req String,
    }
}

wire! {
    /// Sets the colour of the session. Host to agent.
    pub struct SetColor ["subtype" = "set_color"] {
        /// Name of the colour.
        color: opt String,
    }
}

wire! {
    /// Ends the session. Host to agent.
    pub struct EndSession ["subtype" = "end_session"] {}
}

impl CanUseTool {
    /// The rule changes that the agent suggests; empty if there are none or they cannot be read.
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        self.permission_suggestions.get().and_then(|json| json.read().ok()).unwrap_or_default()
    }
}
