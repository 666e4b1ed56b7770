//! Hooks: commands from settings and callbacks of the host that run on events and may change their
//! outcome.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use quipu_message::control::response::ConfiguredHook;
use quipu_message::control::setup::HookMatcher;
use quipu_message::control::{RequestBody, request};
use quipu_message::hook::{AnyHookOutput, HookRunOutcome};
use quipu_message::system::{System, stream_only};
use quipu_message::values::HookFailurePolicy;
use quipu_message::{Entry, Json, Maybe, ToolName, ToolUseId};
use regex::Regex;
use serde_json::Number;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::clock::new_id;
use crate::host::Host;
use crate::output::OutputStream;
use crate::settings::{SettingSource, Settings, SettingsLayer};

mod command;
mod outcome;

pub(crate) use outcome::{HookOutcome, HookRun};

/// Time limit of a hook that sets none itself.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit of a SessionEnd hook that sets none itself.
const SESSION_END_TIMEOUT: Duration = Duration::from_millis(1500);

/// Events whose hooks are not reported: they run before the host reads, or after.
const UNREPORTED_EVENTS: [&str; 2] = ["InstructionsLoaded", "SessionEnd"];

/// A hook: its event, the subjects it matches and its action.
#[derive(Debug, Clone)]
struct Hook {
    event: String,
    matcher: Option<String>,
    action: HookAction,
    timeout: Duration,
    /// Whether a failure blocks the event.
    blocks_on_failure: bool,
}

#[derive(Debug, Clone)]
enum HookAction {
    /// A command of a settings file.
    Command(String),
    /// A callback of the host.
    Callback(String),
}

/// All hooks of a session.
#[derive(Debug)]
pub(crate) struct Hooks {
    hooks: Mutex<Vec<Hook>>,
    /// Whether the start and end of commands are emitted.
    reports_runs: bool,
}

/// What hooks need to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookEnvironment<'a> {
    /// The host, which runs callbacks.
    pub host: &'a Host,
    /// The output for reports.
    pub output: &'a OutputStream,
    /// The environment variables of commands.
    pub env: &'a BTreeMap<String, String>,
    /// The working directory of the session.
    pub root: &'a Path,
    /// The folder that the project's settings are read from.
    pub project_folder: &'a Path,
    /// Stops the hooks.
    pub cancel: &'a CancellationToken,
}

impl Hooks {
    /// The hooks from settings. A project can disable its own hooks only; user settings and flags
    /// disable all but managed ones.
    pub(crate) fn new(settings: &Settings, report: bool) -> Self {
        let of_project = |layer: &SettingsLayer| matches!(layer.source, SettingSource::Project | SettingSource::Local);
        let only_managed = settings
            .layers
            .iter()
            .any(|layer| layer.source == SettingSource::Managed && layer.known.allow_managed_hooks_only);
        let off = |layer: &SettingsLayer| {
            let turns_off = |other: &&SettingsLayer| match layer.source {
                SettingSource::Managed => other.source == SettingSource::Managed,
                _ => !of_project(other) || of_project(layer),
            };
            (only_managed && layer.source != SettingSource::Managed)
                || settings.layers.iter().filter(turns_off).any(|other| other.known.disable_all_hooks)
        };
        let layers = settings.layers.iter().filter(|layer| !off(layer));
        let events = layers.flat_map(|layer| &layer.known.hooks);
        let hooks = events.flat_map(|(event, matchers)| {
            let commands = matchers.iter().flat_map(|m| m.hooks.iter().map(move |hook| (m.matcher.clone(), hook)));
            commands.filter(|(_, hook)| hook.kind == "command").map(move |(matcher, hook)| Hook {
                event: event.clone(),
                matcher,
                action: HookAction::Command(hook.command.clone()),
                timeout: match hook.timeout {
                    None if event == "SessionEnd" => SESSION_END_TIMEOUT,
                    timeout => timeout_or_default(timeout),
                },
                blocks_on_failure: false,
            })
        });
        Self { hooks: Mutex::new(hooks.collect()), reports_runs: report }
    }

