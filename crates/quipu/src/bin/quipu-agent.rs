//! The command `quipu-agent`: takes claude's flags; what SDKs spawn.

use std::io::{BufRead, ErrorKind, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use quipu_engine::options::{Format, Options, Start};
use quipu_engine::sandbox::Switch;
use quipu_engine::{EngineError, VERSION, flags};

/// How long stdin may stay silent beside a prompt before it is left alone.
const PATIENCE: Duration = Duration::from_secs(3);

/// How much may be piped in beside a prompt, in bytes.
const MAX_PIPED_BYTES: u64 = 64 << 20;

const OUTPUT: &str = "Input and output";
const SESSION: &str = "Sessions";
const MODEL: &str = "The model and its answer";
const TOOLS: &str = "Tools and permissions";
const SETTINGS: &str = "Settings and prompts";

const EXAMPLES: &str = "\
Examples:
  quipu-agent -p \"what does this project do?\"
  git diff | quipu-agent -p \"review this\" --output-format json
  quipu-agent -p \"and the tests?\" --continue
  quipu-agent -p \"mend the typos\" --permission-mode acceptEdits --allowedTools \"Bash(git log:*)\"
  quipu-agent --input-format stream-json --output-format stream-json     as SDKs start it

ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN holds the key, ANTHROPIC_BASE_URL another endpoint.
To try it without either: `quipu answer SCRIPT` plays the model.
The exit code is 0 after an answer, 1 after an error, 2 for wrong flags.";

/// A headless agent that programs written for `claude` can spawn instead, on any
/// Anthropic-compatible endpoint (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY).
#[derive(Debug, Parser)]
#[command(name = "quipu-agent", disable_version_flag = true, max_term_width = 100, after_help = EXAMPLES)]
struct Flags {
    /// The prompt; what is piped in follows it
    prompt: Option<String>,
    /// Answer and exit, which is all it ever does
    #[arg(short, long)]
    print: bool,
    /// Print the version
    #[arg(short = 'v', long)]
    version: bool,
    /// How to speak: text, json, or stream-json (a line for everything that happens)
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    output_format: OutputFormat,
    /// What stdin holds: text, or stream-json (prompts and control requests, a line each)
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    input_format: InputFormat,
    /// With json: all lines in an array instead of the result alone
    #[arg(long, help_heading = OUTPUT)]
    verbose: bool,
    /// Also pass on the pieces of answers as they are written
    #[arg(long, help_heading = OUTPUT)]
    include_partial_messages: bool,
    /// Also report the hooks of settings files
    #[arg(long, help_heading = OUTPUT)]
    include_hook_events: bool,
    /// Echo prompts, marked as replayed
    #[arg(long, help_heading = OUTPUT)]
    replay_user_messages: bool,
    /// Pass on what subagents say, not only what they do
    #[arg(long, help_heading = OUTPUT)]
    forward_subagent_text: bool,
    /// Also report every entry written to the session file
    #[arg(long, help_heading = OUTPUT)]
    session_mirror: bool,
    /// Suggest what the person might say next, from the second turn on
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", help_heading = OUTPUT)]
    prompt_suggestions: Option<bool>,
    /// Go on with the session of this id, or in this file
    #[arg(short, long, value_name = "SESSION", help_heading = SESSION)]
    resume: Option<String>,
    /// Go on with the last session of this directory
    #[arg(short = 'c', long = "continue", help_heading = SESSION)]
    go_on: bool,
    /// With --resume or --continue: go on in a session of its own
    #[arg(long, help_heading = SESSION)]
    fork_session: bool,
    /// The id of the new session, a UUID
    #[arg(long, value_name = "UUID", help_heading = SESSION)]
    session_id: Option<String>,
    /// With --resume: go on from this message
    #[arg(long, value_name = "UUID", help_heading = SESSION)]
    resume_session_at: Option<String>,
    /// With --resume-session-at: refuse when more than this prompt's turn would be left behind
    #[arg(long, value_name = "UUID", requires = "resume_session_at", help_heading = SESSION)]
    resume_drops_turn: Option<String>,
    /// Write no session file
    #[arg(long, help_heading = SESSION)]
    no_session_persistence: bool,
    /// The session's title
    #[arg(short, long, help_heading = SESSION)]
    name: Option<String>,
    /// The model: a name of the API, or opus, sonnet, haiku
    #[arg(long, help_heading = MODEL)]
    model: Option<String>,
    /// The model that takes over when the first stays overloaded
    #[arg(long, value_name = "MODEL", help_heading = MODEL)]
    fallback_model: Option<String>,
    /// How hard to think: low, medium, high …
    #[arg(long, value_name = "LEVEL", help_heading = MODEL)]
    effort: Option<String>,
    /// How many tokens thinking may take; 0 turns it off
    #[arg(long, value_name = "N", help_heading = MODEL)]
    max_thinking_tokens: Option<u64>,
    /// Whether to think: adaptive, enabled or disabled
    #[arg(long, value_enum, help_heading = MODEL)]
    thinking: Option<Thinking>,
    /// How thinking is shown
    #[arg(long, value_enum, help_heading = MODEL)]
    thinking_display: Option<Display>,
    /// How many tokens the model is told it has for the whole task
    #[arg(long, value_name = "TOKENS", help_heading = MODEL)]
    task_budget: Option<u64>,
    /// Betas to ask the API for
    #[arg(long, num_args = 1.., value_delimiter = ',', help_heading = MODEL)]
    betas: Vec<String>,
    /// default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", help_heading = TOOLS)]
    permission_mode: Option<String>,
    /// Ask for nothing: the same as the mode bypassPermissions
    #[arg(long, help_heading = TOOLS)]
    dangerously_skip_permissions: bool,
    /// Let the mode bypassPermissions be chosen later
    #[arg(long, help_heading = TOOLS)]
    allow_dangerously_skip_permissions: bool,
    /// Rules that allow, as in "Bash(git log:*) Edit"
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., value_name = "RULE", help_heading = TOOLS)]
    allowed_tools: Vec<String>,
    /// Rules that refuse; a bare name takes the tool away
    #[arg(long = "disallowedTools", alias = "disallowed-tools", num_args = 1.., value_name = "RULE", help_heading = TOOLS)]
    disallowed_tools: Vec<String>,
    /// The tools on offer; "" for none, default for all
    #[arg(long, num_args = 1.., value_name = "TOOL", help_heading = TOOLS)]
    tools: Option<Vec<String>>,
    /// Who answers permission requests: stdio is the host
    #[arg(long, value_name = "WHO", help_heading = TOOLS)]
    permission_prompt_tool: Option<String>,
    /// MCP servers: files or JSON
    #[arg(long, num_args = 1.., value_name = "JSON", help_heading = TOOLS)]
    mcp_config: Vec<String>,
    /// Take MCP servers from --mcp-config alone
    #[arg(long, help_heading = TOOLS)]
    strict_mcp_config: bool,
    /// More settings: a file or JSON
    #[arg(long, value_name = "JSON", help_heading = SETTINGS)]
    settings: Option<String>,
    /// Which settings files to read: user, project, local
    #[arg(long, value_name = "SOURCES", help_heading = SETTINGS)]
    setting_sources: Option<String>,
    /// Trust this folder: its settings may allow, and its hooks run
    #[arg(long, help_heading = SETTINGS)]
    trust_folder: bool,
    /// Run the project's hooks even where its folder is not trusted
    #[arg(long, help_heading = SETTINGS)]
    allow_project_hooks: bool,
    /// Folders with commands, skills, agents and hooks of their own
    #[arg(long, num_args = 1.., value_name = "DIR", help_heading = SETTINGS)]
    plugin_dir: Vec<PathBuf>,
    /// Subagents as JSON: name to description, prompt, tools, model
    #[arg(long, value_name = "JSON", help_heading = SETTINGS)]
    agents: Option<String>,
    /// Replaces the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = SETTINGS)]
    system_prompt: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt", help_heading = SETTINGS)]
    system_prompt_file: Option<PathBuf>,
    /// Follows the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = SETTINGS)]
    append_system_prompt: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt", help_heading = SETTINGS)]
    append_system_prompt_file: Option<PathBuf>,
    /// How many calls of the model a turn may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true, help_heading = MODEL)]
    max_turns: Option<u64>,
    /// How much the session may cost
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true, help_heading = MODEL)]
    max_budget_usd: Option<f64>,
    /// The form of the answer, as a JSON schema
    #[arg(long, value_name = "SCHEMA", help_heading = MODEL)]
    json_schema: Option<String>,
    /// Folders allowed beside the working directory
    #[arg(long, num_args = 1.., value_name = "DIR", help_heading = TOOLS)]
    add_dir: Vec<PathBuf>,
    /// Slash commands are plain text
    #[arg(long, help_heading = SETTINGS)]
    disable_slash_commands: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Thinking {
    Adaptive,
    Enabled,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Display {
    Summarized,
    Omitted,
    Highlights,
}

impl Display {
    fn as_str(self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
            Self::Highlights => "highlights",
        }
    }
}

