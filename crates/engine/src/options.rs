//! What the person or the host asked for when they started the agent.

use std::path::PathBuf;

use crate::sandbox::Switch;

/// How the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The final answer as text.
    #[default]
    Text,
    /// The final result as one JSON document; all lines in an array when verbose.
    Json,
    /// One line of JSON for everything that happens.
    StreamJson,
}

/// Which session to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// A new one.
    #[default]
    New,
    /// The last one of this directory; a new one when there is none.
    Continue,
    /// The one of this id, or the file at this path.
    Resume(String),
}

/// Everything the flags say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The prompt; with stream-json input prompts come on stdin.
    pub prompt: Option<String>,
    /// Prompts and control requests come on stdin, a line each.
    pub stream_input: bool,
    /// How to speak.
    pub format: Format,
    /// Say everything (JSON output).
    pub verbose: bool,
    /// Pass on the pieces of answers.
    pub partial_messages: bool,
    /// Report hooks of settings files.
    pub hook_events: bool,
    /// Echo prompts.
    pub replay_user_messages: bool,
    /// Pass on what subagents say, not only what they do.
    pub forward_subagent_text: bool,
    /// Report what is written to the session file.
    pub session_mirror: bool,
    /// Suggest what the person might say next.
    pub prompt_suggestions: bool,
    /// Which session.
    pub start: Start,
    /// Go on in a session of its own.
    pub fork: bool,
    /// The id of the new session.
    pub session_id: Option<String>,
    /// Go on from this line.
    pub resume_at: Option<String>,
    /// The prompt whose turn alone may be left behind by going on from an earlier line.
    pub drops_turn: Option<String>,
    /// Write no session file.
    pub no_persistence: bool,
    /// The session's title.
    pub name: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The model to ask when the first is overloaded.
    pub fallback_model: Option<String>,
    /// How hard to think: `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// How many tokens thinking may take.
    pub max_thinking_tokens: Option<u64>,
    /// How thinking is shown: `summarized`, `omitted` …
    pub thinking_display: Option<String>,
    /// How many tokens the model is told it has for the whole task.
    pub task_budget: Option<u64>,
    /// Extra `anthropic-beta` names.
    pub betas: Vec<String>,
    /// The permission mode.
    pub permission_mode: Option<String>,
    /// Ask for nothing.
    pub skip_permissions: bool,
    /// The mode that asks for nothing may be chosen later.
    pub may_skip_permissions: bool,
    /// Rules that allow.
    pub allowed_tools: Vec<String>,
    /// Rules that refuse; a bare tool name takes the tool away.
    pub disallowed_tools: Vec<String>,
    /// The tools on offer; none means all.
    pub tools: Option<Vec<String>>,
    /// Who answers permission requests: `stdio` is the host.
    pub permission_prompt: Option<String>,
    /// MCP servers: files or JSON.
    pub mcp_config: Vec<String>,
    /// Take no MCP servers from anywhere else.
    pub strict_mcp: bool,
    /// More settings: a file or JSON.
    pub settings: Option<String>,
    /// Which settings files to read; none means all.
    pub setting_sources: Option<Vec<String>>,
    /// The folder the session starts in is trusted.
    pub trust_folder: bool,
    /// Folders that the user trusts, from quipu's own settings.
    pub trusted_folders: Vec<PathBuf>,
    /// Hooks of the project run though its folder is not trusted.
    pub allow_project_hooks: bool,
    /// Folders with commands, skills, subagents and hooks of their own.
    pub plugin_dirs: Vec<PathBuf>,
    /// Subagents as JSON.
    pub agents: Option<String>,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// How many calls a turn may take.
    pub max_turns: Option<u64>,
    /// How much the session may cost.
    pub max_budget_usd: Option<f64>,
    /// The form of the answer, as a JSON schema.
    pub json_schema: Option<String>,
    /// Folders allowed beside the working directory.
    pub add_dirs: Vec<PathBuf>,
    /// Slash commands are plain text.
    pub no_slash_commands: bool,
    /// Whether to hold commands in a sandbox.
    pub sandbox: Switch,
    /// The program that sets the sandbox up; without one, what would need it is asked about.
    pub launcher: Option<PathBuf>,
}
