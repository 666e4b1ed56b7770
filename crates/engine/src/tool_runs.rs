//! The tool calls of one answer. Read-only calls run at the same time, others one at a time; results
//! come in the order the calls finish.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use quipu_message::hook::HookToolCall;
use quipu_message::stream::DeniedToolCall;
use quipu_message::system::{Informational, System};
use quipu_message::tool::output::{EditOutput, WriteOutput};
use quipu_message::user_assistant::{PermissionDecisionRecord, ToolResultMeta, User};
use quipu_message::values::{MessageLevel, NonExecutionKind};
use quipu_message::{
    Content, Entry, Extra, Json, Maybe, Spelling, ToolName, ToolUse, ToolUseId, Uuid, factory, synthetic,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::clock::{Clock, new_id};
use crate::hooks::HookOutcome;
use crate::permission_flow::{DeniedCall, PermissionOutcome};
use crate::session::Session;
use crate::spans::SpanStart;
use crate::structured_output;
use crate::tool::{CallContext, Tool, ToolEffect, ToolOutput, validate_input};
use crate::tool_search;

mod long_running;

/// After how many seconds a call is reported as a task.
const LONG_RUNNING_SECONDS: u64 = 3;

/// The most calls that run at the same time.
const MAX_CONCURRENT_RUNS: usize = 32;

/// How long subagents may take to end when a turn is interrupted.
const SUBAGENT_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A tool call that is queued or running.
#[derive(Debug, Clone)]
struct ToolRun {
    call: ToolUse,
    /// UUID of the entry with the call.
    source_uuid: Uuid,
    effect: ToolEffect,
    /// Stops the call.
    cancel: CancellationToken,
    /// Whether the tool has started: it has permission and may have changed something.
    has_started: Arc<AtomicBool>,
}

impl ToolRun {
    /// The outcome of a call that was stopped or never ran.
    fn into_stopped_outcome(self) -> ToolOutcome {
        let text = if self.has_started.load(Ordering::Relaxed) {
            synthetic::stopped_text()
        } else {
            synthetic::reject_text(None)
        };
        let raw = Some(Value::from("User rejected tool use"));
        let non_execution = Some(NonExecution { kind: Some(NonExecutionKind::UserRejected), interrupt: false });
        ToolOutcome {
            non_execution,
            ..ToolOutcome::new(self, ToolOutput { content: Content::Text(text), raw, is_error: true })
        }
    }

    fn matches_outcome(&self, outcome: &ToolOutcome) -> bool {
        self.call.id == outcome.call.id
    }
}

/// The tool calls of one answer.
pub(crate) struct ToolRuns<'a> {
    ctx: &'a AgentContext<'a>,
    queued: VecDeque<ToolRun>,
    running: FuturesUnordered<BoxFuture<'a, ToolOutcome>>,
    /// The running calls.
    in_progress: Vec<ToolRun>,
    finished: VecDeque<ToolOutcome>,
    /// Ids of all calls of the answer.
    added_ids: HashSet<ToolUseId>,
    last_id: Option<ToolUseId>,
    /// Whether the answer is complete; before, only read-only calls run.
    answer_complete: bool,
    /// Stops all calls.
    cancel: CancellationToken,
}

/// The outcome of a tool call.
#[derive(Debug)]
pub(crate) struct ToolOutcome {
    pub(crate) call: ToolUse,
    source_uuid: Uuid,
    output: ToolOutput,
    decision: Option<PermissionDecisionRecord>,
    /// Whether a command ran in the sandbox; `None` for other tools.
    sandboxed: Option<bool>,
    /// Why the tool did not run; `None` if it ran.
    pub(crate) non_execution: Option<NonExecution>,
    /// Entries to record before and after the result.
    entries_before: Vec<Entry>,
    entries_after: Vec<Entry>,
    /// Messages of hooks for the user.
    user_messages: Vec<String>,
    /// Why a hook ends the turn; `None` if none does.
    pub(crate) stop_reason: Option<String>,
    /// Path of the file that the tool read or changed.
    touched_file: Option<PathBuf>,
}