    /// Returns a warning for each hook whose matcher is not valid: it matches at most a tool of this very name.
    pub(crate) fn problems(&self) -> Vec<String> {
        let hooks = self.hooks.lock();
        let invalid = hooks.iter().filter_map(|hook| {
            let matcher = hook.matcher.as_deref().filter(|matcher| !matches!(*matcher, "" | "*"))?;
            let error = matcher_pattern(matcher).err()?.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Some(format!("hooks.{}: the matcher '{matcher}' is not valid: {reason}", hook.event))
        });
        invalid.collect()
    }

    /// Replaces the callbacks of the host. Callbacks for `SessionStart` and `SessionEnd` are ignored:
    /// the session starts before the host can answer, and ends after.
    pub(crate) fn add_callbacks(&self, given: &Json) -> serde_json::Result<()> {
        let given: Option<BTreeMap<String, Vec<HookMatcher>>> = given.read()?;
        let mut hooks = self.hooks.lock();
        hooks.retain(|hook| matches!(hook.action, HookAction::Command(_)));
        let is_supported = |event: &String| !matches!(event.as_str(), "SessionStart" | "SessionEnd");
        for (event, matchers) in given.into_iter().flatten().filter(|(event, _)| is_supported(event)) {
            for matcher in matchers {
                hooks.extend(matcher.hook_callback_ids.iter().map(|id| Hook {
                    event: event.clone(),
                    matcher: matcher.matcher.clone().into_option(),
                    action: HookAction::Callback(id.clone()),
                    timeout: timeout_or_default(matcher.timeout.get().and_then(Number::as_f64)),
                    // An unknown value counts as the stricter one.
                    blocks_on_failure:
                        matcher.on_failure.get().is_some_and(|policy| *policy != HookFailurePolicy::Continue),
                }));
            }
        }
        Ok(())
    }

    /// Whether there is a hook for an event.
    pub(crate) fn has_hooks_for(&self, event: &str) -> bool {
        self.hooks.lock().iter().any(|hook| hook.event == event)
    }

    /// All hooks, for the control protocol.
    pub(crate) fn list(&self) -> Vec<ConfiguredHook> {
        let hooks = self.hooks.lock();
        let listed = |hook: &Hook| ConfiguredHook {
            event: hook.event.clone(),
            matcher: hook.matcher.clone().into(),
            command: hook.action.label().to_owned(),
            ..ConfiguredHook::default()
        };
        hooks.iter().map(listed).collect()
    }

    /// Runs all hooks of an event that match `subject` (a tool, source or trigger) at the same time,
    /// and combines their outcomes.
    pub(crate) async fn run(
        &self,
        event: &str,
        input: Json,
        subject: Option<&str>,
        call: Option<&ToolUseId>,
        environment: HookEnvironment<'_>,
    ) -> HookOutcome {
        let selected: Vec<Hook> = {
            let hooks = self.hooks.lock();
            hooks.iter().filter(|hook| hook.event == event && hook.matches(subject)).cloned().collect()
        };
        let shown = subject.filter(|_| event != "SubagentStop");
        let name = shown.map_or_else(|| event.to_owned(), |subject| format!("{event}:{subject}"));
        let mut hook_outcome = HookOutcome::new(event, &name, call);
        let runs = selected.iter().map(|hook| self.run_hook(hook, &name, &input, call, environment));
        for hook_run in join_all(runs).await {
            hook_outcome.add_run(hook_run);
        }
        hook_outcome
    }

