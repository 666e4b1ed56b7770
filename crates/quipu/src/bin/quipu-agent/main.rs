//! The command `quipu-agent`, which SDKs start in place of `claude`.

#[path = "../../config.rs"]
mod config;
mod debug;
#[path = "../../environment.rs"]
mod environment;
mod flags;
mod host_watch;
mod ignored_flags;
#[path = "../../log_subscriber.rs"]
mod log_subscriber;
#[path = "../../prices.rs"]
mod prices;
mod stdin;
mod subcommands;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use flags::{Flags, InputFormat, OutputFormat, PermissionPrompts, ThinkingArg};
use quipu_engine::SandboxMode;
use quipu_engine::{EngineError, VERSION};
use quipu_engine::{Format, Options, PluginDir, ResumeMode, Worktree};

fn main() -> ExitCode {
    // First of all, because this program is also the launcher of the sandbox and the reader of PDF files.
    if let Some(code) = quipu_engine::run_internal_role() {
        return code;
    }
    make_undumpable();
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = subcommands::run(&args) {
        return code;
    }
    let flags = Flags::parse_from(args);
    if flags.version {
        let line = format!("{VERSION} (quipu-agent {})\n", env!("CARGO_PKG_VERSION"));
        return match std::io::stdout().write_all(line.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        };
    }
    if let Err(error) = debug::install_log(&flags.debug) {
        print_error(&error);
        return ExitCode::FAILURE;
    }
    match run_agent(flags) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prevents other processes of the same user from reading the key from the environment and memory of this
/// one. Does nothing if the system does not support it.
fn make_undumpable() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

fn run_agent(flags: Flags) -> Result<u8, EngineError> {
    let options = build_options(flags)?;
    let system = |what| move |source| EngineError::Setup { what, source };
    let cwd = std::env::current_dir().and_then(|cwd| cwd.canonicalize()).map_err(system("the working directory"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("the async runtime"))?;
    if options.stream_input {
        host_watch::end_with_host();
    }
    let session = quipu_engine::run(options, read_environment(), cwd, std::io::stdout(), std::io::stderr());
    // On a thread of the runtime: with `block_on` every event would have to wake the main thread.
    let ended = runtime.block_on(runtime.spawn(session));
    // A read of stdin may still wait for a host that sends nothing more.
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// The environment variables that are valid UTF-8.
#[expect(clippy::disallowed_methods, reason = "the engine and all it starts get the environment of the agent")]
fn read_environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

fn build_options(flags: Flags) -> Result<Options, EngineError> {
    let Flags { prompt, words, output, session, model, tools, settings, ignored, .. } = flags;
    ignored.warn_if_given();
    if !words.is_empty() {
        print_warning("only the first word of the command line is the prompt; the words after it are ignored");
    }
    let stream_input = output.input_format == InputFormat::StreamJson;
    if stream_input && prompt.as_ref().is_some_and(|prompt| !prompt.trim().is_empty()) {
        print_warning("the prompt of the command line is not used: with --input-format stream-json they come on stdin");
    }
    let prompt = if stream_input { None } else { Some(stdin::read_prompt(prompt)?) };
    let listed = |texts: &[String]| texts.iter().flat_map(|text| quipu_engine::split_list(text)).collect::<Vec<_>>();
    let thinking = match model.thinking {
        Some(ThinkingArg::Disabled) => Some(0),
        // As much as the model allows, whatever the environment says.
        Some(ThinkingArg::Adaptive | ThinkingArg::Enabled) => model.max_thinking_tokens.or(Some(u64::MAX)),
        None => model.max_thinking_tokens,
    };
    let plugin = |mcp: bool| move |path: PathBuf| PluginDir { path, uses_mcp: mcp };
    let bad_config =
        |error: anyhow::Error| EngineError::InvalidFlag { flag: "config.toml", reason: format!("{error:#}") };
    let bad_prices =
        |error: anyhow::Error| EngineError::InvalidFlag { flag: "prices.toml", reason: format!("{error:#}") };
    // The bundled prices are not read before they are needed.
    let own_prices = prices::prices_path().filter(|path| path.try_exists().unwrap_or(true));
    Ok(Options {
        prices: own_prices.map(|_| prices::load()).transpose().map_err(bad_prices)?,
        prompt,
        stream_input,
        format: match output.output_format {
            OutputFormat::Text => Format::Text,
            OutputFormat::Json => Format::Json,
            OutputFormat::StreamJson => Format::StreamJson,
        },
        verbose: output.verbose,
        partial_messages: output.include_partial_messages,
        hook_events: output.include_hook_events,
        replay_user_messages: output.replay_user_messages,
        forward_subagent_text: output.forward_subagent_text,
        session_mirror: output.session_mirror,
        prompt_suggestions: output.prompt_suggestions.unwrap_or(false),
        await_initialize: output.await_initialize,
        managed_in_initialize: output.managed_settings_in_initialize,
        resume_mode: match session.resume {
            Some(spec) => ResumeMode::Resume(spec),
            None if session.continue_last => ResumeMode::Continue,
            None => ResumeMode::New,
        },
        fork: session.fork_session,
        session_id: session.session_id,
        resume_at: session.resume_session_at,
        resume_drops_turn: session.resume_drops_turn,
        no_persistence: session.no_session_persistence,
        name: session.name,
        model: model.model,
        fallback_models: trimmed(&model.fallback_model),
        effort: model.effort,
        max_thinking_tokens: thinking,
        thinking_display: model.thinking_display.map(|display| display.as_str().into()),
        task_budget: model.task_budget,
        betas: model.betas,
        max_turns: model.max_turns,
        max_budget_usd: model.max_budget_usd,
        json_schema: model.json_schema,
        autocompact: model.autocompact,
        permission_mode: tools.permission_mode,
        skip_permissions: tools.dangerously_skip_permissions,
        may_skip_permissions: tools.dangerously_skip_permissions || tools.allow_dangerously_skip_permissions,
        allowed_tools: listed(&tools.allowed_tools),
        disallowed_tools: listed(&tools.disallowed_tools),
        tools: tools.tools.as_deref().map(listed),
        permission_prompt_tool: tools.permission_prompt_tool,
        no_permission_prompts: tools.permission_prompts == Some(PermissionPrompts::None),
        mcp_config: tools.mcp_config,
        strict_mcp_config: tools.strict_mcp_config,
        add_dirs: tools.add_dir,
        worktree: tools.worktree.map(|name| name.map_or(Worktree::New, Worktree::Named)),
        restricted: tools.restricted,
        settings: settings.settings,
        setting_sources: settings.setting_sources.map(|text| text.split(',').map(str::to_owned).collect()),
        managed_settings: settings.managed_settings,
        managed_folder: None,
        project_config_root: settings.project_config_root,
        trust_folder: settings.trust_folder,
        trusted_folders: config::load().map_err(bad_config)?.unwrap_or_default().trusted,
        allow_project_hooks: settings.allow_project_hooks,
        plugin_dirs: settings
            .plugin_dir
            .into_iter()
            .map(plugin(true))
            .chain(settings.plugin_dir_no_mcp.into_iter().map(plugin(false)))
            .collect(),
        agents: settings.agents,
        agent: settings.agent,
        system_prompt: read_flag_file("--system-prompt-file", settings.system_prompt_file)?.or(settings.system_prompt),
        append_system_prompt: read_flag_file("--append-system-prompt-file", settings.append_system_prompt_file)?
            .or(settings.append_system_prompt),
        no_system_prompt_snapshot: settings.system_prompt_snapshot.as_deref() == Some("off"),
        no_slash_commands: settings.disable_slash_commands,
        bare: settings.bare || is_env_enabled("CLAUDE_CODE_SIMPLE"),
        safe_mode: settings.safe_mode || is_env_enabled("CLAUDE_CODE_SAFE_MODE"),
        sandbox: sandbox_switch()?,
        sandbox_launcher: own_program(),
    })
}

/// The trimmed words that are not empty.
fn trimmed(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Whether an environment variable is set to a true value.
fn is_env_enabled(name: &str) -> bool {
    environment::text_var(name).is_some_and(|value| matches!(value.as_str(), "1" | "true" | "yes" | "on"))
}

/// The sandbox mode from `QUIPU_SANDBOX`.
fn sandbox_switch() -> Result<SandboxMode, EngineError> {
    let Some(word) = environment::var("QUIPU_SANDBOX").filter(|word| !word.is_empty()) else {
        return Ok(SandboxMode::default());
    };
    let reason = format!("no value '{}'; there are auto, require and off", word.display());
    word.to_str().and_then(SandboxMode::parse).ok_or(EngineError::InvalidFlag { flag: "QUIPU_SANDBOX", reason })
}

fn read_flag_file(flag: &'static str, path: Option<PathBuf>) -> Result<Option<String>, EngineError> {
    let read = |path: PathBuf| {
        let bad = |error| EngineError::InvalidFlag { flag, reason: format!("{}: {error}", path.display()) };
        std::fs::read_to_string(&path).map_err(bad)
    };
    path.map(read).transpose()
}

/// Prints an error with its causes.
fn print_error(error: &EngineError) {
    // There is nowhere to report that printing failed.
    let _ = writeln!(std::io::stderr(), "error: {}", in_full(error));
}

/// An error and its causes as one text.
fn in_full(error: &EngineError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn print_warning(text: &str) {
    let _ = writeln!(std::io::stderr(), "warning: {text}");
}

/// The path that starts this program again. On Linux it is the running program itself, even if a command has
/// replaced its file.
fn own_program() -> Option<std::path::PathBuf> {
    let running = std::path::Path::new("/proc/self/exe");
    if running.exists() { Some(running.to_owned()) } else { std::env::current_exe().ok() }
}
