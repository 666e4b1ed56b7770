//! The agent's life: set up, answer prompts as they come, end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::select_all;
use quipu_message::bookkeeping::{AgentName, CustomTitle, Mode as ModeLine};
use quipu_message::hook::SessionEnd;
use quipu_message::stream::{CommandLifecycle, PromptSuggestion, TurnResult};
use quipu_message::system::{System, live};
use quipu_message::{Content, Entry, Maybe, SessionId, Uuid};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::fresh;
use crate::ending::{self, in_full, stillborn};
use crate::error::EngineError;
use crate::input::{InputError, Prompt, Stdin};
use crate::options::{Format, Options};
use crate::output::{Output, Printed};
use crate::session::Session;
use crate::setup::Given;

/// How long a session may take to end after a signal.
const PARTING: Duration = Duration::from_secs(2);

/// How long commands in the background may run on after the last result.
const COMMAND_WAIT: Duration = Duration::from_secs(5);

/// How long subagents in the background may work on after the last turn, unless the
/// environment says otherwise.
const SUBAGENT_WAIT: Duration = Duration::from_secs(600);

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
    let mut given = Given { options, env, cwd, worktree: None };
    let stdin = Stdin::open(&mut given.options).await?;
    given.enter_worktree()?;
    let chosen = given.choose();
    let id = match &chosen {
        Ok(chosen) => chosen.id.clone(),
        Err(EngineError::NoSession { id }) => SessionId::from(id.as_str()),
        Err(_) => SessionId::from(fresh().as_str()),
    };
    let gone = CancellationToken::new();
    let (format, verbose) = (given.options.format, given.options.verbose);
    let failed = |source| EngineError::System { what: "a thread for output", source };
    let (output, printer) = Output::to(out, err, format, verbose, id, gone.clone()).map_err(failed)?;
    let (chosen, begun) = match chosen {
        Ok(mut chosen) => {
            let begun = Begun { resumed: chosen.resumed, waiting: std::mem::take(&mut chosen.waiting) };
            (chosen, begun)
        }
        Err(error) => {
            let has_result = matches!(
                error,
                EngineError::NoSession { .. } | EngineError::NoTitle { .. } | EngineError::DropsMore { .. }
            );
            // With text output the error is printed on stderr only.
            if has_result && format != Format::Text {
                output.say(Entry::Result(Box::new(stillborn(&output, &error.to_string()))));
            }
            output.end();
            printer.finish();
            return Err(error);
        }
    };
    let session = given.set_up(chosen, output)?;
    let ended = live(&session, begun, gone, stdin).await;
    session.mcp.close().await;
    session.place.close();
    ending::say_held(&session);
    session.output.end();
    let Printed { last, failed } = printer.finish();
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
struct Begun {
    /// Whether it goes on from an earlier one.
    resumed: bool,
    /// What was said in that and not answered.
    waiting: Vec<Content>,
}

/// Answers prompts until there are no more; returns the signal that broke it off.
async fn live(
    session: &Arc<Session>,
    from: Begun,
    gone: CancellationToken,
    stdin: Stdin,
) -> Result<Option<Signal>, EngineError> {
    let heard = Arc::<Heard>::default();
    // A task of its own: whatever a turn does, stdin and signals are heard.
    let mut listening = tokio::spawn(listen(Arc::clone(session), stdin, Arc::clone(&heard), gone));
    let answering = answer(session, from);
    // Whoever reads stdin never ends before the prompts do.
    let done = tokio::select! {
        done = answering => done,
        _ = &mut listening => Ok(()),
    };
    listening.abort();
    done?;
    if let Some(error) = heard.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
        return Err(error.into());
    }
    Ok(heard.signal.get().copied())
}

/// What ends a session from outside.
#[derive(Debug, Default)]
struct Heard {
    /// Input that cannot be read.
    fault: Mutex<Option<InputError>>,
    /// The signal.
    signal: OnceLock<Signal>,
}

