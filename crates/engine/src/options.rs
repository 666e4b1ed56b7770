//! The options that an agent is started with.

use std::path::PathBuf;

use quipu_conversation::price::Prices;
use quipu_message::values::ThinkingDisplay;

use crate::sandbox::SandboxMode;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Only the final answer, as text.
    #[default]
    Text,
    /// The final result as one JSON document; all lines in an array if `verbose`.
    Json,
    /// One line of JSON per event.
    StreamJson,
}

/// Which session to resume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ResumeMode {
    /// None: start a new session.
    #[default]
    New,
    /// The last session of this directory; a new one if there is none.
    Continue,
    /// The session of this id or title, or the transcript at this path.
    Resume(String),
}

/// When the context is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autocompact {
    /// Shortly before the context window of the model is full.
    Auto,
    /// At this number of tokens.
    Tokens(u64),
}

impl Autocompact {
    /// Parses `auto`, or a number of tokens from 100k to 1M.
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
    /// Path of its folder, relative to the working directory.
    pub path: PathBuf,
    /// Whether its MCP servers are used.
    pub uses_mcp: bool,
}

/// Which git worktree a session works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worktree {
    /// A new one with a generated name.
    New,
    /// The one of this name, created if it does not exist.
    Named(String),
}

/// The options of an agent, as its flags set them.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The prompt; `None` if prompts come on stdin.
    pub prompt: Option<String>,
    /// Read prompts and control requests from stdin, one JSON line each.
    pub stream_input: bool,
    /// The output format.
    pub format: Format,
    /// With JSON output, print all lines instead of the last result.
    pub verbose: bool,
    /// Emit the events of answers as they stream in.
    pub partial_messages: bool,
    /// Emit the start and end of hook commands.
    pub hook_events: bool,
    /// Emit prompts back to the host.
    pub replay_user_messages: bool,
    /// Emit the text of subagents, not only their tool calls.
    pub forward_subagent_text: bool,
    /// Emit a copy of everything written to the transcript.
    pub session_mirror: bool,
    /// Suggest the next prompt to the user after each turn.
    pub prompt_suggestions: bool,
    /// Which session to resume.
    pub resume_mode: ResumeMode,
    /// Continue in a copy of the resumed session.
    pub fork: bool,
    /// The id of the new session, a UUID; a random one if `None`.
    pub session_id: Option<String>,
    /// UUID of the entry to continue from; the last one if `None`.
    pub resume_at: Option<String>,
    /// UUID of the only prompt whose turn `resume_at` may drop.
    pub resume_drops_turn: Option<String>,
    /// Write no transcript.
    pub no_persistence: bool,
    /// The title of the session.
    pub name: Option<String>,
    /// Name or alias of the model.
    pub model: Option<String>,
    /// The models to try in this order while the first is overloaded.
    pub fallback_models: Vec<String>,
    /// The effort level: `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// The most tokens of thinking; 0 turns it off.
    pub max_thinking_tokens: Option<u64>,
    /// How thinking is displayed: `summarized`, `omitted` …
    pub thinking_display: Option<ThinkingDisplay>,
    /// The token budget for the whole task that the model is informed of.
    pub task_budget: Option<u64>,
    /// Additional values of the `anthropic-beta` header.
    pub betas: Vec<String>,
    /// Name of the permission mode.
    pub permission_mode: Option<String>,
    /// Start in permission mode `bypassPermissions`.
    pub skip_permissions: bool,
    /// Permission mode `bypassPermissions` may be chosen later.
    pub may_skip_permissions: bool,
    /// Permission rules that allow tool calls.
    pub allowed_tools: Vec<String>,
    /// Permission rules that deny tool calls; a bare tool name removes the tool.
    pub disallowed_tools: Vec<String>,
    /// Names of the available tools; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The MCP tool that decides about permission requests; `stdio` is the host.
    pub permission_prompt_tool: Option<String>,
    /// Deny permission requests instead of sending them to the host.
    pub no_permission_prompts: bool,
    /// Configurations of MCP servers: paths of files, or JSON.
    pub mcp_config: Vec<String>,
    /// Use only the MCP servers of `mcp_config`.
    pub strict_mcp_config: bool,
    /// Additional settings: the path of a file, or JSON.
    pub settings: Option<String>,
    /// The settings files to read; `None` for all.
    pub setting_sources: Option<Vec<String>>,
    /// Trust the folder that the session starts in.
    pub trust_folder: bool,
    /// Folders that the user trusts, from quipu's own settings.
    pub trusted_folders: Vec<PathBuf>,
    /// Run hooks of the project even if its folder is not trusted.
    pub allow_project_hooks: bool,
    /// Plugin folders, with their own commands, skills, subagents, hooks and MCP servers.
    pub plugin_dirs: Vec<PluginDir>,
    /// Wait for `initialize` as the first line, and load the plugins that it names.
    pub await_initialize: bool,
    /// Wait for `initialize` as the first line; it must have `managedSettings`.
    pub managed_in_initialize: bool,
    /// Managed settings of the host as JSON; only restrictions apply.
    pub managed_settings: Option<String>,
    /// The folder of managed settings; `None` for the default of the system.
    pub managed_folder: Option<PathBuf>,
    /// The checkout whose project settings, `.mcp.json` and `.claude` folder are used
    /// instead of those of the working directory.
    pub project_config_root: Option<PathBuf>,
    /// Definitions of subagents: JSON, or the path of a file.
    pub agents: Option<String>,
    /// The agent that the session runs as: its prompt, tools and model.
    pub agent: Option<String>,
    /// A system prompt instead of the default one.
    pub system_prompt: Option<String>,
    /// Text to add at the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// Generate the system prompt for each request instead of recording it once.
    pub no_system_prompt_snapshot: bool,
    /// The most API calls of a turn.
    pub max_turns: Option<u64>,
    /// The most that the session may cost, in US dollars.
    pub max_budget_usd: Option<f64>,
    /// JSON schema of the final answer, as JSON text.
    pub json_schema: Option<String>,
    /// Additional folders that tools may work in.
    pub add_dirs: Vec<PathBuf>,
    /// Work in this git worktree of the repository.
    pub worktree: Option<Worktree>,
    /// Treat slash commands as plain text.
    pub no_slash_commands: bool,
    /// When the context is compacted; `None` for the default of the environment and the model.
    pub autocompact: Option<Autocompact>,
    /// Only Bash, Edit and Read; no hooks, no instruction files.
    pub bare: bool,
    /// No customisation: no settings files but managed ones, no instructions, hooks, MCP
    /// servers, skills, commands or subagents of files.
    pub safe_mode: bool,
    /// No tools that run commands and no WebFetch unless `tools` names them, no settings
    /// files but managed ones, file tools confined to the session's folders.
    pub restricted: bool,
    /// The prices of models; the bundled ones if `None`.
    pub prices: Option<Prices>,
    /// Whether commands run in a sandbox.
    pub sandbox: SandboxMode,
    /// Path of the program that sets up the sandbox; if `None`, commands that need it need permission.
    pub sandbox_launcher: Option<PathBuf>,
}
