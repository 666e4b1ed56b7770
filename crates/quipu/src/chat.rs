//! `quipu chat`

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use quipu_console::{ChatOptions, run_chat, run_plain_chat};
use quipu_conversation::LiveItem;
use quipu_render::{ScreenSize, Terminal};
use quipu_sdk::{Options, SystemPrompt};
use quipu_transcript::{LiveSession, ResumeCommand, SessionFollower};
use tokio::io::BufReader;

use crate::catalogue::state_folder;
use crate::chat_args::ChatArgs;
use crate::claude_dirs::claude_dirs;
use crate::config::{self, ChatDefaults};
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::resume::usual_config_dir;
use crate::{environment, live_view, prices, sessions, shell};

mod trust;

/// Items of a resumed session that are shown first.
const RECENT_ITEMS: usize = 12;
/// Bytes at the end of a session that are read for them.
const RECENT_BYTES: u64 = 512 << 10;

pub(crate) fn run(args: &ChatArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    if global.json {
        let hint = "`claude -p --output-format stream-json` and the SDK give JSON";
        return Err(Failure::usage("usage.json", "`quipu chat` has no --json", hint));
    }
    let session = match &args.session {
        Some(spec) => Some(sessions::resolve_session(spec, global)?),
        None => None,
    };
    let resume =
        session.as_deref().map(|path| ResumeCommand::from_file(path, usual_config_dir().as_deref())).transpose()?;
    let folder = working_folder(args, resume.as_ref())?;
    let config = config::load()?.unwrap_or_default();
    let options = agent_options(args, &config.chat, global, resume.as_ref(), &folder);
    let runtime = tokio::runtime::Runtime::new()?;
    let code = match terminal_size() {
        Some(size) => {
            if !trust::is_trusted(&folder, &config, global) && !trust::confirm(&folder, output)? {
                let hint = "answer `y` to trust it, or name another folder with --cwd";
                return Err(Failure::error(
                    "chat.not_trusted",
                    "the folder is not trusted; no agent was started",
                    hint,
                ));
            }
            // Notices are the output of commands such as /context.
            let style = Terminal { max_notice_rows: usize::MAX, ..live_view::terminal_style(output, false) };
            let chat = ChatOptions {
                agent: options,
                folder,
                style,
                size,
                history_file: state_folder().map(|folder| folder.join("chat-history.jsonl")),
                editor: editor(),
                prices: prices::load()?,
                recent_items: session.as_deref().map(recent_items).unwrap_or_default(),
            };
            runtime.block_on(chat_on_terminal(chat, output))
        }
        None => runtime.block_on(chat_in_pipe(options, global)),
    };
    // Standard input may still be read on another thread.
    runtime.shutdown_background();
    code
}

async fn chat_on_terminal(chat: ChatOptions, output: &Output) -> Result<ExitCode> {
    let signal = shell::ended_by_signal()?;
    let ended = async {
        tokio::select! {
            () = signal => {}
            () = shell::terminal_closed() => {}
        }
    };
    let outcome = run_chat(chat, ended).await?;
    if let Some(id) = &outcome.session_id {
        let dim = output.style(anstyle::Style::new().dimmed());
        let line = format!("{dim}resume with: quipu chat {}{dim:#}\n", quipu_render::sanitize(id));
        output.print_bytes(line.as_bytes())?;
    }
    match outcome.error {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::SUCCESS),
    }
}

async fn chat_in_pipe(options: Options, global: &GlobalArgs) -> Result<ExitCode> {
    let quiet = global.quiet;
    let options = options.on_stderr(move |line| {
        if !quiet {
            let _ = writeln!(io::stderr(), "agent: {}", quipu_render::sanitize(line));
        }
    });
    let input = BufReader::new(tokio::io::stdin());
    let outcome = run_plain_chat(options, input, &mut io::stdout(), &mut io::stderr()).await?;
    Ok(if outcome.failed_turns == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder that the agent works in.
fn working_folder(args: &ChatArgs, resume: Option<&ResumeCommand>) -> Result<PathBuf> {
    let folder = match (&args.cwd, resume) {
        (Some(folder), _) => folder.clone(),
        (None, Some(resume)) => PathBuf::from(&resume.cwd),
        (None, None) => std::env::current_dir().context("cannot find the current folder")?,
    };
    folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
        let message = format!("the folder '{}' does not exist", folder.display());
        Failure::error("chat.no_such_folder", message, "name another one with --cwd")
    })
}

fn agent_options(
    args: &ChatArgs,
    defaults: &ChatDefaults,
    global: &GlobalArgs,
    resume: Option<&ResumeCommand>,
    folder: &Path,
) -> Options {
    let mut options = Options::new()
        .system_prompt(SystemPrompt::AgentDefault)
        .client_app(concat!("quipu-chat/", env!("CARGO_PKG_VERSION")))
        .file_checkpointing()
        .cwd(folder);
    if let Some(agent) = args.agent.as_ref().or(defaults.agent.as_ref()) {
        // The agent starts in another folder, so a path must not be relative.
        let is_path = agent.components().count() > 1 || agent.is_absolute();
        options = options.cli(if is_path {
            std::path::absolute(agent).unwrap_or_else(|_| agent.clone())
        } else {
            agent.clone()
        });
    }
    if let Some(model) = args.model.as_ref().or(defaults.model.as_ref()) {
        options = options.model(model);
    }
    if let Some(mode) = args.permission_mode.as_ref().or(defaults.permission_mode.as_ref()) {
        options = options.permission_mode(mode.as_str());
    }
    if let Some(resume) = resume {
        options = options.resume(&resume.session_id);
    }
    if args.fork {
        options = options.fork_session();
    }
    // The agent has one config folder.
    let named = if global.claude_dir.is_empty() { None } else { claude_dirs(global).into_iter().next() };
    match resume.and_then(|resume| resume.config_dir.clone().map(PathBuf::from)).or(named) {
        Some(dir) => options.env("CLAUDE_CONFIG_DIR", std::path::absolute(&dir).unwrap_or(dir)),
        None => options,
    }
}

/// The last items of a session; none if its file cannot be read.
fn recent_items(path: &Path) -> Vec<LiveItem> {
    let follower = SessionFollower::open_near_end(path, RECENT_BYTES).ok();
    follower.and_then(|follower| LiveSession::new(follower).read_to_end(RECENT_ITEMS).ok()).unwrap_or_default()
}

/// Size of the terminal; `None` if standard input or output is not one, or it cannot move the
/// cursor.
fn terminal_size() -> Option<ScreenSize> {
    let is_able = io::stdin().is_terminal() && environment::var("TERM").is_none_or(|term| term != "dumb");
    let (columns, rows) = terminal_size::terminal_size_of(io::stdout()).filter(|_| is_able)?;
    Some(ScreenSize { columns: columns.0.into(), rows: rows.0.into() })
}

/// Command line of the user's editor.
fn editor() -> String {
    let chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(environment::text_var).find(|editor| !editor.is_empty());
    chosen.unwrap_or_else(|| "vi".to_owned())
}
