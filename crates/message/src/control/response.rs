//! Responses to control requests.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::wire;
use crate::usage::ModelUsage;
use crate::values::{
    ContextCategoryKind, Effort, ElicitationAction, McpServerState, McpTransport, PermissionMode, RuleBehavior,
    SessionActivity, SettingsLocation,
};
use crate::{Json, Usage, Uuid};

wire! {
    /// The response to `initialize`. Older versions have fewer fields.
    pub struct InitializeResponse {
        /// The slash commands.
        commands: req Vec<SlashCommand>,
        /// The available subagents.
        agents: opt Vec<AgentInfo>,
        /// Name of the current output style.
        output_style: opt String,
        /// Names of the available output styles.
        available_output_styles: opt Vec<String>,
        /// The available models.
        models: opt Vec<ModelInfo>,
        /// Account and credentials in use.
        account: opt AccountInfo,
        /// Process id of the agent.
        pid: opt u32,
        /// Version of the agent.
        claude_code_version: opt String,
        /// Permission mode of the session.
        current_permission_mode: opt PermissionMode,
        /// Whether the hooks of the request were registered; absent if it had none.
        hooks_applied: opt bool,
        /// Whether `onFailure` of hooks is supported.
        hook_on_failure_supported: opt bool,
        /// State of the session: `idle`, `running` …
        session_state: opt SessionActivity,
        /// Names of optional features that the agent supports.
        capabilities: opt Vec<String>,
    }
}

wire! {
    /// A slash command or skill.
    pub struct SlashCommand {
        /// Its name, without the slash.
        name: req String,
        /// Description for the user.
        description: req String,
        /// Arguments that the command takes, as a hint.
        argument_hint: req String = "argumentHint",
        /// Whether it is built into the agent.
        builtin: opt bool,
    }
}

wire! {
    /// A subagent.
    pub struct AgentInfo {
        /// Name of the subagent.
        name: req String,
        /// When to use it.
        description: req String,
        /// Model of the subagent.
        model: opt String,
    }
}

wire! {
    /// An available model.
    pub struct ModelInfo {
        /// Name to use in requests, such as `opus`.
        value: req String,
        /// Model id that the name currently means.
        resolved_model: opt String = "resolvedModel",
        /// Name as shown to the user.
        display_name: req String = "displayName",
        /// Description for the user.
        description: req String,
        /// Whether it supports effort levels.
        supports_effort: opt bool = "supportsEffort",
        /// The supported effort levels.
        supported_effort_levels: opt Vec<Effort> = "supportedEffortLevels",
        /// Whether it supports adaptive thinking.
        supports_adaptive_thinking: opt bool = "supportsAdaptiveThinking",
        /// Whether it supports fast mode.
        supports_fast_mode: opt bool = "supportsFastMode",
        /// Whether it can be used in the permission mode `auto`.
        supports_auto_mode: opt bool = "supportsAutoMode",
        /// Whether its thinking can be turned off.
        supports_thinking_off: opt bool = "supportsThinkingOff",
    }
}

wire! {
    /// Account and credentials in use.
    pub struct AccountInfo {
        /// Source of the login token.
        token_source: opt String = "tokenSource",
        /// Source of the API key.
        api_key_source: opt String = "apiKeySource",
        /// Provider of the API.
        api_provider: opt String = "apiProvider",
    }
}

wire! {
    /// The response to `list_models`.
    pub struct ListModelsResponse {
        /// The available models.
        models: req Vec<ModelInfo>,
    }
}

wire! {
    /// The response to `interrupt`.
    pub struct InterruptResponse {
        /// UUIDs of prompts that are still queued.
        still_queued: req Vec<Uuid>,
        /// UUIDs of prompts that were removed.
        cancelled: opt Vec<Uuid>,
    }
}

wire! {
    /// The response to `set_permission_mode`.
    pub struct SetPermissionModeResponse {
        /// The mode that is now set.
        mode: req PermissionMode,
    }
}

wire! {
    /// The response to `set_model`.
    pub struct SetModelResponse {
        /// The model that is now set.
        model: req String,
    }
}

wire! {
    /// The response to `mcp_status`.
    pub struct McpStatusResponse {
        /// The servers.
        servers: req Vec<McpServerStatus> = "mcpServers",
    }
}

wire! {
    /// The status of an MCP server.
    pub struct McpServerStatus {
        /// Name of the server.
        name: req String,
        /// Status: `connected`, `failed`, `pending` or `disabled`.
        status: req McpServerState,
        /// Name and version from the server.
        server_info: opt McpServerInfo = "serverInfo",
        /// Error message, if it failed.
        error: opt String,
        /// Transport: `stdio`, `http` or `sdk`.
        transport: opt McpTransport,
        /// Settings scope in which it is configured.
        scope: opt String,
        /// Origin of the configuration.
        source: opt String,
        /// Tools of the server.
        tools: opt Vec<McpTool>,
    }
}

wire! {
    /// Name and version from an MCP server.
    pub struct McpServerInfo {
        /// Name of the server program.
        name: req String,
        /// Version of the server program.
        version: req String,
    }
}

