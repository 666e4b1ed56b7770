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
use quipu_message::hook::HookCall;
use quipu_message::stream::Denial;
use quipu_message::system::{Informational, System};
use quipu_message::tool::output::{EditOutput, WriteOutput};
use quipu_message::turn::{PermissionDecision, ResultMeta, User};
use quipu_message::{Content, Entry, Extra, Json, Maybe, Spelling, ToolUse, ToolUseId, Uuid, factory, synthetic};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::clock::{Clock, fresh};
use crate::hooks::Effects;
use crate::permit::{Permit, Refusal};
use crate::sandbox::Profile;
use crate::session::Session;
use crate::structured;
use crate::talk::Talk;
use crate::tool::{Call, Effect, Output, Tool, check};
use crate::tool_search;
use crate::tools::bash::Bash;

mod long;

/// After how many seconds a call is told of as a task.
const LONG: u64 = 3;

/// How many calls run beside each other.
const MAX_AT_ONCE: usize = 32;

/// How long subagents have to end when a turn is broken off.
const MERCY: Duration = Duration::from_secs(2);

/// A call that waits or runs.
#[derive(Debug, Clone)]
struct Work {
    call: ToolUse,
    /// The line of the call.
    source: Uuid,
    effect: Effect,
    /// Says that it shall stop.
    stop: CancellationToken,
    /// Whether the tool itself has begun: it was allowed and may have changed something.
    began: Arc<AtomicBool>,
}

impl Work {
    /// The outcome when it was stopped, or never ran.
    fn stopped(self) -> Done {
        let text = if self.began.load(Ordering::Relaxed) { synthetic::stopped() } else { synthetic::reject(None) };
        let raw = Some(Value::from("User rejected tool use"));
        let refused = Some(Refused { kind: Some("user-rejected"), interrupt: false });
        Done { refused, ..Done::new(self, Output { content: Content::Text(text), raw, is_error: true }) }
    }

    fn is(&self, done: &Done) -> bool {
        self.call.id == done.call.id
    }
}

/// The tools of one answer.
pub(crate) struct Works<'a> {
    talk: &'a Talk<'a>,
    waiting: VecDeque<Work>,
    running: FuturesUnordered<BoxFuture<'a, Done>>,
    /// The calls under way.
    open: Vec<Work>,
    finished: VecDeque<Done>,
    /// The calls that were added.
    ids: HashSet<ToolUseId>,
    last: Option<ToolUseId>,
    /// Whether the answer is whole: only then may anything change.
    released: bool,
    /// Stops all of them.
    stop: CancellationToken,
}

/// A call that is done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) call: ToolUse,
    source: Uuid,
    output: Output,
    decision: Option<PermissionDecision>,
    /// Whether a command ran in a sandbox.
    sandboxed: Option<bool>,
    /// Why the tool did not run.
    pub(crate) refused: Option<Refused>,
    /// What hooks add before and after the result.
    before: Vec<Entry>,
    after: Vec<Entry>,
    /// What hooks tell the person.
    messages: Vec<String>,
    /// A hook or the host ends the turn, and why.
    pub(crate) stop: Option<String>,
    /// The file that the tool read or changed.
    file: Option<PathBuf>,
}

/// Why a tool did not run.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    kind: Option<&'static str>,
    /// Whether the host also broke the turn off.
    pub(crate) interrupt: bool,
}

impl<'a> Works<'a> {
    pub(crate) fn new(talk: &'a Talk<'a>) -> Self {
        Self {
            talk,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            open: Vec::new(),
            finished: VecDeque::new(),
            ids: HashSet::new(),
            last: None,
            released: false,
            stop: talk.cancel.child_token(),
        }
    }

    /// Adds a call and begins what may begin. One with the id of another is left out: its
    /// result could not be told from the other's.
    pub(crate) fn add(&mut self, call: ToolUse, source: Uuid) {
        if !self.ids.insert(call.id.clone()) {
            return;
        }
        let input = call.input.value();
        let effect = self.talk.tool(&call.name).map_or(Effect::Reads, |tool| tool.effect(&input));
        self.last = Some(call.id.clone());
        let (stop, began) = (self.stop.clone(), Arc::default());
        self.waiting.push_back(Work { call, source, effect, stop, began });
        self.begin();
    }

    /// The answer is whole: changes may be made.
    pub(crate) fn release(&mut self) {
        self.released = true;
        self.begin();
    }

    /// The last call that was added.
    pub(crate) fn last(&self) -> Option<&ToolUseId> {
        self.last.as_ref()
    }

