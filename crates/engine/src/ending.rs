//! How a turn's end is told: the `result` line, and the words for failures.

use std::time::Instant;

use quipu_api::ApiError;
use quipu_message::stream::{Outcome, TurnResult};
use quipu_message::system::{StopHookSummary, System, live};
use quipu_message::turn::ErrorKind;
use quipu_message::{Entry, Json, Maybe, factory};
use quipu_transcript::AppendError;
use serde::Serialize;

use crate::hooks::Effects;
use crate::ledger::millis;
use crate::output::Output;
use crate::session::Session;
use crate::talk::Talk;
use crate::turn::{Count, End};

/// Makes the `result` line of a turn.
pub(crate) fn result(talk: &Talk<'_>, end: &End, count: &Count) -> TurnResult {
    let session = talk.session;
    let mut result = TurnResult {
        num_turns: Maybe::Value(count.replies + 1),
        stop_reason: count.stop_reason.clone().map_or(Maybe::Null, Maybe::Value),
        usage: Maybe::Value(count.usage.clone().unwrap_or_else(factory::no_usage)),
        permission_denials: Maybe::Value(Json::of(&count.denials)),
        ttft_ms: count.first_word.map(|first| millis(first - count.began)).into(),
        user_message_uuid: talk.prompt.clone().into(),
        user_message_uuids: talk.prompt.clone().map(|uuid| vec![uuid]).into(),
        ..bare(session, count.began)
    };
    tell(&mut result, end);
    result
}

/// The `result` line of a local command.
pub(crate) fn local_result(session: &Session, command: &str, text: &str, began: Instant) -> TurnResult {
    TurnResult {
        num_turns: Maybe::Value(0),
        stop_reason: Maybe::Null,
        result: Maybe::Value(text.to_owned()),
        local_command: Maybe::Value(command.to_owned()),
        duration_api_ms: Maybe::Value(0.into()),
        usage: Maybe::Value(factory::no_usage()),
        permission_denials: Maybe::Value(Json::of(&[(); 0])),
        ..bare(session, began)
    }
}

/// The `result` line of a session that could not begin.
pub(crate) fn stillborn(output: &Output, error: &str) -> TurnResult {
    TurnResult {
        subtype: Outcome::DuringExecution,
        is_error: true,
        duration_ms: Maybe::Value(0.into()),
        duration_api_ms: Maybe::Value(0.into()),
        num_turns: Maybe::Value(0),
        stop_reason: Maybe::Null,
        total_cost_usd: Maybe::Value(0.into()),
        usage: Maybe::Value(factory::no_usage()),
        permission_denials: Maybe::Value(Json::of(&[(); 0])),
        errors: Maybe::Value(Json::of(&[error])),
        result_index: Maybe::Value(0),
        envelope: output.envelope(),
        ..TurnResult::default()
    }
}

/// Says a result, or holds it back while subagents work in the background.
pub(crate) fn say(session: &Session, result: TurnResult) {
    let failed = result.is_error;
    session.held().push(result);
    if failed || !session.queue.expects() {
        say_held(session);
    }
}

/// Says the results that were held back.
pub(crate) fn say_held(session: &Session) {
    let held = std::mem::take(&mut *session.held());
    if held.is_empty() {
        return;
    }
    // What was used meanwhile counts too.
    let (total_cost_usd, model_usage) = {
        let ledger = session.ledger();
        (Maybe::Value(ledger.cost_number()), Maybe::Value(ledger.models().clone()))
    };
    let told =
        |result| TurnResult { total_cost_usd: total_cost_usd.clone(), model_usage: model_usage.clone(), ..result };
    let mut lines: Vec<Entry> = held.into_iter().map(|result| Entry::Result(Box::new(told(result)))).collect();
    // A host that answers a result at once finds nothing of its own between the two.
    let answered = {
        let mut state = session.state();
        if state.turn.is_none() { state.answering.take() } else { None }
    };
    lines.extend(answered.map(|uuid| crate::agent::lifecycle_line(session, &uuid, "completed")));
    session.output.say_all(lines);
}

/// What every result of a session says: time, money, ids.
fn bare(session: &Session, began: Instant) -> TurnResult {
    let mut ledger = session.ledger();
    TurnResult {
        subtype: Outcome::Success,
        is_error: false,
        duration_ms: Maybe::Value(millis(began.elapsed())),
        duration_api_ms: Maybe::Value(millis(ledger.api_time())),
        total_cost_usd: Maybe::Value(ledger.cost_number()),
        model_usage: Maybe::Value(ledger.models().clone()),
        model_usage_since_last_result: Maybe::Value(ledger.take_since()),
        result_index: Maybe::Value(session.next_result()),
        envelope: session.output.envelope(),
        ..TurnResult::default()
    }
}

