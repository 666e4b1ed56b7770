//! A turn: a person's request until its final answer.
//!
//! ```text
//!            ┌───────────── results, words ─────────────┐
//!            ▾                                          │
//!   Ask ── answer ──┬── with calls ───── Use ───────────┤
//!    │              └── without ──────── Answered ──────┘  hooks, nudges
//!    └── error, limit, interrupt ─────────────────────────▸ End
//! ```

use std::time::Instant;

use quipu_message::hook::{HookEvent, PostToolBatch, Stop, SubagentStop};
use quipu_message::stream::Denial;
use quipu_message::{Block, Entry, Json, Maybe, Message, ToolUseId, Usage, Uuid, attachment, factory, synthetic};
use quipu_transcript::AppendError;

use crate::announce;
use crate::ask::Asked;
use crate::clock::Clock;
use crate::ledger::sum;
use crate::talk::{Talk, stamped_attachment};
use crate::work::{Done, Works};

mod fail;

/// How often an answer that ran out of room is continued.
const CONTINUED: u32 = 3;

/// How often an answer in the wrong form is sent back.
const FORM_TRIES: u32 = 5;

/// What the model is told when its answer ran out of room.
const GO_ON: &str = "Your answer was cut off because it reached the output limit. Go on exactly where it stopped, \
                     without repeating anything and without comment; split what is left into smaller pieces.";

/// What the model is told when it does not answer in the form asked for.
const USE_FORM: &str =
    "[structured-output-enforce] This request is only done when StructuredOutput is called: call it with your answer.";

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum End {
    /// With the model's answer.
    Answered(String),
    /// With the answer in the form asked for.
    Formed(Json),
    /// The model never used the form in a way that fits.
    NoForm,
    /// A call failed for good.
    Failed(Failure),
    /// The limit of calls was hit.
    MaxTurns(u64),
    /// The money is gone.
    Budget(f64),
    /// Broken off while the model wrote.
    BrokenStreaming,
    /// Broken off while tools ran.
    BrokenTools,
    /// A hook ended it.
    Stopped(String),
    /// The session's file cannot be written.
    NoFile(AppendError),
}

/// A call that failed for good, as it is shown.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) kind: Option<String>,
    pub(crate) stop_reason: &'static str,
    /// Why the turn ended, as the result says it.
    pub(crate) terminal_reason: &'static str,
}

/// What a turn counts.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) began: Instant,
    pub(crate) first_word: Option<Instant>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) denials: Vec<Denial>,
    /// Calls of the model.
    pub(crate) calls: u64,
    /// Lines in the person's voice after the prompt.
    pub(crate) replies: u64,
    made_room: bool,
    compaction_failed: bool,
    continued: u32,
    refusals: u32,
    form_nudged: bool,
    form_errors: u32,
    stop_hook: bool,
    pub(crate) tool_uses: u64,
    last: Option<Message>,
}

impl Count {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            first_word: None,
            usage: None,
            stop_reason: None,
            denials: Vec::new(),
            calls: 0,
            replies: 0,
            made_room: false,
            compaction_failed: false,
            continued: 0,
            refusals: 0,
            form_nudged: false,
            form_errors: 0,
            stop_hook: false,
            tool_uses: 0,
            last: None,
        }
    }

    pub(crate) fn first_word(&mut self) {
        self.first_word.get_or_insert_with(Instant::now);
    }

    pub(crate) fn answered(&mut self, message: &Message, usage: &Usage) {
        self.stop_reason = message.stop_reason.text().map(str::to_owned);
        sum(&mut self.usage, usage);
        self.last = Some(message.clone());
    }

    /// What the last call used.
    pub(crate) fn last_usage(&self) -> Option<&Usage> {
        self.last.as_ref()?.usage.get()
    }
}

enum Step<'a> {
    Ask,
    Use(Works<'a>),
    Answered(Box<Message>),
    End(End),
}

/// Runs a turn to its end. The prompt is recorded already.
pub(crate) async fn run(talk: &Talk<'_>, count: &mut Count) -> End {
    let mut step = Step::Ask;
    loop {
        let next = match step {
            Step::Ask => ask(talk, count).await,
            Step::Use(works) => use_tools(talk, works, count).await,
            Step::Answered(message) => answered(talk, &message, count).await,
            Step::End(end) => return end,
        };
        step = next.unwrap_or_else(|error| Step::End(End::NoFile(error)));
    }
}

