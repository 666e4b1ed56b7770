//! The process of a shell command and its children.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, PipeWriter, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::capture::{CapturedOutput, OutputCapture};
use crate::safe_file;
use crate::sandbox::{Launched, RunningCommand, SandboxProfile, SandboxedCommand};
use crate::tool::{CallContext, ToolOutput, Workspace};

/// How long to read output after the shell has ended, while children keep the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Time between SIGTERM and SIGKILL.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// Time between two checks whether a command that is being ended has exited.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum size of the file that contains the current folder.
const MAX_PATH_BYTES: u64 = 4097;
/// The most guarded files of a command that a note names.
const MAX_NAMED_FILES: usize = 20;
const SIGTERM: i32 = 15;
/// Variables that every command gets.
const VARIABLES: [(&str, &str); 2] = [("CLAUDECODE", "1"), ("GIT_EDITOR", "true")];

/// Result of a command that was not started because its names must be checked again.
const NAMES_CHANGED: &str = "The command was not started: another command has started since its files were checked. \
                             Try again.";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessEnd {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Signaled(i32),
    /// Terminated after the timeout.
    TimedOut,
    /// Terminated because the call was cancelled.
    Cancelled,
    /// Still running: the call asked to continue in the background.
    MovedToBackground,
}

/// A shell and its children, which are killed if it is dropped before the shell ends.
pub(super) struct ShellProcess {
    pub(super) id: String,
    child: Box<dyn ChildWrapper>,
    capture: OutputCapture,
    output_path: PathBuf,
    cwd_file: PathBuf,
    /// Process group of the shell.
    process_group: Option<u32>,
    has_ended: bool,
    /// Closed when the agent ends, so that a command in the sandbox ends too.
    _stdin: Option<PipeWriter>,
    /// Sandbox of the command; `None` if it runs without one.
    sandboxed_command: Option<SandboxedCommand>,
    /// Its entry among the running commands if it runs without a sandbox.
    _run: Option<RunningCommand>,
}

impl ShellProcess {
    /// Starts a command in a sandbox profile, in a shell that runs `setup` first. With `at_once` its
    /// output is written to the file from the first byte; otherwise only when it gets long.
    pub(super) fn start(
        command: &str,
        setup: &str,
        workspace: &Workspace,
        id: String,
        profile: SandboxProfile,
        at_once: bool,
    ) -> Result<Self, ToolOutput> {
        if !workspace.cwd().is_dir() {
            workspace.set_cwd(workspace.root());
        }
        let held =
            |why| ToolOutput::failure(format!("The command was not started: it cannot be held in a sandbox: {why}."));
        let sandboxed =
            workspace.sandbox().prepare_command(profile, &workspace.command_context(), &id).map_err(held)?;
        let run = match &sandboxed {
            Some(_) => None,
            None => {
                let started = workspace.sandbox().start_unsandboxed(profile);
                Some(started.ok_or_else(|| ToolOutput::failure(NAMES_CHANGED))?)
            }
        };
        let spawn = || -> io::Result<Self> {
            let folder = workspace.output_folder();
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let file = folder.join(format!("{id}.output"));
            let cwd_file = sandboxed
                .as_ref()
                .map_or_else(|| folder.join(format!("{id}.cwd")), |sandboxed| sandboxed.temp_folder().join("cwd"));
            let leave = format!("pwd -P >|{}", shell_quote(&cwd_file.to_string_lossy()));
            let script = format!("{setup}trap {} EXIT\n{command}\n", shell_quote(&leave));
            let argv = ["bash", "-c", &script];
            let Launched { child, output, stdin } = match &sandboxed {
                None => unconfined(argv, workspace)?,
                Some(sandboxed) => sandboxed.launcher_command(&argv, workspace.env(), &VARIABLES)?,
            };
            let group = child.id();
            let pipe = Receiver::from_owned_fd(output.into())?;
            let capture = OutputCapture::start(pipe, file.clone(), at_once)?;
            Ok(Self {
                id,
                child,
                capture,
                output_path: file,
                cwd_file,
                process_group: group,
                has_ended: false,
                _stdin: stdin,
                sandboxed_command: sandboxed,
                _run: run,
            })
        };
        spawn().map_err(|e| ToolOutput::failure(format!("The command could not be started: {e}.")))
    }

