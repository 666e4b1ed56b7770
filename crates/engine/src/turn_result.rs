//! How a turn's end is told: the `result` line, and the words for failures.

use std::time::Instant;

use quipu_api::ApiError;
use quipu_message::stream::{TurnOutcome, TurnResult};
use quipu_message::system::{StopHookSummary, System, stream_only};
use quipu_message::user_assistant::AssistantErrorKind;
use quipu_message::{Entry, Json, Maybe, factory};
use quipu_transcript::AppendError;
use serde::Serialize;

use crate::agent_context::AgentContext;
use crate::hooks::HookOutcome;
use crate::output::OutputStream;
use crate::session::Session;
use crate::turn::{TurnEnd, TurnState};
use crate::usage::millis_number;

/// Makes the `result` line of a turn.
pub(crate) fn build_result(talk: &AgentContext<'_>, end: &TurnEnd, count: &TurnState) -> TurnResult {
    let session = talk.session;
    let mut result = TurnResult {
        num_turns: Maybe::Value(count.user_entries + 1),
        stop_reason: count.stop_reason.clone().map_or(Maybe::Null, Maybe::Value),
        usage: Maybe::Value(count.usage.clone().unwrap_or_else(factory::zero_usage)),
        permission_denials: Maybe::Value(Json::from_serialize(&count.denials)),
        ttft_ms: count.first_token_at.map(|first| millis_number(first - count.started_at)).into(),
        user_message_uuid: talk.prompt_uuid.clone().into(),
        user_message_uuids: talk.prompt_uuid.clone().map(|uuid| vec![uuid]).into(),
        ..base_result(session, count.started_at)
    };
    apply_end(&mut result, end);
    result
}

/// The `result` line of a local command.
pub(crate) fn local_command_result(session: &Session, command: &str, text: &str, began: Instant) -> TurnResult {
    TurnResult {
        num_turns: Maybe::Value(0),
        stop_reason: Maybe::Null,
        result: Maybe::Value(text.to_owned()),
        local_command: Maybe::Value(command.to_owned()),
        duration_api_ms: Maybe::Value(0.into()),
        usage: Maybe::Value(factory::zero_usage()),
        permission_denials: Maybe::Value(Json::from_serialize(&[(); 0])),
        ..base_result(session, began)
    }
}

/// The `result` line of a session that could not begin.
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

/// Says a result, or holds it back while subagents work in the background.
pub(crate) fn emit_or_hold(session: &Session, result: TurnResult) {
    let failed = result.is_error;
    session.held_results().push(result);
    if failed || !session.queue.is_expecting_subagents() {
        emit_held(session);
    }
}

/// Says the results that were held back.
pub(crate) fn emit_held(session: &Session) {
    let held = std::mem::take(&mut *session.held_results());
    if held.is_empty() {
        return;
    }
    // What was used meanwhile counts too.
    let (total_cost_usd, model_usage) = {
        let ledger = session.usage();
        (Maybe::Value(ledger.cost_number()), Maybe::Value(ledger.usage_by_model().clone()))
    };
    let told =
        |result| TurnResult { total_cost_usd: total_cost_usd.clone(), model_usage: model_usage.clone(), ..result };
    let mut lines: Vec<Entry> = held.into_iter().map(|result| Entry::Result(Box::new(told(result)))).collect();
    // A host that answers a result at once finds nothing of its own between the two.
    let answered = {
        let mut state = session.state();
        if state.turn_cancel.is_none() { state.answering_uuid.take() } else { None }
    };
    lines.extend(answered.map(|uuid| crate::agent::lifecycle_entry(session, &uuid, "completed")));
    session.output.emit_all(lines);
}

/// What every result of a session says: time, money, ids.
fn base_result(session: &Session, began: Instant) -> TurnResult {
    let mut ledger = session.usage();
    TurnResult {
        subtype: TurnOutcome::Success,
        is_error: false,
        duration_ms: Maybe::Value(millis_number(began.elapsed())),
        duration_api_ms: Maybe::Value(millis_number(ledger.api_time())),
        total_cost_usd: Maybe::Value(ledger.cost_number()),
        model_usage: Maybe::Value(ledger.usage_by_model().clone()),
        model_usage_since_last_result: Maybe::Value(ledger.take_since_last_result()),
        result_index: Maybe::Value(session.next_result_index()),
        envelope: session.output.envelope(),
        ..TurnResult::default()
    }
}

