//! How a turn begins: the prompt is expanded, hooked, recorded, and then answered.

use std::sync::{Arc, Mutex};

use quipu_message::attachment::{Attachment, QueuedCommand};
use quipu_message::hook::{HookEvent, InstructionsLoaded, SessionStart, UserPromptSubmit};
use quipu_message::stream::TurnResult;
use quipu_message::turn::User;
use quipu_message::{Block, Entry, Json, Maybe, Uuid, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::clock::{Clock, fresh};
use crate::commands::{self, Expanded};
use crate::ending;
use crate::hooks::Effects;
use crate::input::Prompt;
use crate::prompt;
use crate::session::Session;
use crate::structured::Structured;
use crate::talk::{Talk, Voice, stamped_attachment};
use crate::turn::{self, Count, End};

/// Answers one prompt, from its first hook to its result.
pub(crate) async fn turn(session: &Arc<Session>, prompt: Prompt, cancel: CancellationToken) {
    let mut count = Count::new();
    session.state().prompt_id = Some(fresh().to_string());
    let expanded = match commands::expand(session, &prompt, &cancel).await {
        Ok(Expanded::Done) => return,
        Ok(expanded) => Ok(expanded),
        Err(error) => Err(error),
    };
    let mut talk = main_talk(session, prompt.uuid.clone(), cancel);
    if let Ok(Expanded::Command { model: Some(model), .. }) = &expanded {
        talk.model = model.clone();
    }
    let end = match expanded {
        Ok(expanded) => match begin(&talk, &prompt, expanded).await {
            Ok(None) => turn::run(&talk, &mut count).await,
            Ok(Some(end)) => end,
            Err(error) => End::NoFile(error),
        },
        Err(error) => End::NoFile(error),
    };
    let result = ending::result(&talk, &end, &count);
    // A host may send the next prompt as soon as it reads the result: no turn may run by then.
    let absorbed = {
        let mut state = session.state();
        state.turn = None;
        std::mem::take(&mut state.absorbed)
    };
    absorbed.iter().for_each(|uuid| crate::agent::lifecycle(session, Some(uuid), "completed"));
    ending::say(session, TurnResult { origin: prompt.origin(), ..result });
}

/// The session's own talk.
pub(crate) fn main_talk(session: &Arc<Session>, prompt: Option<Uuid>, cancel: CancellationToken) -> Talk<'_> {
    // A schema that is none was refused when the session was set up.
    let structured = session.schema().and_then(|schema| Structured::new(&schema).ok()).map(Arc::new);
    Talk {
        tools: crate::toolbox::for_main(session, structured.as_ref()),
        system: prompt::system(session),
        model: session.state().active_model().to_owned(),
        max_turns: session.options.max_turns,
        voice: Voice::Main,
        log: &session.log,
        place: &session.place,
        asking: Mutex::default(),
        session,
        structured,
        cancel,
        prompt,
    }
}

/// Hooks and records the prompt; an end when a hook refuses it.
async fn begin(talk: &Talk<'_>, prompt: &Prompt, expanded: Expanded) -> Result<Option<End>, AppendError> {
    let session = talk.session;
    let effects = match &prompt.notice {
        // Nobody said it.
        Some(_) => Effects::default(),
        None => {
            let input =
                UserPromptSubmit { prompt: prompt.text(), base: session.hook_base(), ..UserPromptSubmit::default() };
            session.hook(input, None, None, &talk.cancel).await
        }
    };
    let mut entries = std::mem::take(&mut session.state().pending);
    let is_command = matches!(expanded, Expanded::Command { .. });
    let (mut user, mut beside) = match expanded {
        Expanded::Words { beside } => (said(session, prompt), beside),
        Expanded::Command { user, beside, .. } => (*user, beside),
        Expanded::Done => return Ok(None),
    };
    user.prompt_id = session.prompt_id();
    let uuid = user.envelope.uuid.get().cloned();
    let words = Entry::User(Box::new(user.clone()));
    if let Some(why) = effects.deny.or(effects.stop) {
        // A refused prompt is not the model's to see.
        talk.record(entries).await?;
        prompt::say_init(talk);
        let why = if why.is_empty() { "A hook refused this prompt".to_owned() } else { why };
        return Ok(Some(End::Stopped(why)));
    }
    if let Some(copies) = &session.checkpoints
        && let Some(uuid) = &uuid
    {
        copies.begin(uuid);
    }
    entries.push(words);
    // A saved command's prompt and files that the user mentions stand right after the words.
    let is_said = |entry: &mut Entry| is_file(entry) || is_command && matches!(entry, Entry::User(_));
    entries.extend(beside.extract_if(.., is_said));
    entries.extend(announce::due(talk));
    entries.append(&mut beside);
    entries.extend(effects.attachments);
    entries.extend(announce::changed_files(talk));
    entries.extend(prompt::plan_note(session));
    entries.extend(prompt::budget_note(session));
    entries.extend(instructions(talk));
    entries.extend(announce::date(talk));
    entries.extend(announce::system_record(talk));
    let recorded = talk.log().record(entries)?;
    // It promises nothing of the prompt, so it need not wait for the disk.
    prompt::say_init(talk);
    // The user's words are on disk before the model is asked.
    talk.written(recorded).await?;
    crate::checkpoint::note(session)?;
    session.state().turns += 1;
    if session.options.replay_user_messages && prompt.notice.is_none() {
        replay(talk, &user);
    }
    Ok(None)
}