    /// Returns the path of the output file, which exists only for long output.
    pub(super) fn output_path(&self) -> &Path {
        &self.output_path
    }

    /// Waits for the end, the timeout, cancellation or a move to the background. Reports progress
    /// every second.
    pub(super) async fn wait(&mut self, time: Duration, call: &CallContext) -> ProcessEnd {
        let started = Instant::now();
        let mut tick = interval_at(started + Duration::from_secs(2), Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let late = tokio::time::sleep_until(started + time);
        tokio::pin!(late);
        loop {
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => return self.terminate(ProcessEnd::Cancelled).await,
                status = self.child.wait() => return self.exit_end(status),
                () = call.move_to_background.cancelled() => {
                    self.capture.save_to_file();
                    return ProcessEnd::MovedToBackground;
                }
                () = &mut late => return self.terminate(ProcessEnd::TimedOut).await,
                _ = tick.tick() => call.report_progress(started.elapsed().as_secs(), || self.capture.snapshot().tail_text(1000)),
            }
        }
    }

    /// Waits for the end or for `stop`, without a timeout.
    pub(super) async fn wait_until_stopped(&mut self, stop: &CancellationToken) -> ProcessEnd {
        tokio::select! {
            biased;
            () = stop.cancelled() => self.terminate(ProcessEnd::Cancelled).await,
            status = self.child.wait() => self.exit_end(status),
        }
    }

    fn exit_end(&mut self, status: io::Result<ExitStatus>) -> ProcessEnd {
        self.has_ended = true;
        match status {
            Ok(status) => {
                status.code().map_or_else(|| ProcessEnd::Signaled(status.signal().unwrap_or(0)), ProcessEnd::Exited)
            }
            Err(_) => ProcessEnd::Signaled(0),
        }
    }

    /// Terminates the shell and its children: SIGTERM, then SIGKILL.
    async fn terminate(&mut self, end: ProcessEnd) -> ProcessEnd {
        let _ = self.child.signal(SIGTERM);
        let _ = timeout(TERMINATION_GRACE, self.child.wait()).await;
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
        self.has_ended = true;
        end
    }

    /// Returns the output after the end of the shell.
    pub(super) async fn captured_output(&self) -> CapturedOutput {
        let _ = timeout(OUTPUT_GRACE, self.capture.wait_for_end()).await;
        self.capture.snapshot()
    }

    /// Makes the folder the shell ended in the current one. Outside the session's folders it resets
    /// it to the root and returns a note for the model.
    pub(super) fn adopt_cwd(&self, workspace: &Workspace) -> Option<String> {
        self.process_group.into_iter().for_each(|group| workspace.track_process_group(group));
        let text = read_short_file(&self.cwd_file)?;
        let cwd = PathBuf::from(text.strip_suffix('\n').unwrap_or(&text));
        if !cwd.is_absolute() || !cwd.is_dir() {
            return None;
        }
        if workspace.contains(&cwd) {
            workspace.set_cwd(cwd);
            return None;
        }
        workspace.set_cwd(workspace.root());
        Some(format!("Shell cwd was reset to {}", workspace.root().display()))
    }
}

impl ShellProcess {
    /// Renames guarded files that a sandboxed command created, after its end. Returns a note for
    /// the model; `None` if there were none, or at the second call.
    pub(super) fn move_guarded_aside(&mut self) -> Option<String> {
        describe_moved(&self.sandboxed_command.take()?.move_guarded_aside())
    }
}

impl Drop for ShellProcess {
    /// Ends a command whose call was cancelled.
    fn drop(&mut self) {
        if !self.has_ended {
            if self.sandboxed_command.as_ref().is_some_and(SandboxedCommand::can_write) {
                self.end_sandboxed();
            }
            let _ = self.child.start_kill();
        }
        if let Some(moved) = self.move_guarded_aside() {
            tracing::warn!(target: "quipu::sandbox", "{moved}");
        }
        let _ = std::fs::remove_file(&self.cwd_file);
    }
}

