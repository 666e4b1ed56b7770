//! Running a command as a hook.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::CommandWrap;
use quipu_message::Json;
use quipu_message::hook::AnyHookOutput;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::{HookEnvironment, HookRun};
use crate::guarded_paths::python_code;
use crate::process_group::GroupProcess;

/// The exit code of a hook that blocks.
const BLOCKING_EXIT_CODE: i32 = 2;

/// The most bytes of a hook's output that are kept.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// How long processes that a hook left running may keep its output open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// Runs a command in a shell, with the hook input on its stdin.
pub(super) async fn run(command: &str, input: &Json, patience: Duration, with: HookEnvironment<'_>) -> HookRun {
    let mut ran = HookRun { command: command.to_owned(), is_command: true, ..HookRun::default() };
    let mut shell = match start(command, input, with) {
        Ok(shell) => shell,
        Err(error) => {
            ran.failure = Some(error.to_string());
            return ran;
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = tokio::select! {
        ended = wait(&mut shell, &mut stdout, &mut stderr) => Some(ended),
        () = tokio::time::sleep(patience) => {
            ran.failure = Some(format!("not done in {} s", patience.as_secs_f64()));
            None
        }
        () = with.cancel.cancelled() => {
            ran.failure = Some("broken off".to_owned());
            None
        }
    };
    ran.stdout = String::from_utf8_lossy(&stdout).into_owned();
    ran.stderr = String::from_utf8_lossy(&stderr).into_owned();
    match ended {
        Some(Ok(status)) => {
            ran.exit_code = status.code();
            interpret_exit(&mut ran);
        }
        Some(Err(error)) => ran.failure = Some(error.to_string()),
        None => {}
    }
    ran
}

/// Starts the shell.
fn start(command: &str, input: &Json, with: HookEnvironment<'_>) -> io::Result<GroupProcess> {
    let mut shell = GroupProcess::spawn(CommandWrap::with_new("sh", |shell| {
        shell.args(["-c", command]).env_clear().envs(with.env).env("CLAUDE_PROJECT_DIR", with.project_folder);
        shell.current_dir(with.root);
        shell.envs(python_code::safe_path(command, with.root, |name| with.env.contains_key(name)));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }))?;
    if let Some(mut stdin) = shell.take_stdin() {
        let text = format!("{}\n", input.text());
        // A hook may ignore its input.
        tokio::spawn(async move { stdin.write_all(text.as_bytes()).await });
    }
    Ok(shell)
}

/// Waits until the shell ends, and reads its output.
async fn wait(shell: &mut GroupProcess, stdout: &mut Vec<u8>, stderr: &mut Vec<u8>) -> io::Result<ExitStatus> {
    let (out, err) = (shell.take_stdout(), shell.take_stderr());
    let exited = CancellationToken::new();
    let late = async {
        exited.cancelled().await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    let reading = async {
        tokio::select! {
            _ = async { tokio::join!(read_capped(out, stdout), read_capped(err, stderr)) } => {}
            () = late => {}
        }
    };
    let waiting = async {
        let status = shell.wait().await;
        exited.cancel();
        status
    };
    tokio::join!(waiting, reading).0
}

/// Reads to the end, and returns the beginning.
async fn read_capped(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 64 << 10];
    // Output before an error counts.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = MAX_OUTPUT_BYTES.saturating_sub(into.len());
        into.extend_from_slice(&buffer[..count.min(room)]);
    }
}

/// Interprets the exit of a hook: 0 may come with JSON output, 2 blocks, any other code is a failure
/// that blocks nothing.
fn interpret_exit(ran: &mut HookRun) {
    match ran.exit_code {
        Some(0) if ran.stdout.trim_start().starts_with('{') => match serde_json::from_str::<AnyHookOutput>(&ran.stdout)
        {
            Ok(said) => ran.output = said,
            Err(error) => ran.failure = Some(format!("its output cannot be read: {error}")),
        },
        Some(0) => {}
        Some(BLOCKING_EXIT_CODE) => ran.blocked = true,
        code => ran.failure = Some(code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"))),
    }
}
