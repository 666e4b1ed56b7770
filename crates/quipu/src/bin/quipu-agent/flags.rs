//! The flags: those of `claude`, and a few of our own.
//! `docs/compat.md` has a table of all of them, and a test passes each.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use quipu_engine::Autocompact;

const OUTPUT_HEADING: &str = "Input and output";
const SESSION_HEADING: &str = "Sessions";
const MODEL_HEADING: &str = "The model and its answer";
const TOOLS_HEADING: &str = "Tools and permissions";
const SETTINGS_HEADING: &str = "Settings and prompts";
const DEBUG_HEADING: &str = "Debugging";

const EXAMPLES: &str = "\
Examples:
  quipu-agent -p \"what does this project do?\"
  git diff | quipu-agent -p \"review this\" --output-format json
  quipu-agent -p \"and the tests?\" --continue
  quipu-agent -p \"fix the typos\" --permission-mode acceptEdits --allowedTools \"Bash(git log:*)\"
  quipu-agent --input-format stream-json --output-format stream-json     as SDKs start it
  quipu-agent mcp add files -- npx files-server

Commands: `auth status`, `mcp add|add-json|get|list|remove`.
ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN holds the key, ANTHROPIC_BASE_URL another endpoint.
To try it without either: `quipu answer SCRIPT` plays the model.
Flags of Claude Code that have no meaning here are accepted with a warning.
The exit code is 0 after an answer, 1 after an error, 2 for wrong flags.";

/// A headless agent that programs written for `claude` can spawn instead, on any
/// Anthropic-compatible endpoint (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY).
#[derive(Debug, Parser)]
#[command(
    name = "quipu-agent",
    disable_version_flag = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub(crate) struct Flags {
    /// The prompt; piped input is appended to it
    pub(crate) prompt: Option<String>,
    /// Further arguments are ignored, with a warning
    #[arg(hide = true)]
    pub(crate) words: Vec<String>,
    /// Answer and exit; this is always so
    #[arg(short, long)]
    pub(crate) print: bool,
    /// Print the version
    #[arg(short = 'v', long)]
    pub(crate) version: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) tools: ToolFlags,
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
    #[command(flatten)]
    pub(crate) debug: DebugFlags,
    #[command(flatten)]
    pub(crate) ignored: crate::ignored_flags::IgnoredFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = OUTPUT_HEADING)]
pub(crate) struct OutputFlags {
    /// Output: text, json, or stream-json (one line for every message and event)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
    /// Input on stdin: text, or stream-json (prompts and control requests, one per line)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) input_format: InputFormat,
    /// With json: print all lines as an array, not only the result
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Also print parts of answers as they arrive
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    /// Also report the hooks of settings files
    #[arg(long)]
    pub(crate) include_hook_events: bool,
    /// Echo prompts, marked as replayed
    #[arg(long)]
    pub(crate) replay_user_messages: bool,
    /// Print the text and thinking of subagents, not only their tool calls
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,
    /// Also report every entry written to the session file
    #[arg(long)]
    pub(crate) session_mirror: bool,
    /// Suggest the next prompt, from the second turn on
    #[arg(long, num_args = 0..=1, default_missing_value = "on", value_name = "on|off", value_parser = parse_switch)]
    pub(crate) prompt_suggestions: Option<bool>,
    /// With stream-json input: load the plugins of the first line, `initialize`
    #[arg(long)]
    pub(crate) await_initialize: bool,
    /// With stream-json input: take --managed-settings from the first line, `initialize`
    #[arg(long, conflicts_with = "managed_settings")]
    pub(crate) managed_settings_in_initialize: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = SESSION_HEADING)]
pub(crate) struct SessionFlags {
    /// Continue the session of this id or title, or in this file
    #[arg(short, long, value_name = "SESSION")]
    pub(crate) resume: Option<String>,
    /// Continue the last session of this directory
    #[arg(short = 'c', long = "continue")]
    pub(crate) continue_last: bool,
    /// With --resume or --continue: continue in a new session
    #[arg(long)]
    pub(crate) fork_session: bool,
    /// The id of the new session, a UUID
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,
    /// With --resume: continue from this message
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_session_at: Option<String>,
    /// With --resume-session-at: fail if more than this prompt's turn would be dropped
    #[arg(long, value_name = "UUID", requires = "resume_session_at")]
    pub(crate) resume_drops_turn: Option<String>,
    /// Write no session file
    #[arg(long)]
    pub(crate) no_session_persistence: bool,
    /// The session's title
    #[arg(short, long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = MODEL_HEADING)]
pub(crate) struct ModelFlags {
    /// Model: a model id of the API, or opus, sonnet, haiku
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Models to use if the first stays overloaded, in this order
    #[arg(long, value_name = "MODEL,...", value_delimiter = ',')]
    pub(crate) fallback_model: Vec<String>,
    /// Effort: low, medium, high …
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,
    /// Thinking tokens per API call of models that take a budget; 0 turns thinking off
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u64>,
    /// Thinking: disabled turns it off; adaptive and enabled turn it on in the way that the model supports
    #[arg(long, value_enum)]
    pub(crate) thinking: Option<ThinkingArg>,
    /// How the API returns thinking
    #[arg(long, value_enum)]
    pub(crate) thinking_display: Option<ThinkingDisplayArg>,
    /// Token budget of the whole task, which the model can see
    #[arg(long, value_name = "TOKENS")]
    pub(crate) task_budget: Option<u64>,
    /// Betas to request from the API
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    pub(crate) betas: Vec<String>,
    /// Maximum number of API calls in a turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) max_turns: Option<u64>,
    /// Maximum cost of the session, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars, allow_negative_numbers = true)]
    pub(crate) max_budget_usd: Option<f64>,
    /// JSON schema of the answer
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,
    /// When to compact: at this many tokens, 100k to 1M; auto: when the context is nearly full
    #[arg(long, value_name = "auto|TOKENS", value_parser = Autocompact::parse)]
    pub(crate) autocompact: Option<Autocompact>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = TOOLS_HEADING)]
