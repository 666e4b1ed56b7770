//! What an agent answers to the requests of a host.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::wire;
use crate::usage::ModelUsage;
use crate::values::{
    Effort, McpServerState, McpTransport, PermissionMode, RuleBehavior, SessionActivity, SettingsLocation,
};
use crate::{Json, Usage, Uuid};

wire! {
    /// The answer to `initialize`; older versions say less.
    pub struct InitializeResponse {
        /// The slash commands.
        commands: req Vec<SlashCommand>,
        /// The subagents.
        agents: opt Vec<AgentInfo>,
        /// The output style.
        output_style: opt String,
        /// The output styles there are.
        available_output_styles: opt Vec<String>,
        /// The models there are.
        models: opt Vec<ModelInfo>,
        /// Who pays.
        account: opt AccountInfo,
        /// The process.
        pid: opt u32,
        /// The version.
        claude_code_version: opt String,
        /// The permission mode.
        current_permission_mode: opt PermissionMode,
        /// Whether the hooks were taken.
        hooks_applied: opt bool,
        /// Whether a hook that fails can block.
        hook_on_failure_supported: opt bool,
        /// `idle`, `running` …
        session_state: opt SessionActivity,
        /// What hosts may rely on.
        capabilities: opt Vec<String>,
    }
}

wire! {
    /// A slash command or skill.
    pub struct SlashCommand {
        /// Its name, without the slash.
        name: req String,
        /// What it does.
        description: req String,
        /// What may follow it.
        argument_hint: req String = "argumentHint",
        /// Whether it is part of the program.
        builtin: opt bool,
    }
}

wire! {
    /// A subagent.
    pub struct AgentInfo {
        /// Its name.
        name: req String,
        /// When to use it.
        description: req String,
        /// The model it runs on.
        model: opt String,
    }
}

wire! {
    /// A model.
    pub struct ModelInfo {
        /// What to ask for.
        value: req String,
        /// What that is now.
        resolved_model: opt String = "resolvedModel",
        /// Its name as shown.
        display_name: req String = "displayName",
        /// What it is good for.
        description: req String,
        /// Whether it takes an effort level.
        supports_effort: opt bool = "supportsEffort",
        /// The effort levels it takes.
        supported_effort_levels: opt Vec<Effort> = "supportedEffortLevels",
        /// Whether it decides itself how far to think.
        supports_adaptive_thinking: opt bool = "supportsAdaptiveThinking",
        /// Whether it can answer faster for more money.
        supports_fast_mode: opt bool = "supportsFastMode",
        /// Whether it can be used in the permission mode `auto`.
        supports_auto_mode: opt bool = "supportsAutoMode",
        /// Whether its thinking can be switched off.
        supports_thinking_off: opt bool = "supportsThinkingOff",
    }
}

wire! {
    /// Who pays.
    pub struct AccountInfo {
        /// Where a login's token is from.
        token_source: opt String = "tokenSource",
        /// Where the key is from.
        api_key_source: opt String = "apiKeySource",
        /// Who serves the API.
        api_provider: opt String = "apiProvider",
    }
}

wire! {
    /// The answer to `list_models`.
    pub struct ListModelsResponse {
        /// The models.
        models: req Vec<ModelInfo>,
    }
}

wire! {
    /// The answer to `interrupt`.
    pub struct InterruptResponse {
        /// Prompts that still wait.
        still_queued: req Vec<Uuid>,
        /// Prompts that were dropped.
        cancelled: opt Vec<Uuid>,
    }
}

wire! {
    /// The answer to `set_permission_mode`.
    pub struct SetPermissionModeResponse {
        /// The mode.
        mode: req PermissionMode,
    }
}

wire! {
    /// The answer to `set_model`.
    pub struct SetModelResponse {
        /// The model.
        model: req String,
    }
}

wire! {
    /// The answer to `mcp_status`.
    pub struct McpStatusResponse {
        /// The servers.
        servers: req Vec<McpServerStatus> = "mcpServers",
    }
}

wire! {
    /// An MCP server and how it stands.
    pub struct McpServerStatus {
        /// Its name.
        name: req String,
        /// `connected`, `failed`, `pending` or `disabled`.
        status: req McpServerState,
        /// What it says of itself.
        server_info: opt McpServerInfo = "serverInfo",
        /// Why it failed.
        error: opt String,
        /// `stdio`, `http` or `sdk`.
        transport: opt McpTransport,
        /// Where it was configured.
        scope: opt String,
        /// Who configured it.
        source: opt String,
        /// Its tools.
        tools: opt Vec<McpTool>,
    }
}