/// Why a tool did not run.
#[derive(Debug, Clone)]
pub(crate) struct NonExecution {
    kind: Option<NonExecutionKind>,
    /// Whether the host also interrupted the turn.
    pub(crate) interrupt: bool,
}

impl<'a> ToolRuns<'a> {
    pub(crate) fn new(ctx: &'a AgentContext<'a>) -> Self {
        Self {
            ctx,
            queued: VecDeque::new(),
            running: FuturesUnordered::new(),
            in_progress: Vec::new(),
            finished: VecDeque::new(),
            added_ids: HashSet::new(),
            last_id: None,
            answer_complete: false,
            cancel: ctx.cancel.child_token(),
        }
    }

    /// Adds a call and starts the calls that may run. Ignores a call with the id of an earlier one: their
    /// results could not be distinguished.
    pub(crate) fn add(&mut self, call: ToolUse, source: Uuid) {
        if !self.added_ids.insert(call.id.clone()) {
            return;
        }
        let input = call.input.to_value();
        let effect = self.ctx.find_tool(&call.name).map_or(ToolEffect::ReadOnly, |tool| tool.effect(&input));
        self.last_id = Some(call.id.clone());
        let (stop, started_at) = (self.cancel.clone(), Arc::default());
        self.queued.push_back(ToolRun { call, source_uuid: source, effect, cancel: stop, has_started: started_at });
        self.start_ready();
    }

    /// The answer is complete: calls that change something may run.
    pub(crate) fn mark_answer_complete(&mut self) {
        self.answer_complete = true;
        self.start_ready();
    }

    /// Id of the last call that was added.
    pub(crate) fn last_id(&self) -> Option<&ToolUseId> {
        self.last_id.as_ref()
    }

    /// Whether there is no call, queued, running or finished.
    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.in_progress.is_empty() && self.finished.is_empty()
    }

    /// Drives the running calls. Returns when one finishes, never if none runs, so that it can be one
    /// branch of a `select!`.
    pub(crate) async fn advance(&mut self) {
        match self.running.next().await {
            Some(outcome) => self.finish_run(outcome),
            None => std::future::pending().await,
        }
    }

    /// Waits for the next outcome; `None` if there are no more calls.
    pub(crate) async fn next(&mut self) -> Option<ToolOutcome> {
        loop {
            if let Some(outcome) = self.finished.pop_front() {
                return Some(outcome);
            }
            let outcome = self.running.next().await?;
            self.finish_run(outcome);
        }
    }

    /// Stops all calls. Returns all outcomes; unfinished calls count as stopped or rejected.
    pub(crate) async fn cancel_all(mut self) -> Vec<ToolOutcome> {
        self.cancel.cancel();
        // Subagents still record how they ended; other calls are dropped.
        let mut apart = self.in_progress.iter().filter(|run| run.effect == ToolEffect::Independent).count();
        let ending = async {
            while apart > 0
                && let Some(outcome) = self.running.next().await
            {
                apart -= usize::from(
                    self.in_progress
                        .iter()
                        .any(|run| run.matches_outcome(&outcome) && run.effect == ToolEffect::Independent),
                );
            }
        };
        // A call with an open permission request never ends.
        let _ = tokio::time::timeout(SUBAGENT_STOP_TIMEOUT, ending).await;
        let Self { queued: waiting, in_progress: open, mut finished, running, .. } = self;
        drop(running);
        finished.extend(open.into_iter().chain(waiting).map(ToolRun::into_stopped_outcome));
        finished.into()
    }

    fn finish_run(&mut self, outcome: ToolOutcome) {
        self.in_progress.retain(|run| !run.matches_outcome(&outcome));
        self.finished.push_back(outcome);
        self.start_ready();
    }

    fn start_ready(&mut self) {
        while let Some(next) = self.queued.front() {
            let room = self.in_progress.len() < MAX_CONCURRENT_RUNS;
            let beside = room && self.in_progress.iter().all(|run| run.effect != ToolEffect::Mutating);
            let may = match next.effect {
                ToolEffect::ReadOnly => beside,
                ToolEffect::Independent => self.answer_complete && beside,
                ToolEffect::Mutating => self.answer_complete && self.in_progress.is_empty(),
            };
            // With a budget, the cost of the answer must be known before anything runs.
            let early = self.answer_complete || self.ctx.session.options.max_budget_usd.is_none();
            if !may || !early {
                return;
            }
            if let Some(run) = self.queued.pop_front() {
                self.in_progress.push(run.clone());
                self.running.push(Box::pin(self.ctx.run_tool_call(run)));
            }
        }
    }
}