    /// Whether there is nothing to do and nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty() && self.finished.is_empty()
    }

    /// Goes on with what runs; never ends, so that it can stand beside another wait.
    pub(crate) async fn advance(&mut self) {
        match self.running.next().await {
            Some(done) => self.took(done),
            None => std::future::pending().await,
        }
    }

    /// The next call that is done; `None` if all are.
    pub(crate) async fn next(&mut self) -> Option<Done> {
        loop {
            if let Some(done) = self.finished.pop_front() {
                return Some(done);
            }
            let done = self.running.next().await?;
            self.took(done);
        }
    }

    /// Stops everything; every call that is not done is answered as stopped or refused.
    pub(crate) async fn abandon(mut self) -> Vec<Done> {
        self.stop.cancel();
        // A subagent still writes down how it ended; whatever else runs is just dropped.
        let mut apart = self.open.iter().filter(|work| work.effect == Effect::Apart).count();
        let ending = async {
            while apart > 0
                && let Some(done) = self.running.next().await
            {
                apart -= usize::from(self.open.iter().any(|work| work.is(&done) && work.effect == Effect::Apart));
            }
        };
        // One whose permission is still asked for never ends.
        let _ = tokio::time::timeout(MERCY, ending).await;
        let Self { waiting, open, mut finished, running, .. } = self;
        drop(running);
        finished.extend(open.into_iter().chain(waiting).map(Work::stopped));
        finished.into()
    }

    fn took(&mut self, done: Done) {
        self.open.retain(|work| !work.is(&done));
        self.finished.push_back(done);
        self.begin();
    }

    fn begin(&mut self) {
        while let Some(next) = self.waiting.front() {
            let room = self.open.len() < MAX_AT_ONCE;
            let beside = room && self.open.iter().all(|work| work.effect != Effect::Changes);
            let may = match next.effect {
                Effect::Reads => beside,
                Effect::Apart => self.released && beside,
                Effect::Changes => self.released && self.open.is_empty(),
            };
            // A budget is looked at before anything runs.
            let early = self.released || self.talk.session.options.max_budget_usd.is_none();
            if !may || !early {
                return;
            }
            if let Some(work) = self.waiting.pop_front() {
                self.open.push(work.clone());
                self.running.push(Box::pin(self.talk.work(work)));
            }
        }
    }
}

impl Done {
    fn new(work: Work, output: Output) -> Self {
        Self {
            call: work.call,
            source: work.source,
            output,
            decision: None,
            sandboxed: None,
            refused: None,
            before: Vec::new(),
            after: Vec::new(),
            messages: Vec::new(),
            stop: None,
            file: None,
        }
    }

    /// The refusal, as a result lists it.
    pub(crate) fn denial(&self) -> Denial {
        Denial {
            tool_name: self.call.name.clone(),
            tool_use_id: self.call.id.clone(),
            tool_input: self.call.input.clone(),
            ..Denial::default()
        }
    }

    /// Whether the tool failed.
    pub(crate) fn failed(&self) -> bool {
        self.output.is_error
    }

    /// The call, as the hooks of a batch see it: with the model's own input.
    pub(crate) fn for_hooks(&self) -> HookCall {
        HookCall {
            tool_name: self.call.name.clone(),
            tool_input: self.call.input.clone(),
            tool_use_id: self.call.id.clone(),
            tool_response: Maybe::Value(Json::of(&self.output.content)),
            ..HookCall::default()
        }
    }

    fn result(&self) -> User {
        let raw = self.output.raw.clone().map_or_else(|| Json::of(&self.output.content.to_text()), Json::from);
        let mut user = factory::tool_result(
            self.call.id.clone(),
            self.output.content.clone(),
            self.output.is_error,
            raw,
            self.source.clone(),
            &mut Clock,
        );
        user.sandboxed = self.sandboxed.into();
        user.permission_decision = self.decision.as_ref().map(Json::of).into();
        user.tool_denial_kind = self.refused.as_ref().and_then(|refused| refused.kind).map(str::to_owned).into();
        user
    }

    fn meta(&self) -> Option<ResultMeta> {
        let refused = self.refused.as_ref().and_then(|refused| refused.kind).map(str::to_owned);
        let decision = self.decision.clone().map(|decision| PermissionDecision {
            rule_source: Maybe::Absent,
            reason_code: Maybe::Absent,
            extra: Extra::spelled(Spelling::STREAM),
            ..decision
        });
        (refused.is_some() || decision.is_some()).then(|| ResultMeta {
            id: self.call.id.clone(),
            non_execution_kind: refused.into(),
            permission_decision: decision.into(),
            ..ResultMeta::default()
        })
    }
}