async fn ask<'a>(talk: &'a Talk<'a>, count: &mut Count) -> Result<Step<'a>, AppendError> {
    if let Some(max) = talk.max_turns.filter(|max| count.calls >= *max) {
        let line = attachment::MaxTurnsReached {
            max_turns: Maybe::Value(max),
            turn_count: Maybe::Value(count.calls + 1),
            ..attachment::MaxTurnsReached::default()
        };
        let line = stamped_attachment(attachment::Attachment::MaxTurnsReached(Box::new(line)));
        talk.record(vec![Entry::Attachment(Box::new(line))]).await?;
        return Ok(Step::End(End::MaxTurns(max)));
    }
    if talk.is_main() && !count.compaction_failed {
        // What failed once is tried again in the next turn, not before each call.
        count.compaction_failed = !talk.compact_if_full().await?;
    }
    count.calls += 1;
    match talk.ask(count).await? {
        Asked::Broken { works, closing } => {
            let broke_tools = !works.is_empty();
            let tail = Tail::of(&works);
            settle_all(talk, works, tail, count).await?;
            interrupted(talk, broke_tools, count).await?;
            closing.into_iter().for_each(|line| talk.session.output.say(line));
            Ok(Step::End(if broke_tools { End::BrokenTools } else { End::BrokenStreaming }))
        }
        Asked::Failed(error) => {
            if error.is_too_long() && !std::mem::replace(&mut count.made_room, true) && talk.make_room().await? {
                // Only answers count.
                count.calls -= 1;
                return Ok(Step::Ask);
            }
            fail::failed(talk, &error).await.map(|failure| Step::End(End::Failed(failure)))
        }
        Asked::Answer { works, .. } if over_budget(talk).is_some() && !works.is_empty() => {
            let tail = Tail::of(&works);
            settle_all(talk, works, tail, count).await?;
            Ok(Step::End(End::Budget(over_budget(talk).unwrap_or_default())))
        }
        Asked::Answer { works, .. } if !works.is_empty() => Ok(Step::Use(works)),
        Asked::Answer { message, .. } => Ok(Step::Answered(message)),
    }
}

async fn use_tools<'a>(talk: &'a Talk<'a>, mut works: Works<'a>, count: &mut Count) -> Result<Step<'a>, AppendError> {
    works.release();
    let mut calls = Vec::new();
    let mut stop = None;
    let mut tail = Tail::of(&works);
    loop {
        let done = tokio::select! {
            biased;
            () = talk.cancel.cancelled() => None,
            done = works.next() => match done {
                Some(done) => Some(done),
                None => break,
            },
        };
        let Some(done) = done else {
            settle_all(talk, works, tail, count).await?;
            interrupted(talk, true, count).await?;
            return Ok(Step::End(End::BrokenTools));
        };
        settle(talk, &done, count).await?;
        tail.settled(talk, &done);
        if done.refused.as_ref().is_some_and(|refused| refused.interrupt) {
            settle_all(talk, works, tail, count).await?;
            interrupted(talk, true, count).await?;
            return Ok(Step::End(End::BrokenTools));
        }
        calls.push(done.for_hooks());
        stop = stop.or(done.stop);
    }
    tail.go_on(talk)?;
    if talk.session.hooks.listen(PostToolBatch::NAME) {
        let input = PostToolBatch { tool_calls: calls, base: talk.hook_base(), ..PostToolBatch::default() };
        let effects = talk.session.hook(input, None, None, &talk.cancel).await;
        stop = stop.or(effects.stop);
        talk.record(effects.attachments).await?;
    }
    if let Some(answer) = talk.structured.as_ref().and_then(|form| form.take()) {
        return Ok(Step::End(End::Formed(answer)));
    }
    if count.form_errors >= FORM_TRIES {
        return Ok(Step::End(End::NoForm));
    }
    if stop.is_none() {
        talk.record(announce::changed_files(talk)).await?;
    }
    if talk.is_main() && stop.is_none() {
        talk.absorb_queued().await?;
    }
    Ok(stop.map_or(Step::Ask, |why| Step::End(End::Stopped(why))))
}

/// The model has nothing more to do: unless somebody has, the turn ends.
async fn answered<'a>(talk: &'a Talk<'a>, message: &Message, count: &mut Count) -> Result<Step<'a>, AppendError> {
    let stop_reason = message.stop_reason.text().unwrap_or_default().to_owned();
    if stop_reason == "max_tokens" && count.continued < CONTINUED {
        count.continued += 1;
        nudge(talk, GO_ON, count).await?;
        return Ok(Step::Ask);
    }
    if stop_reason == "pause_turn" {
        // Its tools on the server take longer than one call: it goes on from where it is.
        return Ok(Step::Ask);
    }
    if stop_reason == "refusal" {
        return Ok(fail::refused(talk, count).await?.map_or(Step::Ask, |failure| Step::End(End::Failed(failure))));
    }
    if talk.structured.is_some() && !count.form_nudged {
        count.form_nudged = true;
        nudge(talk, USE_FORM, count).await?;
        return Ok(Step::Ask);
    }
    let text = last_words(message);
    if let Some(step) = stop_hooks(talk, &text, count).await? {
        return Ok(step);
    }
    if let Some(max) = over_budget(talk) {
        return Ok(Step::End(End::Budget(max)));
    }
    Ok(Step::End(End::Answered(text)))
}

