//! The `result` line at the end of a turn.

use std::time::Instant;

use quipu_message::stream::{TurnOutcome, TurnResult};
use quipu_message::values::{CommandState, SessionActivity};
use quipu_message::{Entry, Json, Maybe, factory};
use quipu_transcript::AppendError;

use crate::agent_context::AgentContext;
use crate::output::OutputStream;
use crate::session::Session;
use crate::turn_state::{TurnEnd, TurnState};
use crate::usage::millis_number;

/// The `result` line of a turn.
pub(crate) fn build_result(ctx: &AgentContext<'_>, end: &TurnEnd, turn: &TurnState) -> TurnResult {
    let session = ctx.session;
    let mut result = TurnResult {
        num_turns: Maybe::Value(turn.user_entries + 1),
        stop_reason: turn.stop_reason.clone().map_or(Maybe::Null, Maybe::Value),
        usage: Maybe::Value(turn.usage.clone().unwrap_or_else(factory::zero_usage)),
        permission_denials: Maybe::Value(Json::from_serialize(&turn.denials)),
        ttft_ms: turn.first_token_at.map(|first| millis_number(first - turn.started_at)).into(),
        user_message_uuid: ctx.prompt_uuid.clone().into(),
        user_message_uuids: ctx.prompt_uuid.clone().map(|uuid| vec![uuid]).into(),
        ..base_result(session, turn.started_at)
    };
    apply_end(&mut result, end);
    result
}

/// The `result` line of a local command.
pub(crate) fn local_command_result(session: &Session, command: &str, text: &str, started_at: Instant) -> TurnResult {
    TurnResult {
        num_turns: Maybe::Value(0),
        stop_reason: Maybe::Null,
        result: Maybe::Value(text.to_owned()),
        local_command: Maybe::Value(command.to_owned()),
        duration_api_ms: Maybe::Value(0.into()),
        usage: Maybe::Value(factory::zero_usage()),
        permission_denials: Maybe::Value(Json::from_serialize(&[(); 0])),
        ..base_result(session, started_at)
    }
}

/// The `result` line of a session that could not start.
pub(crate) fn startup_error_result(output: &OutputStream, error: &str) -> TurnResult {
    TurnResult {
        subtype: TurnOutcome::DuringExecution,
        is_error: true,
        duration_ms: Maybe::Value(0.into()),
        duration_api_ms: Maybe::Value(0.into()),
        num_turns: Maybe::Value(0),
        stop_reason: Maybe::Null,
        total_cost_usd: Maybe::Value(0.into()),
        usage: Maybe::Value(factory::zero_usage()),
        permission_denials: Maybe::Value(Json::from_serialize(&[(); 0])),
        errors: Maybe::Value(Json::from_serialize(&[error])),
        result_index: Maybe::Value(0),
        envelope: output.envelope(),
        ..TurnResult::default()
    }
}

/// Emits a result, or holds it back while background subagents run. An error is emitted at once.
pub(crate) fn emit_or_hold(session: &Session, result: TurnResult) {
    let failed = result.is_error;
    session.held_results().push(result);
    if failed || !session.queue.is_expecting_subagents() {
        emit_held(session);
    }
}

/// Emits the results that were held back, with the cost of now.
pub(crate) fn emit_held(session: &Session) {
    let held = std::mem::take(&mut *session.held_results());
    if held.is_empty() {
        return;
    }
    // The usage since then counts too.
    let (total_cost_usd, model_usage) = {
        let tracker = session.usage();
        (Maybe::Value(tracker.cost_number()), Maybe::Value(tracker.usage_by_model().clone()))
    };
    let told =
        |result| TurnResult { total_cost_usd: total_cost_usd.clone(), model_usage: model_usage.clone(), ..result };
    let mut lines: Vec<Entry> = held.into_iter().map(|result| Entry::Result(Box::new(told(result)))).collect();
    // Emitted together, so that nothing that the host sends in response comes between them.
    let answered = session.activity.take_answered_if_over();
    lines.extend(answered.map(|uuid| session.lifecycle_entry(&uuid, CommandState::Completed)));
    if !session.activity.is_turn_running() {
        lines.extend(session.change_activity(SessionActivity::Idle));
    }
    session.output.emit_all(lines);
}

/// The fields that every result of a session has: time, cost, ids.
fn base_result(session: &Session, started_at: Instant) -> TurnResult {
    let mut tracker = session.usage();
    TurnResult {
        subtype: TurnOutcome::Success,
        is_error: false,
        duration_ms: Maybe::Value(millis_number(started_at.elapsed())),
        duration_api_ms: Maybe::Value(millis_number(tracker.api_time())),
        total_cost_usd: Maybe::Value(tracker.cost_number()),
        model_usage: Maybe::Value(tracker.usage_by_model().clone()),
        model_usage_since_last_result: Maybe::Value(tracker.take_since_last_result()),
        result_index: Maybe::Value(session.next_result_index()),
        envelope: session.output.envelope(),
        ..TurnResult::default()
    }
}

fn apply_end(result: &mut TurnResult, end: &TurnEnd) {
    result.terminal_reason = end.terminal_reason().into();
    let mut failed = |outcome: TurnOutcome, error: String| {
        (result.subtype, result.is_error) = (outcome, true);
        result.errors = Maybe::Value(Json::from_serialize(&[error]));
    };
    match end {
        TurnEnd::MaxTurns(max) => {
            failed(TurnOutcome::MaxTurns, format!("Reached maximum number of turns ({max})"));
        }
        TurnEnd::BudgetExceeded(max) => failed(TurnOutcome::MaxBudget, format!("Reached maximum budget (${max})")),
        TurnEnd::NoStructuredOutput => {
            failed(TurnOutcome::MaxStructuredOutputRetries, "No answer matched the schema".to_owned());
        }
        TurnEnd::InterruptedStreaming | TurnEnd::InterruptedTools => {
            failed(TurnOutcome::DuringExecution, "the turn was interrupted".to_owned());
        }
        TurnEnd::WriteFailed(error) => failed(TurnOutcome::DuringExecution, error_with_cause(error)),
        TurnEnd::Failed(failure) => {
            result.is_error = true;
            result.result = Maybe::Value(failure.text.clone());
            result.stop_reason = failure.stop_reason.clone().into();
            result.api_error_status = failure.status.map_or(Maybe::Null, |status| Maybe::Value(status.into()));
            result.api_error_type = failure.error_type.clone().into();
        }
        TurnEnd::Answered(text) => set_completed(result, text),
        TurnEnd::StoppedByHook(why) => set_completed(result, why),
        TurnEnd::StructuredOutput(answer) => {
            set_completed(result, answer.text());
            result.structured_output = Maybe::Value(answer.clone());
        }
    }
}

/// The text of an error and its cause.
pub(crate) fn error_with_cause(error: &AppendError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn set_completed(result: &mut TurnResult, text: &str) {
    result.result = Maybe::Value(text.to_owned());
    result.api_error_status = Maybe::Null;
}
