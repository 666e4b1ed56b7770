//! The launcher: a process that gives up everything the policy does not grant and then runs
//! the command.
//!
//! It is the agent's own program, started with [`LAUNCHER_FLAG`]. It reads the policy from
//! stdin, which may come much later than its start. It has a single thread, so that every
//! step is a plain system call and needs no `unsafe`.

use std::io::{self, Write as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::{env, fs};

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, getpgid, getppid, setpgid, setsid};
use rustix::event::{PollFd, PollFlags, poll};

use super::policy::{NetworkAccess, Policy};
use super::{LAUNCHER_FLAG, self_test};

mod landlock_rules;
mod mounts;
mod seccomp_filter;

/// Second argument of the launcher inside the namespaces, where it is the first process.
const INNER_ARG: &str = "inside";
/// Exit code if the sandbox could not be set up.
const SETUP_FAILED_EXIT_CODE: u8 = 125;

/// Why the sandbox could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
struct LaunchError {
    step: &'static str,
    reason: String,
}

/// Adds the name of the failed step to an error.
fn step_error<E: std::fmt::Display>(step: &'static str) -> impl Fn(E) -> LaunchError {
    move |error| LaunchError { step, reason: error.to_string() }
}

/// Runs the launcher if the process was started with its flag; returns `None` otherwise.
///
/// Must be called first in `main`: there must be no other thread yet.
pub fn launch() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next().is_none_or(|arg| arg != LAUNCHER_FLAG) {
        return None;
    }
    let inside = args.next().is_some_and(|arg| arg == INNER_ARG);
    Some(run_launcher(inside).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "the sandbox could not be set up: {error}");
        ExitCode::from(SETUP_FAILED_EXIT_CODE)
    }))
}

fn run_launcher(inside: bool) -> Result<ExitCode, LaunchError> {
    if !inside {
        leave_terminal().map_err(step_error("leaving the terminal"))?;
        close_descriptors().map_err(step_error("closing descriptors"))?;
    }
    let line = read_policy_line().map_err(step_error("reading the policy"))?;
    if line.is_empty() {
        // The agent has ended without a command for this process.
        return Ok(ExitCode::SUCCESS);
    }
    let policy: Policy = serde_json::from_slice(&line).map_err(step_error("reading the policy"))?;
    if !inside && policy.uses_mounts {
        return run_outer(&policy, &line);
    }
    if inside {
        // The outer process blocks some.
        SigSet::empty().thread_set_mask().map_err(step_error("unblocking signals"))?;
        mounts::mount_proc().map_err(step_error("mounting /proc"))?;
    }
    // After the mounts, which may lie over the folder.
    env::set_current_dir(&policy.cwd).map_err(step_error("entering the folder"))?;
    mounts::drop_capabilities().map_err(step_error("dropping capabilities"))?;
    if inside {
        die_with_parent().map_err(step_error("following the parent"))?;
    }
    let null = fs::File::open("/dev/null").map_err(step_error("opening /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(step_error("closing stdin"))?;
    landlock_rules::restrict_files(&policy).map_err(step_error("Landlock"))?;
    seccomp_filter::apply_filters(&policy).map_err(step_error("seccomp"))?;
    let Some((program, args)) = policy.argv.split_first() else {
        return Ok(self_test::run_self_test(&policy));
    };
    #[expect(clippy::disallowed_methods, reason = "the launcher ends with the command")]
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(policy.env.iter().map(|(name, value)| (name, value)));
    if !inside {
        let error = command.exec();
        return Err(step_error("starting the command")(error));
    }
    let child = command.spawn().map_err(step_error("starting the command"))?;
    let id = Pid::from_raw(i32::try_from(child.id()).map_err(step_error("starting the command"))?);
    // The first process of a PID namespace also has to reap orphans.
    loop {
        match wait().map_err(step_error("waiting for the command"))? {
            WaitStatus::Exited(pid, code) if pid == id => return Ok(exit_code(code)),
            WaitStatus::Signaled(pid, signal, _) if pid == id => return Ok(exit_code(128 + signal as i32)),
            _ => {}
        }
    }
}

/// Creates the namespaces and mounts, and starts the first process in them: only from
/// there can `/proc` be mounted.
fn run_outer(policy: &Policy, line: &[u8]) -> Result<ExitCode, LaunchError> {
    mounts::enter_namespaces().map_err(step_error("making namespaces"))?;
    mounts::set_up_mounts(policy)?;
    mounts::keep_capability().map_err(step_error("keeping a capability"))?;
    #[expect(clippy::disallowed_methods, reason = "the launcher ends with its second half")]
    let mut command = Command::new("/proc/self/exe");
    command.args([LAUNCHER_FLAG, INNER_ARG]).stdin(Stdio::piped());
    // Before there is a child, so that no signal is missed. The child inherits it.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGCHLD]);
    signals.thread_block().map_err(step_error("blocking signals"))?;
    let mut child = command.spawn().map_err(step_error("starting inside"))?;
    // Stays open as long as this process lives.
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        // In one write: the inner process closes its end after reading the line.
        stdin.write_all(line).map_err(step_error("passing the policy"))?;
    }
    let status = wait_for_inner(&mut child, &signals).map_err(step_error("waiting"))?;
    Ok(exit_code(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
}

/// Waits for the first process of the namespace. SIGTERM and the end of the agent, which closes stdin, kill that
/// process, and the system then kills all others before it counts as ended. So nothing of the command runs any more
/// when this process ends, unless it is killed itself.
fn wait_for_inner(child: &mut Child, signals: &SigSet) -> io::Result<ExitStatus> {
    let signals = SignalFd::new(signals)?;
    let stdin = io::stdin();
    let mut is_killed = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut events = vec![PollFd::new(&signals, PollFlags::IN)];
        if !is_killed {
            events.push(PollFd::new(&stdin, PollFlags::IN));
        }
        poll(&mut events, None)?;
        let has_event = |at: usize| events.get(at).is_some_and(|event| !event.revents().is_empty());
        let (is_signaled, has_agent_ended) = (has_event(0), has_event(1));
        let signal = if is_signaled { signals.read_signal()? } else { None };
        if has_agent_ended || signal.is_some_and(|signal| signal.ssi_signo == Signal::SIGTERM as u32) {
            child.kill()?;
            is_killed = true;
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(SETUP_FAILED_EXIT_CODE))
}

/// Reads the policy, which is one line; stdin may stay open after it.
fn read_policy_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = rustix::io::read(rustix::stdio::stdin(), &mut buffer)?;
        line.extend_from_slice(&buffer[..read]);
        if read == 0 || line.last() == Some(&b'\n') {
            return Ok(line);
        }
    }
}

/// Becomes the leader of a session without a terminal. The engine starts the launcher as a
/// process group leader, which must join another group first.
fn leave_terminal() -> nix::Result<()> {
    if setsid().is_ok() {
        return Ok(());
    }
    setpgid(Pid::from_raw(0), getpgid(Some(getppid()))?)?;
    setsid().map(|_| ())
}

/// Closes descriptors that were inherited from the agent or its parent.
fn close_descriptors() -> io::Result<()> {
    let numbers = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse::<i32>().ok();
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?.filter_map(numbers).filter(|fd| *fd > 2).collect();
    // The descriptor used for listing is closed already.
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Arranges that this process, and with it the namespace, ends with its parent.
fn die_with_parent() -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have ended before: then its end of the pipe is closed.
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut pipe, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if pipe[0].revents().contains(PollFlags::HUP) {
        return Err(io::Error::other("it has ended"));
    }
    Ok(())
}
