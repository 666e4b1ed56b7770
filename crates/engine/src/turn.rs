//! A turn: a person's request until its final answer.
//!
//! ```text
//!            ┌───────────── results, words ─────────────┐
//!            ▾                                          │
//!   Ask ── answer ──┬── with calls ───── Use ───────────┤
//!    │              └── without ──────── Answered ──────┘  hooks, nudges
//!    └── error, limit, interrupt ─────────────────────────▸ End
//! ```

use quipu_message::hook::{HookEvent, PostToolBatch};
use quipu_message::values::StopReason;
use quipu_message::{Block, Entry, Maybe, Message, ToolUseId, Uuid, attachment, factory, synthetic};
use quipu_transcript::AppendError;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::api_call::ApiCallOutcome;
use crate::attachments::new_attachment;
use crate::clock::Clock;
use crate::side_calls::last_text;
use crate::tool_runs::{ToolOutcome, ToolRuns};
use crate::turn_state::{TurnEnd, TurnState};

mod failure;
mod stop_hooks;

/// How often an answer that ran out of room is continued.
const MAX_CONTINUATIONS: u32 = 3;

/// How often an answer in the wrong form is sent back.
const MAX_STRUCTURED_OUTPUT_ERRORS: u32 = 5;

/// What the model is told when its answer ran out of room.
const CONTINUE_PROMPT: &str = "Your answer was cut off because it reached the output limit. Go on exactly where it stopped, \
                     without repeating anything and without comment; split what is left into smaller pieces.";

/// What the model is told when it does not answer in the form asked for.
const STRUCTURED_OUTPUT_PROMPT: &str =
    "[structured-output-enforce] This request is only done when StructuredOutput is called: call it with your answer.";

enum TurnStep<'a> {
    CallApi,
    RunTools(ToolRuns<'a>),
    Answered(Box<Message>),
    End(TurnEnd),
}

/// Runs a turn to its end. The prompt is recorded already.
pub(crate) async fn run(talk: &AgentContext<'_>, count: &mut TurnState) -> TurnEnd {
    let mut step = TurnStep::CallApi;
    loop {
        let next = match step {
            TurnStep::CallApi => call_api(talk, count).await,
            TurnStep::RunTools(works) => run_tools(talk, works, count).await,
            TurnStep::Answered(message) => handle_answer(talk, &message, count).await,
            TurnStep::End(end) => return end,
        };
        step = next.unwrap_or_else(|error| TurnStep::End(TurnEnd::WriteFailed(error)));
    }
}

async fn call_api<'a>(talk: &'a AgentContext<'a>, count: &mut TurnState) -> Result<TurnStep<'a>, AppendError> {
    if let Some(max) = talk.max_turns.filter(|max| count.api_calls >= *max) {
        let line = attachment::MaxTurnsReached {
            max_turns: Maybe::Value(max),
            turn_count: Maybe::Value(count.api_calls + 1),
            ..attachment::MaxTurnsReached::default()
        };
        let line = new_attachment(attachment::Attachment::MaxTurnsReached(Box::new(line)));
        talk.record(vec![Entry::Attachment(Box::new(line))]).await?;
        return Ok(TurnStep::End(TurnEnd::MaxTurns(max)));
    }
    if talk.is_main() && !count.compaction_failed {
        // What failed once is tried again in the next turn, not before each call.
        count.compaction_failed = !talk.compact_if_full().await?;
    }
    count.api_calls += 1;
    match talk.call_api(count).await? {
        ApiCallOutcome::Interrupted { tool_runs: works, closing_events: closing } => {
            let broke_tools = !works.is_empty();
            let tail = ContinuationPoint::from_runs(&works);
            cancel_and_record_results(talk, works, tail, count).await?;
            record_interrupt(talk, broke_tools, count).await?;
            closing.into_iter().for_each(|line| talk.session.output.emit(line));
            Ok(TurnStep::End(if broke_tools { TurnEnd::InterruptedTools } else { TurnEnd::InterruptedStreaming }))
        }
        ApiCallOutcome::Failed(error) => {
            if error.is_prompt_too_long()
                && !std::mem::replace(&mut count.compacted_on_overflow, true)
                && talk.compact_on_overflow().await?
            {
                // Only answers count.
                count.api_calls -= 1;
                return Ok(TurnStep::CallApi);
            }
            failure::handle_api_error(talk, &error).await.map(|failure| TurnStep::End(TurnEnd::Failed(failure)))
        }
        ApiCallOutcome::Answered { tool_runs: works, .. } if exceeded_budget(talk).is_some() && !works.is_empty() => {
            let tail = ContinuationPoint::from_runs(&works);
            cancel_and_record_results(talk, works, tail, count).await?;
            Ok(TurnStep::End(TurnEnd::BudgetExceeded(exceeded_budget(talk).unwrap_or_default())))
        }
        ApiCallOutcome::Answered { tool_runs: works, .. } if !works.is_empty() => Ok(TurnStep::RunTools(works)),
        ApiCallOutcome::Answered { message, .. } => Ok(TurnStep::Answered(message)),
    }
}

