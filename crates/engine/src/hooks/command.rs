//! Running a command as a hook.

use std::process::Stdio;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::hook::HookOutput;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{Ran, With};

/// The exit code with which a hook blocks.
const BLOCKS: i32 = 2;

/// Runs a command by the shell, with what happened on its stdin.
pub(super) async fn run(command: &str, input: &Json, patience: Duration, with: With<'_>) -> Ran {
    let mut ran = Ran { command: command.to_owned(), is_command: true, ..Ran::default() };
    let spawned = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(with.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            ran.failure = Some(error.to_string());
            return ran;
        }
    };
    if let Some(mut stdin) = child.stdin.take() {
        let text = format!("{}\n", input.text());
        // A hook need not read.
        tokio::spawn(async move { stdin.write_all(text.as_bytes()).await });
    }
    let done = tokio::select! {
        done = tokio::time::timeout(patience, child.wait_with_output()) => done.ok(),
        () = with.cancel.cancelled() => None,
    };
    match done {
        Some(Ok(done)) => {
            ran.stdout = String::from_utf8_lossy(&done.stdout).into_owned();
            ran.stderr = String::from_utf8_lossy(&done.stderr).into_owned();
            ran.exit_code = done.status.code();
            read(&mut ran);
        }
        Some(Err(error)) => ran.failure = Some(error.to_string()),
        None => ran.failure = Some("broken off".to_owned()),
    }
    ran
}

/// Exit 0 may say something in JSON, exit 2 blocks, anything else is a failure that
/// blocks nothing.
fn read(ran: &mut Ran) {
    match ran.exit_code {
        Some(0) if ran.stdout.trim_start().starts_with('{') => match serde_json::from_str::<HookOutput>(&ran.stdout) {
            Ok(said) => ran.said = said,
            Err(error) => ran.failure = Some(format!("its output cannot be read: {error}")),
        },
        Some(0) => {}
        Some(BLOCKS) => ran.blocked = true,
        code => ran.failure = Some(code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"))),
    }
}