fn main() -> ExitCode {
    // Before anything else: the launcher of the sandbox is this program too.
    if let Some(code) = quipu_engine::sandbox::launch() {
        return code;
    }
    hide_from_others();
    let flags = Flags::parse();
    if flags.version {
        let line = format!("{VERSION} (quipu-agent {})\n", env!("CARGO_PKG_VERSION"));
        return match std::io::stdout().write_all(line.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        };
    }
    match start(flags) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Keeps other processes of the same user from reading the key out of this one's
/// environment and memory. Where the system does not offer it, nothing is lost.
fn hide_from_others() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

fn start(flags: Flags) -> Result<u8, EngineError> {
    let options = options(flags)?;
    let system = |what| move |source| EngineError::System { what, source };
    let cwd = std::env::current_dir().and_then(|cwd| cwd.canonicalize()).map_err(system("the working directory"))?;
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("the async runtime"))?;
    let code = runtime.block_on(quipu_engine::run(options, env, cwd, std::io::stdout(), std::io::stderr()));
    // A read of stdin may still wait for a host that says no more.
    runtime.shutdown_background();
    code
}

fn options(flags: Flags) -> Result<Options, EngineError> {
    let stream_input = flags.input_format == InputFormat::StreamJson;
    if stream_input && flags.prompt.as_ref().is_some_and(|prompt| !prompt.trim().is_empty()) {
        warn("the prompt of the command line is not used: with --input-format stream-json they come on stdin");
    }
    let prompt = if stream_input { None } else { Some(prompt(flags.prompt)?) };
    let listed = |texts: &[String]| texts.iter().flat_map(|text| flags::names(text)).collect::<Vec<_>>();
    let thinking = match flags.thinking {
        Some(Thinking::Disabled) => Some(0),
        Some(Thinking::Adaptive | Thinking::Enabled) | None => flags.max_thinking_tokens,
    };
    Ok(Options {
        prompt,
        stream_input,
        format: match flags.output_format {
            OutputFormat::Text => Format::Text,
            OutputFormat::Json => Format::Json,
            OutputFormat::StreamJson => Format::StreamJson,
        },
        verbose: flags.verbose,
        partial_messages: flags.include_partial_messages,
        hook_events: flags.include_hook_events,
        replay_user_messages: flags.replay_user_messages,
        forward_subagent_text: flags.forward_subagent_text,
        session_mirror: flags.session_mirror,
        prompt_suggestions: flags.prompt_suggestions.unwrap_or(false),
        start: match flags.resume {
            Some(spec) => Start::Resume(spec),
            None if flags.go_on => Start::Continue,
            None => Start::New,
        },
        fork: flags.fork_session,
        session_id: flags.session_id,
        resume_at: flags.resume_session_at,
        drops_turn: flags.resume_drops_turn,
        no_persistence: flags.no_session_persistence,
        name: flags.name,
        model: flags.model,
        fallback_model: flags.fallback_model,
        effort: flags.effort,
        max_thinking_tokens: thinking,
        thinking_display: flags.thinking_display.map(|display| display.as_str().to_owned()),
        task_budget: flags.task_budget,
        betas: flags.betas,
        permission_mode: flags.permission_mode,
        skip_permissions: flags.dangerously_skip_permissions,
        may_skip_permissions: flags.dangerously_skip_permissions || flags.allow_dangerously_skip_permissions,
        allowed_tools: listed(&flags.allowed_tools),
        disallowed_tools: listed(&flags.disallowed_tools),
        tools: flags.tools.as_deref().map(listed),
        permission_prompt: flags.permission_prompt_tool,
        mcp_config: flags.mcp_config,
        strict_mcp: flags.strict_mcp_config,
        settings: flags.settings,
        setting_sources: flags.setting_sources.map(|text| text.split(',').map(str::to_owned).collect()),
        trust_folder: flags.trust_folder,
        trusted_folders: trusted_folders()?,
        allow_project_hooks: flags.allow_project_hooks,
        plugin_dirs: flags.plugin_dir,
        agents: flags.agents,
        system_prompt: from_file("--system-prompt-file", flags.system_prompt_file)?.or(flags.system_prompt),
        append_system_prompt: from_file("--append-system-prompt-file", flags.append_system_prompt_file)?
            .or(flags.append_system_prompt),
        max_turns: flags.max_turns,
        max_budget_usd: flags.max_budget_usd,
        json_schema: flags.json_schema,
        add_dirs: flags.add_dir,
        no_slash_commands: flags.disable_slash_commands,
        sandbox: sandbox()?,
        launcher: std::env::current_exe().ok(),
    })
}

