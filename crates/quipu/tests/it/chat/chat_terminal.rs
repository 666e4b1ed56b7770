//! `quipu chat` on a pseudo-terminal, with `quipu-agent` and a scripted model.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use quipu_api::mock::{MockServer, Script};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Termios, tcgetattr};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::terminal_output::OnTerminal;

pub(super) const ENTER: &str = "\r";
pub(super) const ESCAPE: &str = "\x1b";
pub(super) const CTRL_C: &str = "\x03";
pub(super) const CTRL_D: &str = "\x04";
pub(super) const UP: &str = "\x1b[A";
pub(super) const LEFT: &str = "\x1b[D";
pub(super) const TAB: &str = "\t";
pub(super) const ALT_ENTER: &str = "\x1b\r";
pub(super) const BACKSPACE: &str = "\x7f";

/// A home folder with a working folder that is trusted, and a scripted model.
pub(super) struct ChatHome {
    folder: TempDir,
    pub(super) server: MockServer,
    _runtime: Runtime,
}

impl ChatHome {
    pub(super) fn new(script: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(MockServer::start(Script::parse(script).unwrap())).unwrap();
        let home = Self { folder: tempfile::tempdir().unwrap(), server, _runtime: runtime };
        fs::create_dir_all(home.work()).unwrap();
        home.trust();
        home
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// The working folder.
    pub(super) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.path().join(".config/quipu/config.toml")
    }

    fn trust(&self) {
        fs::create_dir_all(self.config_file().parent().unwrap()).unwrap();
        fs::write(self.config_file(), format!("trusted = [{:?}]\n", self.work().to_str().unwrap())).unwrap();
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// `quipu chat` with these arguments, in the working folder.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command
            .arg("chat")
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("QUIPU_CLI", agent_program())
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", "any")
            .env("NO_COLOR", "1");
        command
    }

    pub(super) fn start(&self, args: &[&str]) -> ChatTerminal {
        ChatTerminal::start(&mut self.command(args), 24, 80)
    }

    /// Runs a chat whose input is a pipe; returns stdout, stderr and whether it succeeded.
    pub(super) fn run_piped(&self, args: &[&str], input: &str) -> (String, String, bool) {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(out.stdout), text(out.stderr), out.status.success())
    }

    /// The messages of the last request of a turn, as JSON.
    pub(super) fn last_request(&self) -> String {
        let has_tools =
            |request: &quipu_message::api::Request| request.tools.get().is_some_and(|tools| !tools.is_empty());
        let requests = self.server.requests();
        let last = requests.iter().rev().filter_map(|seen| seen.request.as_ref()).find(|request| has_tools(request));
        last.map(|request| serde_json::to_string(&request.messages).unwrap()).unwrap_or_default()
    }
}

/// A chat that runs on a terminal.
pub(super) struct ChatTerminal {
    terminal: OnTerminal,
    mode_before: Termios,
}

impl ChatTerminal {
    pub(super) fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
        let terminal = OnTerminal::start_sized(command, None, rows, columns);
        let mode_before = tcgetattr(&terminal.input).unwrap();
        let mut chat = Self { terminal, mode_before };
        chat.until("›");
        chat
    }

    /// Like [`start`](Self::start), without waiting for the input.
    pub(super) fn start_at_question(command: &mut Command, question: &str) -> Self {
        let terminal = OnTerminal::start_sized(command, None, 24, 80);
        let mode_before = tcgetattr(&terminal.input).unwrap();
        let mut chat = Self { terminal, mode_before };
        chat.until(question);
        chat
    }

    /// Types keys.
    pub(super) fn send(&mut self, keys: &str) {
        self.terminal.input.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a prompt and sends it.
    pub(super) fn prompt(&mut self, text: &str) {
        self.send(text);
        self.until(text);
        self.send(ENTER);
    }

    /// Waits until the screen contains a text, and returns the screen.
    #[track_caller]
    pub(super) fn until(&mut self, text: &str) -> String {
        self.terminal.until(|screen| screen.contains(text))
    }

    #[track_caller]
    pub(super) fn until_screen(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        self.terminal.until(wanted)
    }

    /// Waits until something is drawn, or for a tenth of a second.
    pub(super) fn pause(&mut self) {
        self.terminal.read_output();
    }

    pub(super) fn kill(&mut self, signal: Signal) {
        kill_process(Pid::from_child(self.terminal.child()), signal).unwrap();
    }

    /// Waits for the end; the mode of the terminal must be as it was. Returns the last screen.
    #[track_caller]
    pub(super) fn end(self) -> (ExitStatus, String) {
        let input = self.terminal.input.try_clone().unwrap();
        let (status, screen) = self.terminal.end();
        let after = tcgetattr(&input).unwrap();
        let modes = |mode: &Termios| (mode.local_modes, mode.input_modes, mode.output_modes, mode.control_modes);
        assert_eq!(modes(&after), modes(&self.mode_before), "{screen}");
        (status, screen)
    }

    /// Ends the chat with Ctrl-D.
    #[track_caller]
    pub(super) fn exit(mut self) -> String {
        self.send(CTRL_D);
        let (status, screen) = self.end();
        assert!(status.success(), "{screen}");
        screen
    }
}

/// The agent to chat with. `make interop` names another one.
fn agent_program() -> OsString {
    std::env::var_os("QUIPU_CHAT_CLI").unwrap_or_else(|| env!("CARGO_BIN_EXE_quipu-agent").into())
}

/// Makes a file executable.
pub(super) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
