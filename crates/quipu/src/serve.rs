//! `quipu serve`

mod demo_agent;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use quipu_server::{ChatAgent, Server, ServerError, ServerOptions, Token, write_demo_sessions};
use serde_json::json;
use tempfile::TempDir;

use self::demo_agent::DemoAgent;
use crate::args::ServeArgs;
use crate::catalogue::{cache_folder, data_folder, state_folder};
use crate::claude_dirs::claude_dirs;
use crate::config::config_path;
use crate::credentials::credentials;
use crate::error::{Failure, print_note, print_warning};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::resume::usual_config_dir;
use crate::time::now;
use crate::{environment, prices, shell};

/// The port unless `--listen` names another.
const DEFAULT_PORT: u16 = 4777;
/// Ports that are tried after it.
const MORE_PORTS: u16 = 20;
/// Threads for connections. Files are read on other threads.
const WORKER_THREADS: usize = 2;
/// How long git may take for what a user attaches to a message.
const MAX_GIT_TIME: Duration = Duration::from_secs(10);
/// Threads that read files, of which a few are used at a time.
const MAX_BLOCKING_THREADS: usize = 8;

pub(crate) fn run(args: &ServeArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    limit_malloc_arenas();
    let (mut options, _demo_sessions) = server_options(args, global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let demo_agent = DemoAgent::start().await?;
        demo_agent.add_to(&mut options);
        let server = bind(args.listen, options).await?;
        // Install the handlers first: a script may send a signal as soon as it reads the address.
        let ended = shell::ended_by_signal()?;
        let url = server.url();
        if global.json {
            output.print_json(&json!({ "address": server.address().to_string(), "url": url }))?;
        } else {
            output.print_bytes(format!("{url}\n").as_bytes())?;
            print_note(global, &"Ctrl-C stops the server");
        }
        if should_open(args, output) {
            open_browser(&url);
        }
        server.run(ended).await?;
        Ok(ExitCode::SUCCESS)
    });
    // Files that are still being read need not be waited for.
    runtime.shutdown_background();
    done
}

/// Lets all threads allocate from two arenas. By default glibc gives each thread one of its own,
/// which keeps what the largest request of that thread needed: a third of the server's memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no crate offers this setting")]
fn limit_malloc_arenas() {
    // SAFETY: mallopt takes two integers by value, reads and writes no memory of ours, and locks
    // the allocator itself. Arenas that exist already stay valid.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn limit_malloc_arenas() {}

/// What to serve, and the folder of the bundled sessions, which is removed when it is dropped.
fn server_options(args: &ServeArgs, global: &GlobalArgs) -> Result<(ServerOptions, Option<TempDir>)> {
    let demo = if args.demo { Some(tempfile::tempdir()?) } else { None };
    let mut options = ServerOptions {
        claude_dirs: claude_dirs(global),
        cache_folder: cache_folder(),
        data_folder: data_folder(),
        config_file: config_path(),
        usual_config_dir: usual_config_dir(),
        home: environment::home_dir(),
        api_url: environment::text_var("ANTHROPIC_BASE_URL"),
        secrets: credentials(),
        run_git: |folder, args| Box::pin(run_git(folder, args)),
        agents: ["claude", "quipu-agent"].map(ChatAgent::named).to_vec(),
        prices: prices::load()?,
        token: load_token()?,
        is_demo: args.demo,
        now,
    };
    if let Some(folder) = &demo {
        write_demo_sessions(folder.path()).context("cannot unpack the bundled sessions")?;
        // Nothing of them is kept among the user's own data.
        (options.claude_dirs, options.cache_folder, options.data_folder) = (vec![folder.path().to_owned()], None, None);
    }
    Ok((options, demo))
}

/// Runs git without what could start other programs: hooks, monitors, pagers.
#[expect(clippy::disallowed_methods, reason = "it is ended with the future that waits for it")]
async fn run_git(folder: PathBuf, args: Vec<String>) -> io::Result<Vec<u8>> {
    let mut command = tokio::process::Command::new("git");
    command.args(["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(args).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(MAX_GIT_TIME, command.output()).await;
    let output = output.map_err(|_| io::Error::other("git took too long"))??;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The token of this machine; one for this run if it cannot be kept.
fn load_token() -> Result<Token> {
    let Some(folder) = state_folder() else { return Ok(Token::random()?) };
    let path = folder.join("serve-token");
    Ok(Token::load_or_create(&path).or_else(|error| {
        print_warning(&format!("cannot keep the token in {}: {error}", path.display()));
        Token::random()
    })?)
}

/// Listens on the given address, or on the first free port from the default one on.
async fn bind(listen: Option<SocketAddr>, options: ServerOptions) -> Result<Server> {
    if let Some(address) = listen {
        return Ok(Server::bind(address, options).await?);
    }
    let ports = (DEFAULT_PORT..=DEFAULT_PORT + MORE_PORTS).chain([0]);
    let mut failed = None;
    for port in ports {
        match Server::bind((Ipv4Addr::LOCALHOST, port).into(), options.clone()).await {
            Err(error) if error.is_address_in_use() => failed = Some(error),
            done => return Ok(done?),
        }
    }
    Err(failed.map_or_else(|| Failure::error("serve.cannot_listen", "no port is free", ""), ServerError::into))
}

/// Whether to open a browser: as the options say, or on a desktop.
fn should_open(args: &ServeArgs, output: &Output) -> bool {
    let is_set = |name| environment::var(name).is_some_and(|value| !value.is_empty());
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    let is_desktop = cfg!(target_os = "macos") || cfg!(windows) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    args.open || !args.no_open && output.is_terminal && is_desktop && !is_remote
}

/// Opens the address in a browser. The command line of a program can be read by all accounts of the
/// machine, so the browser is given a private file that leads to the address.
fn open_browser(url: &str) {
    let opened = state_folder().ok_or_else(|| io::Error::other("there is no home folder")).and_then(|folder| {
        let page = write_redirect(&folder, url)?;
        start_browser(&page)
    });
    if let Err(error) = opened {
        print_warning(&format!("cannot open a browser: {error}"));
    }
}

/// Writes a page, with mode 0600, that leads to an address.
fn write_redirect(folder: &Path, url: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let file = tempfile::Builder::new().suffix(".html").tempfile_in(folder)?;
    fs::write(file.path(), format!("<!doctype html>\n<meta http-equiv=\"refresh\" content=\"0;url={url}\">\n"))?;
    let path = folder.join("serve-open.html");
    file.persist(&path)?;
    Ok(path)
}

#[expect(clippy::disallowed_methods, reason = "the browser is the user's; it outlives the command")]
fn start_browser(page: &Path) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
