//! The agent's life: set up, answer prompts as they come, end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::select_all;
use parking_lot::Mutex;
use quipu_message::bookkeeping::ModeEntry;
use quipu_message::hook::{SessionEnd, SessionEndReason};
use quipu_message::stream::{PromptSuggestion, TurnResult};
use quipu_message::values::{CommandState, QueueAction, SessionActivity};
use quipu_message::{Content, Entry, Maybe, SessionId};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::new_id;
use crate::error::{EngineError, InputError};
use crate::input::{Prompt, Stdin};
use crate::main_context::main_context;
use crate::options::{Format, Options};
use crate::output::{OutputStream, PrintSummary};
use crate::session::Session;
use crate::setup::Launch;
use crate::turn_result::{self, error_with_cause, startup_error_result};

/// How long a session may take to end after a signal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long commands in the background may run on after the last result.
const BACKGROUND_COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long subagents in the background may work on after the last turn, unless the
/// environment says otherwise.
const BACKGROUND_SUBAGENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the agent until there is nothing more to do; returns the exit code.
///
/// Errors that no `result` line tells of are returned; everything else is said on
/// `out`, and what people should know meanwhile on `err`. Prompts come from the
/// options, or line by line from stdin.
pub async fn run(
    options: Options,
    env: BTreeMap<String, String>,
    cwd: PathBuf,
    out: impl Write + Send + 'static,
    err: impl Write + Send + 'static,
) -> Result<u8, EngineError> {
    let mut given = Launch { options, env, cwd, worktree: None };
    let stdin = Stdin::open(&mut given.options).await?;
    given.enter_worktree()?;
    let chosen = given.choose_session();
    let id = match &chosen {
        Ok(chosen) => chosen.id.clone(),
        Err(EngineError::SessionNotFound { id }) => SessionId::from(id.as_str()),
        Err(_) => SessionId::from(new_id().as_str()),
    };
    let gone = CancellationToken::new();
    let (format, verbose) = (given.options.format, given.options.verbose);
    let failed = |source| EngineError::Setup { what: "a thread for output", source };
    let (output, printer) = OutputStream::start(out, err, format, verbose, id, gone.clone()).map_err(failed)?;
    let (chosen, begun) = match chosen {
        Ok(mut chosen) => {
            let begun = StartInfo {
                is_resumed: chosen.is_resumed,
                unanswered_prompts: std::mem::take(&mut chosen.unanswered_prompts),
            };
            (chosen, begun)
        }
        Err(error) => {
            let has_result = matches!(
                error,
                EngineError::SessionNotFound { .. }
                    | EngineError::TitleNotFound { .. }
                    | EngineError::ResumeDropsMore { .. }
            );
            // With text output the error is printed on stderr only.
            if has_result && format != Format::Text {
                output.emit(Entry::Result(Box::new(startup_error_result(&output, &error.to_string()))));
            }
            output.close();
            printer.finish();
            return Err(error);
        }
    };
    let session = given.set_up(chosen, output)?;
    let ended = run_session(&session, begun, gone, stdin).await;
    session.mcp.close().await;
    session.workspace.close();
    turn_result::emit_held(&session);
    session.output.close();
    let PrintSummary { last_result: last, write_error: failed } = printer.finish();
    let signal = ended?;
    if let Some(source) = failed {
        return Err(EngineError::Output(source));
    }
    Ok(match signal {
        // Ctrl-C exits with 0, as the program that this one stands in for does; any other
        // signal with 128 plus its number.
        Some(SIGINT) => 0,
        Some(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        None => u8::from(last.is_some_and(|result| result.is_error)),
    })
}

/// The number of a signal that asks the agent to stop.
type Signal = i32;

const SIGINT: Signal = 2;

/// What a session begins with.
struct StartInfo {
    /// Whether it goes on from an earlier one.
    is_resumed: bool,
    /// What was said in that and not answered.
    unanswered_prompts: Vec<Content>,
}

/// Answers prompts until there are no more; returns the signal that broke it off.
async fn run_session(
    session: &Arc<Session>,
    from: StartInfo,
    gone: CancellationToken,
    stdin: Stdin,
) -> Result<Option<Signal>, EngineError> {
    let heard = Arc::<ShutdownCause>::default();
    // A task of its own: whatever a turn does, stdin and signals are heard.
    let mut listening = tokio::spawn(watch_input(Arc::clone(session), stdin, Arc::clone(&heard), gone));
    let answering = answer_prompts(session, from);
    // Whoever reads stdin never ends before the prompts do.
    let done = tokio::select! {
        done = answering => done,
        _ = &mut listening => Ok(()),
    };
    listening.abort();
    done?;
    if let Some(error) = heard.input_error.lock().take() {
        return Err(error.into());
    }
    Ok(heard.signal.get().copied())
}

/// What ends a session from outside.
#[derive(Debug, Default)]
struct ShutdownCause {
    /// Input that cannot be read.
    input_error: Mutex<Option<InputError>>,
    /// The signal.
    signal: OnceLock<Signal>,
}

async fn answer_prompts(session: &Arc<Session>, from: StartInfo) -> Result<(), EngineError> {
    if let Some(prompt) = session.options.prompt.clone().filter(|_| !session.options.stream_input) {
        session.enqueue_prompt(Prompt::from(prompt)).await;
        session.queue.close();
        session.connect_mcp().await;
    }
    let mut from = Some(from);
    while let Some(prompt) = next_prompt(session).await {
        if let Err(error) = prepare_turn(session, from.take()).await {
            // Whoever waits for a result gets one.
            let result = startup_error_result(&session.output, &error_with_cause(&error));
            turn_result::emit_or_hold(
                session,
                TurnResult { result_index: Maybe::Value(session.next_result_index()), ..result },
            );
            return Err(error.into());
        }
        if session.is_unseen(&prompt) {
            answer_prompt(session, prompt).await?;
            session.record_session_end(false)?;
        } else if !session.queue.is_expecting_subagents() {
            turn_result::emit_held(session);
            session.set_activity(SessionActivity::Idle);
        }
    }
    if from.is_none() {
        end_session(session).await?;
    }
    Ok(())
}

/// The next prompt. What runs in the background after the last one is waited for, but not
/// for ever; `None` if there is nothing more to do.
async fn next_prompt(session: &Session) -> Option<Prompt> {
    let wait = match session.var("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS").and_then(|millis| millis.parse().ok()) {
        _ if session.options.stream_input => Duration::MAX,
        _ if !session.queue.is_expecting_subagents() => BACKGROUND_COMMAND_TIMEOUT,
        Some(0) => Duration::MAX,
        Some(millis) => Duration::from_millis(millis),
        None => BACKGROUND_SUBAGENT_TIMEOUT,
    };
    tokio::time::timeout(wait, session.queue.next()).await.ok().flatten()
}

/// A prompt's turn has come; the first one begins the session.
async fn prepare_turn(session: &Arc<Session>, from: Option<StartInfo>) -> Result<(), AppendError> {
    if let Some(from) = from {
        begin_session(session, from).await?;
    }
    session.record_queue_operation(QueueAction::Dequeue, None, None)
}

async fn answer_prompt(session: &Arc<Session>, prompt: Prompt) -> Result<(), AppendError> {
    session.set_activity(SessionActivity::Running);
    session.emit_lifecycle(prompt.uuid.as_ref(), CommandState::Started);
    let cancel = CancellationToken::new();
    session.activity.begin_turn(prompt.uuid.clone(), cancel.clone());
    crate::turn_start::run_prompt_turn(session, prompt, cancel).await;
    session.activity.end_turn();
    // Whose result was held back is done all the same.
    let answered = session.activity.take_answered();
    session.emit_lifecycle(answered.as_ref(), CommandState::Completed);
    if session.held_results().is_empty() {
        session.set_activity(SessionActivity::Idle);
    }
    if session.options.prompt_suggestions && session.activity.turn_count() > 1 {
        emit_suggestion(session).await;
    }
    Ok(())
}

/// Says what the person might say next, unless they say something meanwhile.
async fn emit_suggestion(session: &Arc<Session>) {
    let ctx = main_context(session, None, CancellationToken::new());
    let suggestion = tokio::select! {
        suggestion = crate::side_calls::suggest_prompt(&ctx) => suggestion,
        () = session.queue.wait_for_prompt() => None,
    };
    if let Some(suggestion) = suggestion {
        let envelope = session.output.envelope();
        let line = PromptSuggestion { suggestion, envelope, ..PromptSuggestion::default() };
        session.output.emit(Entry::PromptSuggestion(Box::new(line)));
    }
}

/// The session begins: its title is told, its hooks run.
async fn begin_session(session: &Arc<Session>, from: StartInfo) -> Result<(), AppendError> {
    let StartInfo { is_resumed: resumed, unanswered_prompts: waiting } = from;
    if resumed {
        let line = ModeEntry {
            mode: "normal".to_owned(),
            session_id: Maybe::Value(session.identity.id()),
            ..ModeEntry::default()
        };
        session.log().record_bookkeeping(&[Entry::Mode(Box::new(line))])?;
    }
    if let Some(name) = session.options.name.clone() {
        session.rename(&name)?;
    }
    let problems = session.settings().problems.clone();
    for problem in problems {
        session.warn(format!("left out: {problem}"));
    }
    session.announce_auto_mode();
    crate::queue_replay::resume_unanswered(session, waiting).await?;
    let source = if resumed { "resume" } else { "startup" };
    session.run_start_hooks(source).await;
    Ok(())
}

async fn end_session(session: &Arc<Session>) -> Result<(), AppendError> {
    session.workspace.tasks().stop_all().await;
    session.record_session_end(true)?;
    session.flush().await?;
    let input =
        SessionEnd { reason: SessionEndReason::OtherReason, base: session.hook_base(), ..SessionEnd::default() };
    session.run_hooks(input, Some("other"), None, &CancellationToken::new()).await;
    Ok(())
}

/// Reads stdin, hears signals, and notices when nobody reads what we say.
async fn watch_input(session: Arc<Session>, mut stdin: Stdin, heard: Arc<ShutdownCause>, gone: CancellationToken) {
    let session = &session;
    let desk = crate::control::InputRouter::new(Arc::clone(session));
    let reading = async {
        if session.options.stream_input {
            loop {
                match stdin.next_input().await {
                    Ok(Some(said)) => desk.route(said),
                    Ok(None) => break,
                    Err(error) => {
                        *heard.input_error.lock() = Some(error);
                        return;
                    }
                }
            }
            session.host.close();
            desk.close();
        }
        std::future::pending::<()>().await;
    };
    let interrupted = async {
        let _ = heard.signal.set(wait_for_signal().await);
        session.queue.shut_down();
        session.interrupt();
        // However many signals come, the turn is closed first.
        wait_for_turn_end(session).await;
        // The session is being closed; wait for that a short time only.
        tokio::select! {
            () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => {}
            _ = wait_for_signal() => {}
        }
    };
    let unheard = async {
        gone.cancelled().await;
        session.host.close();
        session.queue.shut_down();
        session.interrupt();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = reading => {}
        () = interrupted => {}
        () = unheard => {}
    }
}

/// Waits until no turn runs.
async fn wait_for_turn_end(session: &Session) {
    while session.activity.is_turn_running() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for a signal that would end the agent: it ends by itself then, with its children.
#[cfg(unix)]
async fn wait_for_signal() -> Signal {
    use tokio::signal::unix::{SignalKind, signal};
    let mut kinds = vec![
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
        SignalKind::io(),
    ];
    if cfg!(target_os = "linux") {
        // SIGSTKFLT, SIGXCPU, SIGVTALRM, SIGPROF, SIGPWR.
        kinds.extend([16, 24, 26, 27, 30].map(SignalKind::from_raw));
    }
    let streams = kinds.into_iter().filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?)));
    let waiting = streams.map(|(number, mut stream)| {
        Box::pin(async move {
            stream.recv().await;
            number
        })
    });
    select_all(waiting).await.0
}

/// Waits until somebody wants the agent to stop.
#[cfg(not(unix))]
async fn signal() -> Signal {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    SIGINT
}