wire! {
    /// A tool of an MCP server.
    pub struct McpTool {
        /// Name of the tool.
        name: req String,
        /// Annotations of the tool, such as `readOnlyHint`.
        annotations: opt Json,
    }
}

wire! {
    /// The response to `mcp_message`, from the host.
    pub struct McpMessageResponse {
        /// The JSON-RPC response.
        mcp_response: opt Json,
    }
}

wire! {
    /// The response to `elicitation`, from the host.
    pub struct ElicitationResponse {
        /// Whether the user answered.
        action: req ElicitationAction,
        /// The answer, in the requested schema.
        content: opt Json,
    }
}

impl ElicitationResponse {
    /// The user's answer.
    pub fn accept(content: Option<Json>) -> Self {
        Self { action: ElicitationAction::Accept, content: content.into(), ..Self::default() }
    }

    /// The user does not answer.
    pub fn decline() -> Self {
        Self { action: ElicitationAction::Decline, ..Self::default() }
    }
}

wire! {
    /// The response to `mcp_set_servers`.
    pub struct McpSetServersResponse {
        /// Names of servers that were added.
        added: req Vec<String>,
        /// Names of servers that were removed.
        removed: req Vec<String>,
        /// Error messages by server name.
        errors: req BTreeMap<String, String>,
    }
}

wire! {
    /// The response to `mcp_call`: the result of the tool in MCP's form.
    pub struct McpCallResponse {
        /// Content blocks of the result.
        content: opt Vec<Json>,
        /// The result as a JSON value.
        structured_content: opt Json = "structuredContent",
        /// Whether the tool failed.
        is_error: opt bool = "isError",
    }
}

wire! {
    /// The response to `mcp_read_resource`.
    pub struct McpReadResourceResponse {
        /// Contents of the resource.
        contents: opt Vec<Json>,
    }
}

wire! {
    /// The response to `rewind_files`.
    pub struct RewindFilesResponse {
        /// Whether the files can be restored.
        can_rewind: req bool = "canRewind",
        /// Paths of files that would change, with `dry_run`.
        files_changed: opt Vec<String> = "filesChanged",
        /// Number of lines that would be added.
        insertions: opt u64,
        /// Number of lines that would be removed.
        deletions: opt u64,
        /// Number of symbolic links that were skipped.
        skipped_links: opt u64 = "skippedLinks",
    }
}

wire! {
    /// The response to `get_context_usage`.
    pub struct GetContextUsageResponse {
        /// Parts of the context.
        categories: req Vec<ContextCategory>,
        /// Tokens in use.
        total_tokens: req u64 = "totalTokens",
        /// Size of the context in tokens, minus the reserve.
        max_tokens: req u64 = "maxTokens",
        /// Size of the context in tokens, before the reserve is subtracted.
        raw_max_tokens: req u64 = "rawMaxTokens",
        /// Tokens in use, in per cent of the size.
        percentage: req u64,
        /// Model of the session.
        model: req String,
        /// The instruction files.
        memory_files: req Vec<Json> = "memoryFiles",
        /// Tools of MCP servers.
        mcp_tools: req Vec<Json> = "mcpTools",
        /// Subagents that the user defined.
        agents: req Vec<Json>,
        /// Number of tokens at which compaction starts.
        auto_compact_threshold: opt u64 = "autoCompactThreshold",
        /// Whether automatic compaction is on.
        is_auto_compact_enabled: req bool = "isAutoCompactEnabled",
        /// Usage of the last API call.
        api_usage: opt Usage = "apiUsage",
        /// Cells of a grid that shows the usage.
        grid_rows: req Vec<Json> = "gridRows",
    }
}

wire! {
    /// One part of the context.
    pub struct ContextCategory {
        /// Id of the part.
        id: opt String,
        /// Name as shown to the user.
        name: req String,
        /// Number of tokens.
        tokens: req u64,
        /// Colour in the grid.
        color: opt String,
        /// What fills this part.
        kind: opt ContextCategoryKind,
    }
}

wire! {
    /// The response to `get_usage`.
    pub struct GetUsageResponse {
        /// Usage of the session.
        session: req SessionUsage,
        /// Subscription of the account; absent for API keys.
        subscription_type: opt String,
        /// Whether rate limits are known.
        rate_limits_available: req bool,
        /// Rate limits of the account.
        rate_limits: opt Json,
        /// Statistics about the user; only `null` was seen.
        behaviors: opt Json,
    }
}

wire! {
    /// Usage of a session.
    pub struct SessionUsage {
        /// Cost in US dollars.
        total_cost_usd: opt Number,
        /// Milliseconds spent in API calls.
        total_api_duration_ms: req u64,
        /// Milliseconds in total.
        total_duration_ms: req u64,
        /// Number of lines of code added.
        total_lines_added: req u64,
        /// Number of lines of code removed.
        total_lines_removed: req u64,
        /// Usage by model.
        model_usage: req BTreeMap<String, ModelUsage>,
    }
}

