//! Runs a command against a server of this process: sets its base URL, forwards signals, and
//! returns its exit status.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitStatus;

use anyhow::Result;
use tokio::process::{Child, Command};

use crate::environment;
use crate::error::Failure;

/// Variable that agents and SDKs read the URL of the API from.
const BASE_URL_VARIABLE: &str = "ANTHROPIC_BASE_URL";

/// Runs a command with `ANTHROPIC_BASE_URL` set to `url` until it ends. Returns its exit
/// status as shells report it: 128 and the signal if a signal ended it.
#[expect(clippy::disallowed_methods, reason = "the command is waited for, and signals are forwarded to it")]
pub(crate) async fn run_command(command: &[OsString], url: &str) -> Result<u8> {
    let Some((program, args)) = command.split_first() else { return Ok(0) };
    let mut child = Command::new(program);
    child.args(args).env(BASE_URL_VARIABLE, url);
    // A proxy of the environment must not get what is meant for this machine.
    for name in ["NO_PROXY", "no_proxy"] {
        let hosts = environment::text_var(name).unwrap_or_default();
        let separator = if hosts.is_empty() { "" } else { "," };
        child.env(name, format!("{hosts}{separator}127.0.0.1,localhost"));
    }
    // The handlers exist before the command does, so that no signal ends only this process.
    let mut signals = Signals::install()?;
    let mut child = child.spawn().map_err(|error| {
        let message = format!("cannot start `{}`: {error}", program.to_string_lossy());
        Failure::error("command.cannot_start", message, "install it, or put it on your PATH")
    })?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(exit_code(status?)),
            signal = signals.next() => forward(&child, signal),
        }
    }
}

/// Signals that are forwarded to the command.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> rustix::process::Signal {
        use rustix::process::Signal;
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hang_up.recv() => Signal::HUP,
        }
    }
}

/// Passes a signal on. On a terminal, Ctrl-C reaches the command by itself.
#[cfg(unix)]
fn forward(child: &Child, signal: rustix::process::Signal) {
    if signal == rustix::process::Signal::INT && io::stdin().is_terminal() {
        return;
    }
    let id = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(id) = id {
        // It fails only if the command has ended.
        let _ = rustix::process::kill_process(id, signal);
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // The command gets Ctrl-C by itself; this process waits for it.
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(not(unix))]
fn forward(_child: &Child, _signal: ()) {}

fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
