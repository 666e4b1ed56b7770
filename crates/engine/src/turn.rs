//! A turn: everything from a prompt to its final answer.
//!
//! ```text
//!               ┌──────── tool results, reminders ────────┐
//!               ▾                                         │
//!   CallApi ── answer ──┬── with tool calls ── RunTools ──┤
//!      │                └── without ────────── Answered ──┘  stop hooks
//!      └── error, limit, interrupt ──────────────────────────▸ End
//! ```

use quipu_message::hook::{HookEvent, PostToolBatch};
use quipu_message::values::{StopReason, TerminalReason};
use quipu_message::{Block, Entry, Maybe, Message, ToolName, ToolUseId, Uuid, attachment, factory, synthetic};
use quipu_transcript::AppendError;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::api_call::ApiCallOutcome;
use crate::attachments::new_attachment;
use crate::clock::Clock;
use crate::side_calls::last_text;
use crate::spans::SpanStart;
use crate::tool_runs::{ToolOutcome, ToolRuns};
use crate::turn_state::{TurnEnd, TurnState};

mod failure;
mod stop_hooks;

/// How often an answer that reached the output limit is continued.
const MAX_CONTINUATIONS: u32 = 3;

/// How often an answer that does not match the schema is rejected.
const MAX_STRUCTURED_OUTPUT_ERRORS: u32 = 5;

/// The prompt after an answer that reached the output limit.
const CONTINUE_PROMPT: &str = "Your answer was cut off because it reached the output limit. Go on exactly where it stopped, \
                     without repeating anything and without comment; split what is left into smaller pieces.";

/// The prompt after an answer without the structured output tool.
const STRUCTURED_OUTPUT_PROMPT: &str =
    "[structured-output-enforce] This request is only done when StructuredOutput is called: call it with your answer.";

enum TurnStep<'a> {
    CallApi,
    RunTools(ToolRuns<'a>),
    Answered(Box<Message>),
    End(TurnEnd),
}

/// Runs a turn to its end. The prompt must be recorded already.
pub(crate) async fn run(ctx: &AgentContext<'_>, turn: &mut TurnState) -> TurnEnd {
    let subagent = ctx.subagent().map(|subagent| tracing::field::display(&subagent.id));
    let span = tracing::debug_span!(
        target: "quipu::turn", "turn", session = %ctx.session.identity.id(), subagent, api_calls = Empty, tool_calls = Empty, end = Empty
    );
    let start = SpanStart::now();
    let end = run_steps(ctx, turn).instrument(span.clone()).await;
    span.record("api_calls", turn.api_calls).record("tool_calls", turn.tool_calls);
    let reason = end.terminal_reason();
    span.record("end", tracing::field::display(&reason));
    ctx.send_agent_span(start, (reason != TerminalReason::Completed).then_some(reason.as_str()));
    end
}

async fn run_steps(ctx: &AgentContext<'_>, turn: &mut TurnState) -> TurnEnd {
    let mut step = TurnStep::CallApi;
    loop {
        let next = match step {
            TurnStep::CallApi => call_api(ctx, turn).await,
            TurnStep::RunTools(tool_runs) => run_tools(ctx, tool_runs, turn).await,
            TurnStep::Answered(message) => handle_answer(ctx, &message, turn).await,
            TurnStep::End(end) => return end,
        };
        step = next.unwrap_or_else(|error| TurnStep::End(TurnEnd::WriteFailed(error)));
    }
}

