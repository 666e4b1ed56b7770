//! Runs commands on a pseudo-terminal of a given width.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What a command printed and how it ended.
pub(crate) struct CapturedOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// Runs a command whose stdout is a terminal of so many columns; stderr is a pipe.
pub(crate) fn on_terminal(command: &mut Command, columns: u16) -> CapturedOutput {
    let (master, slave) = open(200, columns);
    let mut child = command.stdout(slave).stderr(Stdio::piped()).spawn().unwrap();
    // The command holds the other copies of the terminal: they must go for reading to end.
    command.stdout(Stdio::null());
    let mut stderr = child.stderr.take().unwrap();
    let errors = thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    let stdout = read_all(master);
    CapturedOutput { stdout, stderr: errors.join().unwrap(), code: child.wait().unwrap().code().unwrap_or(-1) }
}

/// Opens a pseudo-terminal: the end for us, and the one for a command.
pub(crate) fn open(rows: u16, columns: u16) -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // The command must notice when the terminal is closed, also if the test fails.
    fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    (master, OpenOptions::new().read(true).write(true).open(name).unwrap())
}

/// Runs a command whose stdout and stderr are pipes.
pub(crate) fn in_pipe(command: &mut Command) -> CapturedOutput {
    let out = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CapturedOutput { stdout: text(out.stdout), stderr: text(out.stderr), code: out.status.code().unwrap_or(-1) }
}

/// Runs a command that does not end by itself, on a terminal or in a pipe, until its last line
/// holds a text; then interrupts it.
pub(crate) fn until(command: &mut Command, columns: Option<u16>, last: &str) -> CapturedOutput {
    let mut terminal = None;
    match columns.map(|columns| open(200, columns)) {
        Some((master, slave)) => {
            terminal = Some(File::from(master));
            command.stdout(slave)
        }
        None => command.stdout(Stdio::piped()),
    };
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    command.stdout(Stdio::null());
    let mut output: Box<dyn Read> = match terminal {
        Some(terminal) => Box::new(terminal),
        None => Box::new(child.stdout.take().unwrap()),
    };
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    let is_last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.ends_with('\n') && text.lines().next_back().is_some_and(|line| line.contains(last))
    };
    while !is_last(&bytes) {
        let n = output.read(&mut chunk).unwrap();
        assert!(n > 0, "it ended before {last}: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&chunk[..n]);
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code().unwrap_or_default();
    CapturedOutput { stdout: String::from_utf8(bytes).unwrap().replace("\r\n", "\n"), stderr, code }
}

fn read_all(terminal: OwnedFd) -> String {
    let mut bytes = Vec::new();
    // After the last writer has closed, Linux returns an error where others return the end.
    let _ = File::from(terminal).read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}