/// The instruction files, when the context does not hold them as they are. They are read with the
/// first prompt of the process and when a compaction has taken them out of the context.
pub(crate) fn instructions(talk: &Talk<'_>) -> Option<Entry> {
    let session = talk.session;
    let is_first = !std::mem::replace(&mut session.state().instructed, true);
    let known = announce::known_instructions(talk.log().context());
    if !is_first && known.is_some() {
        return None;
    }
    let (files, left_out) = session.find_instructions();
    if is_first {
        left_out.into_iter().for_each(|file| session.warn(format!("instructions left out: {file}")));
    }
    let is_told = known.is_some_and(|known| known.value() == Json::of(&files).value());
    if is_told { None } else { prompt::instructions(&files) }
}

/// Whether an entry is a file that the user mentions.
fn is_file(entry: &Entry) -> bool {
    matches!(entry, Entry::Attachment(line) if matches!(line.attachment, Attachment::File(_)))
}

/// The prompt as a line of the file.
fn said(session: &Session, prompt: &Prompt) -> User {
    let mut user = factory::user(prompt.content.clone(), &mut Clock);
    if let Some(uuid) = &prompt.uuid {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    if !prompt.contexts.is_empty() {
        user.contexts = Maybe::Value(prompt.contexts.clone());
    }
    user.permission_mode = Maybe::Value(session.state().mode.as_str().to_owned());
    user.origin = prompt.origin();
    user.prompt_source = prompt.notice.is_none().then(|| "sdk".to_owned()).into();
    let images = prompt.content.blocks().iter().filter(|block| matches!(block, Block::Image(_))).count();
    if images > 0 {
        user.image_paste_ids = Maybe::Value(quipu_message::Json::of(&(1..=images).collect::<Vec<_>>()));
    }
    user
}

/// Echoes a prompt, under the id it is recorded with.
pub(crate) fn replay(talk: &Talk<'_>, user: &User) {
    let mut line = User {
        is_replay: Maybe::Value(true),
        contexts: user.contexts.clone(),
        envelope: talk.envelope(user.envelope.uuid.get().cloned(), user.envelope.timestamp.get().cloned()),
        message: user.message.clone(),
        ..User::default()
    };
    line.extra = quipu_message::Extra::spelled(quipu_message::Spelling::STREAM);
    talk.session.output.say(Entry::User(Box::new(line)));
}

/// Runs the hooks of a session's begin and tells of its instruction files.
pub(crate) async fn session_hooks(session: &Arc<Session>, source: &str) -> Result<(), AppendError> {
    let cancel = CancellationToken::new();
    let input = SessionStart { source: source.to_owned(), base: session.hook_base(), ..SessionStart::default() };
    let effects = session.hook(input, Some(source), None, &cancel).await;
    session.state().pending.extend(effects.attachments);
    if session.hooks.listen(InstructionsLoaded::NAME) {
        for file in session.instructions() {
            let input = InstructionsLoaded {
                file_path: file.path.display().to_string(),
                memory_type: Maybe::Value(file.kind.to_owned()),
                load_reason: Maybe::Value("session_start".to_owned()),
                base: session.hook_base(),
                ..InstructionsLoaded::default()
            };
            session.hook(input, None, None, &cancel).await;
        }
    }
    Ok(())
}

impl Talk<'_> {
    /// Takes prompts that came meanwhile into the running turn.
    pub(crate) async fn absorb_queued(&self) -> Result<(), AppendError> {
        let session = self.session;
        let (news, known): (Vec<Prompt>, Vec<Prompt>) =
            session.queue.absorb().into_iter().partition(|prompt| crate::background::is_news(session, prompt));
        for prompt in &known {
            session.note_queue("remove", Some(prompt), Some("absorbed_mid_turn"))?;
        }
        let absorbed: Vec<Absorbed> = news.into_iter().map(Absorbed::new).collect();
        // The words are in the conversation before they leave the queue.
        self.record(absorbed.iter().map(Absorbed::entry).collect()).await?;
        for taken in &absorbed {
            session.note_absorbed(&taken.prompt, taken.uuid.clone(), taken.delivery.clone())?;
        }
        let said = || absorbed.iter().filter(|taken| taken.prompt.notice.is_none());
        if session.options.replay_user_messages {
            for taken in said() {
                let mut user = factory::user(taken.prompt.content.clone(), &mut Clock);
                user.envelope.uuid = Maybe::Value(taken.uuid.clone());
                replay(self, &user);
            }
        }
        for uuid in said().filter_map(|taken| taken.prompt.uuid.as_ref()) {
            crate::agent::lifecycle(session, Some(uuid), "started");
            session.state().absorbed.push(uuid.clone());
        }
        Ok(())
    }
}

/// A prompt that a running turn has taken in.
struct Absorbed {
    prompt: Prompt,
    uuid: Uuid,
    /// Names this delivery in the file.
    delivery: String,
}

impl Absorbed {
    fn new(prompt: Prompt) -> Self {
        let uuid = prompt.uuid.clone().unwrap_or_else(fresh);
        Self { prompt, uuid, delivery: fresh().to_string() }
    }

    fn entry(&self) -> Entry {
        let attached = QueuedCommand {
            prompt: Maybe::Value(self.prompt.content.clone()),
            source_uuid: Maybe::Value(self.uuid.clone()),
            delivery_id: Maybe::Value(self.delivery.clone()),
            command_mode: Maybe::Value(self.prompt.mode().to_owned()),
            ..QueuedCommand::default()
        };
        Entry::Attachment(Box::new(stamped_attachment(Attachment::QueuedCommand(Box::new(attached)))))
    }
}
