//! What either side may ask of the other.

use serde_json::Number;

use super::PermissionUpdate;
use crate::macros::{open_enum, wire};
use crate::values::{DecisionReasonType, PermissionMode, SettingsLocation};
use crate::{AgentId, Json, ToolUseId, Uuid};

open_enum! {
    /// A control request, by `subtype`. Either side may open one.
    pub enum RequestBody by "subtype" {
        /// Asks whether a tool call may run. Agent to host.
        "can_use_tool" => CanUseTool(CanUseTool),
        /// Runs a hook of the host. Agent to host.
        "hook_callback" => HookCallback(HookCallback),
        /// Sends a message to an MCP server inside the host. Agent to host.
        "mcp_message" => McpMessage(McpMessage),
        /// Agent to host. An MCP server asks the user a question.
        "elicitation" => Elicitation(ElicitationRequest),
        /// Agent to host. The program asks the user a question.
        "request_user_dialog" => RequestUserDialog(RequestUserDialog),
        /// Starts the session. Host to agent.
        "initialize" => Initialize(Initialize),
        /// Interrupts the running turn. Host to agent.
        "interrupt" => Interrupt(Interrupt),
        /// Changes the permission mode. Host to agent.
        "set_permission_mode" => SetPermissionMode(SetPermissionMode),
        /// Changes the model. Host to agent.
        "set_model" => SetModel(SetModel),
        /// Host to agent. Limit thinking.
        "set_max_thinking_tokens" => SetMaxThinkingTokens(SetMaxThinkingTokens),
        /// Host to agent. How do the MCP servers stand?
        "mcp_status" => McpStatus(McpStatus),
        /// Host to agent. Replace the MCP servers.
        "mcp_set_servers" => McpSetServers(McpSetServers),
        /// Host to agent. Connect an MCP server again.
        "mcp_reconnect" => McpReconnect(McpReconnect),
        /// Host to agent. Turn an MCP server on or off.
        "mcp_toggle" => McpToggle(McpToggle),
        /// Host to agent. Call an MCP tool.
        "mcp_call" => McpCall(McpCall),
        /// Host to agent. Read a resource of an MCP server.
        "mcp_read_resource" => McpReadResource(McpReadResource),
        /// Restores files to their state before a prompt. Host to agent.
        "rewind_files" => RewindFiles(RewindFiles),
        /// Host to agent. What fills the context?
        "get_context_usage" => GetContextUsage(GetContextUsage),
        /// Host to agent. What was used?
        "get_usage" => GetUsage(GetUsage),
        /// Host to agent. What did the session cost?
        "get_session_cost" => GetSessionCost(GetSessionCost),
        /// Host to agent. Which models are there?
        "list_models" => ListModels(ListModels),
        /// Host to agent. What are the settings?
        "get_settings" => GetSettings(GetSettings),
        /// Host to agent. Which hooks are there?
        "get_hooks_listing" => GetHooksListing(GetHooksListing),
        /// Host to agent. Which permission rules are there?
        "list_permission_rules" => ListPermissionRules(ListPermissionRules),
        /// Host to agent. Which version is this?
        "get_binary_version" => GetBinaryVersion(GetBinaryVersion),
        /// Host to agent. Read a file.
        "read_file" => ReadFile(ReadFile),
        /// Host to agent. Which files match?
        "file_suggestions" => FileSuggestions(FileSuggestions),
        /// Host to agent. A file counts as read.
        "seed_read_state" => SeedReadState(SeedReadState),
        /// Host to agent. Give the session a title.
        "rename_session" => RenameSession(RenameSession),
        /// Host to agent. Stop a background task.
        "stop_task" => StopTask(StopTask),
        /// Host to agent. Let calls go on in the background.
        "background_tasks" => BackgroundTasks(BackgroundTasks),
        /// Host to agent. What did a task print?
        "get_task_output" => GetTaskOutput(GetTaskOutput),
        /// Host to agent. Read the plugins again.
        "reload_plugins" => ReloadPlugins(ReloadPlugins),
        /// Host to agent. Read the skills again.
        "reload_skills" => ReloadSkills(ReloadSkills),
        /// Host to agent. Read the output styles again.
        "reload_output_styles" => ReloadOutputStyles(ReloadOutputStyles),
        /// Host to agent. A repository lies here.
        "register_repo_root" => RegisterRepoRoot(RegisterRepoRoot),
        /// Host to agent. Change settings as a flag would.
        "apply_flag_settings" => ApplyFlagSettings(ApplyFlagSettings),
        /// Host to agent. Change stored settings.
        "update_settings" => UpdateSettings(UpdateSettings),
        /// Host to agent. Whether a client is subscribed.
        "set_has_subscribers" => SetHasSubscribers(SetHasSubscribers),
        /// Host to agent. Drop a queued prompt.
        "cancel_async_message" => CancelAsyncMessage(CancelAsyncMessage),
        /// Host to agent. Make up a title.
        "generate_session_title" => GenerateSessionTitle(GenerateSessionTitle),
        /// Asks the model a question outside of the conversation. Host to agent.
        "side_question" => SideQuestion(SideQuestion),
        /// Host to agent. Choose a colour.
        "set_color" => SetColor(SetColor),
        /// Ends the session. Host to agent.
        "end_session" => EndSession(EndSession),
    }
}

