//! The hooks that run before a turn ends.

use quipu_message::hook::{HookEvent, Stop, SubagentStop};
use quipu_message::system::{StopHookSummary, System, stream_only};
use quipu_message::values::MessageLevel;
use quipu_message::{Json, Maybe};
use quipu_transcript::AppendError;
use serde::Serialize;

use super::add_meta_prompt;
use crate::agent_context::AgentContext;
use crate::hooks::{HookOutcome, HookRun};
use crate::output::OutputStream;
use crate::turn_state::TurnState;

/// Runs the hooks of the end of a turn. Returns whether one of them keeps the turn going; its
/// reason is then recorded for the model.
pub(super) async fn run_stop_hooks(
    talk: &AgentContext<'_>,
    text: &str,
    count: &mut TurnState,
) -> Result<bool, AppendError> {
    let event = if talk.is_main() { Stop::NAME } else { SubagentStop::NAME };
    if !talk.session.hooks.has_hooks_for(event) {
        return Ok(false);
    }
    let stop = Stop {
        stop_hook_active: Maybe::Value(count.stop_hook_active),
        last_assistant_message: Maybe::Value(text.to_owned()),
        base: talk.hook_base(),
        ..Stop::default()
    };
    let effects = match talk.subagent() {
        None => talk.session.run_hooks(stop, None, None, &talk.cancel).await,
        Some(sub) => {
            let input = SubagentStop {
                stop_hook_active: stop.stop_hook_active,
                last_assistant_message: stop.last_assistant_message,
                agent_transcript_path: Maybe::Value(talk.log().path().display().to_string()),
                base: stop.base,
                ..SubagentStop::default()
            };
            talk.session.run_hooks(input, Some(&sub.agent_type), None, &talk.cancel).await
        }
    };
    let blocked = effects.block_reasons.first().cloned().filter(|_| effects.stop_reason.is_none());
    if let Some(why) = &blocked {
        count.stop_hook_active = true;
        add_meta_prompt(talk, &format!("Stop hook feedback:\n{why}"), count).await?;
    }
    if talk.is_main() {
        talk.record(effects.attachments.clone()).await?;
        talk.record_system(stop_hook_summary(&effects)).await?;
        if blocked.is_some() {
            talk.session.emit_system(stop_hook_notification(&talk.session.output));
        }
    }
    Ok(blocked.is_some())
}

/// What a hook of the turn's end was, for the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StopHookInfo<'a> {
    command: &'a str,
    duration_ms: u128,
}

/// The line that keeps which hooks ran when the turn ended.
fn stop_hook_summary(effects: &HookOutcome) -> System {
    let info = |ran: &HookRun| {
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
        level: MessageLevel::Suggestion.into(),
        tool_use_id: Maybe::Value(effects.tool_use_id().clone()),
        ..StopHookSummary::default()
    }))
}

/// Tells the person that a hook kept the turn going.
fn stop_hook_notification(output: &OutputStream) -> System {
    System::Notification(Box::new(stream_only::SystemNotification {
        key: Maybe::Value("stop-hook-error".to_owned()),
        text: Maybe::Value("A stop hook kept the turn going".to_owned()),
        priority: Maybe::Value("immediate".to_owned()),
        envelope: output.envelope(),
        ..stream_only::SystemNotification::default()
    }))
}