async fn call_api<'a>(ctx: &'a AgentContext<'a>, turn: &mut TurnState) -> Result<TurnStep<'a>, AppendError> {
    if let Some(max) = ctx.max_turns.filter(|max| turn.api_calls >= *max) {
        let line = attachment::MaxTurnsReached {
            max_turns: Maybe::Value(max),
            turn_count: Maybe::Value(turn.api_calls + 1),
            ..attachment::MaxTurnsReached::default()
        };
        let line = new_attachment(attachment::Attachment::MaxTurnsReached(Box::new(line)));
        ctx.record(vec![Entry::Attachment(Box::new(line))]).await?;
        return Ok(TurnStep::End(TurnEnd::MaxTurns(max)));
    }
    if ctx.is_main() && !turn.compaction_failed {
        // After a failure it is tried again in the next turn, not before each call.
        turn.compaction_failed = !ctx.compact_if_full().await?;
    }
    turn.api_calls += 1;
    match ctx.call_api(turn).await? {
        ApiCallOutcome::Interrupted { tool_runs, closing_events: closing } => {
            let broke_tools = !tool_runs.is_empty();
            let tail = ContinuationPoint::from_runs(&tool_runs);
            cancel_and_record_results(ctx, tool_runs, tail, turn).await?;
            record_interrupt(ctx, broke_tools, turn).await?;
            closing.into_iter().for_each(|line| ctx.session.output.emit(line));
            Ok(TurnStep::End(if broke_tools { TurnEnd::InterruptedTools } else { TurnEnd::InterruptedStreaming }))
        }
        ApiCallOutcome::Failed(error) => {
            if error.is_prompt_too_long()
                && !std::mem::replace(&mut turn.compacted_on_overflow, true)
                && ctx.compact_on_overflow().await?
            {
                // Only calls with an answer count.
                turn.api_calls -= 1;
                return Ok(TurnStep::CallApi);
            }
            failure::handle_api_error(ctx, &error).await.map(|failure| TurnStep::End(TurnEnd::Failed(failure)))
        }
        ApiCallOutcome::Answered { tool_runs, .. } if exceeded_budget(ctx).is_some() && !tool_runs.is_empty() => {
            let tail = ContinuationPoint::from_runs(&tool_runs);
            cancel_and_record_results(ctx, tool_runs, tail, turn).await?;
            Ok(TurnStep::End(TurnEnd::BudgetExceeded(exceeded_budget(ctx).unwrap_or_default())))
        }
        ApiCallOutcome::Answered { tool_runs, .. } if !tool_runs.is_empty() => Ok(TurnStep::RunTools(tool_runs)),
        ApiCallOutcome::Answered { message, .. } => Ok(TurnStep::Answered(message)),
    }
}

async fn run_tools<'a>(
    ctx: &'a AgentContext<'a>,
    mut tool_runs: ToolRuns<'a>,
    turn: &mut TurnState,
) -> Result<TurnStep<'a>, AppendError> {
    tool_runs.mark_answer_complete();
    let mut calls = Vec::new();
    let mut stop = None;
    let mut tail = ContinuationPoint::from_runs(&tool_runs);
    loop {
        let outcome = tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => None,
            outcome = tool_runs.next() => match outcome {
                Some(outcome) => Some(outcome),
                None => break,
            },
        };
        let Some(outcome) = outcome else {
            cancel_and_record_results(ctx, tool_runs, tail, turn).await?;
            record_interrupt(ctx, true, turn).await?;
            return Ok(TurnStep::End(TurnEnd::InterruptedTools));
        };
        record_result(ctx, &outcome, turn).await?;
        tail.result_recorded(ctx, &outcome);
        if outcome.non_execution.as_ref().is_some_and(|refused| refused.interrupt) {
            cancel_and_record_results(ctx, tool_runs, tail, turn).await?;
            record_interrupt(ctx, true, turn).await?;
            return Ok(TurnStep::End(TurnEnd::InterruptedTools));
        }
        calls.push(outcome.to_hook_call());
        stop = stop.or(outcome.stop_reason);
    }
    tail.apply(ctx)?;
    if ctx.session.hooks.has_hooks_for(PostToolBatch::NAME) {
        let input = PostToolBatch { tool_calls: calls, base: ctx.hook_base(), ..PostToolBatch::default() };
        let hook_outcome = ctx.session.run_hooks(input, None, None, &ctx.cancel).await;
        stop = stop.or(hook_outcome.stop_reason);
        ctx.record(hook_outcome.attachments).await?;
    }
    if let Some(answer) = ctx.structured_output.as_ref().and_then(|form| form.take_output()) {
        return Ok(TurnStep::End(TurnEnd::StructuredOutput(answer)));
    }
    if turn.structured_output_errors >= MAX_STRUCTURED_OUTPUT_ERRORS {
        return Ok(TurnStep::End(TurnEnd::NoStructuredOutput));
    }
    if stop.is_none() {
        ctx.record(announce::changed_file_attachments(ctx)).await?;
    }
    if ctx.is_main() && stop.is_none() {
        ctx.absorb_queued().await?;
    }
    Ok(stop.map_or(TurnStep::CallApi, |why| TurnStep::End(TurnEnd::StoppedByHook(why))))
}

