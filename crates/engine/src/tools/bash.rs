//! Bash: shell commands, in the foreground and in the background.

use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::tool::BashInput;
use quipu_message::tool::output::BashOutput;
use serde_json::{Value, json};

use super::read::size;
use super::tasks::{Kind, Status, Task};
use super::{input, settle};
use crate::sandbox::Profile;
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};
use capture::Captured;
use process::{End, Process};

mod capture;
mod meaning;
mod process;

/// How long a command may take when the call does not say, in milliseconds.
const TIMEOUT: u64 = 120_000;
/// How long a command may take at all.
const LONGEST: u64 = 600_000;
/// How much output the model is given, in characters.
const MOST_OUTPUT: usize = 30_000;
/// How much of a longer output is shown, in characters.
const PREVIEW: usize = 2000;

/// Runs shell commands.
#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl Tool for Bash {
    fn definition(&self) -> Definition {
        Definition {
            name: "Bash".into(),
            description: "Runs a command in bash. Each call is a new shell; only the current folder is kept from call \
                          to call. There is no input, so nothing may ask for any. A command may take two minutes \
                          unless `timeout` says otherwise, ten at most; what takes longer goes on with \
                          `run_in_background`, is read with TaskOutput and ended with TaskStop. Long output is saved \
                          to a file and shown in part. For reading, changing and finding files, the tools made for \
                          that are better."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command"},
                    "description": {"type": "string", "description": "What it does, in a few words for the user"},
                    "timeout": {"type": "integer", "minimum": 1, "description": "How long it may take, in milliseconds (at most 600000)"},
                    "run_in_background": {"type": "boolean", "description": "Go on without waiting for it"},
                    "dangerouslyDisableSandbox": {"type": "boolean", "description": "Run it without the sandbox, which the user has to approve"},
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, input: &Value) -> Effect {
        let command = input["command"].as_str().unwrap_or_default();
        let background = input["run_in_background"].as_bool().unwrap_or(false);
        if !background && crate::permission::only_reads(command) { Effect::Reads } else { Effect::Changes }
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { explain(settle(run(call_input, place, call).await), call.profile) })
    }
}

async fn run(call_input: Value, place: &Place, call: &Call) -> Result<Output, Output> {
    let wanted: BashInput = input(call_input)?;
    if wanted.run_in_background.is_true() {
        return background(&wanted, place, call);
    }
    let limits = Limits::of(place);
    let time = Duration::from_millis(wanted.timeout.get().copied().unwrap_or(limits.timeout).min(limits.longest));
    let mut process = Process::start(&wanted.command, place, super::fresh_id("b"), call.profile, false)?;
    let end = process.wait(time, call).await;
    if end == End::Moved {
        return Ok(go_on(process, &wanted, place, call));
    }
    let captured = process.captured().await;
    let reset = process.follow_cwd(place);
    if let Some(moved) = process.clear_up() {
        return Err(failed(&moved, &captured, limits.output));
    }
    Ok(match end {
        End::Exit(code) => finished(&wanted.command, code, captured, reset, limits.output),
        End::Signal(signal) => failed(&format!("Exit code {}", 128 + signal), &captured, limits.output),
        End::Late => {
            let heading = format!("Exit code 143\nCommand timed out after {}", lasting(time));
            failed(&heading, &captured, limits.output)
        }
        End::Stopped => {
            let text = captured.head_and_tail(limits.output);
            let raw = BashOutput { stdout: text.clone(), interrupted: true, ..BashOutput::default() };
            let words = format!("{text}\n<error>The command was stopped before it ended.</error>");
            Output { is_error: true, ..Output::new(words.trim_start().to_owned(), &raw) }
        }
        End::Moved => unreachable!("it goes on"),
    })
}

/// What the environment says about limits.
struct Limits {
    timeout: u64,
    longest: u64,
    output: usize,
}

