//! How a turn begins: the prompt is expanded, hooked, recorded, and then answered.

use std::sync::Arc;

use parking_lot::Mutex;
use quipu_message::attachment::{Attachment, QueuedCommand};
use quipu_message::hook::{HookEvent, InstructionsLoaded, SessionStart, UserPromptSubmit};
use quipu_message::stream::TurnResult;
use quipu_message::user_assistant::User;
use quipu_message::{Block, Entry, Json, Maybe, Uuid, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::agent_context::{AgentContext, AgentKind, new_attachment};
use crate::announce;
use crate::clock::{Clock, new_id};
use crate::commands::{self, ExpandedPrompt};
use crate::hooks::HookOutcome;
use crate::input::Prompt;
use crate::session::Session;
use crate::structured_output::StructuredOutputTool;
use crate::system_prompt;
use crate::turn::{self, TurnEnd, TurnState};
use crate::turn_result;

/// Answers one prompt, from its first hook to its result.
pub(crate) async fn run_prompt_turn(session: &Arc<Session>, prompt: Prompt, cancel: CancellationToken) {
    let mut count = TurnState::new();
    session.state().prompt_id = Some(new_id().to_string());
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
    let absorbed = {
        let mut state = session.state();
        state.turn_cancel = None;
        std::mem::take(&mut state.absorbed_uuids)
    };
    absorbed.iter().for_each(|uuid| crate::agent::emit_lifecycle(session, Some(uuid), "completed"));
    turn_result::emit_or_hold(session, TurnResult { origin: prompt.origin(), ..result });
}

/// The session's own talk.
pub(crate) fn main_context(
    session: &Arc<Session>,
    prompt: Option<Uuid>,
    cancel: CancellationToken,
) -> AgentContext<'_> {
    // A schema that is none was refused when the session was set up.
    let structured = session.output_schema().and_then(|schema| StructuredOutputTool::new(&schema).ok()).map(Arc::new);
    AgentContext {
        tools: crate::tool_selection::main_tools(session, structured.as_ref()),
        system_prompt: system_prompt::session_system_prompt(session),
        model: session.state().active_model().to_owned(),
        max_turns: session.options.max_turns,
        kind: AgentKind::Main,
        log: &session.log,
        workspace: &session.workspace,
        awaiting_permission: Mutex::default(),
        session,
        structured_output: structured,
        cancel,
        prompt_uuid: prompt,
    }
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
    let mut entries = std::mem::take(&mut session.state().pending_entries);
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
        system_prompt::emit_init(talk);
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
    entries.extend(system_prompt::plan_mode_attachment(session));
    entries.extend(system_prompt::budget_attachment(session));
    entries.extend(due_instructions(talk));
    entries.extend(announce::date_attachment(talk));
    entries.extend(announce::system_prompt_record(talk));
    let recorded = talk.log().record(entries)?;
    // It promises nothing of the prompt, so it need not wait for the disk.
    system_prompt::emit_init(talk);
    // The user's words are on disk before the model is asked.
    talk.wait_until_written(recorded).await?;
    crate::checkpoint::record_checkpoints(session)?;
    session.state().turn_count += 1;
    if session.options.replay_user_messages && prompt.task_notice.is_none() {
        emit_replay(talk, &user);
    }
    Ok(None)
}

/// The instruction files, when the context does not hold them as they are. They are read with the
/// first prompt of the process and when a compaction has taken them out of the context.
pub(crate) fn due_instructions(talk: &AgentContext<'_>) -> Option<Entry> {
    let session = talk.session;
    let is_first = !std::mem::replace(&mut session.state().instructions_sent, true);
    let known = announce::announced_instructions(talk.log().context());
    if !is_first && known.is_some() {
        return None;
    }
    let (files, left_out) = session.find_instructions();
    if is_first {
        left_out.into_iter().for_each(|file| session.warn(format!("instructions left out: {file}")));
    }
    let is_told = known.is_some_and(|known| known.to_value() == Json::from_serialize(&files).to_value());
    if is_told { None } else { system_prompt::instructions_attachment(&files) }
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
    user.permission_mode = Maybe::Value(session.state().mode.as_str().to_owned());
    user.origin = prompt.origin();
    user.prompt_source = prompt.task_notice.is_none().then(|| "sdk".to_owned()).into();
    let images = prompt.content.blocks().iter().filter(|block| matches!(block, Block::Image(_))).count();
    if images > 0 {
        user.image_paste_ids = Maybe::Value(quipu_message::Json::from_serialize(&(1..=images).collect::<Vec<_>>()));
    }
    user
}