async fn stop_hooks<'a>(talk: &'a Talk<'a>, text: &str, count: &mut Count) -> Result<Option<Step<'a>>, AppendError> {
    let event = if talk.is_main() { Stop::NAME } else { SubagentStop::NAME };
    if !talk.session.hooks.listen(event) {
        return Ok(None);
    }
    let stop = Stop {
        stop_hook_active: Maybe::Value(count.stop_hook),
        last_assistant_message: Maybe::Value(text.to_owned()),
        base: talk.hook_base(),
        ..Stop::default()
    };
    let effects = match talk.sub() {
        None => talk.session.hook(stop, None, None, &talk.cancel).await,
        Some(sub) => {
            let input = SubagentStop {
                stop_hook_active: stop.stop_hook_active,
                last_assistant_message: stop.last_assistant_message,
                agent_transcript_path: Maybe::Value(talk.log().path().display().to_string()),
                base: stop.base,
                ..SubagentStop::default()
            };
            talk.session.hook(input, Some(&sub.kind), None, &talk.cancel).await
        }
    };
    let blocked = effects.blocks.first().cloned().filter(|_| effects.stop.is_none());
    if let Some(why) = &blocked {
        count.stop_hook = true;
        nudge(talk, &format!("Stop hook feedback:\n{why}"), count).await?;
    }
    if talk.is_main() {
        talk.record(effects.attachments.clone()).await?;
        talk.record_system(crate::ending::stop_summary(&effects)).await?;
        if blocked.is_some() {
            talk.session.say(crate::ending::stop_notice(&talk.session.output));
        }
    }
    Ok(blocked.map(|_| Step::Ask))
}

/// Says something in the person's voice that the person did not say.
async fn nudge(talk: &Talk<'_>, text: &str, count: &mut Count) -> Result<(), AppendError> {
    count.replies += 1;
    talk.user(factory::meta(text, &mut Clock), None).await
}

async fn interrupted(talk: &Talk<'_>, tools: bool, count: &mut Count) -> Result<(), AppendError> {
    let text = if tools { synthetic::INTERRUPT_FOR_TOOL_USE } else { synthetic::INTERRUPT };
    count.replies += 1;
    talk.user(factory::user(vec![Block::new_text(text)], &mut Clock), None).await
}

/// Where the conversation goes on after the tool results of an answer. They are recorded
/// as they come, each under its own call; what follows hangs on the result of the answer's
/// last call, so that whoever walks up the parents passes every call.
struct Tail {
    last_call: Option<ToolUseId>,
    /// The last entry recorded for that call.
    entry: Option<Uuid>,
}

impl Tail {
    fn of(works: &Works<'_>) -> Self {
        Self { last_call: works.last().cloned(), entry: None }
    }

    /// A call's result has just been recorded.
    fn settled(&mut self, talk: &Talk<'_>, done: &Done) {
        if self.last_call.as_ref() == Some(&done.call.id) {
            self.entry = talk.log().head().cloned();
        }
    }

    fn go_on(self, talk: &Talk<'_>) -> Result<(), AppendError> {
        self.entry.map_or(Ok(()), |entry| talk.log().go_on_from(entry))
    }
}

/// Stops the calls that still run and records their results.
async fn settle_all(talk: &Talk<'_>, works: Works<'_>, mut tail: Tail, count: &mut Count) -> Result<(), AppendError> {
    let all = works.abandon().await;
    let asking = talk.asking.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    for done in &all {
        if asking.contains(&done.call.id) {
            count.denials.push(done.denial());
        }
        count.replies += 1;
        talk.settle(done).await?;
        tail.settled(talk, done);
    }
    tail.go_on(talk)
}

async fn settle(talk: &Talk<'_>, done: &Done, count: &mut Count) -> Result<(), AppendError> {
    count.replies += 1;
    count.tool_uses += 1;
    if done.refused.is_some() {
        count.denials.push(done.denial());
    }
    if done.call.name == crate::structured::NAME && done.failed() {
        count.form_errors += 1;
    }
    talk.settle(done).await
}

fn over_budget(talk: &Talk<'_>) -> Option<f64> {
    talk.session.options.max_budget_usd.filter(|max| talk.session.ledger().cost() >= *max)
}

/// The words of an answer's last text block.
pub(crate) fn last_words(message: &Message) -> String {
    message.content.blocks().iter().rev().find_map(Block::text).unwrap_or_default().to_owned()
}
