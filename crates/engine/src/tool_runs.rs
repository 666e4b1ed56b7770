//! The tools of one answer: calls that only read run beside each other, the others
//! one at a time; results come in the order they are done.

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
use quipu_message::{Content, Entry, Extra, Json, Maybe, Spelling, ToolUse, ToolUseId, Uuid, factory, synthetic};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::clock::{Clock, new_id};
use crate::hooks::HookOutcome;
use crate::permission_flow::{DeniedCall, PermissionOutcome};
use crate::sandbox::SandboxProfile;
use crate::session::Session;
use crate::structured_output;
use crate::tool::{CallContext, Tool, ToolEffect, ToolOutput, validate_input};
use crate::tool_search;
use crate::tools::bash::Bash;

mod long_running;

/// After how many seconds a call is told of as a task.
const LONG_RUNNING_SECONDS: u64 = 3;

/// How many calls run beside each other.
const MAX_CONCURRENT_RUNS: usize = 32;

/// How long subagents have to end when a turn is broken off.
const SUBAGENT_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A call that waits or runs.
#[derive(Debug, Clone)]
struct ToolRun {
    call: ToolUse,
    /// The line of the call.
    source_uuid: Uuid,
    effect: ToolEffect,
    /// Says that it shall stop.
    cancel: CancellationToken,
    /// Whether the tool itself has begun: it was allowed and may have changed something.
    has_started: Arc<AtomicBool>,
}

impl ToolRun {
    /// The outcome when it was stopped, or never ran.
    fn into_stopped_outcome(self) -> ToolOutcome {
        let text = if self.has_started.load(Ordering::Relaxed) {
            synthetic::stopped_text()
        } else {
            synthetic::reject_text(None)
        };
        let raw = Some(Value::from("User rejected tool use"));
        let refused = Some(NonExecution { kind: Some(NonExecutionKind::UserRejected), interrupt: false });
        ToolOutcome {
            non_execution: refused,
            ..ToolOutcome::new(self, ToolOutput { content: Content::Text(text), raw, is_error: true })
        }
    }

    fn matches_outcome(&self, done: &ToolOutcome) -> bool {
        self.call.id == done.call.id
    }
}

/// The tools of one answer.
pub(crate) struct ToolRuns<'a> {
    ctx: &'a AgentContext<'a>,
    queued: VecDeque<ToolRun>,
    running: FuturesUnordered<BoxFuture<'a, ToolOutcome>>,
    /// The calls under way.
    in_progress: Vec<ToolRun>,
    finished: VecDeque<ToolOutcome>,
    /// The calls that were added.
    added_ids: HashSet<ToolUseId>,
    last_id: Option<ToolUseId>,
    /// Whether the answer is whole: only then may anything change.
    answer_complete: bool,
    /// Stops all of them.
    cancel: CancellationToken,
}

/// A call that is done.
#[derive(Debug)]
pub(crate) struct ToolOutcome {
    pub(crate) call: ToolUse,
    source_uuid: Uuid,
    output: ToolOutput,
    decision: Option<PermissionDecisionRecord>,
    /// Whether a command ran in a sandbox.
    sandboxed: Option<bool>,
    /// Why the tool did not run.
    pub(crate) non_execution: Option<NonExecution>,
    /// What hooks add before and after the result.
    entries_before: Vec<Entry>,
    entries_after: Vec<Entry>,
    /// What hooks tell the person.
    user_messages: Vec<String>,
    /// A hook or the host ends the turn, and why.
    pub(crate) stop_reason: Option<String>,
    /// The file that the tool read or changed.
    touched_file: Option<PathBuf>,
}

/// Why a tool did not run.
#[derive(Debug, Clone)]
pub(crate) struct NonExecution {
    kind: Option<NonExecutionKind>,
    /// Whether the host also broke the turn off.
    pub(crate) interrupt: bool,
}

impl<'a> ToolRuns<'a> {
    pub(crate) fn new(talk: &'a AgentContext<'a>) -> Self {
        Self {
            ctx: talk,
            queued: VecDeque::new(),
            running: FuturesUnordered::new(),
            in_progress: Vec::new(),
            finished: VecDeque::new(),
            added_ids: HashSet::new(),
            last_id: None,
            answer_complete: false,
            cancel: talk.cancel.child_token(),
        }
    }

    /// Adds a call and begins what may begin. One with the id of another is left out: its
    /// result could not be told from the other's.
    pub(crate) fn add(&mut self, call: ToolUse, source: Uuid) {
        if !self.added_ids.insert(call.id.clone()) {
            return;
        }
        let input = call.input.to_value();
        let effect = self.ctx.find_tool(&call.name).map_or(ToolEffect::ReadOnly, |tool| tool.effect(&input));
        self.last_id = Some(call.id.clone());
        let (stop, began) = (self.cancel.clone(), Arc::default());
        self.queued.push_back(ToolRun { call, source_uuid: source, effect, cancel: stop, has_started: began });
        self.start_ready();
    }

