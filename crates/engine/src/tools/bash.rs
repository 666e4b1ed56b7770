//! The Bash tool: shell commands, in the foreground and in the background.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::ToolName;
use quipu_message::tool::BashInput;
use quipu_message::tool::output::BashOutput;
use serde_json::{Value, json};

use super::read::format_size;
use super::{into_output, parse_input};
use crate::clock::random_id;
use crate::sandbox::SandboxProfile;
use crate::tool::{
    CallContext, Task, TaskKind, TaskStatus, Tool, ToolDefinition, ToolEffect, ToolOutput, UserShell, Workspace,
};
use capture::CapturedOutput;
use process::{ProcessEnd, ShellProcess, shell_quote};

mod capture;
mod exit_code;
mod process;
pub(crate) mod user_shell;

/// Timeout of a command if the call sets none.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// Maximum timeout of a command.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// Maximum length of the output that the model gets, in characters.
const MAX_OUTPUT_CHARS: usize = 30_000;
/// Length of the preview of a longer output, in characters.
const PREVIEW_CHARS: usize = 2000;

/// The Bash tool.
#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl Tool for Bash {
    fn name(&self) -> ToolName {
        ToolName::Bash
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
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

    fn effect(&self, input: &Value) -> ToolEffect {
        let command = input["command"].as_str().unwrap_or_default();
        let background = input["run_in_background"].as_bool().unwrap_or(false);
        if !background && crate::permission::is_read_only(command) {
            ToolEffect::ReadOnly
        } else {
            ToolEffect::Mutating
        }
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { add_sandbox_note(into_output(run(input, workspace, call).await), call.profile) })
    }
}

async fn run(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let input: BashInput = parse_input(input)?;
    if input.run_in_background.is_true() {
        return run_in_background(&input, workspace, call).await;
    }
    let limits = BashLimits::from_env(workspace);
    let time = Duration::from_millis(
        input.timeout.get().copied().unwrap_or(limits.default_timeout_ms).min(limits.max_timeout_ms),
    );
    let id = random_id("b");
    let script = setup_script(&input.command, workspace, call.profile).await;
    let mut process = ShellProcess::start(&input.command, &script, workspace, id.clone(), call.profile, false)?;
    let end = process.wait(time, call).await;
    if end == ProcessEnd::MovedToBackground {
        return Ok(continue_in_background(process, &input, workspace, call));
    }
    let captured = process.captured_output().await;
    let reset = process.adopt_cwd(workspace);
    if let Some(moved) = process.move_guarded_aside() {
        return Err(failed_output(&moved, &captured, limits.max_output_chars));
    }
    Ok(match end {
        ProcessEnd::Exited(code) => {
            let save = || match workspace.results_folder() {
                Some(folder) => captured.move_to(&folder, &id),
                None => captured.path().to_owned(),
            };
            finished_output(&input.command, code, &captured, reset, limits.max_output_chars, save)
        }
        ProcessEnd::Signaled(signal) => {
            failed_output(&format!("Exit code {}", 128 + signal), &captured, limits.max_output_chars)
        }
        ProcessEnd::TimedOut => {
            let heading = format!("Exit code 143\nCommand timed out after {}", format_duration(time));
            failed_output(&heading, &captured, limits.max_output_chars)
        }
        ProcessEnd::Cancelled => {
            let text = captured.head_and_tail_text(limits.max_output_chars);
            let raw = BashOutput { stdout: text.clone(), interrupted: true, ..BashOutput::default() };
            let words = format!("{text}\n<error>The command was stopped before it ended.</error>");
            ToolOutput { is_error: true, ..ToolOutput::new(words.trim_start().to_owned(), &raw) }
        }
        ProcessEnd::MovedToBackground => unreachable!("it goes on"),
    })
}

/// Limits from environment variables, or the defaults.
struct BashLimits {
    default_timeout_ms: u64,
    max_timeout_ms: u64,
    max_output_chars: usize,
}