/// Whether to hold commands in a sandbox, as `QUIPU_SANDBOX` says.
fn sandbox() -> Result<Switch, EngineError> {
    let Some(word) = std::env::var_os("QUIPU_SANDBOX").filter(|word| !word.is_empty()) else {
        return Ok(Switch::default());
    };
    let reason = format!("no value '{}'; there are auto, require and off", word.display());
    word.to_str().and_then(Switch::read).ok_or(EngineError::Flag { flag: "QUIPU_SANDBOX", reason })
}

/// The folders that `trusted` in quipu's settings names, `~/` filled in.
fn trusted_folders() -> Result<Vec<PathBuf>, EngineError> {
    #[derive(serde::Deserialize)]
    struct Settings {
        #[serde(default)]
        trusted: Vec<String>,
    }
    let home = std::env::home_dir();
    let set = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let Some(config) = set.or_else(|| Some(home.as_ref()?.join(".config"))) else { return Ok(Vec::new()) };
    let path = config.join("quipu/config.toml");
    let bad =
        |reason: String| EngineError::Flag { flag: "config.toml", reason: format!("{}: {reason}", path.display()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(bad(error.to_string())),
    };
    let settings: Settings = toml::from_str(&text).map_err(|error| bad(error.message().to_owned()))?;
    let absolute = |text: &String| match (text.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    };
    Ok(settings.trusted.iter().map(absolute).collect())
}

/// The prompt, followed by what is piped in.
fn prompt(given: Option<String>) -> Result<String, EngineError> {
    let piped = if std::io::stdin().is_terminal() { None } else { piped(given.is_some())? };
    match (given, piped.filter(|text| !text.trim().is_empty())) {
        (Some(prompt), Some(piped)) => Ok(format!("{prompt}\n\n{piped}")),
        (Some(prompt), None) if !prompt.trim().is_empty() => Ok(prompt),
        (None, Some(piped)) => Ok(piped),
        _ => Err(EngineError::NoPrompt),
    }
}

/// What is piped in. Beside a prompt, a pipe that nobody writes to is not waited for.
fn piped(has_prompt: bool) -> Result<Option<String>, EngineError> {
    let (begun, heard) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        // The first bytes are there, or the end.
        let begins = stdin.fill_buf().map(|_| ());
        let _ = begun.send(());
        let mut bytes = Vec::new();
        let mut bounded = stdin.take(MAX_PIPED_BYTES + 1);
        begins.and_then(|()| bounded.read_to_end(&mut bytes)).ok().map(|_| bytes)
    });
    if has_prompt && heard.recv_timeout(PATIENCE).is_err() {
        warn("nothing came on stdin for 3 seconds, going on without it; `< /dev/null` says that nothing will");
        return Ok(None);
    }
    let Some(bytes) = reader.join().ok().flatten() else { return Ok(None) };
    if bytes.len() as u64 > MAX_PIPED_BYTES {
        let reason = format!("more than {} MiB were piped in", MAX_PIPED_BYTES >> 20);
        return Err(EngineError::Flag { flag: "stdin", reason });
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// An amount of money that can be spent.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| *amount > 0.0 && amount.is_finite());
    amount.ok_or_else(|| "must be an amount above 0, as in 2.5".to_owned())
}

fn from_file(flag: &'static str, path: Option<PathBuf>) -> Result<Option<String>, EngineError> {
    let read = |path: PathBuf| {
        let bad = |error| EngineError::Flag { flag, reason: format!("{}: {error}", path.display()) };
        std::fs::read_to_string(&path).map_err(bad)
    };
    path.map(read).transpose()
}

/// Says what went wrong, with its causes.
fn complain(error: &EngineError) {
    let mut text = format!("error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    // There is nowhere to say that this cannot be said.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "warning: {text}");
}