    /// The answer is whole: changes may be made.
    pub(crate) fn mark_answer_complete(&mut self) {
        self.answer_complete = true;
        self.start_ready();
    }

    /// The last call that was added.
    pub(crate) fn last_id(&self) -> Option<&ToolUseId> {
        self.last_id.as_ref()
    }

    /// Whether there is nothing to do and nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.in_progress.is_empty() && self.finished.is_empty()
    }

    /// Goes on with what runs; never ends, so that it can stand beside another wait.
    pub(crate) async fn advance(&mut self) {
        match self.running.next().await {
            Some(done) => self.finish_run(done),
            None => std::future::pending().await,
        }
    }

    /// The next call that is done; `None` if all are.
    pub(crate) async fn next(&mut self) -> Option<ToolOutcome> {
        loop {
            if let Some(done) = self.finished.pop_front() {
                return Some(done);
            }
            let done = self.running.next().await?;
            self.finish_run(done);
        }
    }

    /// Stops everything; every call that is not done is answered as stopped or refused.
    pub(crate) async fn cancel_all(mut self) -> Vec<ToolOutcome> {
        self.cancel.cancel();
        // A subagent still writes down how it ended; whatever else runs is just dropped.
        let mut apart = self.in_progress.iter().filter(|work| work.effect == ToolEffect::Independent).count();
        let ending = async {
            while apart > 0
                && let Some(done) = self.running.next().await
            {
                apart -= usize::from(
                    self.in_progress
                        .iter()
                        .any(|work| work.matches_outcome(&done) && work.effect == ToolEffect::Independent),
                );
            }
        };
        // One whose permission is still asked for never ends.
        let _ = tokio::time::timeout(SUBAGENT_STOP_TIMEOUT, ending).await;
        let Self { queued: waiting, in_progress: open, mut finished, running, .. } = self;
        drop(running);
        finished.extend(open.into_iter().chain(waiting).map(ToolRun::into_stopped_outcome));
        finished.into()
    }

    fn finish_run(&mut self, done: ToolOutcome) {
        self.in_progress.retain(|work| !work.matches_outcome(&done));
        self.finished.push_back(done);
        self.start_ready();
    }

    fn start_ready(&mut self) {
        while let Some(next) = self.queued.front() {
            let room = self.in_progress.len() < MAX_CONCURRENT_RUNS;
            let beside = room && self.in_progress.iter().all(|work| work.effect != ToolEffect::Mutating);
            let may = match next.effect {
                ToolEffect::ReadOnly => beside,
                ToolEffect::Independent => self.answer_complete && beside,
                ToolEffect::Mutating => self.answer_complete && self.in_progress.is_empty(),
            };
            // A budget is looked at before anything runs.
            let early = self.answer_complete || self.ctx.session.options.max_budget_usd.is_none();
            if !may || !early {
                return;
            }
            if let Some(work) = self.queued.pop_front() {
                self.in_progress.push(work.clone());
                self.running.push(Box::pin(self.ctx.run_tool_call(work)));
            }
        }
    }
}

impl ToolOutcome {
    fn new(work: ToolRun, output: ToolOutput) -> Self {
        Self {
            call: work.call,
            source_uuid: work.source_uuid,
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

    /// The refusal, as a result lists it.
    pub(crate) fn denial(&self) -> DeniedToolCall {
        DeniedToolCall {
            tool_name: self.call.name.clone(),
            tool_use_id: self.call.id.clone(),
            tool_input: self.call.input.clone(),
            ..DeniedToolCall::default()
        }
    }

    /// Whether the tool failed.
    pub(crate) fn is_error(&self) -> bool {
        self.output.is_error
    }

    /// The call, as the hooks of a batch see it: with the model's own input.
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
        user.tool_denial_kind = self.non_execution.as_ref().and_then(|refused| refused.kind.clone()).into();
        user
    }

    fn result_meta(&self) -> Option<ToolResultMeta> {
        let refused = self.non_execution.as_ref().and_then(|refused| refused.kind.clone());
        let decision = self.decision.clone().map(|decision| PermissionDecisionRecord {
            rule_source: Maybe::Absent,
            reason_code: Maybe::Absent,
            extra: Extra::with_spelling(Spelling::STREAM),
            ..decision
        });
        (refused.is_some() || decision.is_some()).then(|| ToolResultMeta {
            id: self.call.id.clone(),
            non_execution_kind: refused.into(),
            permission_decision: decision.into(),
            ..ToolResultMeta::default()
        })
    }
}

impl AgentContext<'_> {
    /// Records a result with what hooks add to it, and says it.
    pub(crate) async fn record_tool_result(&self, done: &ToolOutcome) -> Result<(), quipu_transcript::AppendError> {
        self.session.record_checkpoints()?;
        self.record(done.entries_before.clone()).await?;
        self.add_user_entry(done.to_user_entry(), done.result_meta()).await?;
        self.record(done.entries_after.clone()).await?;
        if let Some(file) = &done.touched_file {
            self.record(announce::path_rule_attachments(self, file)).await?;
        }
        for message in &done.user_messages {
            self.session.emit_system(System::Informational(Box::new(Informational {
                content: Maybe::Value(message.clone()),
                level: MessageLevel::Notice.into(),
                envelope: self.session.output.envelope(),
                ..Informational::default()
            })));
        }
        Ok(())
    }