wire! {
    /// The response to `get_session_cost`.
    pub struct GetSessionCostResponse {
        /// Cost and usage as text for the user.
        text: req String,
    }
}

wire! {
    /// The response to `get_binary_version`.
    pub struct GetBinaryVersionResponse {
        /// Version of the agent.
        version: req String,
    }
}

wire! {
    /// The response to `get_settings`.
    pub struct GetSettingsResponse {
        /// The merged settings.
        effective: req Json,
        /// The settings by source.
        sources: req Vec<Json>,
        /// Model and effort that are in use.
        applied: req AppliedSettings,
    }
}

wire! {
    /// Model and effort that are in use.
    pub struct AppliedSettings {
        /// Model of the session.
        model: req String,
        /// Effort level; absent if the model has none.
        effort: opt Effort,
    }
}

wire! {
    /// The response to `get_hooks_listing`.
    pub struct GetHooksListingResponse {
        /// Names of events that have hooks.
        events: req Vec<String>,
        /// The configured hooks.
        hooks: req Vec<ConfiguredHook>,
        /// All hook events.
        event_catalog: req Vec<HookEventInfo> = "eventCatalog",
    }
}

wire! {
    /// A configured hook.
    pub struct ConfiguredHook {
        /// Name of the event.
        event: req String,
        /// Tools or sources that the hook is limited to.
        matcher: opt String,
        /// The hook's command.
        command: req String,
    }
}

wire! {
    /// A hook event.
    pub struct HookEventInfo {
        /// Name of the event.
        name: req String,
        /// When its hooks run.
        summary: req String,
        /// Whether hooks can have a matcher.
        supports_matcher: req bool = "supportsMatcher",
    }
}

wire! {
    /// The response to `list_permission_rules`.
    pub struct ListPermissionRulesResponse {
        /// Rules and folders.
        state: req PermissionState,
    }
}

wire! {
    /// Permission rules and working folders.
    pub struct PermissionState {
        /// The permission rules.
        rules: req Vec<PermissionRule>,
        /// Folders allowed in addition to the working directory.
        workspace_directories: req Vec<String> = "workspaceDirectories",
        /// Folder in which the agent was started.
        original_cwd: req String = "originalCwd",
        /// Whether only managed rules are used.
        managed_only: req bool = "managedOnly",
    }
}

wire! {
    /// A permission rule.
    pub struct PermissionRule {
        /// `allow`, `deny` or `ask`.
        behavior: req RuleBehavior,
        /// The rule as text.
        rule: req String,
        /// Where the rule is stored.
        source: req SettingsLocation,
    }
}

wire! {
    /// The response to `read_file`.
    pub struct ReadFileResponse {
        /// Content of the file.
        contents: req String,
        /// Absolute path of the file.
        abs_path: req String = "absPath",
        /// Whether invalid UTF-8 was replaced.
        lossy: req bool,
        /// Path as in the request.
        requested_path: req String,
    }
}

wire! {
    /// The response to `file_suggestions`.
    pub struct FileSuggestionsResponse {
        /// The matching files.
        suggestions: req Vec<FileSuggestion>,
        /// Folder that the paths are relative to.
        cwd: req String,
    }
}

wire! {
    /// A file that matches.
    pub struct FileSuggestion {
        /// Path of the file.
        path: req String,
    }
}

wire! {
    /// The response to `reload_plugins`.
    pub struct ReloadPluginsResponse {
        /// The slash commands.
        commands: req Vec<SlashCommand>,
        /// The available subagents.
        agents: req Vec<AgentInfo>,
        /// The loaded plugins.
        plugins: req Vec<Json>,
        /// The status of the MCP servers.
        mcp_servers: req Vec<McpServerStatus> = "mcpServers",
        /// Number of plugins that could not be loaded.
        error_count: req u64,
    }
}

wire! {
    /// The response to `reload_skills`.
    pub struct ReloadSkillsResponse {
        /// The available skills.
        skills: req Vec<SlashCommand>,
    }
}

wire! {
    /// The response to `reload_output_styles`.
    pub struct ReloadOutputStylesResponse {
        /// Names of the available output styles.
        available_output_styles: req Vec<String>,
    }
}

wire! {
    /// The response to `cancel_async_message`.
    pub struct CancelAsyncMessageResponse {
        /// Whether the prompt was still queued.
        cancelled: req bool,
    }
}

wire! {
    /// The response to `get_task_output`.
    pub struct GetTaskOutputResponse {
        /// Output of the task.
        output: req String,
    }
}

wire! {
    /// The response to `generate_session_title`.
    pub struct GenerateSessionTitleResponse {
        /// The title; `null` if none was generated.
        title: opt String,
    }
}

wire! {
    /// The response to `side_question`.
    pub struct SideQuestionResponse {
        /// The answer of the model.
        response: req String,
        /// Whether the agent wrote the answer without an API call.
        synthetic: req bool,
    }
}

wire! {
    /// A response without content.
    pub struct EmptyResponse {}
}
