//! API calls that fail after all retries, and refusals of the model.

use quipu_api::ApiError;
use quipu_message::system::{Informational, ModelRefusal, System};
use quipu_message::user_assistant::{Assistant, AssistantErrorKind};
use quipu_message::values::{MessageLevel, StopReason, TerminalReason};
use quipu_message::{Entry, Extra, Maybe, Spelling, factory};
use quipu_transcript::AppendError;

use super::add_meta_prompt;
use crate::agent_context::AgentContext;
use crate::clock::Clock;
use crate::turn_state::{TurnFailure, TurnState};

/// The prompt after the first refusal.
const REFUSAL_PROMPT: &str = "The answer above was stopped by a safeguard. If the request can be met in an acceptable way, \
                       do that; if not, say so plainly and name what you can do instead.";

/// Handles a refusal: the first one is answered with a prompt, the second one fails the turn.
pub(super) async fn handle_refusal(
    ctx: &AgentContext<'_>,
    turn: &mut TurnState,
) -> Result<Option<TurnFailure>, AppendError> {
    turn.refusals += 1;
    if turn.refusals == 1 {
        let notice = Informational {
            content: Maybe::Value(format!("{} was stopped by a safeguard; it gets one more attempt", ctx.model)),
            level: MessageLevel::Notice.into(),
            ..Informational::default()
        };
        let stream_entry = Informational { envelope: ctx.session.output.envelope(), ..notice.clone() };
        ctx.session.emit_system(System::Informational(Box::new(stream_entry)));
        let kept = Informational { is_meta: Maybe::Value(false), ..notice };
        ctx.record_system(System::Informational(Box::new(kept))).await?;
        add_meta_prompt(ctx, REFUSAL_PROMPT, turn).await?;
        return Ok(None);
    }
    let line = ModelRefusal {
        content: Maybe::Value(String::new()),
        level: MessageLevel::Warning.into(),
        original_model: Maybe::Value(ctx.model.clone()),
        refused_user_message_uuid: ctx.prompt_uuid.clone().into(),
        is_meta: Maybe::Value(false),
        ..ModelRefusal::default()
    };
    let stream_entry = ModelRefusal {
        level: Maybe::Absent,
        is_meta: Maybe::Absent,
        envelope: ctx.session.output.envelope(),
        extra: Extra::with_spelling(Spelling::STREAM),
        ..line.clone()
    };
    ctx.session.emit_system(System::ModelRefusal(Box::new(stream_entry)));
    ctx.record_system(System::ModelRefusal(Box::new(line))).await?;
    let text = format!("API Error: {} refused to answer this. Ask in another way, or ask another model.", ctx.model);
    let failure = TurnFailure {
        text,
        status: None,
        error_type: None,
        stop_reason: StopReason::Refusal,
        terminal_reason: TerminalReason::ApiError,
    };
    record_failure(ctx, &failure, AssistantErrorKind::InvalidRequest).await?;
    Ok(Some(failure))
}

/// Records and emits a failed API call.
pub(super) async fn handle_api_error(ctx: &AgentContext<'_>, error: &ApiError) -> Result<TurnFailure, AppendError> {
    let failure = TurnFailure {
        text: api_error_text(error, &ctx.current_model()),
        status: error.status(),
        error_type: error.api_type().cloned(),
        stop_reason: StopReason::StopSequence,
        terminal_reason: if error.is_prompt_too_long() {
            TerminalReason::PromptTooLong
        } else {
            TerminalReason::ApiError
        },
    };
    record_failure(ctx, &failure, error.error_kind()).await?;
    Ok(failure)
}

/// Records and emits a failure as a synthetic assistant message.
async fn record_failure(
    ctx: &AgentContext<'_>,
    failure: &TurnFailure,
    kind: AssistantErrorKind,
) -> Result<(), AppendError> {
    let mut line = factory::api_error_assistant(failure.text.clone(), kind, &mut Clock);
    line.message.stop_reason = failure.stop_reason.clone().into();
    line.api_error_status = failure.status.map(serde_json::Number::from).into();
    line.api_error_type = failure.error_type.clone().into();
    let envelope = ctx.stream_envelope(line.envelope.uuid.get().cloned(), line.envelope.timestamp.get().cloned());
    let stream_entry = Assistant { envelope, extra: Extra::with_spelling(Spelling::STREAM), ..line.clone() };
    ctx.record(vec![Entry::Assistant(Box::new(line))]).await?;
    if ctx.is_main() {
        ctx.session.output.emit(Entry::Assistant(Box::new(stream_entry)));
    }
    Ok(())
}

/// The text for a failed API call, with advice where there is some.
fn api_error_text(error: &ApiError, model: &str) -> String {
    match error {
        ApiError::Status { status: 401, .. } => {
            "Invalid API key · check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN".to_owned()
        }
        ApiError::NoKey { reason } => format!("Not logged in · {reason}"),
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