/// Handles an answer without tool calls: ends the turn, unless the answer is incomplete, rejected by a
/// stop hook, or not in the requested form.
async fn handle_answer<'a>(
    ctx: &'a AgentContext<'a>,
    message: &Message,
    turn: &mut TurnState,
) -> Result<TurnStep<'a>, AppendError> {
    let stop_reason = message.stop_reason.get().cloned();
    if stop_reason == Some(StopReason::MaxTokens) && turn.continuations < MAX_CONTINUATIONS {
        turn.continuations += 1;
        add_meta_prompt(ctx, CONTINUE_PROMPT, turn).await?;
        return Ok(TurnStep::CallApi);
    }
    if stop_reason == Some(StopReason::PauseTurn) {
        // Its server tools take longer than one call; the next one continues them.
        return Ok(TurnStep::CallApi);
    }
    if stop_reason == Some(StopReason::Refusal) {
        return Ok(failure::handle_refusal(ctx, turn)
            .await?
            .map_or(TurnStep::CallApi, |failure| TurnStep::End(TurnEnd::Failed(failure))));
    }
    if ctx.structured_output.is_some() && !turn.structured_output_reminded {
        turn.structured_output_reminded = true;
        add_meta_prompt(ctx, STRUCTURED_OUTPUT_PROMPT, turn).await?;
        return Ok(TurnStep::CallApi);
    }
    let text = last_text(message);
    if stop_hooks::run_stop_hooks(ctx, &text, turn).await? {
        return Ok(TurnStep::CallApi);
    }
    if let Some(max) = exceeded_budget(ctx) {
        return Ok(TurnStep::End(TurnEnd::BudgetExceeded(max)));
    }
    Ok(TurnStep::End(TurnEnd::Answered(text)))
}

/// Records and emits a user message that the user did not write.
async fn add_meta_prompt(ctx: &AgentContext<'_>, text: &str, turn: &mut TurnState) -> Result<(), AppendError> {
    turn.user_entries += 1;
    ctx.add_user_entry(factory::meta_user(text, &mut Clock), None).await
}

async fn record_interrupt(ctx: &AgentContext<'_>, tools: bool, turn: &mut TurnState) -> Result<(), AppendError> {
    let text = if tools { synthetic::INTERRUPT_FOR_TOOL_USE } else { synthetic::INTERRUPT };
    turn.user_entries += 1;
    ctx.add_user_entry(factory::user(vec![Block::new_text(text)], &mut Clock), None).await
}

/// Where the conversation continues after the tool results of an answer. They are recorded in the order
/// they arrive, each under its own call. The next entry becomes a child of the result of the last call,
/// so that its chain of parents contains every call.
struct ContinuationPoint {
    last_tool_use_id: Option<ToolUseId>,
    /// UUID of the last entry recorded for that call.
    last_entry_uuid: Option<Uuid>,
}

impl ContinuationPoint {
    fn from_runs(tool_runs: &ToolRuns<'_>) -> Self {
        Self { last_tool_use_id: tool_runs.last_id().cloned(), last_entry_uuid: None }
    }

    /// Notes that the result of a call has just been recorded.
    fn result_recorded(&mut self, ctx: &AgentContext<'_>, outcome: &ToolOutcome) {
        if self.last_tool_use_id.as_ref() == Some(&outcome.call.id) {
            self.last_entry_uuid = ctx.log().leaf_uuid().cloned();
        }
    }

    fn apply(self, ctx: &AgentContext<'_>) -> Result<(), AppendError> {
        self.last_entry_uuid.map_or(Ok(()), |entry| ctx.log().continue_from(entry))
    }
}

/// Stops the running calls and records their results.
async fn cancel_and_record_results(
    ctx: &AgentContext<'_>,
    tool_runs: ToolRuns<'_>,
    mut tail: ContinuationPoint,
    turn: &mut TurnState,
) -> Result<(), AppendError> {
    let all = tool_runs.cancel_all().await;
    let asking = ctx.awaiting_permission.lock().clone();
    for outcome in &all {
        if asking.contains(&outcome.call.id) {
            turn.denials.push(outcome.denial());
        }
        turn.user_entries += 1;
        ctx.record_tool_result(outcome).await?;
        tail.result_recorded(ctx, outcome);
    }
    tail.apply(ctx)
}

async fn record_result(ctx: &AgentContext<'_>, outcome: &ToolOutcome, turn: &mut TurnState) -> Result<(), AppendError> {
    turn.user_entries += 1;
    turn.tool_calls += 1;
    if outcome.non_execution.is_some() {
        turn.denials.push(outcome.denial());
    }
    if outcome.call.name == ToolName::StructuredOutput && outcome.is_error() {
        turn.structured_output_errors += 1;
    }
    ctx.record_tool_result(outcome).await
}

fn exceeded_budget(ctx: &AgentContext<'_>) -> Option<f64> {
    ctx.session.options.max_budget_usd.filter(|max| ctx.session.usage().cost_usd() >= *max)
}