async fn run_tools<'a>(
    talk: &'a AgentContext<'a>,
    mut works: ToolRuns<'a>,
    count: &mut TurnState,
) -> Result<TurnStep<'a>, AppendError> {
    works.mark_answer_complete();
    let mut calls = Vec::new();
    let mut stop = None;
    let mut tail = ContinuationPoint::from_runs(&works);
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
            cancel_and_record_results(talk, works, tail, count).await?;
            record_interrupt(talk, true, count).await?;
            return Ok(TurnStep::End(TurnEnd::InterruptedTools));
        };
        record_result(talk, &done, count).await?;
        tail.result_recorded(talk, &done);
        if done.non_execution.as_ref().is_some_and(|refused| refused.interrupt) {
            cancel_and_record_results(talk, works, tail, count).await?;
            record_interrupt(talk, true, count).await?;
            return Ok(TurnStep::End(TurnEnd::InterruptedTools));
        }
        calls.push(done.to_hook_call());
        stop = stop.or(done.stop_reason);
    }
    tail.apply(talk)?;
    if talk.session.hooks.has_hooks_for(PostToolBatch::NAME) {
        let input = PostToolBatch { tool_calls: calls, base: talk.hook_base(), ..PostToolBatch::default() };
        let effects = talk.session.run_hooks(input, None, None, &talk.cancel).await;
        stop = stop.or(effects.stop_reason);
        talk.record(effects.attachments).await?;
    }
    if let Some(answer) = talk.structured_output.as_ref().and_then(|form| form.take_output()) {
        return Ok(TurnStep::End(TurnEnd::StructuredOutput(answer)));
    }
    if count.structured_output_errors >= MAX_STRUCTURED_OUTPUT_ERRORS {
        return Ok(TurnStep::End(TurnEnd::NoStructuredOutput));
    }
    if stop.is_none() {
        talk.record(announce::changed_file_attachments(talk)).await?;
    }
    if talk.is_main() && stop.is_none() {
        talk.absorb_queued().await?;
    }
    Ok(stop.map_or(TurnStep::CallApi, |why| TurnStep::End(TurnEnd::StoppedByHook(why))))
}