fn apply_end(result: &mut TurnResult, end: &TurnEnd) {
    let mut failed = |outcome: TurnOutcome, reason: &str, error: String| {
        (result.subtype, result.is_error) = (outcome, true);
        result.terminal_reason = Maybe::Value(reason.to_owned());
        result.errors = Maybe::Value(Json::from_serialize(&[error]));
    };
    match end {
        TurnEnd::MaxTurns(max) => {
            failed(TurnOutcome::MaxTurns, "max_turns", format!("Reached maximum number of turns ({max})"));
        }
        TurnEnd::BudgetExceeded(max) => {
            failed(TurnOutcome::MaxBudget, "budget_exhausted", format!("Reached maximum budget (${max})"));
        }
        TurnEnd::NoStructuredOutput => {
            let error = "The answer never fitted the schema".to_owned();
            failed(TurnOutcome::MaxStructuredOutputRetries, "structured_output_retries", error);
        }
        TurnEnd::InterruptedStreaming | TurnEnd::InterruptedTools => {
            let streaming = matches!(end, TurnEnd::InterruptedStreaming);
            let reason = if streaming { "aborted_streaming" } else { "aborted_tools" };
            failed(TurnOutcome::DuringExecution, reason, "the turn was interrupted".to_owned());
        }
        TurnEnd::WriteFailed(error) => {
            failed(TurnOutcome::DuringExecution, "session_file", error_with_cause(error));
        }
        TurnEnd::Failed(failure) => {
            result.is_error = true;
            result.result = Maybe::Value(failure.text.clone());
            result.stop_reason = Maybe::Value(failure.stop_reason.to_owned());
            result.terminal_reason = Maybe::Value(failure.terminal_reason.to_owned());
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

/// An error with its cause.
pub(crate) fn error_with_cause(error: &AppendError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn set_completed(result: &mut TurnResult, text: &str) {
    result.result = Maybe::Value(text.to_owned());
    result.terminal_reason = Maybe::Value("completed".to_owned());
    result.api_error_status = Maybe::Null;
}

/// A failed call of a model in words that say what to do next.
pub(crate) fn api_error_text(error: &ApiError, model: &str) -> String {
    match error {
        ApiError::Status { status: 401, .. } => {
            "Invalid API key · check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN".to_owned()
        }
        ApiError::Status { status: 403, .. } => format!("Failed to authenticate. API Error: {error}"),
        error if error.error_kind() == AssistantErrorKind::ModelNotFound => {
            format!(
                "The model {model} does not exist, or this key may not use it. Choose another with --model. API Error: {error}"
            )
        }
        error if error.is_prompt_too_long() => {
            "Prompt is too long. Begin a new session, or go back with --resume-session-at.".to_owned()
        }
        error if error.is_out_of_credit() => "Credit balance is too low".to_owned(),
        error if error.is_overloaded() => {
            format!("API Error: {error}. The API has too much to do; this usually passes, so try again in a moment.")
        }
        ApiError::Status { status: 500.., .. } => {
            format!("API Error: {error}. The server failed; this usually passes, so try again in a moment.")
        }
        error => format!("API Error: {error}"),
    }
}

/// What a hook of the turn's end was, for the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StopHookInfo<'a> {
    command: &'a str,
    duration_ms: u128,
}

/// The line that keeps which hooks ran when the turn ended.
pub(crate) fn stop_hook_summary(effects: &HookOutcome) -> System {
    let info = |ran: &crate::hooks::HookRun| {
        Json::from_serialize(&StopHookInfo { command: &ran.command, duration_ms: ran.duration.as_millis() })
    };
    let errors: Vec<&String> = effects.block_reasons.iter().collect();
    System::StopHookSummary(Box::new(StopHookSummary {
        hook_count: Maybe::Value(effects.runs.len() as u64),
        hook_infos: Maybe::Value(Json::from_serialize(&effects.runs.iter().map(info).collect::<Vec<_>>())),
        has_output: Maybe::Value(!errors.is_empty()),
        hook_errors: Maybe::Value(Json::from_serialize(&errors)),
        prevented_continuation: Maybe::Value(effects.stop_reason.is_some()),
        stop_reason: Maybe::Value(effects.stop_reason.clone().unwrap_or_default()),
        level: Maybe::Value("suggestion".to_owned()),
        tool_use_id: Maybe::Value(effects.tool_use_id().clone()),
        ..StopHookSummary::default()
    }))
}

/// Tells the person that a hook kept the turn going.
pub(crate) fn stop_hook_notification(output: &OutputStream) -> System {
    System::Notification(Box::new(stream_only::SystemNotification {
        key: Maybe::Value("stop-hook-error".to_owned()),
        text: Maybe::Value("A stop hook kept the turn going".to_owned()),
        priority: Maybe::Value("immediate".to_owned()),
        envelope: output.envelope(),
        ..stream_only::SystemNotification::default()
    }))
}