impl ToolOutcome {
    fn new(run: ToolRun, output: ToolOutput) -> Self {
        Self {
            call: run.call,
            source_uuid: run.source_uuid,
            output,
            decision: None,
            sandboxed: None,
            non_execution: None,
            entries_before: Vec::new(),
            entries_after: Vec::new(),
            user_messages: Vec::new(),
            stop_reason: None,
            touched_file: None,
        }
    }

    /// The denied call, for the `result` line.
    pub(crate) fn denial(&self) -> DeniedToolCall {
        DeniedToolCall {
            tool_name: self.call.name.clone(),
            tool_use_id: self.call.id.clone(),
            tool_input: self.call.input.clone(),
            ..DeniedToolCall::default()
        }
    }

    /// Whether the tool result is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.output.is_error
    }

    /// The call for `PostToolBatch` hooks, with the input that the model gave.
    pub(crate) fn to_hook_call(&self) -> HookToolCall {
        HookToolCall {
            tool_name: self.call.name.clone(),
            tool_input: self.call.input.clone(),
            tool_use_id: self.call.id.clone(),
            tool_response: Maybe::Value(Json::from_serialize(&self.output.content)),
            ..HookToolCall::default()
        }
    }

    fn to_user_entry(&self) -> User {
        let raw =
            self.output.raw.clone().map_or_else(|| Json::from_serialize(&self.output.content.to_text()), Json::from);
        let mut user = factory::tool_result(
            self.call.id.clone(),
            self.output.content.clone(),
            self.output.is_error,
            raw,
            self.source_uuid.clone(),
            &mut Clock,
        );
        user.sandboxed = self.sandboxed.into();
        user.permission_decision = self.decision.as_ref().map(Json::from_serialize).into();
        user.tool_denial_kind = self.non_execution.as_ref().and_then(|non_execution| non_execution.kind.clone()).into();
        user
    }

    fn result_meta(&self) -> Option<ToolResultMeta> {
        let non_execution = self.non_execution.as_ref().and_then(|non_execution| non_execution.kind.clone());
        let decision = self.decision.clone().map(|decision| PermissionDecisionRecord {
            rule_source: Maybe::Absent,
            reason_code: Maybe::Absent,
            extra: Extra::with_spelling(Spelling::STREAM),
            ..decision
        });
        (non_execution.is_some() || decision.is_some()).then(|| ToolResultMeta {
            id: self.call.id.clone(),
            non_execution_kind: non_execution.into(),
            permission_decision: decision.into(),
            ..ToolResultMeta::default()
        })
    }
}