fn tell(result: &mut TurnResult, end: &End) {
    let mut failed = |outcome: Outcome, reason: &str, error: String| {
        (result.subtype, result.is_error) = (outcome, true);
        result.terminal_reason = Maybe::Value(reason.to_owned());
        result.errors = Maybe::Value(Json::of(&[error]));
    };
    match end {
        End::MaxTurns(max) => {
            failed(Outcome::MaxTurns, "max_turns", format!("Reached maximum number of turns ({max})"));
        }
        End::Budget(max) => {
            failed(Outcome::MaxBudget, "budget_exhausted", format!("Reached maximum budget (${max})"));
        }
        End::NoForm => {
            let error = "The answer never fitted the schema".to_owned();
            failed(Outcome::MaxStructuredOutputRetries, "structured_output_retries", error);
        }
        End::BrokenStreaming | End::BrokenTools => {
            let streaming = matches!(end, End::BrokenStreaming);
            let reason = if streaming { "aborted_streaming" } else { "aborted_tools" };
            failed(Outcome::DuringExecution, reason, "the turn was interrupted".to_owned());
        }
        End::NoFile(error) => {
            failed(Outcome::DuringExecution, "session_file", in_full(error));
        }
        End::Failed(failure) => {
            result.is_error = true;
            result.result = Maybe::Value(failure.text.clone());
            result.stop_reason = Maybe::Value(failure.stop_reason.to_owned());
            result.terminal_reason = Maybe::Value(failure.terminal_reason.to_owned());
            result.api_error_status = failure.status.map_or(Maybe::Null, |status| Maybe::Value(status.into()));
            result.api_error_type = failure.kind.clone().into();
        }
        End::Answered(text) => finished(result, text),
        End::Stopped(why) => finished(result, why),
        End::Formed(answer) => {
            finished(result, answer.text());
            result.structured_output = Maybe::Value(answer.clone());
        }
    }
}

/// An error with its cause.
pub(crate) fn in_full(error: &AppendError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn finished(result: &mut TurnResult, text: &str) {
    result.result = Maybe::Value(text.to_owned());
    result.terminal_reason = Maybe::Value("completed".to_owned());
    result.api_error_status = Maybe::Null;
}

/// A failed call of a model in words that say what to do next.
pub(crate) fn failure_text(error: &ApiError, model: &str) -> String {
    match error {
        ApiError::Status { status: 401, .. } => {
            "Invalid API key · check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN".to_owned()
        }
        ApiError::Status { status: 403, .. } => format!("Failed to authenticate. API Error: {error}"),
        error if error.kind() == ErrorKind::ModelNotFound => {
            format!(
                "The model {model} does not exist, or this key may not use it. Choose another with --model. API Error: {error}"
            )
        }
        error if error.is_too_long() => {
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
struct Info<'a> {
    command: &'a str,
    duration_ms: u128,
}

/// The line that keeps which hooks ran when the turn ended.
pub(crate) fn stop_summary(effects: &Effects) -> System {
    let info = |ran: &crate::hooks::Ran| Json::of(&Info { command: &ran.command, duration_ms: ran.time.as_millis() });
    let errors: Vec<&String> = effects.blocks.iter().collect();
    System::StopHookSummary(Box::new(StopHookSummary {
        hook_count: Maybe::Value(effects.ran.len() as u64),
        hook_infos: Maybe::Value(Json::of(&effects.ran.iter().map(info).collect::<Vec<_>>())),
        has_output: Maybe::Value(!errors.is_empty()),
        hook_errors: Maybe::Value(Json::of(&errors)),
        prevented_continuation: Maybe::Value(effects.stop.is_some()),
        stop_reason: Maybe::Value(effects.stop.clone().unwrap_or_default()),
        level: Maybe::Value("suggestion".to_owned()),
        tool_use_id: Maybe::Value(effects.call().clone()),
        ..StopHookSummary::default()
    }))
}

/// Tells the person that a hook kept the turn going.
pub(crate) fn stop_notice(output: &Output) -> System {
    System::Notification(Box::new(live::Notification {
        key: Maybe::Value("stop-hook-error".to_owned()),
        text: Maybe::Value("A stop hook kept the turn going".to_owned()),
        priority: Maybe::Value("immediate".to_owned()),
        envelope: output.envelope(),
        ..live::Notification::default()
    }))
}
