//! A shell as a process: started, waited for, ended with all its children.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _};
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
use crate::sandbox::{Launched, SandboxProfile, SandboxedCommand};
use crate::tool::{CallContext, ToolOutput, Workspace};

/// How long a shell's children may keep the output open after it.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// How long a process has to end by itself.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// How long the path of a folder can be.
const MAX_PATH_BYTES: u64 = 4097;
const SIGTERM: i32 = 15;
/// Variables that every command gets.
const VARIABLES: [(&str, &str); 2] = [("CLAUDECODE", "1"), ("GIT_EDITOR", "true")];

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessEnd {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
    /// It took too long.
    TimedOut,
    /// Somebody stopped it.
    Cancelled,
    /// It has not: it shall go on in the background.
    MovedToBackground,
}

/// A shell and its children. Dropped before its end, they are killed.
pub(super) struct ShellProcess {
    pub(super) id: String,
    child: Box<dyn ChildWrapper>,
    capture: OutputCapture,
    output_path: PathBuf,
    cwd_file: PathBuf,
    /// The shell's process group.
    process_group: Option<u32>,
    has_ended: bool,
    /// What holds it, unless it may do everything.
    sandboxed_command: Option<SandboxedCommand>,
}

impl ShellProcess {
    /// Starts a command in a profile; `at_once` writes its output to the file from the
    /// first byte on.
    pub(super) fn start(
        command: &str,
        place: &Workspace,
        id: String,
        profile: SandboxProfile,
        at_once: bool,
    ) -> Result<Self, ToolOutput> {
        if !place.cwd().is_dir() {
            place.set_cwd(place.root());
        }
        let held =
            |why| ToolOutput::failure(format!("The command was not started: it cannot be held in a sandbox: {why}."));
        let plan = place.sandbox().prepare_command(profile, &place.command_context(), &id).map_err(held)?;
        let spawn = || -> io::Result<Self> {
            let folder = place.output_folder();
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let file = folder.join(format!("{id}.output"));
            let cwd_file =
                plan.as_ref().map_or_else(|| folder.join(format!("{id}.cwd")), |plan| plan.temp_folder().join("cwd"));
            let leave = format!("pwd -P >|{}", shell_quote(&cwd_file.to_string_lossy()));
            let script = format!("trap {} EXIT\n{command}\n", shell_quote(&leave));
            let argv = ["bash", "-c", &script];
            let Launched { child, output } = match &plan {
                None => unconfined(argv, place)?,
                Some(plan) => plan.launcher_command(&argv, place.env(), &VARIABLES)?,
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
                sandboxed_command: plan,
            })
        };
        spawn().map_err(|e| ToolOutput::failure(format!("The command could not be started: {e}.")))
    }

    /// Where the output is, or would be when it is long.
    pub(super) fn output_path(&self) -> &Path {
        &self.output_path
    }

    /// Waits for the end; telling whoever listens how it goes on.
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

    /// Waits for the end, however long it takes.
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

    /// Ends the shell and all its children: asked first, then killed.
    async fn terminate(&mut self, end: ProcessEnd) -> ProcessEnd {
        let _ = self.child.signal(SIGTERM);
        let _ = timeout(TERMINATION_GRACE, self.child.wait()).await;
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
        self.has_ended = true;
        end
    }

    /// The output, after the end.
    pub(super) async fn captured_output(&self) -> CapturedOutput {
        let _ = timeout(OUTPUT_GRACE, self.capture.wait_for_end()).await;
        self.capture.snapshot()
    }

    /// Goes where the command went. Outside the folders it goes back, and says so.
    pub(super) fn adopt_cwd(&self, place: &Workspace) -> Option<String> {
        self.process_group.into_iter().for_each(|group| place.track_process_group(group));
        let text = read_short_file(&self.cwd_file)?;
        let cwd = PathBuf::from(text.strip_suffix('\n').unwrap_or(&text));
        if !cwd.is_absolute() || !cwd.is_dir() {
            return None;
        }
        if place.contains(&cwd) {
            place.set_cwd(cwd);
            return None;
        }
        place.set_cwd(place.root());
        Some(format!("Shell cwd was reset to {}", place.root().display()))
    }
}

impl ShellProcess {
    /// Moves guarded files aside that a command in the sandbox made, after its end. Says
    /// which, for the model; `None` if there were none.
    pub(super) fn move_guarded_aside(&self) -> Option<String> {
        let moved = self.sandboxed_command.as_ref()?.move_guarded_aside();
        let told = |(from, to): &(PathBuf, PathBuf)| {
            let (from, to) = (from.display(), to.display());
            format!("The command made {from}, which decides what programs do and needs approval. It was moved to {to}.")
        };
        (!moved.is_empty()).then(|| moved.iter().map(told).collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for ShellProcess {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.child.start_kill();
        }
        let _ = std::fs::remove_file(&self.cwd_file);
    }
}

/// Starts a program that may do all that the user can do.
fn unconfined([program, args @ ..]: [&str; 3], place: &Workspace) -> io::Result<Launched> {
    // Errors and output come in the order they were printed, so both go into one pipe.
    let (output, write) = io::pipe()?;
    let errors = write.try_clone()?;
    let mut shell = Command::new(program);
    shell.args(args).env_clear().envs(place.env()).envs(VARIABLES).current_dir(place.cwd());
    shell.stdin(Stdio::null()).stdout(Stdio::from(write)).stderr(Stdio::from(errors));
    let child = CommandWrap::from(shell).wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
    Ok(Launched { child, output })
}

/// A short text from a file that a command may have replaced with anything.
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

/// A text as one word of the shell.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