    /// Runs a tool; a call that takes long is told of as a task.
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

    /// Runs one call: checked, hooked, judged, run, hooked again.
    async fn run_tool_call(&self, work: ToolRun) -> ToolOutcome {
        let (call, stop, started) = (work.call.clone(), work.cancel.clone(), Arc::clone(&work.has_started));
        let Some(tool) = self.find_tool(&call.name).cloned() else {
            return ToolOutcome::new(work, ToolOutput::no_such_tool(&call.name));
        };
        // What others describe, they check themselves.
        let ours = call.name != structured_output::TOOL_NAME && !call.name.starts_with("mcp__");
        if let Err(output) = validate_input(&tool.definition(), &call.input.to_value())
            && ours
        {
            return ToolOutcome::new(work, *output);
        }
        if let Some(output) = self.precheck(&tool, &call).await {
            return ToolOutcome::new(work, output);
        }
        if let Err(error) = self.session.record_tool_used(&call.name) {
            return ToolOutcome::new(work, ToolOutput::failure(error.to_string()));
        }
        let permit = self.request_permission(&call).await;
        let mut done = ToolOutcome::new(work, ToolOutput::failure(""));
        let (input, target, profile) = match permit {
            PermissionOutcome::Allowed { input, target, decision, hook_outcome: hooks, profile } => {
                done.decision = decision;
                done.add_pre_hooks(hooks);
                (input, target, profile)
            }
            PermissionOutcome::Denied(DeniedCall {
                message: text,
                denial_kind: kind,
                decision,
                hook_outcome: hooks,
                interrupt,
            }) => {
                done.add_pre_hooks(hooks);
                done.output = if interrupt {
                    let raw = Some(Value::from("User rejected tool use"));
                    ToolOutput { content: Content::Text(synthetic::reject_text(None)), raw, is_error: true }
                } else {
                    ToolOutput::failure(text)
                };
                done.decision = decision.filter(|_| !interrupt);
                done.non_execution = Some(NonExecution { kind, interrupt });
                return done;
            }
        };
        let began = Instant::now();
        done.sandboxed = (call.name == Bash.definition().name).then_some(profile != SandboxProfile::None);
        let file = target.as_ref().and_then(|target| target.real.clone());
        let running = CallContext { cancel: stop, profile, target, ..CallContext::new(call.id.clone()) };
        started.store(true, Ordering::Relaxed);
        done.output = self.execute_tool(&tool, &call, &input, running).await;
        done.touched_file = file.filter(|_| !done.output.is_error);
        if call.name == structured_output::TOOL_NAME && !done.output.is_error {
            done.entries_before.push(structured_output::output_attachment(&call.id, &input));
        }
        if call.name == tool_search::TOOL_NAME {
            done.entries_after.extend(tool_search::loaded_tools_record(self, &done.output));
        }
        let time = began.elapsed();
        let (added, removed) = lines_changed(done.output.raw.as_ref());
        self.session.usage().add_tool_run(time, added, removed);
        let hooks = self.run_post_tool_hooks(&call, &input, &done.output, time).await;
        done.apply_post_hooks(hooks);
        done
    }
}

/// A call that the host may move to the background, while it runs.
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
    fn add_pre_hooks(&mut self, hooks: HookOutcome) {
        self.user_messages
            .extend(hooks.user_messages.iter().map(|message| format!("{} says: {message}", hooks.name())));
        self.stop_reason = self.stop_reason.take().or(hooks.stop_reason);
        self.entries_before.extend(hooks.attachments);
    }

    fn apply_post_hooks(&mut self, hooks: HookOutcome) {
        self.user_messages
            .extend(hooks.user_messages.iter().map(|message| format!("{} says: {message}", hooks.name())));
        self.stop_reason = self.stop_reason.take().or(hooks.stop_reason.clone());
        if let Some(output) = &hooks.updated_output {
            let content = output.decode_string().map(Content::Text).or_else(|| output.read().ok());
            self.output.content = content.unwrap_or_else(|| Content::Text(output.text().to_owned()));
        }
        self.entries_after.extend(hooks.attachments);
    }
}

/// How many lines a result says were added and removed.
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
