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
    ctx: &AgentContext<'_>,
    text: &str,
    turn: &mut TurnState,
) -> Result<bool, AppendError> {
    let event = if ctx.is_main() { Stop::NAME } else { SubagentStop::NAME };
    if !ctx.session.hooks.has_hooks_for(event) {
        return Ok(false);
    }
    let stop = Stop {
        stop_hook_active: Maybe::Value(turn.stop_hook_active),
        last_assistant_message: Maybe::Value(text.to_owned()),
        base: ctx.hook_base(),
        ..Stop::default()
    };
    let hook_outcome = match ctx.subagent() {
        None => ctx.session.run_hooks(stop, None, None, &ctx.cancel).await,
        Some(subagent) => {
            let input = SubagentStop {
                stop_hook_active: stop.stop_hook_active,
                last_assistant_message: stop.last_assistant_message,
                agent_transcript_path: Maybe::Value(ctx.log().path().display().to_string()),
                base: stop.base,
                ..SubagentStop::default()
            };
            ctx.session.run_hooks(input, Some(&subagent.agent_type), None, &ctx.cancel).await
        }
    };
    let blocked = hook_outcome.block_reasons.first().cloned().filter(|_| hook_outcome.stop_reason.is_none());
    if let Some(why) = &blocked {
        turn.stop_hook_active = true;
        add_meta_prompt(ctx, &format!("Stop hook feedback:\n{why}"), turn).await?;
    }
    if ctx.is_main() {
        ctx.record(hook_outcome.attachments.clone()).await?;
        ctx.record_system(stop_hook_summary(&hook_outcome)).await?;
        if blocked.is_some() {
            ctx.session.emit_system(stop_hook_notification(&ctx.session.output));
        }
    }
    Ok(blocked.is_some())
}

/// One stop hook in the summary.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StopHookInfo<'a> {
    command: &'a str,
    duration_ms: u128,
}

/// The entry that lists the stop hooks of a turn.
fn stop_hook_summary(hook_outcome: &HookOutcome) -> System {
    let info = |ran: &HookRun| {
        Json::from_serialize(&StopHookInfo { command: &ran.command, duration_ms: ran.duration.as_millis() })
    };
    let errors: Vec<&String> = hook_outcome.block_reasons.iter().collect();
    System::StopHookSummary(Box::new(StopHookSummary {
        hook_count: Maybe::Value(hook_outcome.runs.len() as u64),
        hook_infos: Maybe::Value(Json::from_serialize(&hook_outcome.runs.iter().map(info).collect::<Vec<_>>())),
        has_output: Maybe::Value(!errors.is_empty()),
        hook_errors: Maybe::Value(Json::from_serialize(&errors)),
        prevented_continuation: Maybe::Value(hook_outcome.stop_reason.is_some()),
        stop_reason: Maybe::Value(hook_outcome.stop_reason.clone().unwrap_or_default()),
        level: MessageLevel::Suggestion.into(),
        tool_use_id: Maybe::Value(hook_outcome.tool_use_id().clone()),
        ..StopHookSummary::default()
    }))
}

/// The notice for the user that a stop hook continues the turn.
fn stop_hook_notification(output: &OutputStream) -> System {
    System::Notification(Box::new(stream_only::SystemNotification {
        key: Maybe::Value("stop-hook-error".to_owned()),
        text: Maybe::Value("A stop hook kept the turn going".to_owned()),
        priority: Maybe::Value("immediate".to_owned()),
        envelope: output.envelope(),
        ..stream_only::SystemNotification::default()
    }))
}
