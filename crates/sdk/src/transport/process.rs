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

/// A program to start, with its arguments, its environment and its folder.
///
/// It runs in a process group of its own. When it is to end, everything it started
/// ends too: on Linux also what has left the group.
#[derive(Debug, Clone, Default)]
pub struct Subprocess {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What to put into its environment beside ours.
    pub env: BTreeMap<OsString, OsString>,
    /// What to take out of it.
    pub without_env: Vec<OsString>,
    /// The folder it runs in.
    pub cwd: Option<PathBuf>,
}

impl Transport for Subprocess {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        Box::pin(std::future::ready(self.start()))
    }
}

impl Subprocess {
    fn start(self) -> Result<Connection, Error> {
        let failed = |error: io::Error| Error::Start { program: self.program.clone(), source: Arc::new(error) };
        // A path is meant from where we are, not from the folder the program is to run in.
        let is_path = self.program.components().count() > 1;
        let program = if is_path { path::absolute(&self.program).map_err(failed)? } else { self.program.clone() };
        let mut command = Command::new(program);
        command.args(&self.args).envs(&self.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        for name in &self.without_env {
            if !self.env.contains_key(name) {
                command.env_remove(name);
            }
        }
        if let Some(cwd) = &self.cwd {
            if !cwd.is_dir() {
                return Err(Error::options(format!("{} is no folder to work in", cwd.display())));
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
            peer: Box::new(Process { child, left: Family::default(), ending: false }),
        })
    }
}

/// A program that runs.
struct Process {
    child: Child,
    /// What it has left behind that must end too.
    left: Family,
    /// It was asked to end.
    ending: bool,
}

/// Processes that must not outlive the agent.
#[cfg(target_os = "linux")]
type Family = super::tree::Tree;
/// Where processes cannot be listed, the group is all that is known.
#[cfg(not(target_os = "linux"))]
type Family = ();

impl Process {
    /// Remembers what the program has started.
    fn note_family(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(pid) = self.child.id() {
            self.left.add_descendants(pid);
        }
    }

    /// Remembers what is left of the group of the program, which was `pid`.
    fn note_group(&mut self, pid: u32) {
        #[cfg(target_os = "linux")]
        self.left.add_group(pid);
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }

    fn kill_family(&mut self) {
        #[cfg(target_os = "linux")]
        self.left.kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        // None once the child was waited for: its number may be another's by then.
        let pid = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

impl Peer for Process {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async {
            let pid = self.child.id();
            let status = self.child.wait().await?;
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            #[cfg(not(unix))]
            let signal = None;
            // What an agent leaves behind that ends by itself is its own business.
            if let Some(pid) = pid
                && (self.ending || signal.is_some())
            {
                self.note_group(pid);
            }
            Ok(Exit { code: status.code(), signal, stderr: String::new() })
        })
    }

    fn terminate(&mut self) {
        self.ending = true;
        self.note_family();
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    fn kill(&mut self) {
        // What is stopped starts nothing while it is looked at.
        #[cfg(unix)]
        self.signal(rustix::process::Signal::STOP);
        self.note_family();
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        let _ = self.child.start_kill();
        self.kill_family();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
