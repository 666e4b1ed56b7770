//! Launcher processes of a session. One is always kept ready, because starting a program as
//! large as the agent takes longer than everything the launcher does.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::process::Command;

use super::LAUNCHER_FLAG;
use super::policy::Policy;

/// The launcher program of a session and a process of it that waits for a policy.
#[derive(Debug)]
pub(super) struct Launchers {
    program: PathBuf,
    waiting: Mutex<Option<Launcher>>,
}

/// A started command.
pub(crate) struct Launched {
    /// The launcher, which becomes the command or waits for it to end.
    pub(crate) child: Box<dyn ChildWrapper>,
    /// Pipe with stdout and stderr of the command.
    pub(crate) output: PipeReader,
    /// Stdin of the launcher, which kills the command when it is closed; `None` without a sandbox.
    pub(crate) stdin: Option<PipeWriter>,
}

impl Launchers {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program, waiting: Mutex::default() }
    }

    /// Runs the command of a policy in the waiting process, or in a new one, and starts the
    /// process for the next command in the background. Needs a tokio runtime.
    pub(super) fn run(self: &Arc<Self>, policy: &Policy) -> io::Result<Launched> {
        let line = policy.to_line()?;
        let waiting = self.waiting.lock().take();
        // If writing fails, the waiting process was killed.
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
            // An error is reported when the next command needs a launcher.
            *waiting = Launcher::start(&self.program).ok();
        }
    }
}

/// A launcher that waits for its policy. It has no variables or folder of the session. It ends
/// when it is dropped, and when the agent ends, because that closes its stdin.
#[derive(Debug)]
struct Launcher {
    child: Box<dyn ChildWrapper>,
    policy: PipeWriter,
    output: PipeReader,
}

impl Launcher {
    fn start(program: &Path) -> io::Result<Self> {
        let (stdin, policy) = io::pipe()?;
        // One pipe for stdout and stderr keeps their order.
        let (output, stdout) = io::pipe()?;
        let stderr = stdout.try_clone()?;
        #[expect(clippy::disallowed_methods, reason = "ended with its process group")]
        let mut command = Command::new(program);
        command.arg(LAUNCHER_FLAG).env_clear().current_dir("/");
        command.stdin(stdin).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let child = CommandWrap::from(command).wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
        Ok(Self { child, policy, output })
    }

    /// Sends the policy to the launcher.
    fn run(mut self, line: &[u8]) -> io::Result<Launched> {
        self.policy.write_all(line)?;
        Ok(Launched { child: self.child, output: self.output, stdin: Some(self.policy) })
    }
}
