//! Slash commands: local ones run without the model, others expand to a saved prompt.

use std::sync::Arc;
use std::time::Instant;

use quipu_message::attachment::{self, Attachment};
use quipu_message::hook::SessionStartSource;
use quipu_message::stream::ConversationReset;
use quipu_message::system::{LocalCommand, System};
use quipu_message::user_assistant::{Assistant, CommandRun, User};
use quipu_message::values::{MessageLevel, StopReason};
use quipu_message::{Block, Content, Entry, Envelope, Extra, Maybe, SessionId, Spelling, factory};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::agent_context::AgentContext;
use crate::attachments::{new_attachment, rendered_attachment};
use crate::clock::{Clock, new_id, now};
use crate::command_list::{LOCAL_COMMANDS, command_names};
use crate::init::emit_init;
use crate::input::Prompt;
use crate::main_context::main_context;
use crate::permission::{Behavior, Rule, RuleSource};
use crate::session::Session;
use crate::turn_result;
use crate::typed_command::TypedCommand;

mod compact_command;
mod inline_commands;

/// Commands of the interactive program that are not available here: they need a terminal, an account
/// or an editor.
const INTERACTIVE_COMMANDS: &str = "add-dir agents bug color config effort exit export fast feedback fork goal help hooks ide login \
                        logout mcp memory output-style permissions plan plugin quit release-notes resume rewind \
                        sandbox skills status statusline tasks terminal-setup theme upgrade vim";

/// The note before the entries of a local command, so that the model does not answer them.
const LOCAL_COMMAND_CAVEAT: &str = "<local-command-caveat>The user ran the local commands below. Their text and output are not \
                      addressed to you: do not answer them unless you are asked to.</local-command-caveat>";

/// A prompt after slash commands and mentions were handled.
pub(crate) enum ExpandedPrompt {
    /// Plain text.
    Plain {
        /// Entries to record with the prompt: mentioned files, image paths, notes.
        attachments: Vec<Entry>,
    },
    /// A command that expands to a saved prompt.
    SavedPrompt {
        /// The entry that names the command.
        user: Box<User>,
        /// Entries to record with it; the first is the expanded prompt.
        attachments: Vec<Entry>,
        /// The model that answers it; the session's if `None`.
        model: Option<String>,
    },
    /// A local command, which has run; there is nothing to answer.
    HandledLocally,
}