wire! {
    /// What an MCP server says of itself.
    pub struct McpServerInfo {
        /// Its name.
        name: req String,
        /// Version of the program that wrote the entry.
        version: req String,
    }
}

wire! {
    /// A tool of an MCP server.
    pub struct McpTool {
        /// Its name.
        name: req String,
        /// What it promises.
        annotations: opt Json,
    }
}

wire! {
    /// The host's answer to `mcp_message`.
    pub struct McpMessageResponse {
        /// The JSON-RPC answer.
        mcp_response: opt Json,
    }
}

wire! {
    /// The answer to `mcp_set_servers`.
    pub struct McpSetServersResponse {
        /// Servers that came.
        added: req Vec<String>,
        /// Servers that went.
        removed: req Vec<String>,
        /// Those that failed, and why.
        errors: req BTreeMap<String, String>,
    }
}

wire! {
    /// The answer to `mcp_call`: what the tool gave, in the server's own form.
    pub struct McpCallResponse {
        /// Content blocks of the result.
        content: opt Vec<Json>,
        /// The same as a value.
        structured_content: opt Json = "structuredContent",
        /// Whether the tool failed.
        is_error: opt bool = "isError",
    }
}

wire! {
    /// The answer to `mcp_read_resource`.
    pub struct McpReadResourceResponse {
        /// What the resource holds.
        contents: opt Vec<Json>,
    }
}

wire! {
    /// The answer to `rewind_files`.
    pub struct RewindFilesResponse {
        /// Whether it can be done.
        can_rewind: req bool = "canRewind",
        /// Files that would change, when only asked.
        files_changed: opt Vec<String> = "filesChanged",
        /// Lines that would come.
        insertions: opt u64,
        /// Lines that would go.
        deletions: opt u64,
        /// Links left alone.
        skipped_links: opt u64 = "skippedLinks",
    }
}

wire! {
    /// The answer to `get_context_usage`.
    pub struct GetContextUsageResponse {
        /// What fills the context.
        categories: req Vec<ContextCategory>,
        /// Tokens in use.
        total_tokens: req u64 = "totalTokens",
        /// Tokens there is room for.
        max_tokens: req u64 = "maxTokens",
        /// The same before any reserve.
        raw_max_tokens: req u64 = "rawMaxTokens",
        /// How full it is.
        percentage: req u64,
        /// The model.
        model: req String,
        /// The instruction files.
        memory_files: req Vec<Json> = "memoryFiles",
        /// The tools of MCP servers.
        mcp_tools: req Vec<Json> = "mcpTools",
        /// The user's own subagents.
        agents: req Vec<Json>,
        /// Where compaction sets in.
        auto_compact_threshold: opt u64 = "autoCompactThreshold",
        /// Whether it does.
        is_auto_compact_enabled: req bool = "isAutoCompactEnabled",
        /// What the last call used.
        api_usage: opt Usage = "apiUsage",
        /// Cells of a grid that visualises the usage.
        grid_rows: req Vec<Json> = "gridRows",
    }
}

wire! {
    /// One thing that fills the context.
    pub struct ContextCategory {
        /// Its name for programs.
        id: opt String,
        /// Its name.
        name: req String,
        /// How much it fills.
        tokens: req u64,
        /// How it is drawn.
        color: opt String,
        /// `used`, `free` or `buffer`.
        kind: opt String,
    }
}

wire! {
    /// The answer to `get_usage`.
    pub struct GetUsageResponse {
        /// The session.
        session: req SessionUsage,
        /// The plan, when there is one.
        subscription_type: opt String,
        /// Whether allowances are known.
        rate_limits_available: req bool,
        /// The allowances.
        rate_limits: opt Json,
        /// The user's habits.
        behaviors: opt Json,
    }
}

wire! {
    /// What a session used.
    pub struct SessionUsage {
        /// Dollars.
        total_cost_usd: opt Number,
        /// Time in calls.
        total_api_duration_ms: req u64,
        /// Time in all.
        total_duration_ms: req u64,
        /// Lines of code added.
        total_lines_added: req u64,
        /// Lines of code removed.
        total_lines_removed: req u64,
        /// By model.
        model_usage: req BTreeMap<String, ModelUsage>,
    }
}

wire! {
    /// The answer to `get_session_cost`.
    pub struct GetSessionCostResponse {
        /// In words.
        text: req String,
    }
}

wire! {
    /// The answer to `get_binary_version`.
    pub struct GetBinaryVersionResponse {
        /// Version of the program that wrote the entry.
        version: req String,
    }
}