    async fn run_hook(
        &self,
        hook: &Hook,
        name: &str,
        input: &Json,
        call: Option<&ToolUseId>,
        environment: HookEnvironment<'_>,
    ) -> HookRun {
        let started_at = Instant::now();
        let span = tracing::debug_span!(
            target: "quipu::hooks", "hook", event = %name, hook = %hook.action.label(), failure = Empty
        );
        let mut hook_run = self.run_action(hook, name, input, call, environment).instrument(span.clone()).await;
        hook_run.duration = started_at.elapsed();
        if let Some(failure) = &hook_run.failure {
            span.record("failure", tracing::field::display(failure));
        }
        if let Some(why) = hook_run.failure.as_ref().filter(|_| hook.blocks_on_failure) {
            (hook_run.blocked, hook_run.stderr) = (true, why.clone());
        }
        hook_run
    }

    async fn run_action(
        &self,
        hook: &Hook,
        name: &str,
        input: &Json,
        call: Option<&ToolUseId>,
        environment: HookEnvironment<'_>,
    ) -> HookRun {
        match &hook.action {
            HookAction::Callback(id) => run_callback(id, input, call, hook.timeout, environment).await,
            HookAction::Command(command) => {
                let report = self.reports_runs && !UNREPORTED_EVENTS.contains(&hook.event.as_str());
                let id = new_id().to_string();
                if report {
                    environment.output.emit(hook_started_entry(&id, name, &hook.event, environment.output));
                }
                let hook_run = command::run(command, input, hook.timeout, environment).await;
                if report {
                    environment.output.emit(hook_response_entry(&id, name, &hook.event, &hook_run, environment.output));
                }
                hook_run
            }
        }
    }
}

/// Compiles the matcher of a hook, which is a pattern for the whole name.
fn matcher_pattern(matcher: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{matcher})$"))
}

impl Hook {
    fn matches(&self, subject: Option<&str>) -> bool {
        let Some(pattern) = self.matcher.as_deref().filter(|pattern| !matches!(*pattern, "" | "*")) else {
            return true;
        };
        let Some(subject) = subject else { return true };
        let matches = |subject: &str| match matcher_pattern(pattern) {
            Ok(pattern) => pattern.is_match(subject),
            Err(_) => pattern == subject,
        };
        // Both names of the same tool.
        let names = [ToolName::Agent, ToolName::Task];
        matches(subject) || names.iter().any(|name| name == subject) && names.iter().any(|name| matches(name.as_str()))
    }
}

impl HookAction {
    fn label(&self) -> &str {
        match self {
            Self::Command(command) => command,
            Self::Callback(_) => "callback",
        }
    }
}

async fn run_callback(
    id: &str,
    input: &Json,
    call: Option<&ToolUseId>,
    timeout: Duration,
    environment: HookEnvironment<'_>,
) -> HookRun {
    let body = request::HookCallback {
        callback_id: id.to_owned(),
        input: input.clone(),
        tool_use_id: Maybe::Value(call.cloned().unwrap_or_else(|| new_id().as_str().into())),
        ..request::HookCallback::default()
    };
    let request = environment.host.send_request(RequestBody::HookCallback(Box::new(body)), environment.cancel);
    let mut hook_run = HookRun { command: "callback".to_owned(), ..HookRun::default() };
    match tokio::time::timeout(timeout, request).await {
        Ok(Ok(answer)) if answer.is_null() => {}
        Ok(Ok(answer)) => match answer.read::<AnyHookOutput>() {
            Ok(output) => hook_run.output = output,
            Err(error) => hook_run.failure = Some(format!("the answer cannot be read: {error}")),
        },
        Ok(Err(error)) => hook_run.failure = Some(error.to_string()),
        Err(_) => hook_run.failure = Some("no answer in time".to_owned()),
    }
    hook_run
}

fn timeout_or_default(seconds: Option<f64>) -> Duration {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(DEFAULT_TIMEOUT)
}

fn hook_started_entry(id: &str, name: &str, event: &str, output: &OutputStream) -> Entry {
    let line = stream_only::HookStarted {
        hook_id: id.to_owned().into(),
        hook_name: name.to_owned().into(),
        hook_event: event.to_owned().into(),
        envelope: output.envelope(),
        ..stream_only::HookStarted::default()
    };
    Entry::System(Box::new(System::HookStarted(Box::new(line))))
}