impl AgentContext<'_> {
    /// Records and emits a tool result, with the entries and messages of hooks.
    pub(crate) async fn record_tool_result(&self, outcome: &ToolOutcome) -> Result<(), quipu_transcript::AppendError> {
        self.session.record_checkpoints()?;
        self.record(outcome.entries_before.clone()).await?;
        self.add_user_entry(outcome.to_user_entry(), outcome.result_meta()).await?;
        self.record(outcome.entries_after.clone()).await?;
        if let Some(file) = &outcome.touched_file {
            self.record(announce::path_rule_attachments(self, file)).await?;
        }
        for message in &outcome.user_messages {
            self.session.emit_system(System::Informational(Box::new(Informational {
                content: Maybe::Value(message.clone()),
                level: MessageLevel::Notice.into(),
                envelope: self.session.output.envelope(),
                ..Informational::default()
            })));
        }
        Ok(())
    }

    /// Runs a tool; reports a call that takes long as a task.
    async fn execute_tool(
        &self,
        tool: &Arc<dyn Tool>,
        call: &ToolUse,
        input: &Json,
        running: CallContext,
    ) -> ToolOutput {
        let (progress, mut told) = mpsc::unbounded_channel();
        let running = CallContext { progress: Some(progress), ..running };
        let _open = RunningCallGuard::new(self.session, &running);
        let mut run = tool.run(input.to_value(), self.workspace, &running);
        let mut task: Option<String> = None;
        loop {
            tokio::select! {
                output = &mut run => {
                    if let Some(task) = task {
                        self.session.emit_system(long_running::task_notification(&task, call, input, &output, &self.session.output));
                    }
                    return output;
                }
                Some(step) = told.recv() => {
                    if self.session.var("CLAUDE_CODE_REMOTE").is_some() {
                        self.session.output.emit(long_running::tool_progress(call, step.seconds, self.stream_envelope(None, None)));
                    }
                    if task.is_none() && step.seconds >= LONG_RUNNING_SECONDS {
                        let id = format!("b{}", &new_id().as_str()[..8]);
                        self.session.emit_system(long_running::task_started(&id, call, input, &self.session.output));
                        task = Some(id);
                    }
                }
            }
        }
    }

    /// Runs one call: validates its input, runs the hooks before it, gets permission, runs the tool and
    /// the hooks after it.
    async fn run_tool_call(&self, run: ToolRun) -> ToolOutcome {
        let span = tracing::debug_span!(
            target: "quipu::tools", "tool", tool = %run.call.name, id = %run.call.id, failed = Empty
        );
        let start = SpanStart::now();
        let outcome = self.run_tool_call_steps(run).instrument(span.clone()).await;
        self.send_tool_span(start, &outcome.call, outcome.is_error());
        span.record("failed", outcome.is_error());
        outcome
    }

    async fn run_tool_call_steps(&self, run: ToolRun) -> ToolOutcome {
        let (call, stop, started) = (run.call.clone(), run.cancel.clone(), Arc::clone(&run.has_started));
        let Some(tool) = self.find_tool(&call.name).cloned() else {
            return ToolOutcome::new(run, ToolOutput::no_such_tool(&call.name));
        };
        // MCP servers and the schema tool validate their input themselves.
        let ours = call.name != ToolName::StructuredOutput && !call.name.is_mcp();
        if let Err(output) = validate_input(&tool.definition(), &call.input.to_value())
            && ours
        {
            return ToolOutcome::new(run, *output);
        }
        if let Some(output) = self.precheck(&tool, &call).await {
            return ToolOutcome::new(run, output);
        }
        if let Err(error) = self.session.record_tool_used(&call.name) {
            return ToolOutcome::new(run, ToolOutput::failure(error.to_string()));
        }
        let permit = self.request_permission(&call).await;
        let mut outcome = ToolOutcome::new(run, ToolOutput::failure(""));
        let (input, target, profile) = match permit {
            PermissionOutcome::Allowed { input, target, decision, hook_outcome, profile } => {
                outcome.decision = decision;
                outcome.add_pre_hooks(hook_outcome);
                (input, target, profile)
            }
            PermissionOutcome::Denied(DeniedCall {
                message: text,
                denial_kind: kind,
                decision,
                hook_outcome,
                interrupt,
            }) => {
                outcome.add_pre_hooks(hook_outcome);
                outcome.output = if interrupt {
                    let raw = Some(Value::from("User rejected tool use"));
                    ToolOutput { content: Content::Text(synthetic::reject_text(None)), raw, is_error: true }
                } else {
                    ToolOutput::failure(text)
                };
                outcome.decision = decision.filter(|_| !interrupt);
                outcome.non_execution = Some(NonExecution { kind, interrupt });
                return outcome;
            }
        };
        let started_at = Instant::now();
        outcome.sandboxed = (call.name == ToolName::Bash).then_some(profile.is_sandboxed());
        let file = target.as_ref().and_then(|target| target.real.clone());
        let span = self.tool_span(call.id.as_str());
        let running = CallContext { cancel: stop, profile, target, span, ..CallContext::new(call.id.clone()) };
        started.store(true, Ordering::Relaxed);
        outcome.output = self.execute_tool(&tool, &call, &input, running).await;
        outcome.touched_file = file.filter(|_| !outcome.output.is_error);
        if call.name == ToolName::StructuredOutput && !outcome.output.is_error {
            outcome.entries_before.push(structured_output::output_attachment(&call.id, &input));
        }
        if call.name == ToolName::ToolSearch {
            outcome.entries_after.extend(tool_search::loaded_tools_record(self, &outcome.output));
        }
        let time = started_at.elapsed();
        let (added, removed) = lines_changed(outcome.output.raw.as_ref());
        self.session.usage().add_tool_run(time, added, removed);
        let hook_outcome = self.run_post_tool_hooks(&call, &input, &outcome.output, time).await;
        outcome.apply_post_hooks(hook_outcome);
        outcome
    }
}