async fn answer(session: &Arc<Session>, from: Begun) -> Result<(), EngineError> {
    if let Some(prompt) = session.options.prompt.clone().filter(|_| !session.options.stream_input) {
        take_prompt(session, Prompt::from(prompt)).await;
        session.queue.close();
        session.mcp.connect_all(session).await;
    }
    let mut from = Some(from);
    while let Some(prompt) = next_prompt(session).await {
        if let Err(error) = take_up(session, from.take()).await {
            // Whoever waits for a result gets one.
            let result = stillborn(&session.output, &in_full(&error));
            ending::say(session, TurnResult { result_index: Maybe::Value(session.next_result()), ..result });
            return Err(error.into());
        }
        if crate::background::is_news(session, &prompt) {
            answer_one(session, prompt).await?;
            session.note_end(false)?;
        } else if !session.queue.expects() {
            ending::say_held(session);
            session.now_doing("idle");
        }
    }
    if from.is_none() {
        end(session).await?;
    }
    Ok(())
}

/// The next prompt. What runs in the background after the last one is waited for, but not
/// for ever; `None` if there is nothing more to do.
async fn next_prompt(session: &Session) -> Option<Prompt> {
    let wait = match session.var("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS").and_then(|millis| millis.parse().ok()) {
        _ if session.options.stream_input => Duration::MAX,
        _ if !session.queue.expects() => COMMAND_WAIT,
        Some(0) => Duration::MAX,
        Some(millis) => Duration::from_millis(millis),
        None => SUBAGENT_WAIT,
    };
    tokio::time::timeout(wait, session.queue.next()).await.ok().flatten()
}

/// A prompt came: it is noted and waits for its turn. One that cannot be noted waits
/// too, and its turn says that nothing can be written.
pub(crate) async fn take_prompt(session: &Session, prompt: Prompt) {
    let noted = session.note_enqueued(&prompt);
    // One that the host names is acknowledged when it cannot be lost any more.
    if let (Some(uuid), Ok(noted)) = (&prompt.uuid, noted)
        && noted.written().await.is_ok()
    {
        lifecycle(session, Some(uuid), "queued");
    }
    session.queue.push(prompt);
}

/// A prompt's turn has come; the first one begins the session.
async fn take_up(session: &Arc<Session>, from: Option<Begun>) -> Result<(), AppendError> {
    if let Some(from) = from {
        begin(session, from).await?;
    }
    session.note_queue("dequeue", None, None)
}

async fn answer_one(session: &Arc<Session>, prompt: Prompt) -> Result<(), AppendError> {
    session.now_doing("running");
    lifecycle(session, prompt.uuid.as_ref(), "started");
    session.state().answering = prompt.uuid.clone();
    let cancel = CancellationToken::new();
    session.state().turn = Some(cancel.clone());
    crate::begin::turn(session, prompt, cancel).await;
    session.state().turn = None;
    // Whose result was held back is done all the same.
    let answered = session.state().answering.take();
    lifecycle(session, answered.as_ref(), "completed");
    if session.held().is_empty() {
        session.now_doing("idle");
    }
    if session.options.prompt_suggestions && session.state().turns > 1 {
        say_suggestion(session).await;
    }
    Ok(())
}

/// Says what the person might say next, unless they say something meanwhile.
async fn say_suggestion(session: &Arc<Session>) {
    let suggestion = tokio::select! {
        suggestion = crate::side::suggest(session) => suggestion,
        () = session.queue.waiting() => None,
    };
    if let Some(suggestion) = suggestion {
        let envelope = session.output.envelope();
        let line = PromptSuggestion { suggestion, envelope, ..PromptSuggestion::default() };
        session.output.say(Entry::PromptSuggestion(Box::new(line)));
    }
}

