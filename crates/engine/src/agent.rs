//! Running an agent: sets up a session, answers its prompts, ends it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::select_all;
use parking_lot::Mutex;
use quipu_message::bookkeeping::ModeEntry;
use quipu_message::hook::{SessionEnd, SessionEndReason, SessionStartSource};
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
use crate::resume::ResumePoint;
use crate::session::Session;
use crate::setup::Launch;
use crate::turn_result::{self, error_with_cause, startup_error_result};

/// How long a session may take to end after a signal, once its turn is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long background commands may continue after the last result.
const BACKGROUND_COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long background subagents may continue after the last turn, unless
/// `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` sets another limit.
const BACKGROUND_SUBAGENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs an agent until it has no more prompts, and returns the exit code: 0 if the last turn
/// succeeded or Ctrl-C ended it, 1 if the last turn failed, 128 plus the number of another signal.
///
/// Prompts come from `options`, or line by line from stdin. Output in the chosen format goes to
/// `out`; warnings and notes for users go to `err`. Fails if the session cannot be set up, stdin
/// cannot be read or `out` cannot be written; failures of a turn are reported in its `result` line.
pub async fn run(
    options: Options,
    env: BTreeMap<String, String>,
    cwd: PathBuf,
    out: impl Write + Send + 'static,
    err: impl Write + Send + 'static,
) -> Result<u8, EngineError> {
    let mut launch = Launch::new(options, env, cwd);
    launch.remove_unsafe_programs(&[]);
    let stdin = Stdin::open(&mut launch.options).await?;
    launch.enter_worktree()?;
    let resume_point = ResumePoint::choose(&launch.options, &launch.config_folder(), &launch.cwd);
    let id = match &resume_point {
        Ok(resume_point) => resume_point.id.clone(),
        Err(EngineError::SessionNotFound { id }) => SessionId::from(id.as_str()),
        Err(_) => SessionId::from(new_id().as_str()),
    };
    let reader_gone = CancellationToken::new();
    let (format, verbose) = (launch.options.format, launch.options.verbose);
    let failed = |source| EngineError::Setup { what: "a thread for output", source };
    let (output, printer) = OutputStream::start(out, err, format, verbose, id, reader_gone.clone()).map_err(failed)?;
    let (resume_point, start) = match resume_point {
        Ok(mut resume_point) => {
            let start = StartInfo {
                is_resumed: resume_point.is_resumed,
                unanswered_prompts: std::mem::take(&mut resume_point.unanswered_prompts),
            };
            (resume_point, start)
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
    let session = launch.set_up(resume_point, output)?;
    let ended = run_session(&session, start, reader_gone, stdin).await;
    session.mcp.close().await;
    session.workspace.close();
    turn_result::emit_held(&session);
    session.output.close();
    let PrintSummary { last_result: last, write_error: failed } = printer.finish();
    // After all output, so that a slow collector delays nothing but the exit.
    session.telemetry.close().await;
    let signal = ended?;
    if let Some(source) = failed {
        return Err(EngineError::Output(source));
    }
    Ok(match signal {
        // As `claude` does.
        Some(SIGINT) => 0,
        Some(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        None => u8::from(last.is_some_and(|result| result.is_error)),
    })
}

/// The number of a signal that asks the agent to stop.
type Signal = i32;

const SIGINT: Signal = 2;

/// What a session starts from.
struct StartInfo {
    /// Whether it resumes an earlier session.
    is_resumed: bool,
    /// Prompts of the earlier session that were not answered.
    unanswered_prompts: Vec<Content>,
}

/// Answers prompts until there are no more. Returns the signal that ended it early, if one did.
async fn run_session(
    session: &Arc<Session>,
    start: StartInfo,
    reader_gone: CancellationToken,
    stdin: Stdin,
) -> Result<Option<Signal>, EngineError> {
    let cause = Arc::<ShutdownCause>::default();
    // In a task of its own, so that stdin and signals are handled whatever a turn does.
    let mut listening = tokio::spawn(watch_input(Arc::clone(session), stdin, Arc::clone(&cause), reader_gone));
    let answering = answer_prompts(session, start);
    // The task that watches input ends first only after an error or a signal.
    let done = tokio::select! {
        done = answering => done,
        _ = &mut listening => Ok(()),
    };
    listening.abort();
    done?;
    if let Some(error) = cause.input_error.lock().take() {
        return Err(error.into());
    }
    Ok(cause.signal.get().copied())
}

/// Why a session ends before its prompts do.
#[derive(Debug, Default)]
struct ShutdownCause {
    /// The error of reading stdin.
    input_error: Mutex<Option<InputError>>,
    /// The signal that asked the agent to stop.
    signal: OnceLock<Signal>,
}

async fn answer_prompts(session: &Arc<Session>, start: StartInfo) -> Result<(), EngineError> {
    if let Some(prompt) = session.options.prompt.clone().filter(|_| !session.options.stream_input) {
        session.enqueue_prompt(Prompt::from(prompt)).await;
        session.queue.close();
        session.connect_mcp().await;
    }
    let mut start = Some(start);
    while let Some(prompt) = next_prompt(session).await {
        if let Err(error) = prepare_turn(session, start.take()).await {
            // Hosts wait for a result, so there is one even now.
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
    if start.is_none() {
        end_session(session).await?;
    }
    Ok(())
}

/// The next prompt; `None` if there will be none. After the last prompt it waits a limited time for
/// background tasks, which end with a prompt of their own.
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

/// Records that a prompt leaves the queue; the first prompt also begins the session.
async fn prepare_turn(session: &Arc<Session>, start: Option<StartInfo>) -> Result<(), AppendError> {
    if let Some(start) = start {
        begin_session(session, start).await?;
    }
    session.record_queue_operation(QueueAction::Dequeue, None, None)
}

async fn answer_prompt(session: &Arc<Session>, prompt: Prompt) -> Result<(), AppendError> {
    session.set_activity(SessionActivity::Running);
    session.emit_lifecycle(prompt.uuid.as_ref(), CommandState::Started);
    session.telemetry.begin_turn();
    let cancel = CancellationToken::new();
    session.activity.begin_turn(prompt.uuid.clone(), cancel.clone());
    crate::turn_start::run_prompt_turn(session, prompt, cancel).await;
    session.activity.end_turn();
    // A prompt whose result is held back counts as completed too.
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

/// Emits a suggestion for the user's next prompt, unless a prompt arrives first.
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

/// Begins the session: records its mode and title, reports problems of its settings, and runs the
/// start hooks.
async fn begin_session(session: &Arc<Session>, start: StartInfo) -> Result<(), AppendError> {
    let StartInfo { is_resumed: resumed, unanswered_prompts: unanswered } = start;
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
    crate::queue_replay::resume_unanswered(session, unanswered).await?;
    let source = if resumed { SessionStartSource::Resume } else { SessionStartSource::Startup };
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

/// Reads stdin, waits for signals, and interrupts the turn when the reader of stdout is gone. Ends
/// only when the agent must stop.
async fn watch_input(
    session: Arc<Session>,
    mut stdin: Stdin,
    cause: Arc<ShutdownCause>,
    reader_gone: CancellationToken,
) {
    let session = &session;
    let router = crate::control::InputRouter::new(Arc::clone(session));
    let reading = async {
        if session.options.stream_input {
            loop {
                match stdin.next_input().await {
                    Ok(Some(said)) => router.route(said),
                    Ok(None) => break,
                    Err(error) => {
                        *cause.input_error.lock() = Some(error);
                        return;
                    }
                }
            }
            session.host.close();
            router.close();
        }
        std::future::pending::<()>().await;
    };
    let interrupted = async {
        let _ = cause.signal.set(wait_for_signal().await);
        session.queue.shut_down();
        session.interrupt();
        // A second signal does not stop the turn from being closed.
        wait_for_turn_end(session).await;
        // Then the session is closed, for which there is little time.
        tokio::select! {
            () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => {}
            _ = wait_for_signal() => {}
        }
    };
    let unheard = async {
        reader_gone.cancelled().await;
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

/// Waits for a signal that would end the agent, which then ends its children too.
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
        // SIGTRAP, SIGABRT, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGPWR, SIGSYS.
        kinds.extend([5, 6, 16, 24, 25, 26, 27, 30, 31].map(SignalKind::from_raw));
        // Real-time signals; the C library keeps 32 and 33.
        kinds.extend((34..=64).map(SignalKind::from_raw));
    }
    let streams = kinds.into_iter().filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?)));
    let unanswered = streams.map(|(number, mut stream)| {
        Box::pin(async move {
            stream.recv().await;
            number
        })
    });
    select_all(unanswered).await.0
}
