//! The launcher processes of a session. One is kept waiting for a policy, because starting
//! a program as large as the agent takes longer than all that the launcher does.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::process::Command;

use super::LAUNCHER_FLAG;
use super::policy::Policy;

/// The launcher program of a session, and a process of it that waits.
#[derive(Debug)]
pub(super) struct Launchers {
    program: PathBuf,
    waiting: Mutex<Option<Launcher>>,
}

/// A command in the sandbox that has been started.
pub(crate) struct Launched {
    /// The launcher, which becomes the command or waits for it.
    pub(crate) child: Box<dyn ChildWrapper>,
    /// What the command prints, errors included.
    pub(crate) output: PipeReader,
}

impl Launchers {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program, waiting: Mutex::default() }
    }

    /// Runs the command of a policy, in the process that waits if there is one, and starts
    /// the process for the next command meanwhile. Needs a tokio runtime.
    pub(super) fn run(self: &Arc<Self>, policy: &Policy) -> io::Result<Launched> {
        let line = policy.to_line()?;
        let waiting = self.waiting.lock().take();
        // One that cannot be told has been killed while it waited.
        let launched = match waiting.and_then(|launcher| launcher.run(&line).ok()) {
            Some(launched) => launched,
            None => Launcher::start(&self.program)?.run(&line)?,
        };
        let launchers = Arc::clone(self);
        tokio::task::spawn_blocking(move || launchers.refill());
        Ok(launched)
    }

    fn refill(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.is_none() {
            // What is wrong with it is said when a command needs it.
            *waiting = Launcher::start(&self.program).ok();
        }
    }
}

/// A launcher that waits for its policy. It holds nothing of the session: no variable, no
/// folder. It ends when it is dropped, and when the agent ends in whatever way: then its
/// stdin is closed.
#[derive(Debug)]
struct Launcher {
    child: Box<dyn ChildWrapper>,
    policy: PipeWriter,
    output: PipeReader,
}

impl Launcher {
    fn start(program: &Path) -> io::Result<Self> {
        let (stdin, policy) = io::pipe()?;
        // Errors and output come in the order they were printed, so both go into one pipe.
        let (output, stdout) = io::pipe()?;
        let stderr = stdout.try_clone()?;
        let mut command = Command::new(program);
        command.arg(LAUNCHER_FLAG).env_clear().current_dir("/");
        command.stdin(stdin).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let child = CommandWrap::from(command).wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
        Ok(Self { child, policy, output })
    }

    /// Tells it what to run.
    fn run(mut self, line: &[u8]) -> io::Result<Launched> {
        self.policy.write_all(line)?;
        Ok(Launched { child: self.child, output: self.output })
    }
}