/// Lists a running call among those that the host can move to the background, until it is dropped.
struct RunningCallGuard<'a> {
    session: &'a Session,
    tool_use_id: ToolUseId,
}

impl<'a> RunningCallGuard<'a> {
    fn new(session: &'a Session, call: &CallContext) -> Self {
        session.activity.add_call(call.tool_use_id.clone(), call.move_to_background.clone());
        Self { session, tool_use_id: call.tool_use_id.clone() }
    }
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        self.session.activity.remove_call(&self.tool_use_id);
    }
}

impl ToolOutcome {
    fn add_pre_hooks(&mut self, hook_outcome: HookOutcome) {
        self.user_messages.extend(
            hook_outcome.user_messages.iter().map(|message| format!("{} says: {message}", hook_outcome.name())),
        );
        self.stop_reason = self.stop_reason.take().or(hook_outcome.stop_reason);
        self.entries_before.extend(hook_outcome.attachments);
    }

    fn apply_post_hooks(&mut self, hook_outcome: HookOutcome) {
        self.user_messages.extend(
            hook_outcome.user_messages.iter().map(|message| format!("{} says: {message}", hook_outcome.name())),
        );
        self.stop_reason = self.stop_reason.take().or(hook_outcome.stop_reason.clone());
        if let Some(output) = &hook_outcome.updated_output {
            let content = output.decode_string().map(Content::Text).or_else(|| output.read().ok());
            self.output.content = content.unwrap_or_else(|| Content::Text(output.text().to_owned()));
        }
        self.entries_after.extend(hook_outcome.attachments);
    }
}

/// The number of lines that an edit added and removed, from its result.
fn lines_changed(raw: Option<&Value>) -> (u64, u64) {
    let Some(raw) = raw.cloned().map(Json::from) else { return (0, 0) };
    let written = raw.read::<WriteOutput>().ok();
    if let Some(made) = written.as_ref().filter(|written| !written.original_file.is_value()) {
        return (made.content.lines().count() as u64, 0);
    }
    let edited = raw.read::<EditOutput>().ok().map(|edited| edited.structured_patch);
    let hunks = written.map(|written| written.structured_patch).or(edited).unwrap_or_default();
    let starting =
        |mark| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.starts_with(mark)).count() as u64;
    (starting('+'), starting('-'))
}