pub(crate) struct ToolFlags {
    /// default (or manual), acceptEdits, auto, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Never ask for permission: the same as mode bypassPermissions
    #[arg(long)]
    pub(crate) dangerously_skip_permissions: bool,
    /// Allow mode bypassPermissions to be chosen later
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,
    /// Allow rules, as in "Bash(git log:*) Edit"
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., value_name = "RULE")]
    pub(crate) allowed_tools: Vec<String>,
    /// Deny rules; a name alone removes the tool
    #[arg(long = "disallowedTools", alias = "disallowed-tools", num_args = 1.., value_name = "RULE")]
    pub(crate) disallowed_tools: Vec<String>,
    /// Tools to offer; "" for none, default for all
    #[arg(long, num_args = 1.., value_name = "TOOL")]
    pub(crate) tools: Option<Vec<String>>,
    /// Who answers permission requests: stdio for the host, otherwise an MCP tool
    #[arg(long, value_name = "WHO")]
    pub(crate) permission_prompt_tool: Option<String>,
    /// none denies calls that would be asked about; host is the default
    #[arg(long, value_enum, value_name = "host|none")]
    pub(crate) permission_prompts: Option<PermissionPrompts>,
    /// MCP servers: files or JSON
    #[arg(long, num_args = 1.., value_name = "JSON")]
    pub(crate) mcp_config: Vec<String>,
    /// Use only the MCP servers of --mcp-config
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,
    /// Additional working directories
    #[arg(long, num_args = 1.., value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Work in a git worktree below .claude/worktrees, on its own branch
    #[arg(short, long, num_args = 0..=1, value_name = "NAME")]
    pub(crate) worktree: Option<Option<String>>,
    /// No tools that run commands, no WebFetch, no settings files, no files outside the working directories
    #[arg(long)]
    pub(crate) restricted: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = SETTINGS_HEADING)]
pub(crate) struct SettingsFlags {
    /// Additional settings: a file or JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) settings: Option<String>,
    /// Which settings files to read: user, project, local
    #[arg(long, value_name = "SOURCES")]
    pub(crate) setting_sources: Option<String>,
    /// Settings of the host as JSON; only restrictions are used
    #[arg(long, value_name = "JSON")]
    pub(crate) managed_settings: Option<String>,
    /// Read project settings, .mcp.json and .claude from this directory instead
    #[arg(long, value_name = "DIR")]
    pub(crate) project_config_root: Option<PathBuf>,
    /// Trust this directory: its settings may grant permissions, and its hooks run
    #[arg(long)]
    pub(crate) trust_folder: bool,
    /// Run the project's hooks even if its directory is not trusted
    #[arg(long)]
    pub(crate) allow_project_hooks: bool,
    /// Plugins: directories with commands, skills, agents, hooks and MCP servers
    #[arg(long, num_args = 1.., value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// The same without their MCP servers
    #[arg(long, num_args = 1.., value_name = "DIR")]
    pub(crate) plugin_dir_no_mcp: Vec<PathBuf>,
    /// Subagents as JSON: name to description, prompt, tools, model
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,
    /// Run the session as this agent: its prompt, tools and model
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Replace the system prompt; "" leaves one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system_prompt: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// Append to the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) append_system_prompt: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,
    /// Record the system prompt once and send it unchanged until a compaction [default: on]
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    pub(crate) system_prompt_snapshot: Option<String>,
    /// Keep working directory and date out of the system prompt; this is always so
    #[arg(long)]
    #[allow(dead_code, reason = "what the flag asks for always holds")]
    pub(crate) exclude_dynamic_system_prompt_sections: bool,
    /// Treat slash commands as plain text
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,
    /// Only Bash, Edit and Read; no hooks, no instruction files
    #[arg(long)]
    pub(crate) bare: bool,
    /// No customisation: no settings files, instructions, hooks, MCP servers, skills, agents
    #[arg(long)]
    pub(crate) safe_mode: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = DEBUG_HEADING)]
pub(crate) struct DebugFlags {
    /// Log to stderr; categories: api, permission, hooks, mcp, sandbox; !api leaves one out
    #[arg(short, long, num_args = 0..=1, default_missing_value = "", value_name = "FILTER")]
    pub(crate) debug: Option<String>,
    /// Log to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_file: Option<PathBuf>,
    /// Log to stderr
    #[arg(long, alias = "mcp-debug", hide = true)]
    pub(crate) debug_to_stderr: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionPrompts {
    Host,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingArg {
    Adaptive,
    Enabled,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingDisplayArg {
    Summarized,
    Omitted,
    Highlights,
}

impl ThinkingDisplayArg {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
            Self::Highlights => "highlights",
        }
    }
}

/// Parses a switch, which programs write in several ways.
fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" => Ok(true),
        "off" | "false" | "0" | "no" => Ok(false),
        _ => Err("must be on or off".to_owned()),
    }
}

/// Parses an amount in US dollars that is not negative.
fn parse_dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| *amount > 0.0 && amount.is_finite());
    amount.ok_or_else(|| "must be an amount above 0, as in 2.5".to_owned())
}