/// Says how a prompt stands that the host named.
pub(crate) fn lifecycle(session: &Session, uuid: Option<&Uuid>, state: &str) {
    if let Some(uuid) = uuid {
        session.output.say(lifecycle_line(session, uuid, state));
    }
}

/// How a prompt stands that the host named, as a line.
pub(crate) fn lifecycle_line(session: &Session, uuid: &Uuid, state: &str) -> Entry {
    Entry::CommandLifecycle(Box::new(CommandLifecycle {
        command_uuid: Maybe::Value(uuid.clone()),
        state: Maybe::Value(state.to_owned()),
        envelope: session.output.envelope(),
        ..CommandLifecycle::default()
    }))
}

/// The session begins: its title is told, its hooks run.
async fn begin(session: &Arc<Session>, from: Begun) -> Result<(), AppendError> {
    let Begun { resumed, waiting } = from;
    if resumed {
        let line = ModeLine {
            mode: "normal".to_owned(),
            session_id: Maybe::Value(session.state().id.clone()),
            ..ModeLine::default()
        };
        session.log().note(&[Entry::Mode(Box::new(line))])?;
    }
    if let Some(name) = session.options.name.clone() {
        rename(session, &name)?;
    }
    let problems = session.state().settings.problems.clone();
    for problem in problems {
        session.warn(format!("left out: {problem}"));
    }
    session.tell_auto();
    crate::waiting::take_up(session, waiting).await?;
    let source = if resumed { "resume" } else { "startup" };
    crate::begin::session_hooks(session, source).await
}

/// Gives the session a title and says so.
pub(crate) fn rename(session: &Session, title: &str) -> Result<(), AppendError> {
    session.state().title = Some(title.to_owned());
    session.say(System::SessionTitleChanged(Box::new(live::SessionTitleChanged {
        title: Maybe::Value(title.to_owned()),
        envelope: session.output.envelope(),
        ..live::SessionTitleChanged::default()
    })));
    note_title(session, title)
}

fn note_title(session: &Session, title: &str) -> Result<(), AppendError> {
    let id = Maybe::Value(session.state().id.clone());
    let custom = CustomTitle { title: title.to_owned(), session_id: id.clone(), ..CustomTitle::default() };
    let name = AgentName { name: title.to_owned(), session_id: id, ..AgentName::default() };
    session.log().note(&[Entry::CustomTitle(Box::new(custom)), Entry::AgentName(Box::new(name))])
}

async fn end(session: &Arc<Session>) -> Result<(), AppendError> {
    session.place.tasks().stop_all().await;
    session.note_end(true)?;
    session.flush().await?;
    let input = SessionEnd { reason: "other".to_owned(), base: session.hook_base(), ..SessionEnd::default() };
    session.hook(input, Some("other"), None, &CancellationToken::new()).await;
    Ok(())
}

/// Reads stdin, hears signals, and notices when nobody reads what we say.
async fn listen(session: Arc<Session>, mut stdin: Stdin, heard: Arc<Heard>, gone: CancellationToken) {
    let session = &session;
    let desk = crate::control::Desk::new(Arc::clone(session));
    let reading = async {
        if session.options.stream_input {
            loop {
                match stdin.next().await {
                    Ok(Some(said)) => desk.hear(said),
                    Ok(None) => break,
                    Err(error) => {
                        *heard.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
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
        let _ = heard.signal.set(signal().await);
        session.queue.end();
        session.interrupt();
        // However many signals come, the turn is closed first.
        turn_ends(session).await;
        // The session is being closed; wait for that a short time only.
        tokio::select! {
            () = tokio::time::sleep(PARTING) => {}
            _ = signal() => {}
        }
    };
    let unheard = async {
        gone.cancelled().await;
        session.host.close();
        session.queue.end();
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
async fn turn_ends(session: &Session) {
    while session.state().turn.is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for a signal that would end the agent: it ends by itself then, with its children.
#[cfg(unix)]
async fn signal() -> Signal {
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