impl Limits {
    fn of(place: &Place) -> Self {
        let number = |name: &str| place.env().get(std::ffi::OsStr::new(name))?.to_str()?.parse::<u64>().ok();
        let timeout = number("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(TIMEOUT);
        let output = number("BASH_MAX_OUTPUT_LENGTH").and_then(|n| usize::try_from(n).ok());
        Self {
            timeout,
            longest: number("BASH_MAX_TIMEOUT_MS").unwrap_or(LONGEST).max(timeout),
            output: output.unwrap_or(MOST_OUTPUT).min(capture::KEPT),
        }
    }
}

fn background(wanted: &BashInput, place: &Place, call: &Call) -> Result<Output, Output> {
    let process = Process::start(&wanted.command, place, super::fresh_id("b"), call.profile, true)?;
    Ok(go_on(process, wanted, place, call))
}

/// Lets a command go on in the background.
fn go_on(mut process: Process, wanted: &BashInput, place: &Place, call: &Call) -> Output {
    let description = wanted.description.text().unwrap_or(&wanted.command).to_owned();
    let (id, file) = (process.id.clone(), process.file().to_owned());
    let task = Task::new(id.clone(), Kind::Command, description, file.clone(), call.id.clone());
    let stop = task.stop.clone();
    place.tasks().begin(task, async move {
        let status = match process.wait_or(&stop).await {
            End::Exit(code) => Status::Ended(code),
            End::Signal(signal) => Status::Ended(128 + signal),
            End::Late | End::Stopped | End::Moved => Status::Killed,
        };
        let output = process.captured().await.head_and_tail(MOST_OUTPUT);
        match process.clear_up() {
            Some(moved) => (Status::Ended(1), format!("{output}\n{moved}")),
            None => (status, output),
        }
    });
    let raw = BashOutput { background_task_id: id.clone().into(), ..BashOutput::default() };
    let file = file.display();
    Output::new(format!("Command running in background with ID: {id}. Output is being written to: {file}"), &raw)
}

fn finished(command: &str, code: i32, captured: Captured, reset: Option<String>, most: usize) -> Output {
    let meaning = meaning::of(command, code);
    if code != 0 && meaning.is_none() {
        return failed(&format!("Exit code {code}"), &captured, most);
    }
    let mut raw = BashOutput {
        stderr: reset.unwrap_or_default(),
        return_code_interpretation: meaning.map(str::to_owned).into(),
        no_output_expected: meaning::is_silent(command).into(),
        ..BashOutput::default()
    };
    let mut words = match captured.all(most) {
        Some(text) => {
            raw.stdout = text.clone();
            text
        }
        None => {
            let file = captured.saved().display().to_string();
            let total = captured.total();
            raw.stdout = captured.start(most);
            raw.persisted_output_path = file.clone().into();
            raw.persisted_output_size = total.into();
            format!(
                "<persisted-output>\nOutput too large ({}). Full output saved to: {file}\n\nPreview (first 2KB):\n{}\n...\n</persisted-output>",
                size(total),
                captured.start(PREVIEW)
            )
        }
    };
    for note in [meaning.unwrap_or_default(), &raw.stderr].into_iter().filter(|note| !note.is_empty()) {
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(note);
    }
    if words.is_empty() {
        words.push_str("(Bash completed with no output)");
    }
    Output::new(words, &raw)
}

/// What a command prints that was refused something, in lower case.
const REFUSED: [&str; 6] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "could not resolve",
    "network is unreachable",
    "host is unreachable",
];

/// Tells the model of a command that failed that the sandbox may be why.
fn explain(mut output: Output, profile: Profile) -> Output {
    let text = output.content.to_text();
    let is_refused = || {
        let text = text.to_lowercase();
        REFUSED.iter().any(|words| text.contains(words))
    };
    if profile != Profile::None && output.is_error && is_refused() {
        let could = match profile {
            Profile::Read => "it could write nothing and had no network",
            _ => "it could write only in the working folders, and had no network unless the settings give it one",
        };
        let note = format!(
            "(It ran in a sandbox: {could}. With dangerouslyDisableSandbox, the user is asked to let it run without.)"
        );
        output.content = format!("{text}\n{note}").into();
    }
    output
}

fn failed(heading: &str, captured: &Captured, most: usize) -> Output {
    Output::failure(format!("{heading}\n{}", captured.head_and_tail(most)).trim_end())
}

/// A time as people say it.
fn lasting(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, 0) => format!("{}ms", time.as_millis()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m {seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_explained_by_the_sandbox() {
        let explained = |text: &str| {
            let output = explain(Output::failure(text), Profile::Read);
            output.content.to_text().contains("It ran in a sandbox")
        };
        assert!(explained("connect: Network is unreachable") && explained("dial tcp: network is unreachable"));
        assert!(explained("touch: a: Read-only file system"));
        assert!(!explained("error: unreachable expression") && !explained("warning: unreachable code"));
    }
}