fn hook_response_entry(id: &str, name: &str, event: &str, hook_run: &HookRun, output: &OutputStream) -> Entry {
    let line = stream_only::HookResponse {
        hook_id: id.to_owned().into(),
        hook_name: name.to_owned().into(),
        hook_event: event.to_owned().into(),
        output: format!("{}{}", hook_run.stdout, hook_run.stderr).into(),
        stdout: hook_run.stdout.clone().into(),
        stderr: hook_run.stderr.clone().into(),
        exit_code: serde_json::Number::from(hook_run.exit_code.unwrap_or(1)).into(),
        outcome: if hook_run.exit_code == Some(0) { HookRunOutcome::Success } else { HookRunOutcome::Error }.into(),
        envelope: output.envelope(),
        ..stream_only::HookResponse::default()
    };
    Entry::System(Box::new(System::HookResponse(Box::new(line))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::KnownSettings;

    #[test]
    fn a_project_turns_off_its_own_hooks_and_no_others() {
        let layer = |source, disable_all_hooks| {
            let all = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}});
            let known = KnownSettings { disable_all_hooks, ..serde_json::from_value(all.clone()).unwrap() };
            SettingsLayer { source, folder: None, raw: all, known }
        };
        let count =
            |layers: Vec<SettingsLayer>| Hooks::new(&Settings { layers, ..Settings::default() }, false).list().len();
        assert_eq!(count(vec![layer(SettingSource::User, false), layer(SettingSource::Project, true)]), 1);
        assert_eq!(
            count(vec![
                layer(SettingSource::User, false),
                layer(SettingSource::Project, false),
                layer(SettingSource::Local, true)
            ]),
            1
        );
        assert_eq!(count(vec![layer(SettingSource::User, true), layer(SettingSource::Project, false)]), 0);
        assert_eq!(count(vec![layer(SettingSource::User, true), layer(SettingSource::Managed, false)]), 1);
        assert_eq!(count(vec![layer(SettingSource::User, false), layer(SettingSource::Managed, true)]), 0);
        let mut only = layer(SettingSource::Managed, false);
        only.known.allow_managed_hooks_only = true;
        assert_eq!(count(vec![layer(SettingSource::User, false), only]), 1);
    }

    #[test]
    fn a_matcher_is_a_pattern_for_the_whole_name() {
        let fits = |matcher: &str, subject| {
            let what = HookAction::Command(String::new());
            let hook = Hook {
                event: String::new(),
                matcher: Some(matcher.to_owned()),
                action: what,
                timeout: DEFAULT_TIMEOUT,
                blocks_on_failure: false,
            };
            hook.matches(Some(subject))
        };
        assert!(
            fits("Edit|Write", "Write") && fits("mcp__.*", "mcp__calc__add") && fits("*", "Bash") && fits("", "Bash")
        );
        assert!(fits("Task", "Agent") && fits("Agent", "Task") && !fits("Agent", "TaskOutput"));
        assert!(!fits("Write", "NotebookWrite") && !fits("Bash", "BashOutput"));
        assert!(fits("(", "(") && !fits("(", "Bash"));
        let known = serde_json::from_value(serde_json::json!({"hooks": {"PreToolUse": [
            {"matcher": "Write(", "hooks": [{"type": "command", "command": "false"}]},
            {"matcher": "*", "hooks": [{"type": "command", "command": "false"}]},
        ]}}));
        let layer = SettingsLayer {
            source: SettingSource::User,
            folder: None,
            raw: serde_json::Value::Null,
            known: known.unwrap(),
        };
        let problems = Hooks::new(&Settings { layers: vec![layer], ..Settings::default() }, false).problems();
        assert_eq!(problems, ["hooks.PreToolUse: the matcher 'Write(' is not valid: unclosed group"]);
    }
}