impl BashLimits {
    fn from_env(workspace: &Workspace) -> Self {
        let number = |name: &str| workspace.env().get(std::ffi::OsStr::new(name))?.to_str()?.parse::<u64>().ok();
        let timeout = number("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(DEFAULT_TIMEOUT_MS);
        let output = number("BASH_MAX_OUTPUT_LENGTH").and_then(|n| usize::try_from(n).ok());
        Self {
            default_timeout_ms: timeout,
            max_timeout_ms: number("BASH_MAX_TIMEOUT_MS").unwrap_or(MAX_TIMEOUT_MS).max(timeout),
            max_output_chars: output.unwrap_or(MAX_OUTPUT_CHARS).min(capture::MAX_KEPT_BYTES),
        }
    }
}

/// The commands that run before a command in the same shell: they define the aliases, functions and
/// variables of the user's shell, unless a sandbox is to hold the command, and those of
/// `CLAUDE_ENV_FILE`. `cd` goes where the permission check expects, and programs do not get the variables
/// that loops of the command set.
async fn setup_script(command: &str, workspace: &Workspace, profile: SandboxProfile) -> String {
    let mut script = String::new();
    let user_shell = match profile.is_sandboxed() {
        true => None,
        false => workspace.user_shell(user_shell::make_snapshot(workspace)).await,
    };
    if let Some(UserShell { file, .. }) = user_shell {
        script.push_str(&format!("shopt -s expand_aliases\n. {}\n", shell_quote(&file.to_string_lossy())));
    }
    let variables = workspace.env_script();
    if !variables.is_empty() {
        // A mistake in it is reported, and the command still runs.
        script.push_str(&format!("eval {} >/dev/null\n", shell_quote(&variables)));
        let path = user_shell::path_after_scripts(workspace, user_shell);
        script.push_str(&format!("export PATH={}\n", shell_quote(&path.to_string_lossy())));
    }
    if !script.is_empty() {
        script.push_str("unset CDPATH; shopt -u cdable_vars\n");
        let looped = crate::permission::loop_variables(command);
        script.extend(looped.iter().map(|name| format!("export -n {name}\n")));
    }
    if matches!(profile, SandboxProfile::ByRule { uses_git: true, .. }) {
        script.push_str(&safe_git_script(workspace));
    }
    script
}

/// Returns the script that lets git use no folder as a repository by its contents alone. A checkout can turn the current
/// folder into one, whose settings name programs.
fn safe_git_script(workspace: &Workspace) -> String {
    let count = workspace.env().get(std::ffi::OsStr::new("GIT_CONFIG_COUNT")).and_then(|count| count.to_str());
    let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or_default();
    let next = count.saturating_add(1);
    format!(
        "export GIT_CONFIG_KEY_{count}=safe.bareRepository GIT_CONFIG_VALUE_{count}=explicit GIT_CONFIG_COUNT={next}\n"
    )
}

async fn run_in_background(
    input: &BashInput,
    workspace: &Workspace,
    call: &CallContext,
) -> Result<ToolOutput, ToolOutput> {
    let script = setup_script(&input.command, workspace, call.profile).await;
    let process = ShellProcess::start(&input.command, &script, workspace, random_id("b"), call.profile, true)?;
    Ok(continue_in_background(process, input, workspace, call))
}

/// Moves a running command to the background and returns the output that says so.
fn continue_in_background(
    mut process: ShellProcess,
    input: &BashInput,
    workspace: &Workspace,
    call: &CallContext,
) -> ToolOutput {
    let description = input.description.text().unwrap_or(&input.command).to_owned();
    let (id, file) = (process.id.clone(), process.output_path().to_owned());
    let task = Task::new(id.clone(), TaskKind::Command, description, file.clone(), call.tool_use_id.clone());
    let stop = task.cancel.clone();
    workspace.tasks().spawn(task, async move {
        let status = match process.wait_until_stopped(&stop).await {
            ProcessEnd::Exited(code) => TaskStatus::Exited(code),
            ProcessEnd::Signaled(signal) => TaskStatus::Exited(128 + signal),
            ProcessEnd::TimedOut | ProcessEnd::Cancelled | ProcessEnd::MovedToBackground => TaskStatus::Killed,
        };
        let output = process.captured_output().await.head_and_tail_text(MAX_OUTPUT_CHARS);
        match process.move_guarded_aside() {
            Some(moved) => (TaskStatus::Exited(1), format!("{output}\n{moved}")),
            None => (status, output),
        }
    });
    let raw = BashOutput { background_task_id: id.clone().into(), ..BashOutput::default() };
    let file = file.display();
    ToolOutput::new(format!("Command running in background with ID: {id}. Output is being written to: {file}"), &raw)
}

fn finished_output(
    command: &str,
    code: i32,
    captured: &CapturedOutput,
    reset: Option<String>,
    most: usize,
    save: impl FnOnce() -> PathBuf,
) -> ToolOutput {
    let meaning = exit_code::interpret_exit_code(command, code);
    if code != 0 && meaning.is_none() {
        return failed_output(&format!("Exit code {code}"), captured, most);
    }
    let mut raw = BashOutput {
        stderr: reset.unwrap_or_default(),
        return_code_interpretation: meaning.map(str::to_owned).into(),
        no_output_expected: exit_code::is_silent_command(command).into(),
        ..BashOutput::default()
    };
    let mut words = match captured.full_text(most) {
        Some(text) => {
            raw.stdout = text.clone();
            text
        }
        None => {
            let file = save().display().to_string();
            let total = captured.total_bytes();
            raw.stdout = captured.head_text(most);
            raw.persisted_output_path = file.clone().into();
            raw.persisted_output_size = total.into();
            format!(
                "<persisted-output>\nOutput too large ({}). Full output saved to: {file}\n\nPreview (first 2KB):\n{}\n...\n</persisted-output>",
                format_size(total),
                captured.head_text(PREVIEW_CHARS)
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
    ToolOutput::new(words, &raw)
}

/// Lower-case texts in the output of commands that were denied something.
const DENIAL_TEXTS: [&str; 6] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "could not resolve",
    "network is unreachable",
    "host is unreachable",
];

/// Adds a note to the output of a failed command if the sandbox may be the reason.
fn add_sandbox_note(mut output: ToolOutput, profile: SandboxProfile) -> ToolOutput {
    let text = output.content.to_text();
    let is_refused = || {
        let text = text.to_lowercase();
        DENIAL_TEXTS.iter().any(|words| text.contains(words))
    };
    if profile.is_sandboxed() && output.is_error && is_refused() {
        let could = match profile {
            SandboxProfile::Read => "it could write nothing and had no network",
            _ => "it could write only in the working folders, and had no network unless the settings give it one",
        };
        let note = format!(
            "(It ran in a sandbox: {could}. With dangerouslyDisableSandbox, the user is asked to let it run without.)"
        );
        output.content = format!("{text}\n{note}").into();
    }
    output
}

fn failed_output(heading: &str, captured: &CapturedOutput, most: usize) -> ToolOutput {
    ToolOutput::failure(format!("{heading}\n{}", captured.head_and_tail_text(most)).trim_end())
}

/// Formats a duration for messages: `500ms`, `45s`, `2m 0s`.
fn format_duration(time: Duration) -> String {
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
            let output = add_sandbox_note(ToolOutput::failure(text), SandboxProfile::Read);
            output.content.to_text().contains("It ran in a sandbox")
        };
        assert!(explained("connect: Network is unreachable") && explained("dial tcp: network is unreachable"));
        assert!(explained("touch: a: Read-only file system"));
        assert!(!explained("error: unreachable expression") && !explained("warning: unreachable code"));
    }
}