impl ShellProcess {
    /// Ends the shell and waits until nothing that it started runs any more, so that what it created
    /// can be moved aside. Blocks, because a value that is dropped cannot await.
    fn end_sandboxed(&mut self) {
        let _ = self.child.signal(SIGTERM);
        let latest = Instant::now() + TERMINATION_GRACE;
        while Instant::now() < latest && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
    }
}

/// Returns a note about the guarded files that a command created, with the old and new path of each; `None` if
/// there are none. Those that could not be moved come first, and of very many only some are named.
fn describe_moved(moved: &[(PathBuf, io::Result<PathBuf>)]) -> Option<String> {
    let describe = |(from, moved): &(PathBuf, io::Result<PathBuf>)| {
        let outcome = match moved {
            Ok(to) => format!("It was moved to {}.", to.display()),
            Err(error) => format!("It could not be moved: {error}. The user should remove it."),
        };
        let from = from.display();
        format!("The command made {from}, which needs approval. {outcome}")
    };
    let is_moved = |(_, moved): &&(PathBuf, io::Result<PathBuf>)| moved.is_ok();
    let (moved, unmoved): (Vec<_>, Vec<_>) = moved.iter().partition(is_moved);
    let mut lines: Vec<String> =
        unmoved.iter().chain(&moved).take(MAX_NAMED_FILES).map(|entry| describe(entry)).collect();
    let more_unmoved = unmoved.len().saturating_sub(MAX_NAMED_FILES);
    if more_unmoved > 0 {
        lines.push(format!("{more_unmoved} more could not be moved. The user should remove them."));
    }
    let more_moved = moved.len().saturating_sub(MAX_NAMED_FILES.saturating_sub(unmoved.len()));
    if more_moved > 0 {
        lines.push(format!("{more_moved} more were moved, each to a name with moved-aside in the same folder."));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Starts a program without a sandbox.
fn unconfined([program, args @ ..]: [&str; 3], workspace: &Workspace) -> io::Result<Launched> {
    // One pipe for stdout and stderr keeps their order.
    let (output, write) = io::pipe()?;
    let errors = write.try_clone()?;
    #[expect(clippy::disallowed_methods, reason = "ended with its process group")]
    let mut shell = Command::new(program);
    // The folder is opened without following links, because a command in the sandbox that still runs
    // may replace it by one.
    let cwd = workspace.cwd();
    let folder = safe_file::open_folder(&cwd, false)?;
    let opened = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let cwd = if opened.exists() { opened } else { cwd };
    shell.args(args).env_clear().envs(workspace.env()).envs(VARIABLES).current_dir(cwd);
    shell.stdin(Stdio::null()).stdout(Stdio::from(write)).stderr(Stdio::from(errors));
    let child = CommandWrap::from(shell).wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
    Ok(Launched { child, output, stdin: None })
}

/// Reads a short file that a command may have replaced by a link, a pipe or a large file.
fn read_short_file(path: &Path) -> Option<String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut text = String::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(MAX_PATH_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Quotes a text as one word of the shell.
pub(super) fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_files_that_were_moved_only_some_are_named() {
        let file = |at: usize| PathBuf::from(format!("/repo/{at}/.npmrc"));
        let entry = |is_moved: bool| {
            move |at| (file(at), if is_moved { Ok(file(at)) } else { Err(io::ErrorKind::Other.into()) })
        };
        let note = |moved: usize, unmoved: usize| {
            let all: Vec<_> = (0..moved).map(entry(true)).chain((0..unmoved).map(entry(false))).collect();
            let note = describe_moved(&all)?;
            let named = |outcome: &str| note.lines().filter(|line| line.contains(outcome)).count();
            assert!(note.len() < 4000, "{note}");
            let counts =
                note.lines().filter_map(|line| line.split_once(" more")?.0.parse().ok()).collect::<Vec<usize>>();
            Some((named("It was moved"), named("It could not be moved"), counts))
        };
        assert_eq!(note(0, 0), None);
        assert_eq!(note(20, 0), Some((20, 0, vec![])));
        assert_eq!(note(20_000, 0), Some((20, 0, vec![19_980])));
        assert_eq!(note(20_000, 5), Some((15, 5, vec![19_985])));
        assert_eq!(note(3, 20_000), Some((0, 20, vec![19_980, 3])));
    }
}
