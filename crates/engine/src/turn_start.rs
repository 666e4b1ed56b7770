//! How a turn begins: the prompt is expanded, hooked, recorded, and then answered.

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
use crate::session::Session;
use crate::turn;
use crate::turn_result;
use crate::turn_state::{TurnEnd, TurnState};

/// Answers one prompt, from its first hook to its result.
pub(crate) async fn run_prompt_turn(session: &Arc<Session>, prompt: Prompt, cancel: CancellationToken) {
    let mut count = TurnState::new();
    session.activity.set_prompt_id(new_id().to_string());
    let expanded = match commands::expand_prompt(session, &prompt, &cancel).await {
        Ok(ExpandedPrompt::HandledLocally) => return,
        Ok(expanded) => Ok(expanded),
        Err(error) => Err(error),
    };
    let mut talk = main_context(session, prompt.uuid.clone(), cancel);
    if let Ok(ExpandedPrompt::SavedPrompt { model: Some(model), .. }) = &expanded {
        talk.model = model.clone();
    }
    let end = match expanded {
        Ok(expanded) => match record_prompt(&talk, &prompt, expanded).await {
            Ok(None) => turn::run(&talk, &mut count).await,
            Ok(Some(end)) => end,
            Err(error) => TurnEnd::WriteFailed(error),
        },
        Err(error) => TurnEnd::WriteFailed(error),
    };
    let result = turn_result::build_result(&talk, &end, &count);
    // A host may send the next prompt as soon as it reads the result: no turn may run by then.
    let absorbed = session.activity.end_turn();
    absorbed.iter().for_each(|uuid| session.emit_lifecycle(Some(uuid), CommandState::Completed));
    turn_result::emit_or_hold(session, TurnResult { origin: prompt.origin(), ..result });
}

/// Hooks and records the prompt; an end when a hook refuses it.
async fn record_prompt(
    talk: &AgentContext<'_>,
    prompt: &Prompt,
    expanded: ExpandedPrompt,
) -> Result<Option<TurnEnd>, AppendError> {
    let session = talk.session;
    let effects = match &prompt.task_notice {
        // Nobody said it.
        Some(_) => HookOutcome::default(),
        None => {
            let input =
                UserPromptSubmit { prompt: prompt.text(), base: session.hook_base(), ..UserPromptSubmit::default() };
            session.run_hooks(input, None, None, &talk.cancel).await
        }
    };
    let mut entries = session.activity.take_pending();
    let is_command = matches!(expanded, ExpandedPrompt::SavedPrompt { .. });
    let (mut user, mut beside) = match expanded {
        ExpandedPrompt::Plain { attachments: beside } => (prompt_entry(session, prompt), beside),
        ExpandedPrompt::SavedPrompt { user, attachments: beside, .. } => (*user, beside),
        ExpandedPrompt::HandledLocally => return Ok(None),
    };
    user.prompt_id = session.prompt_id();
    let uuid = user.envelope.uuid.get().cloned();
    let words = Entry::User(Box::new(user.clone()));
    if let Some(why) = effects.deny_reason.or(effects.stop_reason) {
        // A refused prompt is not the model's to see.
        talk.record(entries).await?;
        emit_init(talk);
        let why = if why.is_empty() { "A hook refused this prompt".to_owned() } else { why };
        return Ok(Some(TurnEnd::StoppedByHook(why)));
    }
    if let Some(copies) = &session.checkpoints
        && let Some(uuid) = &uuid
    {
        copies.snapshot(uuid);
    }
    entries.push(words);
    // A saved command's prompt and files that the user mentions stand right after the words.
    let is_said = |entry: &mut Entry| is_file_attachment(entry) || is_command && matches!(entry, Entry::User(_));
    entries.extend(beside.extract_if(.., is_said));
    entries.extend(announce::due_attachments(talk));
    entries.append(&mut beside);
    entries.extend(effects.attachments);
    entries.extend(announce::changed_file_attachments(talk));
    entries.extend(announce::plan_mode_attachment(session));
    entries.extend(announce::budget_attachment(session));
    entries.extend(announce::due_instructions(talk));
    entries.extend(announce::date_attachment(talk));
    entries.extend(announce::system_prompt_record(talk));
    let recorded = talk.log().record(entries)?;
    // It promises nothing of the prompt, so it need not wait for the disk.
    emit_init(talk);
    // The user's words are on disk before the model is asked.
    talk.wait_until_written(recorded).await?;
    session.record_checkpoints()?;
    session.activity.count_turn();
    if session.options.replay_user_messages && prompt.task_notice.is_none() {
        talk.emit_replay(&user);
    }
    Ok(None)
}

/// Whether an entry is a file that the user mentions.
fn is_file_attachment(entry: &Entry) -> bool {
    matches!(entry, Entry::Attachment(line) if matches!(line.attachment, Attachment::File(_)))
}

/// The prompt as a line of the file.
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
