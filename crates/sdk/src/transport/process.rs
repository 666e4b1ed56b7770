//! An agent that is a program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{self, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::process::{Child, Command};

use super::{Connection, Peer, Transport};
use crate::{Error, Exit};

/// A program to start, with its arguments, environment and folder.
///
/// It runs in a process group of its own. When it is ended, so are all processes that it started; on Linux
/// also those that left the group.
#[derive(Debug, Clone, Default)]
pub struct Subprocess {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<OsString>,
    /// Variables to add to the environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Variables to remove from the environment.
    pub env_remove: Vec<OsString>,
    /// Working directory of the program.
    pub cwd: Option<PathBuf>,
}

impl Transport for Subprocess {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        Box::pin(std::future::ready(self.start()))
    }
}

impl Subprocess {
    #[expect(clippy::disallowed_methods, reason = "the one place that starts agents")]
    fn start(self) -> Result<Connection, Error> {
        let failed = |error: io::Error| Error::Start { program: self.program.clone(), source: Arc::new(error) };
        // A relative path is relative to our working directory, not to the program's.
        let is_path = self.program.components().count() > 1;
        let program = if is_path { path::absolute(&self.program).map_err(failed)? } else { self.program.clone() };
        let mut command = Command::new(program);
        command.args(&self.args).envs(&self.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        for name in &self.env_remove {
            if !self.env.contains_key(name) {
                command.env_remove(name);
            }
        }
        if let Some(cwd) = &self.cwd {
            if !cwd.is_dir() {
                return Err(Error::invalid_options(format!("{} is no folder to work in", cwd.display())));
            }
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        Ok(Connection {
            reader: Box::new(stdout),
            writer: Box::new(stdin),
            stderr: Some(Box::new(stderr)),
            peer: Box::new(ChildProcess { child, descendants: Descendants::default(), is_terminating: false }),
        })
    }
}

/// A running program.
struct ChildProcess {
    child: Child,
    /// Processes that must be ended too.
    descendants: Descendants,
    /// Whether the program was requested to end.
    is_terminating: bool,
}

/// Processes that must not outlive the agent.
#[cfg(target_os = "linux")]
type Descendants = super::process_tree::ProcessTree;
/// Without a list of processes only the process group is known.
#[cfg(not(target_os = "linux"))]
type Family = ();

impl ChildProcess {
    /// Records the processes that the program has started.
    fn record_descendants(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(pid) = self.child.id() {
            self.descendants.add_descendants(pid);
        }
    }

    /// Records the rest of the process group of the program, whose pid was `pid`.
    fn record_group(&mut self, pid: u32) {
        #[cfg(target_os = "linux")]
        self.descendants.add_group(pid);
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }

    fn kill_descendants(&mut self) {
        #[cfg(target_os = "linux")]
        self.descendants.kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        // `None` once the child was waited for, because its pid may be reused then.
        let pid = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

impl Peer for ChildProcess {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async {
            let pid = self.child.id();
            let status = self.child.wait().await?;
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            #[cfg(not(unix))]
            let signal = None;
            // Processes that the agent left and that end by themselves are not killed.
            if let Some(pid) = pid
                && (self.is_terminating || signal.is_some())
            {
                self.record_group(pid);
            }
            Ok(Exit { code: status.code(), signal, stderr: String::new() })
        })
    }

    fn terminate(&mut self) {
        self.is_terminating = true;
        self.record_descendants();
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    fn kill(&mut self) {
        // A stopped process cannot start others during the search.
        #[cfg(unix)]
        self.signal(rustix::process::Signal::STOP);
        self.record_descendants();
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        let _ = self.child.start_kill();
        self.kill_descendants();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
