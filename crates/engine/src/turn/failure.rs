//! Calls that fail for good, and models that refuse.

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

/// What the model is told after its safeguards stopped it once.
const REFUSAL_PROMPT: &str = "The answer above was stopped by a safeguard. If the request can be met in an acceptable way, \
                       do that; if not, say so plainly and name what you can do instead.";

/// The model's safeguards stopped it: once it is told so, then the turn has failed.
pub(super) async fn handle_refusal(
    talk: &AgentContext<'_>,
    count: &mut TurnState,
) -> Result<Option<TurnFailure>, AppendError> {
    count.refusals += 1;
    if count.refusals == 1 {
        let notice = Informational {
            content: Maybe::Value(format!("{} was stopped by a safeguard; it is told so and goes on once", talk.model)),
            level: MessageLevel::Notice.into(),
            ..Informational::default()
        };
        let said = Informational { envelope: talk.session.output.envelope(), ..notice.clone() };
        talk.session.emit_system(System::Informational(Box::new(said)));
        let kept = Informational { is_meta: Maybe::Value(false), ..notice };
        talk.record_system(System::Informational(Box::new(kept))).await?;
        add_meta_prompt(talk, REFUSAL_PROMPT, count).await?;
        return Ok(None);
    }
    let line = ModelRefusal {
        content: Maybe::Value(String::new()),
        level: MessageLevel::Warning.into(),
        original_model: Maybe::Value(talk.model.clone()),
        refused_user_message_uuid: talk.prompt_uuid.clone().into(),
        is_meta: Maybe::Value(false),
        ..ModelRefusal::default()
    };
    let said = ModelRefusal {
        level: Maybe::Absent,
        is_meta: Maybe::Absent,
        envelope: talk.session.output.envelope(),
        extra: Extra::with_spelling(Spelling::STREAM),
        ..line.clone()
    };
    talk.session.emit_system(System::ModelRefusal(Box::new(said)));
    talk.record_system(System::ModelRefusal(Box::new(line))).await?;
    let text = format!("API Error: {} refused to answer this. Ask in another way, or ask another model.", talk.model);
    let failure = TurnFailure {
        text,
        status: None,
        error_type: None,
        stop_reason: StopReason::Refusal,
        terminal_reason: TerminalReason::ApiError,
    };
    record_failure(talk, &failure, AssistantErrorKind::InvalidRequest).await?;
    Ok(Some(failure))
}

/// A call failed for good: that is shown.
pub(super) async fn handle_api_error(talk: &AgentContext<'_>, error: &ApiError) -> Result<TurnFailure, AppendError> {
    let failure = TurnFailure {
        text: api_error_text(error, &talk.current_model()),
        status: error.status(),
        error_type: error.api_type().map(str::to_owned),
        stop_reason: StopReason::StopSequence,
        terminal_reason: if error.is_prompt_too_long() {
            TerminalReason::PromptTooLong
        } else {
            TerminalReason::ApiError
        },
    };
    record_failure(talk, &failure, error.error_kind()).await?;
    Ok(failure)
}

/// Shows a failed call as a message no model wrote.
async fn record_failure(
    talk: &AgentContext<'_>,
    failure: &TurnFailure,
    kind: AssistantErrorKind,
) -> Result<(), AppendError> {
    let mut line = factory::api_error_assistant(failure.text.clone(), kind, &mut Clock);
    line.message.stop_reason = failure.stop_reason.clone().into();
    line.api_error_status = failure.status.map(serde_json::Number::from).into();
    line.api_error_type = failure.error_type.clone().into();
    let envelope = talk.stream_envelope(line.envelope.uuid.get().cloned(), line.envelope.timestamp.get().cloned());
    let said = Assistant { envelope, extra: Extra::with_spelling(Spelling::STREAM), ..line.clone() };
    talk.record(vec![Entry::Assistant(Box::new(line))]).await?;
    if talk.is_main() {
        talk.session.output.emit(Entry::Assistant(Box::new(said)));
    }
    Ok(())
}

/// A failed call of a model in words that say what to do next.
fn api_error_text(error: &ApiError, model: &str) -> String {
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
