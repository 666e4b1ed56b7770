//! What an agent answers to the requests of a host.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::wire;
use crate::usage::ModelUsage;
use crate::{Json, Usage, Uuid};

wire! {
    /// The answer to `initialize`; older versions say less.
    pub struct Initialized {
        /// The slash commands.
        commands: req Vec<Command> = "commands",
        /// The subagents.
        agents: opt Vec<Agent> = "agents",
        /// The output style.
        output_style: opt String = "output_style",
        /// The output styles there are.
        available_output_styles: opt Vec<String> = "available_output_styles",
        /// The models there are.
        models: opt Vec<Model> = "models",
        /// Who pays.
        account: opt Account = "account",
        /// The process.
        pid: opt u32 = "pid",
        /// The version.
        claude_code_version: opt String = "claude_code_version",
        /// The permission mode.
        current_permission_mode: opt String = "current_permission_mode",
        /// Whether the hooks were taken.
        hooks_applied: opt bool = "hooks_applied",
        /// Whether a hook that fails can block.
        hook_on_failure_supported: opt bool = "hook_on_failure_supported",
        /// `idle`, `running` …
        session_state: opt String = "session_state",
        /// What hosts may rely on.
        capabilities: opt Vec<String> = "capabilities",
    }
}

wire! {
    /// A slash command or skill.
    pub struct Command {
        /// Its name, without the slash.
        name: req String = "name",
        /// What it does.
        description: req String = "description",
        /// What may follow it.
        argument_hint: req String = "argumentHint",
        /// Whether it is part of the program.
        builtin: opt bool = "builtin",
    }
}

wire! {
    /// A subagent.
    pub struct Agent {
        /// Its name.
        name: req String = "name",
        /// When to use it.
        description: req String = "description",
        /// The model it runs on.
        model: opt String = "model",
    }
}

