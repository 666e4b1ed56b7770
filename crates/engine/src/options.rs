//! What the user or the host asked for when they started the agent.

use std::path::PathBuf;

use quipu_conversation::price::Prices;

use crate::sandbox::SandboxMode;

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
pub enum ResumeMode {
    /// A new one.
    #[default]
    New,
    /// The last one of this directory; a new one when there is none.
    Continue,
    /// The one of this id or title, or the file at this path.
    Resume(String),
}

/// When the context is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autocompact {
    /// Before the model's context is full.
    Auto,
    /// When the context holds this many tokens.
    Tokens(u64),
}

impl Autocompact {
    /// Reads `auto`, or a number of tokens from 100k to 1M.
    ///
    /// ```
    /// use quipu_engine::Autocompact;
    /// assert_eq!(Autocompact::parse("auto"), Ok(Autocompact::Auto));
    /// assert_eq!(Autocompact::parse("250k"), Ok(Autocompact::Tokens(250_000)));
    /// assert!(Autocompact::parse("10k").is_err() && Autocompact::parse("2M").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (digits, unit) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1_000),
            None => text.strip_suffix(['m', 'M']).map_or((text, 1), |digits| (digits, 1_000_000)),
        };
        let tokens = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let tokens = tokens.filter(|tokens| (100_000..=1_000_000).contains(tokens));
        tokens.map(Self::Tokens).ok_or_else(|| "must be auto, or tokens from 100k to 1M".to_owned())
    }
}

/// A plugin that a flag or the host names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDir {
    /// Its folder; relative to the working directory.
    pub path: PathBuf,
    /// Whether its MCP servers are used.
    pub uses_mcp: bool,
}

/// Which worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worktree {
    /// A new one, with a name that is made up.
    New,
    /// The one of this name, made if it is not there.
    Named(String),
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
    pub resume_mode: ResumeMode,
    /// Go on in a session of its own.
    pub fork: bool,
    /// The id of the new session.
    pub session_id: Option<String>,
    /// Go on from this line.
    pub resume_at: Option<String>,
    /// The prompt whose turn alone may be left behind by going on from an earlier line.
    pub resume_drops_turn: Option<String>,
    /// Write no session file.
    pub no_persistence: bool,
    /// The session's title.
    pub name: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The models to ask when the first stays overloaded, in this order.
    pub fallback_models: Vec<String>,
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
    pub permission_prompt_tool: Option<String>,
    /// No host answers permission requests: they are denied.
    pub no_permission_prompts: bool,
    /// MCP servers: files or JSON.
    pub mcp_config: Vec<String>,
    /// Take no MCP servers from anywhere else.
    pub strict_mcp_config: bool,
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
    /// Folders with commands, skills, subagents, hooks and MCP servers of their own.
    pub plugin_dirs: Vec<PluginDir>,
    /// The first line of the host is `initialize`, and the plugins that it names are loaded.
    pub await_initialize: bool,
    /// The first line of the host is `initialize` and holds `managed_settings`.
    pub managed_in_initialize: bool,
    /// Settings of the host as JSON; only what restricts counts.
    pub managed_settings: Option<String>,
    /// The folder of the administrator's settings; `None` is the system's own.
    pub managed_folder: Option<PathBuf>,
    /// The checkout whose project settings, `.mcp.json` and `.claude` folder are used
    /// instead of those of the working directory.
    pub project_config_root: Option<PathBuf>,
    /// Subagents as JSON.
    pub agents: Option<String>,
    /// The agent that the session runs as: its prompt, tools and model.
    pub agent: Option<String>,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// Send the system prompt anew each time instead of recording it once.
    pub no_system_prompt_snapshot: bool,
    /// How many calls a turn may take.
    pub max_turns: Option<u64>,
    /// How much the session may cost.
    pub max_budget_usd: Option<f64>,
    /// The form of the answer, as a JSON schema.
    pub json_schema: Option<String>,
    /// Folders allowed beside the working directory.
    pub add_dirs: Vec<PathBuf>,
    /// Work in a git worktree of the repository.
    pub worktree: Option<Worktree>,
    /// Slash commands are plain text.
    pub no_slash_commands: bool,
    /// When the context is compacted; `None` is what the environment and the model say.
    pub autocompact: Option<Autocompact>,
    /// Only Bash, Edit and Read; no hooks, no instruction files.
    pub bare: bool,
    /// No customisation: no settings files but managed ones, no instructions, hooks, MCP
    /// servers, skills, commands or subagents of files.
    pub safe_mode: bool,
    /// No tools that run commands and no WebFetch unless `tools` names them, no settings
    /// files but managed ones, file tools confined to the session's folders.
    pub restricted: bool,
    /// What models cost; the bundled prices if `None`.
    pub prices: Option<Prices>,
    /// Whether to hold commands in a sandbox.
    pub sandbox: SandboxMode,
    /// The program that sets the sandbox up; without one, what would need it is asked about.
    pub sandbox_launcher: Option<PathBuf>,
}