/// The model has nothing more to do: unless somebody has, the turn ends.
async fn handle_answer<'a>(
    talk: &'a AgentContext<'a>,
    message: &Message,
    count: &mut TurnState,
) -> Result<TurnStep<'a>, AppendError> {
    let stop_reason = message.stop_reason.get().cloned();
    if stop_reason == Some(StopReason::MaxTokens) && count.continuations < MAX_CONTINUATIONS {
        count.continuations += 1;
        add_meta_prompt(talk, CONTINUE_PROMPT, count).await?;
        return Ok(TurnStep::CallApi);
    }
    if stop_reason == Some(StopReason::PauseTurn) {
        // Its tools on the server take longer than one call: it goes on from where it is.
        return Ok(TurnStep::CallApi);
    }
    if stop_reason == Some(StopReason::Refusal) {
        return Ok(failure::handle_refusal(talk, count)
            .await?
            .map_or(TurnStep::CallApi, |failure| TurnStep::End(TurnEnd::Failed(failure))));
    }
    if talk.structured_output.is_some() && !count.structured_output_reminded {
        count.structured_output_reminded = true;
        add_meta_prompt(talk, STRUCTURED_OUTPUT_PROMPT, count).await?;
        return Ok(TurnStep::CallApi);
    }
    let text = last_text(message);
    if stop_hooks::run_stop_hooks(talk, &text, count).await? {
        return Ok(TurnStep::CallApi);
    }
    if let Some(max) = exceeded_budget(talk) {
        return Ok(TurnStep::End(TurnEnd::BudgetExceeded(max)));
    }
    Ok(TurnStep::End(TurnEnd::Answered(text)))
}

/// Says something in the person's voice that the person did not say.
async fn add_meta_prompt(talk: &AgentContext<'_>, text: &str, count: &mut TurnState) -> Result<(), AppendError> {
    count.user_entries += 1;
    talk.add_user_entry(factory::meta_user(text, &mut Clock), None).await
}

async fn record_interrupt(talk: &AgentContext<'_>, tools: bool, count: &mut TurnState) -> Result<(), AppendError> {
    let text = if tools { synthetic::INTERRUPT_FOR_TOOL_USE } else { synthetic::INTERRUPT };
    count.user_entries += 1;
    talk.add_user_entry(factory::user(vec![Block::new_text(text)], &mut Clock), None).await
}

/// Where the conversation goes on after the tool results of an answer. They are recorded
/// as they come, each under its own call; what follows hangs on the result of the answer's
/// last call, so that whoever walks up the parents passes every call.
struct ContinuationPoint {
    last_tool_use_id: Option<ToolUseId>,
    /// The last entry recorded for that call.
    last_entry_uuid: Option<Uuid>,
}

impl ContinuationPoint {
    fn from_runs(works: &ToolRuns<'_>) -> Self {
        Self { last_tool_use_id: works.last_id().cloned(), last_entry_uuid: None }
    }

    /// A call's result has just been recorded.
    fn result_recorded(&mut self, talk: &AgentContext<'_>, done: &ToolOutcome) {
        if self.last_tool_use_id.as_ref() == Some(&done.call.id) {
            self.last_entry_uuid = talk.log().leaf_uuid().cloned();
        }
    }

    fn apply(self, talk: &AgentContext<'_>) -> Result<(), AppendError> {
        self.last_entry_uuid.map_or(Ok(()), |entry| talk.log().continue_from(entry))
    }
}

/// Stops the calls that still run and records their results.
async fn cancel_and_record_results(
    talk: &AgentContext<'_>,
    works: ToolRuns<'_>,
    mut tail: ContinuationPoint,
    count: &mut TurnState,
) -> Result<(), AppendError> {
    let all = works.cancel_all().await;
    let asking = talk.awaiting_permission.lock().clone();
    for done in &all {
        if asking.contains(&done.call.id) {
            count.denials.push(done.denial());
        }
        count.user_entries += 1;
        talk.record_tool_result(done).await?;
        tail.result_recorded(talk, done);
    }
    tail.apply(talk)
}

async fn record_result(talk: &AgentContext<'_>, done: &ToolOutcome, count: &mut TurnState) -> Result<(), AppendError> {
    count.user_entries += 1;
    count.tool_calls += 1;
    if done.non_execution.is_some() {
        count.denials.push(done.denial());
    }
    if done.call.name == crate::structured_output::TOOL_NAME && done.is_error() {
        count.structured_output_errors += 1;
    }
    talk.record_tool_result(done).await
}

fn exceeded_budget(talk: &AgentContext<'_>) -> Option<f64> {
    talk.session.options.max_budget_usd.filter(|max| talk.session.usage().cost_usd() >= *max)
}