wire! {
    /// The answer to `get_settings`.
    pub struct GetSettingsResponse {
        /// All settings together.
        effective: req Json,
        /// The files they are from.
        sources: req Vec<Json>,
        /// What is in force.
        applied: req AppliedSettings,
    }
}

wire! {
    /// What is in force.
    pub struct AppliedSettings {
        /// The model.
        model: req String,
        /// How hard it thinks.
        effort: opt Effort,
    }
}

wire! {
    /// The answer to `get_hooks_listing`.
    pub struct GetHooksListingResponse {
        /// The events that have hooks.
        events: req Vec<String>,
        /// The hooks.
        hooks: req Vec<ConfiguredHook>,
        /// The events there are.
        event_catalog: req Vec<HookEventInfo> = "eventCatalog",
    }
}

wire! {
    /// A hook.
    pub struct ConfiguredHook {
        /// The event.
        event: req String,
        /// Which tools or sources it is for.
        matcher: opt String,
        /// What runs.
        command: req String,
    }
}

wire! {
    /// An event that hooks may be for.
    pub struct HookEventInfo {
        /// Its name.
        name: req String,
        /// When it comes.
        summary: req String,
        /// Whether a hook may choose among its tools or sources.
        supports_matcher: req bool = "supportsMatcher",
    }
}

wire! {
    /// The answer to `list_permission_rules`.
    pub struct ListPermissionRulesResponse {
        /// The rules.
        state: req PermissionState,
    }
}

wire! {
    /// Rules and folders.
    pub struct PermissionState {
        /// The rules.
        rules: req Vec<PermissionRule>,
        /// Folders allowed in addition to the working directory.
        workspace_directories: req Vec<String> = "workspaceDirectories",
        /// Where the program was started.
        original_cwd: req String = "originalCwd",
        /// Whether only managed rules count.
        managed_only: req bool = "managedOnly",
    }
}

wire! {
    /// A rule.
    pub struct PermissionRule {
        /// `allow`, `deny` or `ask`.
        behavior: req RuleBehavior,
        /// The rule as written.
        rule: req String,
        /// Where it stands.
        source: req SettingsLocation,
    }
}

wire! {
    /// The answer to `read_file`.
    pub struct ReadFileResponse {
        /// What it holds.
        contents: req String,
        /// Where it is.
        abs_path: req String = "absPath",
        /// Whether some bytes could not be shown.
        lossy: req bool,
        /// The path as asked for.
        requested_path: req String,
    }
}

wire! {
    /// The answer to `file_suggestions`.
    pub struct FileSuggestionsResponse {
        /// The files.
        suggestions: req Vec<FileSuggestion>,
        /// Where they are.
        cwd: req String,
    }
}

wire! {
    /// A file that matches.
    pub struct FileSuggestion {
        /// Its path.
        path: req String,
    }
}

wire! {
    /// The answer to `reload_plugins`.
    pub struct ReloadPluginsResponse {
        /// The slash commands.
        commands: req Vec<SlashCommand>,
        /// The subagents.
        agents: req Vec<AgentInfo>,
        /// The plugins.
        plugins: req Vec<Json>,
        /// The MCP servers.
        mcp_servers: req Vec<McpServerStatus> = "mcpServers",
        /// How many failed.
        error_count: req u64,
    }
}

wire! {
    /// The answer to `reload_skills`.
    pub struct ReloadSkillsResponse {
        /// The skills.
        skills: req Vec<SlashCommand>,
    }
}

wire! {
    /// The answer to `reload_output_styles`.
    pub struct ReloadOutputStylesResponse {
        /// The output styles there are.
        available_output_styles: req Vec<String>,
    }
}

wire! {
    /// The answer to `cancel_async_message`.
    pub struct CancelAsyncMessageResponse {
        /// Whether the prompt was still waiting.
        cancelled: req bool,
    }
}

wire! {
    /// The answer to `get_task_output`.
    pub struct GetTaskOutputResponse {
        /// What it printed.
        output: req String,
    }
}

wire! {
    /// The answer to `generate_session_title`.
    pub struct GenerateSessionTitleResponse {
        /// The title.
        title: opt String,
    }
}

wire! {
    /// The answer to `side_question`.
    pub struct SideQuestionResponse {
        /// The model's words.
        response: req String,
        /// Whether no model said them.
        synthetic: req bool,
    }
}

wire! {
    /// An answer without content.
    pub struct EmptyResponse {}
}