/// Expands a prompt, or runs it if it is a local command. Fails if the transcript cannot be written.
pub(crate) async fn expand_prompt(
    session: &Arc<Session>,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<ExpandedPrompt, AppendError> {
    if prompt.task_notice.is_some() {
        return Ok(ExpandedPrompt::Plain { attachments: Vec::new() });
    }
    let typed =
        TypedCommand::from_content(&prompt.content).filter(|_| !session.options.no_slash_commands && !prompt.verbatim);
    let Some(TypedCommand { name, args, preceding_blocks: before }) = typed else {
        session.activity.set_last_prompt(prompt.text());
        return Ok(ExpandedPrompt::Plain { attachments: crate::mentions::prompt_attachments(session, prompt) });
    };
    if LOCAL_COMMANDS.iter().any(|(local, ..)| *local == name) {
        run_local_command(session, name, args, prompt, cancel).await?;
        return Ok(ExpandedPrompt::HandledLocally);
    }
    let saved = session.definitions().saved_prompts.get(name).cloned();
    if saved.is_none() && INTERACTIVE_COMMANDS.split(' ').any(|known| known == name) {
        reject_interactive_command(session, name, prompt, cancel).await?;
        return Ok(ExpandedPrompt::HandledLocally);
    }
    let Some(saved) = saved else {
        return Ok(ExpandedPrompt::Plain { attachments: vec![unknown_command_attachment(session, name)] });
    };
    let ignored = if !saved.is_trusted {
        Some("its folder is not trusted")
    } else if session.settings().has_only_managed_rules() {
        Some("only managed settings may allow tool calls")
    } else {
        None
    };
    if let Some(reason) = ignored {
        if !saved.allowed_tools.is_empty() {
            session.output.warn_on_stderr(format!("ignoring allowed-tools of /{name}: {reason}"));
        }
    } else {
        for rule in saved.allowed_tools.iter().filter_map(|text| Rule::parse(text)) {
            session.permissions.change_rules(|rules| rules.add(Behavior::Allow, RuleSource::Command, rule));
        }
    }
    let mut text = format!("<command-message>{name}</command-message>\n<command-name>/{name}</command-name>");
    if !args.is_empty() {
        text.push_str(&format!("\n<command-args>{args}</command-args>"));
        session.activity.set_last_prompt(format!("/{name} {args}"));
    }
    let mut user = factory::user(text, &mut Clock);
    if let Some(uuid) = &prompt.uuid {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    let ctx = main_context(session, prompt.uuid.clone(), cancel.clone());
    let body = saved.expand(args);
    let files = crate::mentions::file_attachments(session, &body);
    let body = inline_commands::expand_commands(&ctx, &body).await;
    let mut blocks = before;
    blocks.push(Block::new_text(body));
    let mut body = factory::meta_user(blocks, &mut Clock);
    body.prompt_id = session.prompt_id();
    let permissions = attachment::CommandPermissions {
        allowed_tools: Maybe::Value(saved.allowed_tools.clone()),
        model: saved.model.clone().into(),
        ..attachment::CommandPermissions::default()
    };
    let permissions = new_attachment(Attachment::CommandPermissions(Box::new(permissions)));
    let mut attachments = vec![Entry::User(Box::new(body)), Entry::Attachment(Box::new(permissions))];
    attachments.extend(files);
    let model = saved.model.as_deref().map(|model| session.models.resolve(model));
    Ok(ExpandedPrompt::SavedPrompt { user: Box::new(user), attachments, model })
}

/// Answers that a command of the interactive program is not available.
async fn reject_interactive_command(
    session: &Arc<Session>,
    name: &str,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<(), AppendError> {
    let started_at = Instant::now();
    let text = format!("/{name} is not available in this environment");
    let stdout = format!("<local-command-stdout>{text}</local-command-stdout>");
    let line = |content: String| local_command_entry(content, Maybe::Absent);
    session.record(vec![line(format!("/{name}")), line(stdout.clone())]).await?;
    emit_init(&main_context(session, prompt.uuid.clone(), cancel.clone()));
    emit_command_output(session, &text, stdout, Maybe::Absent);
    turn_result::emit_or_hold(session, turn_result::local_command_result(session, name, &text, started_at));
    Ok(())
}

/// A note for the model that a command does not exist, so that it can say so.
fn unknown_command_attachment(session: &Session, name: &str) -> Entry {
    let names = command_names(&session.definitions());
    let text = format!(
        "The user typed /{name}, which is not a command here. The commands are: {}. Take the text as it is, or \
         say which command may be meant.",
        names.join(", ")
    );
    let attached = attachment::UnknownCommand {
        command_name: Maybe::Value(name.to_owned()),
        available_command_names: Maybe::Value(names),
        ..attachment::UnknownCommand::default()
    };
    rendered_attachment(Attachment::UnknownCommand(Box::new(attached)), vec![text])
}

async fn run_local_command(
    session: &Arc<Session>,
    name: &str,
    args: &str,
    prompt: &Prompt,
    cancel: &CancellationToken,
) -> Result<(), AppendError> {
    let started_at = Instant::now();
    let text = match name {
        "compact" => return compact_command::run(session, args, cancel).await,
        "clear" => return clear_conversation(session, prompt, started_at).await,
        "context" => crate::context_usage::context_usage_text(session),
        "cost" | "usage" => session.usage().to_text(),
        "model" if args.is_empty() => format!("The model is {}", session.model_choice.model()),
        "model" => {
            let (model, _) = session.set_model(args);
            format!("Set model to `{model}` for this session only")
        }
        "rename" if args.is_empty() => "Give a title after the command, as in /rename my title".to_owned(),
        _ => {
            session.rename(args)?;
            format!("Session renamed to: {args}")
        }
    };
    let stdout = format!("<local-command-stdout>{text}</local-command-stdout>");
    // An alias is recorded under the name of its command.
    let recorded = if name == "cost" { "usage" } else { name };
    let [caveat, command] = command_entries_for_prompt(prompt, recorded, args);
    session.record(vec![caveat, command.clone(), command_output_entry(recorded, args, &stdout)]).await?;
    let ctx = main_context(session, prompt.uuid.clone(), cancel.clone());
    emit_init(&ctx);
    emit_command_output(session, &text, stdout, Maybe::Value(new_command_run(recorded, args)));
    emit_command_replay(&ctx, &command);
    turn_result::emit_or_hold(session, turn_result::local_command_result(session, name, &text, started_at));
    Ok(())
}

/// Emits the output of a command.
fn emit_command_output(session: &Session, text: &str, stdout: String, run: Maybe<CommandRun>) {
    let mut answer = factory::synthetic_assistant(text.to_owned(), &mut Clock);
    answer.message.stop_reason = StopReason::EndTurn.into();
    let answer = Assistant {
        local_command_source: Maybe::Value(stdout),
        local_command_run: run,
        is_api_error_message: Maybe::Absent,
        envelope: Envelope { uuid: answer.envelope.uuid.clone(), ..session.output.timestamped_envelope() },
        extra: Extra::with_spelling(Spelling::STREAM),
        ..answer
    };
    session.output.emit(Entry::Assistant(Box::new(answer)));
}

/// Emits a local command back to a host that asked for its prompts.
fn emit_command_replay(ctx: &AgentContext<'_>, command: &Entry) {
    if let Entry::User(user) = command
        && ctx.session.options.replay_user_messages
    {
        ctx.emit_replay(user);
    }
}

/// Runs `/clear`: the session continues with a new id, an empty conversation and a new transcript.
async fn clear_conversation(session: &Arc<Session>, prompt: &Prompt, started_at: Instant) -> Result<(), AppendError> {
    session.record_session_end(true)?;
    session.flush().await?;
    let id = SessionId::from(new_id().as_str());
    session.output.emit(Entry::ConversationReset(Box::new(ConversationReset {
        new_conversation_id: Maybe::Value(id.clone()),
        trigger: Maybe::Value("clear".to_owned()),
        user_message_uuid: Maybe::Value(prompt.uuid.clone().unwrap_or_else(new_id)),
        envelope: Envelope { timestamp: Maybe::Value(now()), ..session.output.envelope() },
        ..ConversationReset::default()
    })));
    crate::background::emit_running_tasks(session);
    {
        let mut log = session.log();
        *log = log.for_new_session(id.clone());
        session.workspace.set_transcript((!session.options.no_persistence).then(|| log.path().to_owned()));
    }
    session.usage().clear();
    session.identity.replace_id(id.clone());
    session.activity.clear_conversation();
    session.memory.clear_instructions_sent();
    session.memory.clear_path_rules();
    session.output.set_session_id(id);
    let title = session.identity.title();
    if let Some(title) = title {
        session.rename(&title)?;
    }
    let [caveat, command] = command_entries_for_prompt(prompt, "clear", "");
    session.record(vec![caveat, command.clone(), command_output_entry("clear", "", "")]).await?;
    session.run_start_hooks(SessionStartSource::Clear).await;
    let ctx = main_context(session, prompt.uuid.clone(), CancellationToken::new());
    emit_init(&ctx);
    emit_command_replay(&ctx, &command);
    turn_result::emit_or_hold(session, turn_result::local_command_result(session, "clear", "", started_at));
    Ok(())
}

fn new_command_run(name: &str, args: &str) -> CommandRun {
    CommandRun { command: name.to_owned(), args: Maybe::Value(args.to_owned()), ..CommandRun::default() }
}

/// The entry for the output of a command.
fn command_output_entry(name: &str, args: &str, stdout: &str) -> Entry {
    local_command_entry(stdout.to_owned(), Maybe::Value(new_command_run(name, args)))
}

fn local_command_entry(content: String, command_run: Maybe<CommandRun>) -> Entry {
    let line = LocalCommand {
        content: Maybe::Value(content),
        level: MessageLevel::Info.into(),
        is_meta: Maybe::Value(false),
        command_run,
        envelope: Envelope { uuid: Maybe::Value(new_id()), timestamp: Maybe::Value(now()), ..Envelope::default() },
        ..LocalCommand::default()
    };
    Entry::System(Box::new(System::LocalCommand(Box::new(line))))
}

/// As [`command_entries`], with the UUID of the prompt that the command was typed in.
fn command_entries_for_prompt(prompt: &Prompt, name: &str, args: &str) -> [Entry; 2] {
    let [caveat, mut command] = command_entries(name, args);
    if let (Entry::User(user), Some(uuid)) = (&mut command, &prompt.uuid) {
        user.envelope.uuid = Maybe::Value(uuid.clone());
    }
    [caveat, command]
}

/// The entries for a local command: a caveat, then the command.
pub(crate) fn command_entries(name: &str, args: &str) -> [Entry; 2] {
    let command = format!(
        "<command-name>/{name}</command-name>\n<command-message>{name}</command-message>\n\
         <command-args>{args}</command-args>"
    );
    let caveat = factory::meta_user(LOCAL_COMMAND_CAVEAT, &mut Clock);
    [Entry::User(Box::new(caveat)), Entry::User(Box::new(factory::user(command, &mut Clock)))]
}

/// The output of a command as an entry for the transcript and as one for the stream.
pub(crate) fn stdout_entries(session: &Session, text: &str) -> (Entry, Entry) {
    let text = format!("<local-command-stdout>{text}</local-command-stdout>");
    let user = factory::user(Content::Text(text), &mut Clock);
    let stream_entry = User {
        message: user.message.clone(),
        is_replay: Maybe::Value(true),
        envelope: Envelope { uuid: user.envelope.uuid.clone(), ..session.output.timestamped_envelope() },
        extra: Extra::with_spelling(Spelling::STREAM),
        ..User::default()
    };
    (Entry::User(Box::new(user)), Entry::User(Box::new(stream_entry)))
}
