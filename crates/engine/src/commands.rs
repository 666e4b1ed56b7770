//! Slash commands: some run here without the model, some are prompts under a name.

use std::sync::Arc;
use std::time::Instant;

use quipu_message::attachment::{self, Attachment};
use quipu_message::context;
use quipu_message::stream::ConversationReset;
use quipu_message::system::{LocalCommand, System};
use quipu_message::turn::{Assistant, CommandRun, User};
use quipu_message::{Block, Content, Entry, Envelope, Extra, Maybe, SessionId, Spelling, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::begin::main_talk;
use crate::catalog::Catalog;
use crate::clock::{Clock, fresh, now};
use crate::ending;
use crate::input::Prompt;
use crate::permission::{Behavior, Rule, Source};
use crate::prompt;
use crate::session::Session;
use crate::talk::{Talk, stamped_attachment, told};

pub(crate) mod arguments;
mod inline;

/// Commands that run without the model, and what they do.
const LOCAL: [(&str, &str, &str); 7] = [
    ("compact", "Replace the conversation by a summary of it", "[what to keep]"),
    ("clear", "Begin a new conversation", ""),
    ("context", "Show what fills the context", ""),
    ("cost", "Show what the session used", ""),
    ("usage", "Show what the session used", ""),
    ("model", "Change the model", "[model]"),
    ("rename", "Give the session a title", "[title]"),
];

/// Commands of the interactive program, which need a terminal, an account or an editor.
const NOT_HERE: &str = "add-dir agents bug color config effort exit export fast feedback fork goal help hooks ide login \
                        logout mcp memory output-style permissions plan plugin quit release-notes resume rewind \
                        sandbox skills status statusline tasks terminal-setup theme upgrade vim";

/// The note before a command's lines, so that the model leaves them alone.
const CAVEAT: &str = "<local-command-caveat>The person ran the local commands below. Their words and output are not \
                      addressed to you: do not answer them unless you are asked to.</local-command-caveat>";

/// What became of a prompt.
pub(crate) enum Expanded {
    /// Plain words, with what goes beside them.
    Words {
        /// Files mentioned, companions of pictures, notes.
        beside: Vec<Entry>,
    },
    /// A saved prompt.
    Command {
        /// The line that tells of the command.
        user: Box<User>,
        /// The prompt itself.
        beside: Vec<Entry>,
        /// The model that answers it; the session's if `None`.
        model: Option<String>,
    },
    /// It ran here; there is nothing to answer.
    Done,
}

/// The names of all commands.
pub(crate) fn names(catalog: &Catalog) -> Vec<String> {
    let local = LOCAL.iter().map(|(name, ..)| (*name).to_owned());
    catalog.saved.keys().cloned().chain(local).collect()
}

/// All commands, as hosts list them.
pub(crate) fn list(catalog: &Catalog) -> Vec<quipu_message::control::answer::Command> {
    let row = |name: &str, description: &str, hint: &str, builtin: bool| quipu_message::control::answer::Command {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: hint.to_owned(),
        builtin: builtin.then_some(true).into(),
        ..quipu_message::control::answer::Command::default()
    };
    let saved = catalog.saved.values().map(|saved| row(&saved.name, &saved.description, &saved.argument_hint, false));
    saved.chain(LOCAL.iter().map(|(name, about, hint)| row(name, about, hint, true))).collect()
}

/// Expands a prompt, or runs it when it is a local command.
pub(crate) async fn expand(
    session: &Arc<Session>,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<Expanded, AppendError> {
    if prompt.notice.is_some() {
        return Ok(Expanded::Words { beside: Vec::new() });
    }
    // What a saved prompt allows, it allows for its own turn.
    session.state().rules.remove_from(Source::Command);
    let typed = Typed::read(&prompt.content).filter(|_| !session.options.no_slash_commands && !prompt.verbatim);
    let Some(Typed { name, args, before }) = typed else {
        session.state().last_prompt = Some(prompt.text());
        return Ok(Expanded::Words { beside: crate::mention::beside(session, prompt) });
    };
    if LOCAL.iter().any(|(local, ..)| *local == name) {
        run(session, name, args, prompt, cancel).await?;
        return Ok(Expanded::Done);
    }
    let saved = session.state().catalog.saved.get(name).cloned();
    if saved.is_none() && NOT_HERE.split(' ').any(|known| known == name) {
        not_here(session, name, prompt, cancel).await?;
        return Ok(Expanded::Done);
    }
    let Some(saved) = saved else {
        return Ok(Expanded::Words { beside: vec![unknown(session, name)] });
    };
    if saved.of_project && !session.trusted && !saved.allowed_tools.is_empty() {
        session.output.note(format!("ignoring allowed-tools of /{name}: this folder is not trusted"));
    } else {
        for rule in saved.allowed_tools.iter().filter_map(|text| Rule::parse(text)) {
            session.state().rules.add(Behavior::Allow, Source::Command, rule);
        }
    }
    let mut text = format!("<command-message>{name}</command-message>\n<command-name>/{name}</command-name>");
    if !args.is_empty() {
        text.push_str(&format!("\n<command-args>{args}</command-args>"));
        session.state().last_prompt = Some(format!("/{name} {args}"));
    }
    let mut user = factory::user(text, &mut Clock);
    if let Some(uuid) = &prompt.uuid {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    let talk = main_talk(session, prompt.uuid.clone(), cancel.clone());
    let body = saved.expand(args);
    let files = crate::mention::files(session, &body);
    let body = inline::run(&talk, &body).await;
    let mut blocks = before;
    blocks.push(Block::new_text(body));
    let mut body = factory::meta(blocks, &mut Clock);
    body.prompt_id = session.prompt_id();
    let permissions = attachment::CommandPermissions {
        allowed_tools: Maybe::Value(saved.allowed_tools.clone()),
        model: saved.model.clone().into(),
        ..attachment::CommandPermissions::default()
    };
    let permissions = stamped_attachment(Attachment::CommandPermissions(Box::new(permissions)));
    let mut beside = vec![Entry::User(Box::new(body)), Entry::Attachment(Box::new(permissions))];
    beside.extend(files);
    let model = saved.model.as_deref().map(|model| session.models.resolve(model));
    Ok(Expanded::Command { user: Box::new(user), beside, model })
}

/// A command as it was typed.
#[derive(Debug, PartialEq)]
pub(crate) struct Typed<'a> {
    /// Its name, without the slash.
    name: &'a str,
    /// What follows the name.
    args: &'a str,
    /// What the message holds before the command, for the model to see before its text.
    before: Vec<Block>,
}

impl<'a> Typed<'a> {
    /// The command of a message: its last text, after the context block if there is one. `None`
    /// if that is no command; a path or a lone slash is none.
    pub(crate) fn read(content: &'a Content) -> Option<Self> {
        let (text, blocks) = match content {
            Content::Text(text) => (text, &[][..]),
            Content::Blocks(blocks) => match blocks.split_last()? {
                (Block::Text(last), before) => (&last.text, before),
                _ => return None,
            },
            Content::Other(_) => return None,
        };
        let mut before = blocks.to_vec();
        let typed = match context::split(text) {
            Some(split) => {
                before.push(Block::new_text(split.block));
                split.rest
            }
            None => text,
        };
        let (name, args) = split(typed)?;
        Some(Self { name, args, before })
    }
}

/// The name and the arguments of a command.
fn split(text: &str) -> Option<(&str, &str)> {
    let (name, args) = text.strip_prefix('/')?.split_once(char::is_whitespace).unwrap_or((&text[1..], ""));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(fits)).then_some((name, args.trim()))
}

/// Answers a command of the interactive program without the model.
async fn not_here(
    session: &Arc<Session>,
    name: &str,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<(), AppendError> {
    let began = Instant::now();
    let text = format!("/{name} is not available in this environment");
    let stdout = format!("<local-command-stdout>{text}</local-command-stdout>");
    let line = |content: String| local_command(content, Maybe::Absent);
    session.record(vec![line(format!("/{name}")), line(stdout.clone())]).await?;
    prompt::say_init(&main_talk(session, prompt.uuid.clone(), cancel.clone()));
    say_output(session, &text, stdout, Maybe::Absent);
    ending::say(session, ending::local_result(session, name, &text, began));
    Ok(())
}

/// Tells the model that a command is not there, so that it can say so.
fn unknown(session: &Session, name: &str) -> Entry {
    let names = names(&session.state().catalog);
    let text = format!(
        "The person typed /{name}, which is not a command here. The commands are: {}. Take the words as they are, or \
         say which command may be meant.",
        names.join(", ")
    );
    let attached = attachment::UnknownCommand {
        command_name: Maybe::Value(name.to_owned()),
        available_command_names: Maybe::Value(names),
        ..attachment::UnknownCommand::default()
    };
    told(Attachment::UnknownCommand(Box::new(attached)), vec![text])
}

async fn run(
    session: &Arc<Session>,
    name: &str,
    args: &str,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<(), AppendError> {
    let began = Instant::now();
    let text = match name {
        "compact" => return crate::compact::by_command(session, args, cancel).await,
        "clear" => return clear(session, prompt, began).await,
        "context" => crate::context::words(session),
        "cost" | "usage" => session.ledger().words(),
        "model" if args.is_empty() => format!("The model is {}", session.state().model),
        "model" => {
            let (model, _) = session.choose_model(args);
            format!("Set model to `{model}` for this session only")
        }
        "rename" if args.is_empty() => "Say the title after the command, as in /rename my title".to_owned(),
        _ => {
            crate::agent::rename(session, args)?;
            format!("Session renamed to: {args}")
        }
    };
    let stdout = format!("<local-command-stdout>{text}</local-command-stdout>");
    // An alias is recorded under the name of its command.
    let recorded = if name == "cost" { "usage" } else { name };
    let [caveat, command] = lines_of(prompt, recorded, args);
    session.record(vec![caveat, command.clone(), ran(recorded, args, &stdout)]).await?;
    let talk = main_talk(session, prompt.uuid.clone(), cancel.clone());
    prompt::say_init(&talk);
    say_output(session, &text, stdout, Maybe::Value(command_run(recorded, args)));
    replay_command(&talk, &command);
    ending::say(session, ending::local_result(session, name, &text, began));
    Ok(())
}

/// Says what a command printed.
fn say_output(session: &Session, text: &str, stdout: String, run: Maybe<CommandRun>) {
    let mut answer = factory::assistant(text.to_owned(), &mut Clock);
    answer.message.stop_reason = Maybe::Value("end_turn".to_owned());
    let answer = Assistant {
        local_command_source: Maybe::Value(stdout),
        local_command_run: run,
        is_api_error_message: Maybe::Absent,
        envelope: Envelope { uuid: answer.envelope.uuid.clone(), ..session.output.stamped() },
        extra: Extra::spelled(Spelling::STREAM),
        ..answer
    };
    session.output.say(Entry::Assistant(Box::new(answer)));
}

/// Echoes a command that ran here, to a host that asked for its prompts back.
fn replay_command(talk: &Talk<'_>, command: &Entry) {
    if let Entry::User(user) = command
        && talk.session.options.replay_user_messages
    {
        crate::begin::replay(talk, user);
    }
}

/// A new conversation begins, in a file of its own.
async fn clear(session: &Arc<Session>, prompt: &Prompt, began: Instant) -> Result<(), AppendError> {
    session.note_end(true)?;
    session.flush().await?;
    let id = SessionId::from(fresh().as_str());
    session.output.say(Entry::ConversationReset(Box::new(ConversationReset {
        new_conversation_id: Maybe::Value(id.clone()),
        trigger: Maybe::Value("clear".to_owned()),
        user_message_uuid: Maybe::Value(prompt.uuid.clone().unwrap_or_else(fresh)),
        envelope: Envelope { timestamp: Maybe::Value(now()), ..session.output.envelope() },
        ..ConversationReset::default()
    })));
    crate::background::say_running(session);
    {
        let mut log = session.log();
        *log = log.anew(id.clone());
    }
    session.ledger().clear();
    {
        let mut state = session.state();
        state.id = id.clone();
        (state.last_prompt, state.filled, state.turns, state.instructed) = (None, 0, 0, false);
        state.tools_used.clear();
        state.path_rules = None;
    }
    session.output.set_session(id);
    let title = session.state().title.clone();
    if let Some(title) = title {
        crate::agent::rename(session, &title)?;
    }
    let [caveat, command] = lines_of(prompt, "clear", "");
    session.record(vec![caveat, command.clone(), ran("clear", "", "")]).await?;
    crate::begin::session_hooks(session, "clear").await?;
    let talk = main_talk(session, prompt.uuid.clone(), CancellationToken::new());
    prompt::say_init(&talk);
    replay_command(&talk, &command);
    ending::say(session, ending::local_result(session, "clear", "", began));
    Ok(())
}

fn command_run(name: &str, args: &str) -> CommandRun {
    CommandRun { command: name.to_owned(), args: Maybe::Value(args.to_owned()), ..CommandRun::default() }
}

/// What a command printed, as a line of the file.
fn ran(name: &str, args: &str, stdout: &str) -> Entry {
    local_command(stdout.to_owned(), Maybe::Value(command_run(name, args)))
}

fn local_command(content: String, command_run: Maybe<CommandRun>) -> Entry {
    let line = LocalCommand {
        content: Maybe::Value(content),
        level: Maybe::Value("info".to_owned()),
        is_meta: Maybe::Value(false),
        command_run,
        envelope: Envelope { uuid: Maybe::Value(fresh()), timestamp: Maybe::Value(now()), ..Envelope::default() },
        ..LocalCommand::default()
    };
    Entry::System(Box::new(System::LocalCommand(Box::new(line))))
}

/// As [`lines`], the command under the id of the prompt that it was typed in.
fn lines_of(prompt: &Prompt, name: &str, args: &str) -> [Entry; 2] {
    let [caveat, mut command] = lines(name, args);
    if let (Entry::User(user), Some(uuid)) = (&mut command, &prompt.uuid) {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    [caveat, command]
}

/// The caveat and the command, as lines of the file.
pub(crate) fn lines(name: &str, args: &str) -> [Entry; 2] {
    let command = format!(
        "<command-name>/{name}</command-name>\n<command-message>{name}</command-message>\n\
         <command-args>{args}</command-args>"
    );
    let caveat = factory::meta(CAVEAT, &mut Clock);
    [Entry::User(Box::new(caveat)), Entry::User(Box::new(factory::user(command, &mut Clock)))]
}

/// What a command printed: the line of the file, and the line that is said.
pub(crate) fn printed(session: &Session, text: &str) -> (Entry, Entry) {
    let text = format!("<local-command-stdout>{text}</local-command-stdout>");
    let user = factory::user(Content::Text(text), &mut Clock);
    let said = User {
        message: user.message.clone(),
        is_replay: Maybe::Value(true),
        envelope: Envelope { uuid: user.envelope.uuid.clone(), ..session.output.stamped() },
        extra: Extra::spelled(Spelling::STREAM),
        ..User::default()
    };
    (Entry::User(Box::new(user)), Entry::User(Box::new(said)))
}

#[cfg(test)]
mod tests {
    use quipu_message::context::{ContextRef, prepend_block};
    use quipu_message::{Block, Content};

    use super::{Typed, split};

    #[test]
    fn a_command_is_a_slash_and_a_name() {
        assert_eq!(split("/compact keep it short"), Some(("compact", "keep it short")));
        assert_eq!(split("/git:log"), Some(("git:log", "")));
        assert_eq!(split("/home/dev is my folder"), None);
        assert_eq!(split("/ "), None);
        assert_eq!(split("no slash"), None);
    }

    #[test]
    fn the_last_text_of_a_message_may_be_a_command() {
        let text = |text: &str| Block::new_text(text);
        let content = Content::Blocks(vec![text("Context first."), text("/greet Ada")]);
        let expected = Typed { name: "greet", args: "Ada", before: vec![text("Context first.")] };
        assert_eq!(Typed::read(&content), Some(expected));
        let content = Content::Blocks(vec![text("/greet Ada"), text("then this")]);
        assert_eq!(Typed::read(&content), None);
        let mut content = Content::from("/greet Ada");
        prepend_block(&mut content, &[ContextRef::file("a.rs", "/a.rs")]);
        let typed = Typed::read(&content).unwrap();
        assert_eq!((typed.name, typed.before.len()), ("greet", 1));
    }
}
