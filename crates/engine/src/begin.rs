//! How a turn begins: the prompt is expanded, hooked, recorded, and then answered.

use std::sync::{Arc, Mutex};

use quipu_message::hook::{HookEvent, InstructionsLoaded, SessionStart, UserPromptSubmit};
use quipu_message::stream::TurnResult;
use quipu_message::turn::User;
use quipu_message::{Block, Entry, Maybe, Uuid, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, fresh};
use crate::commands::{self, Expanded};
use crate::ending;
use crate::hooks::Effects;
use crate::input::Prompt;
use crate::prompt;
use crate::session::Session;
use crate::structured::Structured;
use crate::talk::{Talk, Voice};
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
    // Who hears the result may speak at once, and does not speak into a turn then.
    session.state().turn = None;
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
    entries.append(&mut beside);
    entries.extend(effects.attachments);
    entries.extend(prompt::plan_note(session));
    entries.extend(prompt::budget_note(session));
    if !std::mem::replace(&mut session.state().instructed, true) {
        let (files, left_out) = session.find_instructions();
        entries.extend(prompt::instructions(&files));
        entries.extend(prompt::dynamic_sections(session));
        left_out.into_iter().for_each(|file| session.warn(format!("instructions left out: {file}")));
    }
    // The person's words are on disk before the model is asked.
    talk.record(entries).await?;
    crate::checkpoint::note(session)?;
    session.state().turns += 1;
    prompt::say_init(talk);
    if session.options.replay_user_messages && prompt.notice.is_none() {
        replay(talk, &user);
    }
    Ok(None)
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
        for prompt in self.session.queue.absorb() {
            if !crate::background::is_news(self.session, &prompt) {
                self.session.note_queue("remove", Some(&prompt), Some("absorbed_mid_turn"))?;
                continue;
            }
            crate::agent::lifecycle(self.session, prompt.uuid.as_ref(), "started");
            let attached = quipu_message::attachment::QueuedCommand {
                prompt: Maybe::Value(prompt.content.clone()),
                source_uuid: prompt.uuid.clone().into(),
                command_mode: Maybe::Value(prompt.mode().to_owned()),
                ..quipu_message::attachment::QueuedCommand::default()
            };
            let attachment = quipu_message::attachment::Attachment::QueuedCommand(Box::new(attached));
            let line = crate::talk::stamped_attachment(attachment);
            let uuid = line.envelope.uuid.get().cloned();
            // The words are in the conversation before they leave the queue.
            self.record(vec![Entry::Attachment(Box::new(line))]).await?;
            self.session.note_queue("remove", Some(&prompt), Some("absorbed_mid_turn"))?;
            if prompt.notice.is_some() {
                continue;
            }
            self.session.state().last_prompt = Some(prompt.text());
            if self.session.options.replay_user_messages {
                let mut user = factory::user(prompt.content.clone(), &mut Clock);
                user.envelope.uuid = prompt.uuid.clone().or(uuid).into();
                replay(self, &user);
            }
            crate::agent::lifecycle(self.session, prompt.uuid.as_ref(), "completed");
        }
        Ok(())
    }
}
