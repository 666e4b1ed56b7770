//! The command on a terminal: what a user sees on the screen.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::pty_runner;

/// A command that runs on a terminal, of 80 columns and 24 rows if no other size is given.
pub(crate) struct OnTerminal {
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    pub(crate) input: File,
}

impl OnTerminal {
    /// Starts a command; with `stdin`, it reads from there instead of the terminal.
    pub(crate) fn start(command: &mut Command, stdin: Option<Stdio>) -> Self {
        Self::start_sized(command, stdin, 24, 80)
    }

    /// Starts a command on a terminal of another size.
    pub(crate) fn start_sized(command: &mut Command, stdin: Option<Stdio>, rows: u16, columns: u16) -> Self {
        let (ours, theirs) = pty_runner::open(rows, columns);
        let end = || Stdio::from(theirs.as_fd().try_clone_to_owned().unwrap());
        command.stdin(stdin.unwrap_or_else(end)).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        let mut reader = File::from(ours.try_clone().unwrap());
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Reading fails when the last user of the other end has gone.
            while let Ok(n) = reader.read(&mut chunk) {
                if n == 0 || send.send(chunk[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, output, screen: vt100::Parser::new(rows, columns, 1000), input: File::from(ours) }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the screen is as wanted, and returns its text.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.screen.screen().contents();
            if wanted(&text) {
                return text;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "the screen stayed\n{text}");
            self.read_output();
        }
    }

    /// Waits until something is printed, or for a tenth of a second.
    pub(crate) fn read_output(&mut self) {
        if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.screen.process(&bytes);
        }
    }

    /// Waits for the end; returns the status and the last screen.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.screen.process(&bytes);
        }
        (status, self.screen.screen().contents())
    }

    pub(crate) fn stop(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