/// Echoes a prompt, under the id it is recorded with.
pub(crate) fn emit_replay(talk: &AgentContext<'_>, user: &User) {
    let mut line = User {
        is_replay: Maybe::Value(true),
        contexts: user.contexts.clone(),
        envelope: talk.stream_envelope(user.envelope.uuid.get().cloned(), user.envelope.timestamp.get().cloned()),
        message: user.message.clone(),
        ..User::default()
    };
    line.extra = quipu_message::Extra::with_spelling(quipu_message::Spelling::STREAM);
    talk.session.output.emit(Entry::User(Box::new(line)));
}

/// Runs the hooks of a session's begin and tells of its instruction files.
pub(crate) async fn run_session_start_hooks(session: &Arc<Session>, source: &str) -> Result<(), AppendError> {
    let cancel = CancellationToken::new();
    let input = SessionStart { source: source.to_owned(), base: session.hook_base(), ..SessionStart::default() };
    let effects = session.run_hooks(input, Some(source), None, &cancel).await;
    session.state().pending_entries.extend(effects.attachments);
    if session.hooks.has_hooks_for(InstructionsLoaded::NAME) {
        for file in session.instructions() {
            let input = InstructionsLoaded {
                file_path: file.path.display().to_string(),
                memory_type: Maybe::Value(file.kind.to_owned()),
                load_reason: Maybe::Value("session_start".to_owned()),
                base: session.hook_base(),
                ..InstructionsLoaded::default()
            };
            session.run_hooks(input, None, None, &cancel).await;
        }
    }
    Ok(())
}

impl AgentContext<'_> {
    /// Takes prompts that came meanwhile into the running turn.
    pub(crate) async fn absorb_queued(&self) -> Result<(), AppendError> {
        let session = self.session;
        let (news, known): (Vec<Prompt>, Vec<Prompt>) = session
            .queue
            .take_plain_prompts()
            .into_iter()
            .partition(|prompt| crate::background::is_unseen(session, prompt));
        for prompt in &known {
            session.record_queue_operation("remove", Some(prompt), Some("absorbed_mid_turn"))?;
        }
        let absorbed: Vec<AbsorbedPrompt> = news.into_iter().map(AbsorbedPrompt::new).collect();
        // The words are in the conversation before they leave the queue.
        self.record(absorbed.iter().map(AbsorbedPrompt::to_entry).collect()).await?;
        for taken in &absorbed {
            session.record_absorbed(&taken.prompt, taken.uuid.clone(), taken.delivery_id.clone())?;
        }
        let said = || absorbed.iter().filter(|taken| taken.prompt.task_notice.is_none());
        if session.options.replay_user_messages {
            for taken in said() {
                let mut user = factory::user(taken.prompt.content.clone(), &mut Clock);
                user.envelope.uuid = Maybe::Value(taken.uuid.clone());
                emit_replay(self, &user);
            }
        }
        for uuid in said().filter_map(|taken| taken.prompt.uuid.as_ref()) {
            crate::agent::emit_lifecycle(session, Some(uuid), "started");
            session.state().absorbed_uuids.push(uuid.clone());
        }
        Ok(())
    }
}

/// A prompt that a running turn has taken in.
struct AbsorbedPrompt {
    prompt: Prompt,
    uuid: Uuid,
    /// Names this delivery in the file.
    delivery_id: String,
}

impl AbsorbedPrompt {
    fn new(prompt: Prompt) -> Self {
        let uuid = prompt.uuid.clone().unwrap_or_else(new_id);
        Self { prompt, uuid, delivery_id: new_id().to_string() }
    }

    fn to_entry(&self) -> Entry {
        let attached = QueuedCommand {
            prompt: Maybe::Value(self.prompt.content.clone()),
            source_uuid: Maybe::Value(self.uuid.clone()),
            delivery_id: Maybe::Value(self.delivery_id.clone()),
            command_mode: Maybe::Value(self.prompt.command_mode().to_owned()),
            ..QueuedCommand::default()
        };
        Entry::Attachment(Box::new(new_attachment(Attachment::QueuedCommand(Box::new(attached)))))
    }
}