impl Talk<'_> {
    /// Records a result with what hooks add to it, and says it.
    pub(crate) async fn settle(&self, done: &Done) -> Result<(), quipu_transcript::AppendError> {
        crate::checkpoint::note(self.session)?;
        self.record(done.before.clone()).await?;
        self.user(done.result(), done.meta()).await?;
        self.record(done.after.clone()).await?;
        if let Some(file) = &done.file {
            self.record(announce::rules_for(self, file)).await?;
        }
        for message in &done.messages {
            self.session.say(System::Informational(Box::new(Informational {
                content: Maybe::Value(message.clone()),
                level: Maybe::Value("notice".to_owned()),
                envelope: self.session.output.envelope(),
                ..Informational::default()
            })));
        }
        Ok(())
    }

    /// Runs a tool; a call that takes long is told of as a task.
    async fn run_tool(&self, tool: &Arc<dyn Tool>, call: &ToolUse, input: &Json, running: Call) -> Output {
        let (progress, mut told) = mpsc::unbounded_channel();
        let running = Call { progress: Some(progress), ..running };
        let _open = Open::new(self.session, &running);
        let mut run = tool.run(input.value(), self.place, &running);
        let mut task: Option<String> = None;
        loop {
            tokio::select! {
                output = &mut run => {
                    if let Some(task) = task {
                        self.session.say(long::ended(&task, call, input, &output, &self.session.output));
                    }
                    return output;
                }
                Some(step) = told.recv() => {
                    if self.session.var("CLAUDE_CODE_REMOTE").is_some() {
                        self.session.output.say(long::progress(call, step.seconds, self.envelope(None, None)));
                    }
                    if task.is_none() && step.seconds >= LONG {
                        let id = format!("b{}", &fresh().as_str()[..8]);
                        self.session.say(long::started(&id, call, input, &self.session.output));
                        task = Some(id);
                    }
                }
            }
        }
    }

    /// Runs one call: checked, hooked, judged, run, hooked again.
    async fn work(&self, work: Work) -> Done {
        let (call, stop, started) = (work.call.clone(), work.stop.clone(), Arc::clone(&work.began));
        let Some(tool) = self.tool(&call.name).cloned() else {
            return Done::new(work, Output::no_such_tool(&call.name));
        };
        // What others describe, they check themselves.
        let ours = call.name != structured::NAME && !call.name.starts_with("mcp__");
        if let Err(output) = check(&tool.definition(), &call.input.value())
            && ours
        {
            return Done::new(work, *output);
        }
        if let Some(output) = self.precheck(&tool, &call).await {
            return Done::new(work, output);
        }
        if let Err(error) = self.session.note_tool(&call.name) {
            return Done::new(work, Output::failure(error.to_string()));
        }
        let permit = self.permit(&call).await;
        let mut done = Done::new(work, Output::failure(""));
        let (input, target, profile) = match permit {
            Permit::Allowed { input, target, decision, hooks, profile } => {
                done.decision = decision;
                done.hear_before(hooks);
                (input, target, profile)
            }
            Permit::Refused(Refusal { text, kind, decision, hooks, interrupt }) => {
                done.hear_before(hooks);
                done.output = if interrupt {
                    let raw = Some(Value::from("User rejected tool use"));
                    Output { content: Content::Text(synthetic::reject(None)), raw, is_error: true }
                } else {
                    Output::failure(text)
                };
                done.decision = decision.filter(|_| !interrupt);
                done.refused = Some(Refused { kind, interrupt });
                return done;
            }
        };
        let began = Instant::now();
        done.sandboxed = (call.name == Bash.definition().name).then_some(profile != Profile::None);
        let file = target.as_ref().and_then(|target| target.real.clone());
        let running = Call { cancel: stop, profile, target, ..Call::new(call.id.clone()) };
        started.store(true, Ordering::Relaxed);
        done.output = self.run_tool(&tool, &call, &input, running).await;
        done.file = file.filter(|_| !done.output.is_error);
        if call.name == structured::NAME && !done.output.is_error {
            done.before.push(structured::kept(&call.id, &input));
        }
        if call.name == tool_search::NAME {
            done.after.extend(tool_search::record(self, &done.output));
        }
        let time = began.elapsed();
        let (added, removed) = lines_changed(done.output.raw.as_ref());
        self.session.ledger().worked(time, added, removed);
        let hooks = self.after_hooks(&call, &input, &done.output, time).await;
        done.hear_after(hooks);
        done
    }
}

/// A call that the host may move to the background, while it runs.
struct Open<'a> {
    session: &'a Session,
    id: ToolUseId,
}

impl<'a> Open<'a> {
    fn new(session: &'a Session, call: &Call) -> Self {
        session.state().calls.push((call.id.clone(), call.aside.clone()));
        Self { session, id: call.id.clone() }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.session.state().calls.retain(|(id, _)| *id != self.id);
    }
}

impl Done {
    fn hear_before(&mut self, hooks: Effects) {
        self.messages.extend(hooks.messages.iter().map(|message| format!("{} says: {message}", hooks.name())));
        self.stop = self.stop.take().or(hooks.stop);
        self.before.extend(hooks.attachments);
    }

    fn hear_after(&mut self, hooks: Effects) {
        self.messages.extend(hooks.messages.iter().map(|message| format!("{} says: {message}", hooks.name())));
        self.stop = self.stop.take().or(hooks.stop.clone());
        if let Some(output) = &hooks.updated_output {
            let content = output.as_string().map(Content::Text).or_else(|| output.read().ok());
            self.output.content = content.unwrap_or_else(|| Content::Text(output.text().to_owned()));
        }
        self.after.extend(hooks.attachments);
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