wire! {
    /// Asks whether a tool call may run. Agent to host.
    pub struct CanUseTool ["subtype" = "can_use_tool"] {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Name of the tool as shown.
        display_name: opt String,
        /// What the call does, in a few words.
        description: opt String,
        /// Rule changes the host may choose; see [`CanUseTool::suggestions`].
        permission_suggestions: opt Json,
        /// Path that needs permission.
        blocked_path: opt String,
        /// Why permission is needed.
        decision_reason: opt Json,
        /// Kind of that reason.
        decision_reason_type: opt DecisionReasonType,
        /// Subagent that made the call; absent for the main agent.
        agent_id: opt AgentId,
        /// Whether the user must answer, not the host.
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
    /// An MCP server asks the user a question. Agent to host.
    pub struct ElicitationRequest ["subtype" = "elicitation"] {
        /// Name of the MCP server.
        mcp_server_name: opt String,
        /// The question.
        message: opt String,
        /// The form of the answer.
        requested_schema: opt Json,
    }
}

wire! {
    /// The program asks the user a question. Agent to host.
    pub struct RequestUserDialog ["subtype" = "request_user_dialog"] {}
}

wire! {
    /// Starts the session. Host to agent.
    pub struct Initialize ["subtype" = "initialize"] {
        /// Hooks by event.
        hooks: opt Json,
        /// Subagents.
        agents: opt Json,
        /// MCP servers inside the host.
        sdk_mcp_servers: opt Json = "sdkMcpServers",
        /// The form of the answer.
        json_schema: opt Json = "jsonSchema",
        /// The system prompt.
        system_prompt: opt Json = "systemPrompt",
        /// What to add to it.
        append_system_prompt: opt String = "appendSystemPrompt",
        /// What those servers would say when asked, which saves a request.
        sdk_mcp_server_manifests: opt Json = "sdkMcpServerManifests",
        /// The skills to offer; absent means all.
        skills: opt Vec<String>,
        /// Whether text and thinking of subagents are forwarded too.
        forward_subagent_text: opt bool = "forwardSubagentText",
        /// Whether what changes from run to run is left out of the system prompt.
        exclude_dynamic_sections: opt bool = "excludeDynamicSections",
        /// Whether the system prompt is recorded once and sent verbatim from then on; absent means yes.
        system_prompt_snapshot: opt bool = "systemPromptSnapshot",
        /// Plugins to load, if the agent was started with `--await-initialize`.
        plugins: opt Vec<PluginConfig>,
        /// Settings of the host that only restrict, if the agent was started with
        /// `--managed-settings-in-initialize`.
        managed_settings: opt Json = "managedSettings",
    }
}

wire! {
    /// A plugin that the host names.
    pub struct PluginConfig {
        /// Its folder.
        path: req String,
        /// Whether its MCP servers are left alone.
        skip_mcp_discovery: opt bool = "skipMcpDiscovery",
    }
}

wire! {
    /// Interrupts the running turn. Host to agent.
    pub struct Interrupt ["subtype" = "interrupt"] {
        /// Whether queued prompts are dropped too.
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
    /// Limit thinking. Host to agent.
    pub struct SetMaxThinkingTokens ["subtype" = "set_max_thinking_tokens"] {
        /// The limit; `null` lifts it.
        max_thinking_tokens: opt u64,
        /// How thinking is shown.
        thinking_display: opt String,
    }
}

wire! {
    /// How do the MCP servers stand? Host to agent.
    pub struct McpStatus ["subtype" = "mcp_status"] {}
}

wire! {
    /// Replace the MCP servers. Host to agent.
    pub struct McpSetServers ["subtype" = "mcp_set_servers"] {
        /// The servers.
        servers: req Json,
    }
}

wire! {
    /// Connect an MCP server again. Host to agent.
    pub struct McpReconnect ["subtype" = "mcp_reconnect"] {
        /// Name of the MCP server.
        server_name: req String = "serverName",
    }
}

wire! {
    /// Turn an MCP server on or off. Host to agent.
    pub struct McpToggle ["subtype" = "mcp_toggle"] {
        /// Name of the MCP server.
        server_name: req String = "serverName",
        /// On or off.
        enabled: req bool,
    }
}

wire! {
    /// Call an MCP tool. Host to agent.
    pub struct McpCall ["subtype" = "mcp_call"] {
        /// The tool.
        tool: opt String,
        /// What it is called with.
        arguments: opt Json,
    }
}

wire! {
    /// Read a resource of an MCP server. Host to agent.
    pub struct McpReadResource ["subtype" = "mcp_read_resource"] {
        /// Name of the MCP server.
        server_name: opt String = "serverName",
        /// The resource.
        uri: opt String,
    }
}

wire! {
    /// Restores files to their state before a prompt. Host to agent.
    pub struct RewindFiles ["subtype" = "rewind_files"] {
        /// UUID of the prompt.
        user_message_id: req Uuid,
        /// Whether only to report what would change.
        dry_run: opt bool,
    }
}

wire! {
    /// What fills the context? Host to agent.
    pub struct GetContextUsage ["subtype" = "get_context_usage"] {
        /// How closely to look.
        detail: opt String,
    }
}

wire! {
    /// What was used? Host to agent.
    pub struct GetUsage ["subtype" = "get_usage"] {
        /// Leave the habits out.
        skip_behaviors: opt bool,
    }
}

wire! {
    /// What did the session cost? Host to agent.
    pub struct GetSessionCost ["subtype" = "get_session_cost"] {}
}

wire! {
    /// Which models are there? Host to agent.
    pub struct ListModels ["subtype" = "list_models"] {}
}

wire! {
    /// What are the settings? Host to agent.
    pub struct GetSettings ["subtype" = "get_settings"] {}
}

wire! {
    /// Which hooks are there? Host to agent.
    pub struct GetHooksListing ["subtype" = "get_hooks_listing"] {}
}

wire! {
    /// Which permission rules are there? Host to agent.
    pub struct ListPermissionRules ["subtype" = "list_permission_rules"] {}
}

wire! {
    /// Which version is this? Host to agent.
    pub struct GetBinaryVersion ["subtype" = "get_binary_version"] {}
}

wire! {
    /// Read a file. Host to agent.
    pub struct ReadFile ["subtype" = "read_file"] {
        /// The file.
        path: req String,
    }
}

wire! {
    /// Which files match? Host to agent.
    pub struct FileSuggestions ["subtype" = "file_suggestions"] {
        /// What to match.
        query: req String,
    }
}

wire! {
    /// A file counts as read. Host to agent.
    pub struct SeedReadState ["subtype" = "seed_read_state"] {
        /// The file.
        path: req String,
        /// When it was changed.
        mtime: opt Number,
    }
}

wire! {
    /// Give the session a title. Host to agent.
    pub struct RenameSession ["subtype" = "rename_session"] {
        /// The title.
        title: req String,
    }
}

wire! {
    /// Stop a background task. Host to agent.
    pub struct StopTask ["subtype" = "stop_task"] {
        /// Id of the task.
        task_id: req String,
    }
}

wire! {
    /// Let calls go on in the background. Host to agent.
    pub struct BackgroundTasks ["subtype" = "background_tasks"] {
        /// The call; all when it is left out.
        tool_use_id: opt ToolUseId,
    }
}

wire! {
    /// What did a task print? Host to agent.
    pub struct GetTaskOutput ["subtype" = "get_task_output"] {
        /// Id of the task.
        task_id: req String,
    }
}

wire! {
    /// Read the plugins again. Host to agent.
    pub struct ReloadPlugins ["subtype" = "reload_plugins"] {}
}

wire! {
    /// Read the skills again. Host to agent.
    pub struct ReloadSkills ["subtype" = "reload_skills"] {}
}

wire! {
    /// Read the output styles again. Host to agent.
    pub struct ReloadOutputStyles ["subtype" = "reload_output_styles"] {}
}

wire! {
    /// A repository lies here. Host to agent.
    pub struct RegisterRepoRoot ["subtype" = "register_repo_root"] {
        /// Where.
        directory: opt String,
        /// Read the instruction files again.
        reload_claude_md: opt bool,
        /// Read the plugins again.
        reload_plugins: opt bool,
        /// Read the skills again.
        reload_skills: opt bool,
    }
}

wire! {
    /// Change settings as a flag would. Host to agent.
    pub struct ApplyFlagSettings ["subtype" = "apply_flag_settings"] {
        /// The settings.
        settings: opt Json,
    }
}

wire! {
    /// Change stored settings. Host to agent.
    pub struct UpdateSettings ["subtype" = "update_settings"] {
        /// Which file.
        source: opt SettingsLocation,
        /// The settings.
        settings: opt Json,
    }
}

wire! {
    /// Whether a client is subscribed. Host to agent.
    pub struct SetHasSubscribers ["subtype" = "set_has_subscribers"] {
        /// Yes or no.
        has_subscribers: opt bool,
    }
}

wire! {
    /// Drop a queued prompt. Host to agent.
    pub struct CancelAsyncMessage ["subtype" = "cancel_async_message"] {
        /// The prompt.
        message_uuid: opt Uuid,
    }
}

wire! {
    /// Make up a title. Host to agent.
    pub struct GenerateSessionTitle ["subtype" = "generate_session_title"] {
        /// What the session is about.
        description: opt String,
        /// Whether to keep it.
        persist: opt bool,
    }
}

wire! {
    /// Asks the model a question outside of the conversation. Host to agent.
    pub struct SideQuestion ["subtype" = "side_question"] {
        /// Text of the question.
        question: req String,
    }
}

wire! {
    /// Choose a colour. Host to agent.
    pub struct SetColor ["subtype" = "set_color"] {
        /// The colour.
        color: opt String,
    }
}

wire! {
    /// Ends the session. Host to agent.
    pub struct EndSession ["subtype" = "end_session"] {}
}

impl CanUseTool {
    /// The rules that the agent suggests, as far as they can be read.
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        self.permission_suggestions.get().and_then(|json| json.read().ok()).unwrap_or_default()
    }
}
