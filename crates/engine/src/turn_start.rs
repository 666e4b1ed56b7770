//! The start of a turn: expands the prompt, runs its hooks, records it, and runs the turn.

use std::sync::Arc;

use quipu_message::attachment::Attachment;
use quipu_message::hook::UserPromptSubmit;
use quipu_message::stream::TurnResult;
use quipu_message::user_assistant::User;
use quipu_message::values::{CommandState, PromptSource};
use quipu_message::{Block, Entry, Maybe, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::clock::{Clock, new_id};
use crate::commands::{self, ExpandedPrompt};
use crate::hooks::HookOutcome;
use crate::init::emit_init;
use crate::input::Prompt;
use crate::main_context::main_context;
use crate::permission::RuleSource;
use crate::session::Session;
use crate::turn;
use crate::turn_result;
use crate::turn_state::{TurnEnd, TurnState};

/// Answers one prompt, from its hooks to its `result` line.
pub(crate) async fn run_prompt_turn(session: &Arc<Session>, prompt: Prompt, cancel: CancellationToken) {
    let mut turn = TurnState::new();
    session.activity.set_prompt_id(new_id().to_string());
    let expanded = match commands::expand_prompt(session, &prompt, &cancel).await {
        Ok(ExpandedPrompt::HandledLocally) => return,
        Ok(expanded) => Ok(expanded),
        Err(error) => Err(error),
    };
    let mut ctx = main_context(session, prompt.uuid.clone(), cancel);
    if let Ok(ExpandedPrompt::SavedPrompt { model: Some(model), .. }) = &expanded {
        ctx.model = model.clone();
    }
    let end = match expanded {
        Ok(expanded) => match record_prompt(&ctx, &prompt, expanded).await {
            Ok(None) => turn::run(&ctx, &mut turn).await,
            Ok(Some(end)) => end,
            Err(error) => TurnEnd::WriteFailed(error),
        },
        Err(error) => TurnEnd::WriteFailed(error),
    };
    // What a saved prompt allows, it allows for its own turn only: not for a subagent that goes on in the
    // background, nor for the turn that the end of a task starts.
    session.permissions.change_rules(|rules| rules.remove_source(RuleSource::Command));
    let result = turn_result::build_result(&ctx, &end, &turn);
    // A host may send the next prompt as soon as it reads the result; the turn must be over by then.
    let absorbed = session.activity.end_turn();
    absorbed.iter().for_each(|uuid| session.emit_lifecycle(Some(uuid), CommandState::Completed));
    turn_result::emit_or_hold(session, TurnResult { origin: prompt.origin(), ..result });
}

/// Runs the hooks of a prompt and records it. Returns the end of the turn if a hook denies the prompt.
async fn record_prompt(
    ctx: &AgentContext<'_>,
    prompt: &Prompt,
    expanded: ExpandedPrompt,
) -> Result<Option<TurnEnd>, AppendError> {
    let session = ctx.session;
    let hook_outcome = match &prompt.task_notice {
        // The end of a task is not a prompt of the user.
        Some(_) => HookOutcome::default(),
        None => {
            let input =
                UserPromptSubmit { prompt: prompt.text(), base: session.hook_base(), ..UserPromptSubmit::default() };
            session.run_hooks(input, None, None, &ctx.cancel).await
        }
    };
    let mut entries = session.activity.take_pending();
    let is_command = matches!(expanded, ExpandedPrompt::SavedPrompt { .. });
    let (mut user, mut attachments) = match expanded {
        ExpandedPrompt::Plain { attachments } => (prompt_entry(session, prompt), attachments),
        ExpandedPrompt::SavedPrompt { user, attachments, .. } => (*user, attachments),
        ExpandedPrompt::HandledLocally => return Ok(None),
    };
    user.prompt_id = session.prompt_id();
    let uuid = user.envelope.uuid.get().cloned();
    let words = Entry::User(Box::new(user.clone()));
    if let Some(why) = hook_outcome.deny_reason.or(hook_outcome.stop_reason) {
        // The model does not see a denied prompt.
        ctx.record(entries).await?;
        emit_init(ctx);
        let why = if why.is_empty() { "A hook refused this prompt".to_owned() } else { why };
        return Ok(Some(TurnEnd::StoppedByHook(why)));
    }
    if let Some(checkpoints) = &session.checkpoints
        && let Some(uuid) = &uuid
    {
        checkpoints.snapshot(uuid, &session.workspace);
    }
    entries.push(words);
    // The text of a saved prompt and mentioned files come right after the prompt.
    let is_said = |entry: &mut Entry| is_file_attachment(entry) || is_command && matches!(entry, Entry::User(_));
    entries.extend(attachments.extract_if(.., is_said));
    entries.extend(announce::due_attachments(ctx));
    entries.append(&mut attachments);
    entries.extend(hook_outcome.attachments);
    entries.extend(announce::changed_file_attachments(ctx));
    entries.extend(announce::plan_mode_attachment(session));
    entries.extend(announce::budget_attachment(session));
    entries.extend(announce::due_instructions(ctx));
    entries.extend(announce::date_attachment(ctx));
    entries.extend(announce::system_prompt_record(ctx));
    let recorded = ctx.log().record(entries)?;
    // It does not depend on the prompt, so it need not wait for the disk.
    emit_init(ctx);
    // The prompt is on disk before the API call.
    ctx.wait_until_written(recorded).await?;
    session.record_checkpoints()?;
    session.activity.count_turn();
    if session.options.replay_user_messages && prompt.task_notice.is_none() {
        ctx.emit_replay(&user);
    }
    Ok(None)
}

/// Whether an entry is a mentioned file.
fn is_file_attachment(entry: &Entry) -> bool {
    matches!(entry, Entry::Attachment(line) if matches!(line.attachment, Attachment::File(_)))
}

/// The entry of a prompt.
fn prompt_entry(session: &Session, prompt: &Prompt) -> User {
    let mut user = factory::user(prompt.content.clone(), &mut Clock);
    if let Some(uuid) = &prompt.uuid {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    if !prompt.contexts.is_empty() {
        user.contexts = Maybe::Value(prompt.contexts.clone());
    }
    user.permission_mode = Maybe::Value(session.permissions.mode().into());
    user.origin = prompt.origin();
    user.prompt_source = prompt.task_notice.is_none().then_some(PromptSource::Sdk).into();
    let images = prompt.content.blocks().iter().filter(|block| matches!(block, Block::Image(_))).count();
    if images > 0 {
        user.image_paste_ids = Maybe::Value(quipu_message::Json::from_serialize(&(1..=images).collect::<Vec<_>>()));
    }
    user
}