wire! {
    /// A model.
    pub struct Model {
        /// What to ask for.
        value: req String = "value",
        /// What that is now.
        resolved_model: opt String = "resolvedModel",
        /// Its name as shown.
        display_name: req String = "displayName",
        /// What it is good for.
        description: req String = "description",
        /// Whether it takes an effort level.
        supports_effort: opt bool = "supportsEffort",
        /// The effort levels it takes.
        supported_effort_levels: opt Vec<String> = "supportedEffortLevels",
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
    pub struct Account {
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
    pub struct Models {
        /// The models.
        models: req Vec<Model> = "models",
    }
}

wire! {
    /// The answer to `interrupt`.
    pub struct Interrupted {
        /// Prompts that still wait.
        still_queued: req Vec<Uuid> = "still_queued",
        /// Prompts that were dropped.
        cancelled: opt Vec<Uuid> = "cancelled",
    }
}

wire! {
    /// The answer to `set_permission_mode`.
    pub struct ModeSet {
        /// The mode.
        mode: req String = "mode",
    }
}

wire! {
    /// The answer to `set_model`.
    pub struct ModelSet {
        /// The model.
        model: req String = "model",
    }
}

wire! {
    /// The answer to `mcp_status`.
    pub struct McpServers {
        /// The servers.
        servers: req Vec<McpServer> = "mcpServers",
    }
}

wire! {
    /// An MCP server and how it stands.
    pub struct McpServer {
        /// Its name.
        name: req String = "name",
        /// `connected`, `failed`, `pending` or `disabled`.
        status: req String = "status",
        /// What it says of itself.
        server_info: opt McpServerInfo = "serverInfo",
        /// Why it failed.
        error: opt String = "error",
        /// `stdio`, `http` or `sdk`.
        transport: opt String = "transport",
        /// Where it was configured.
        scope: opt String = "scope",
        /// Who configured it.
        source: opt String = "source",
        /// Its tools.
        tools: opt Vec<McpTool> = "tools",
    }
}

wire! {
    /// What an MCP server says of itself.
    pub struct McpServerInfo {
        /// Its name.
        name: req String = "name",
        /// Its version.
        version: req String = "version",
    }
}

wire! {
    /// A tool of an MCP server.
    pub struct McpTool {
        /// Its name.
        name: req String = "name",
        /// What it promises.
        annotations: opt Json = "annotations",
    }
}

wire! {
    /// The host's answer to `mcp_message`.
    pub struct McpReply {
        /// The JSON-RPC answer.
        mcp_response: opt Json = "mcp_response",
    }
}

wire! {
    /// The answer to `mcp_set_servers`.
    pub struct McpServersSet {
        /// Servers that came.
        added: req Vec<String> = "added",
        /// Servers that went.
        removed: req Vec<String> = "removed",
        /// Those that failed, and why.
        errors: req BTreeMap<String, String> = "errors",
    }
}

wire! {
    /// The answer to `mcp_call`: what the tool gave, in the server's own form.
    pub struct McpResult {
        /// What it gave.
        content: opt Vec<Json> = "content",
        /// The same as a value.
        structured_content: opt Json = "structuredContent",
        /// Whether it failed.
        is_error: opt bool = "isError",
    }
}

wire! {
    /// The answer to `mcp_read_resource`.
    pub struct McpResource {
        /// What the resource holds.
        contents: opt Vec<Json> = "contents",
    }
}

wire! {
    /// The answer to `rewind_files`.
    pub struct Rewound {
        /// Whether it can be done.
        can_rewind: req bool = "canRewind",
        /// Files that would change, when only asked.
        files_changed: opt Vec<String> = "filesChanged",
        /// Lines that would come.
        insertions: opt u64 = "insertions",
        /// Lines that would go.
        deletions: opt u64 = "deletions",
        /// Links left alone.
        skipped_links: opt u64 = "skippedLinks",
    }
}

wire! {
    /// The answer to `get_context_usage`.
    pub struct ContextUsage {
        /// What fills the context.
        categories: req Vec<ContextShare> = "categories",
        /// Tokens in use.
        total_tokens: req u64 = "totalTokens",
        /// Tokens there is room for.
        max_tokens: req u64 = "maxTokens",
        /// The same before any reserve.
        raw_max_tokens: req u64 = "rawMaxTokens",
        /// How full it is.
        percentage: req u64 = "percentage",
        /// The model.
        model: req String = "model",
        /// The instruction files.
        memory_files: req Vec<Json> = "memoryFiles",
        /// The tools of MCP servers.
        mcp_tools: req Vec<Json> = "mcpTools",
        /// The person's own subagents.
        agents: req Vec<Json> = "agents",
        /// Where compaction sets in.
        auto_compact_threshold: opt u64 = "autoCompactThreshold",
        /// Whether it does.
        is_auto_compact_enabled: req bool = "isAutoCompactEnabled",
        /// What the last call used.
        api_usage: opt Usage = "apiUsage",
        /// Squares to draw it with.
        grid_rows: req Vec<Json> = "gridRows",
    }
}

wire! {
    /// One thing that fills the context.
    pub struct ContextShare {
        /// Its name for programs.
        id: opt String = "id",
        /// Its name.
        name: req String = "name",
        /// How much it fills.
        tokens: req u64 = "tokens",
        /// How it is drawn.
        color: opt String = "color",
        /// `used`, `free` or `buffer`.
        kind: opt String = "kind",
    }
}

wire! {
    /// The answer to `get_usage`.
    pub struct UsageReport {
        /// The session.
        session: req SessionUsage = "session",
        /// The plan, when there is one.
        subscription_type: opt String = "subscription_type",
        /// Whether allowances are known.
        rate_limits_available: req bool = "rate_limits_available",
        /// The allowances.
        rate_limits: opt Json = "rate_limits",
        /// The person's habits.
        behaviors: opt Json = "behaviors",
    }
}

wire! {
    /// What a session used.
    pub struct SessionUsage {
        /// Dollars.
        total_cost_usd: opt Number = "total_cost_usd",
        /// Time in calls.
        total_api_duration_ms: req u64 = "total_api_duration_ms",
        /// Time in all.
        total_duration_ms: req u64 = "total_duration_ms",
        /// Lines of code added.
        total_lines_added: req u64 = "total_lines_added",
        /// Lines of code removed.
        total_lines_removed: req u64 = "total_lines_removed",
        /// By model.
        model_usage: req BTreeMap<String, ModelUsage> = "model_usage",
    }
}

wire! {
    /// The answer to `get_session_cost`.
    pub struct SessionCost {
        /// In words.
        text: req String = "text",
    }
}

wire! {
    /// The answer to `get_binary_version`.
    pub struct BinaryVersion {
        /// The version.
        version: req String = "version",
    }
}

wire! {
    /// The answer to `get_settings`.
    pub struct Settings {
        /// All settings together.
        effective: req Json = "effective",
        /// The files they are from.
        sources: req Vec<Json> = "sources",
        /// What is in force.
        applied: req Applied = "applied",
    }
}

wire! {
    /// What is in force.
    pub struct Applied {
        /// The model.
        model: req String = "model",
        /// How hard it thinks.
        effort: opt String = "effort",
    }
}

wire! {
    /// The answer to `get_hooks_listing`.
    pub struct HooksListing {
        /// The events that have hooks.
        events: req Vec<String> = "events",
        /// The hooks.
        hooks: req Vec<HookListed> = "hooks",
        /// The events there are.
        event_catalog: req Vec<HookEvent> = "eventCatalog",
    }
}

wire! {
    /// A hook.
    pub struct HookListed {
        /// The event.
        event: req String = "event",
        /// Which tools or sources it is for.
        matcher: opt String = "matcher",
        /// What runs.
        command: req String = "command",
    }
}

wire! {
    /// An event that hooks may be for.
    pub struct HookEvent {
        /// Its name.
        name: req String = "name",
        /// When it comes.
        summary: req String = "summary",
        /// Whether a hook may choose among its tools or sources.
        supports_matcher: req bool = "supportsMatcher",
    }
}

wire! {
    /// The answer to `list_permission_rules`.
    pub struct PermissionRules {
        /// The rules.
        state: req PermissionState = "state",
    }
}

wire! {
    /// Rules and folders.
    pub struct PermissionState {
        /// The rules.
        rules: req Vec<PermissionRule> = "rules",
        /// Folders allowed beside the working directory.
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
        behavior: req String = "behavior",
        /// The rule as written.
        rule: req String = "rule",
        /// Where it stands.
        source: req String = "source",
    }
}

wire! {
    /// The answer to `read_file`.
    pub struct FileRead {
        /// What it holds.
        contents: req String = "contents",
        /// Where it is.
        abs_path: req String = "absPath",
        /// Whether some bytes could not be shown.
        lossy: req bool = "lossy",
        /// The path as asked for.
        requested_path: req String = "requested_path",
    }
}

wire! {
    /// The answer to `file_suggestions`.
    pub struct FileSuggestions {
        /// The files.
        suggestions: req Vec<FileSuggestion> = "suggestions",
        /// Where they are.
        cwd: req String = "cwd",
    }
}

wire! {
    /// A file that matches.
    pub struct FileSuggestion {
        /// Its path.
        path: req String = "path",
    }
}

wire! {
    /// The answer to `reload_plugins`.
    pub struct Reloaded {
        /// The slash commands.
        commands: req Vec<Command> = "commands",
        /// The subagents.
        agents: req Vec<Agent> = "agents",
        /// The plugins.
        plugins: req Vec<Json> = "plugins",
        /// The MCP servers.
        mcp_servers: req Vec<McpServer> = "mcpServers",
        /// How many failed.
        error_count: req u64 = "error_count",
    }
}

wire! {
    /// The answer to `reload_skills`.
    pub struct Skills {
        /// The skills.
        skills: req Vec<Command> = "skills",
    }
}

wire! {
    /// The answer to `reload_output_styles`.
    pub struct OutputStyles {
        /// The output styles there are.
        available_output_styles: req Vec<String> = "available_output_styles",
    }
}

wire! {
    /// The answer to `cancel_async_message`.
    pub struct Cancelled {
        /// Whether the prompt was still waiting.
        cancelled: req bool = "cancelled",
    }
}

wire! {
    /// The answer to `get_task_output`.
    pub struct TaskOutput {
        /// What it printed.
        output: req String = "output",
    }
}

wire! {
    /// The answer to `generate_session_title`.
    pub struct Title {
        /// The title.
        title: opt String = "title",
    }
}

wire! {
    /// The answer to `side_question`.
    pub struct SideAnswer {
        /// The model's words.
        response: req String = "response",
        /// Whether no model said them.
        synthetic: req bool = "synthetic",
    }
}

wire! {
    /// An answer without content.
    pub struct Nothing {}
}
