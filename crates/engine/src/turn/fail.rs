//! Calls that fail for good, and models that refuse.

use quipu_api::ApiError;
use quipu_message::system::{Informational, ModelRefusal, System};
use quipu_message::turn::{Assistant, ErrorKind};
use quipu_message::{Entry, Extra, Maybe, Spelling, factory};
use quipu_transcript::AppendError;

use super::{Count, Failure, nudge};
use crate::clock::Clock;
use crate::talk::Talk;

/// What the model is told after its safeguards stopped it once.
const REFUSED: &str = "The answer above was stopped by a safeguard. If the request can be met in an acceptable way, \
                       do that; if not, say so plainly and name what you can do instead.";

/// The model's safeguards stopped it: once it is told so, then the turn has failed.
pub(super) async fn refused(talk: &Talk<'_>, count: &mut Count) -> Result<Option<Failure>, AppendError> {
    count.refusals += 1;
    if count.refusals == 1 {
        let notice = Informational {
            content: Maybe::Value(format!("{} was stopped by a safeguard; it is told so and goes on once", talk.model)),
            level: Maybe::Value("notice".to_owned()),
            ..Informational::default()
        };
        let said = Informational { envelope: talk.session.output.envelope(), ..notice.clone() };
        talk.session.say(System::Informational(Box::new(said)));
        let kept = Informational { is_meta: Maybe::Value(false), ..notice };
        talk.record_system(System::Informational(Box::new(kept))).await?;
        nudge(talk, REFUSED, count).await?;
        return Ok(None);
    }
    let line = ModelRefusal {
        content: Maybe::Value(String::new()),
        level: Maybe::Value("warning".to_owned()),
        original_model: Maybe::Value(talk.model.clone()),
        refused_user_message_uuid: talk.prompt.clone().into(),
        is_meta: Maybe::Value(false),
        ..ModelRefusal::default()
    };
    let said = ModelRefusal {
        level: Maybe::Absent,
        is_meta: Maybe::Absent,
        envelope: talk.session.output.envelope(),
        extra: Extra::spelled(Spelling::STREAM),
        ..line.clone()
    };
    talk.session.say(System::ModelRefusal(Box::new(said)));
    talk.record_system(System::ModelRefusal(Box::new(line))).await?;
    let text = format!("API Error: {} refused to answer this. Ask in another way, or ask another model.", talk.model);
    let failure = Failure { text, status: None, kind: None, stop_reason: "refusal", terminal_reason: "api_error" };
    show(talk, &failure, ErrorKind::InvalidRequest).await?;
    Ok(Some(failure))
}

/// A call failed for good: that is shown.
pub(super) async fn failed(talk: &Talk<'_>, error: &ApiError) -> Result<Failure, AppendError> {
    let failure = Failure {
        text: crate::ending::failure_text(error, &talk.current_model()),
        status: error.status(),
        kind: error.api_type().map(str::to_owned),
        stop_reason: "stop_sequence",
        terminal_reason: if error.is_too_long() { "prompt_too_long" } else { "api_error" },
    };
    show(talk, &failure, error.kind()).await?;
    Ok(failure)
}

/// Shows a failed call as a message no model wrote.
async fn show(talk: &Talk<'_>, failure: &Failure, kind: ErrorKind) -> Result<(), AppendError> {
    let mut line = factory::api_error(failure.text.clone(), kind, &mut Clock);
    line.message.stop_reason = Maybe::Value(failure.stop_reason.to_owned());
    line.api_error_status = failure.status.map(serde_json::Number::from).into();
    line.api_error_type = failure.kind.clone().into();
    let envelope = talk.envelope(line.envelope.uuid.get().cloned(), line.envelope.timestamp.get().cloned());
    let said = Assistant { envelope, extra: Extra::spelled(Spelling::STREAM), ..line.clone() };
    talk.record(vec![Entry::Assistant(Box::new(line))]).await?;
    if talk.is_main() {
        talk.session.output.say(Entry::Assistant(Box::new(said)));
    }
    Ok(())
}
