//! A program in a process group of its own, so that its children can be ended with it.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// A running program. If it has not [ended](Self::wait) when this is dropped, it is killed with its children.
#[derive(Debug)]
pub(crate) struct GroupProcess {
    child: Box<dyn ChildWrapper>,
    has_ended: bool,
}

impl GroupProcess {
    /// Starts a program. Needs a tokio runtime.
    pub(crate) fn spawn(mut command: CommandWrap) -> io::Result<Self> {
        Ok(Self { child: command.wrap(ProcessGroup::leader()).spawn()?, has_ended: false })
    }

    /// Takes its stdin, if it is a pipe.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    /// Takes its stdout, if it is a pipe.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout().take()
    }

    /// Takes its stderr, if it is a pipe.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr().take()
    }

    /// Waits until the program ends. Children that it leaves in the background go on.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.has_ended = true;
        status
    }

    /// Kills the program, if it runs, and its children.
    pub(crate) fn kill(&mut self) {
        // They may have ended.
        let _ = self.child.start_kill();
    }
}

impl Drop for GroupProcess {
    fn drop(&mut self) {
        if !self.has_ended {
            self.kill();
        }
    }
}
