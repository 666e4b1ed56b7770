//! The tasks of one conversation: they read, write, and shut the agent down.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu_message::control::{ControlRequest, ControlResponse};
use quipu_message::{Entry, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::LOG_TARGET;
use crate::callbacks::CallbackRunner;
use crate::conversation_state::{ConversationEnd, ConversationState, OutgoingLine, StderrFn};
use crate::lines::{AsyncLineReader, ReadLine};
use crate::received::Received;
use crate::transport::{Connection, Peer};
use crate::{Error, Exit};

/// How long an agent may take to exit after it closed its output or got a signal.
const EXIT_GRACE: Duration = Duration::from_secs(2);
const MAX_STDERR_LINE_BYTES: usize = 64 * 1024;

/// Values of [`Options`](crate::Options) that the tasks need.
pub(crate) struct DriverOptions {
    pub(crate) max_line_bytes: usize,
    /// How long the agent may run on after its input was closed.
    pub(crate) close_timeout: Duration,
    pub(crate) on_stderr: Option<StderrFn>,
}

/// Starts the tasks that read, write, and read stderr.
pub(crate) fn spawn_tasks(
    state: &Arc<ConversationState>,
    callbacks: Arc<CallbackRunner>,
    lines: mpsc::Receiver<OutgoingLine>,
    connection: Connection,
    options: DriverOptions,
) {
    let Connection { reader, writer, stderr, peer } = connection;
    let writer_task = tokio::spawn(write_lines(writer, lines, state.input_closed.clone()));
    let stderr_task = stderr.map(|stderr| tokio::spawn(read_stderr(Arc::clone(state), stderr, options.on_stderr)));
    let state = Arc::clone(state);
    let lines = AsyncLineReader::new(reader, options.max_line_bytes);
    let reader = ReaderTask { state, callbacks, lines, peer, exit: None, close_timeout: options.close_timeout };
    let span = tracing::debug_span!(target: LOG_TARGET, "session");
    let task = async move {
        reader.run(stderr_task).await;
        writer_task.abort();
    };
    tokio::spawn(task.instrument(span));
}

/// Writes lines until the input is closed or the agent stops reading.
async fn write_lines(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::Receiver<OutgoingLine>,
    input_closed: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = input_closed.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
        };
        let Some(OutgoingLine { bytes, on_written }) = line else { break };
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            break;
        }
        let _ = on_written.send(());
    }
    let _ = writer.shutdown().await;
}

async fn read_stderr(
    state: Arc<ConversationState>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
    on_stderr: Option<StderrFn>,
) {
    let mut lines = AsyncLineReader::new(stderr, MAX_STDERR_LINE_BYTES);
    while let Ok(Some(ReadLine::Line(bytes) | ReadLine::TooLong(bytes) | ReadLine::Torn(bytes))) = lines.next().await {
        let line = String::from_utf8_lossy(&bytes);
        state.stderr.lock().push(&line);
        if let Some(on_stderr) = &on_stderr {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_stderr(&line)));
        }
    }
}

/// Reads the agent's output, dispatches it, and ends the conversation.
struct ReaderTask {
    state: Arc<ConversationState>,
    callbacks: Arc<CallbackRunner>,
    lines: AsyncLineReader<Box<dyn AsyncRead + Send + Unpin>>,
    peer: Box<dyn Peer>,
    /// Exit of the agent, if it exited before its output was closed.
    exit: Option<Exit>,
    close_timeout: Duration,
}

impl Drop for ReaderTask {
    /// Ends the conversation also if the runtime shuts down or a transport panics, so that
    /// no request waits forever.
    fn drop(&mut self) {
        self.state.end(ConversationEnd { exit: Exit::default(), error: Some(Error::Closed) });
    }
}

/// Why reading ended.
enum StopReason {
    /// The agent closed its output.
    EndOfOutput,
    /// The agent reported a fatal error, or its output cannot be read.
    Failed(Error),
    /// The client was dropped.
    Abandoned,
    /// The agent did not exit within the close timeout.
    TimedOut,
}

impl ReaderTask {
    /// Reads to the end, makes sure that the agent has exited, and decides whether that was
    /// expected.
    ///
    /// An exit is an error if a prompt still has no result, if a signal killed the agent, or
    /// if it failed before its first result; a failed turn exits with a code and has a
    /// result, which is reported already. None of this counts if the host asked for the end.
    async fn run(mut self, stderr_task: Option<tokio::task::JoinHandle<()>>) {
        let stopped = self.read_until_stopped().await;
        if matches!(stopped, StopReason::Abandoned) {
            self.state.callbacks_cancelled.cancel();
        }
        let mut exit = self.shut_down_peer(&stopped).await;
        if let Some(mut stderr_task) = stderr_task
            && timeout(EXIT_GRACE, &mut stderr_task).await.is_err()
        {
            // A process that the agent started still holds the pipe.
            stderr_task.abort();
        }
        exit.stderr = self.state.stderr_tail();
        let early = self.state.is_in_turn.load(Ordering::Acquire)
            || exit.signal.is_some()
            || !exit.is_success() && !self.state.has_had_result.load(Ordering::Acquire);
        let error = match stopped {
            StopReason::Failed(error) => Some(error),
            StopReason::EndOfOutput if early && !self.state.is_closing() => Some(Error::Ended(exit.clone())),
            _ => None,
        };
        tracing::debug!(target: LOG_TARGET, code = exit.code, signal = exit.signal, failed = error.is_some(), "ended");
        self.state.end(ConversationEnd { exit, error });
    }

    async fn read_until_stopped(&mut self) -> StopReason {
        let state = Arc::clone(&self.state);
        let grace = self.close_timeout;
        let overtime = async {
            state.finish.cancelled().await;
            state.input_closed.cancel();
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            stopped = self.read_entries() => stopped,
            () = state.abort.cancelled() => StopReason::Abandoned,
            () = overtime => StopReason::TimedOut,
        }
    }

    async fn read_entries(&mut self) -> StopReason {
        loop {
            // Without it an agent that always has more output fills the mailbox before the host's
            // task runs: the first message is late, and all of them have left the processor's cache.
            tokio::task::coop::consume_budget().await;
            let line = match self.next_line().await {
                Ok(Some(ReadLine::Line(line))) => line,
                Ok(Some(ReadLine::TooLong(head))) => {
                    self.state.report_bad_line(&head, "longer than the limit");
                    continue;
                }
                Ok(Some(ReadLine::Torn(rest))) => {
                    self.state.report_bad_line(&rest, "broken off");
                    continue;
                }
                Ok(None) => return StopReason::EndOfOutput,
                Err(error) => return StopReason::Failed(Error::Read(Arc::new(error))),
            };
            let Ok(text) = std::str::from_utf8(&line) else {
                self.state.report_bad_line(&line, "not UTF-8");
                continue;
            };
            match Entry::read(text) {
                Ok(Entry::Error(error)) => return StopReason::Failed(Error::Agent(error)),
                Ok(entry) => self.dispatch(entry, text).await,
                Err(_) if text.trim().is_empty() => {}
                Err(error) => self.handle_bad_line(text, &error),
            }
        }
    }

    /// The next line of the agent's output; `None` at its end. The output also ends when the
    /// agent has exited and nothing came for a while: a process that it started may hold the
    /// pipe open for ever.
    async fn next_line(&mut self) -> io::Result<Option<ReadLine>> {
        if let Some(line) = self.lines.next_buffered() {
            return Ok(Some(line));
        }
        let Self { lines, peer, exit, .. } = self;
        let exited_and_silent = async {
            if exit.is_none() {
                match peer.wait().await {
                    Ok(ended) => *exit = Some(ended),
                    Err(_) => std::future::pending().await,
                }
            }
            tokio::time::sleep(EXIT_GRACE).await;
        };
        tokio::select! {
            biased;
            line = lines.next() => line,
            () = exited_and_silent => Ok(None),
        }
    }

    async fn dispatch(&mut self, entry: Entry, line: &str) {
        match entry {
            Entry::ControlResponse(response) => {
                let id = response.response.request_id().unwrap_or_default().into_owned();
                if !self.state.complete_request(*response) {
                    self.state.report_bad_line(id.as_bytes(), "response to a request that is not pending");
                }
            }
            Entry::ControlRequest(request) => self.callbacks.handle_request(*request),
            Entry::ControlCancelRequest(cancel) => self.callbacks.cancel(&cancel.request_id),
            entry => {
                // Output of the main agent after a result belongs to the turn of a queued prompt.
                let envelope = match &entry {
                    Entry::Assistant(assistant) => Some(&assistant.envelope),
                    Entry::StreamEvent(event) => Some(&event.envelope),
                    _ => None,
                };
                if matches!(entry, Entry::Result(_)) {
                    self.state.is_in_turn.store(false, Ordering::Release);
                    self.state.has_had_result.store(true, Ordering::Release);
                } else if self.state.has_had_result.load(Ordering::Acquire)
                    && envelope.is_some_and(|envelope| !envelope.parent_tool_use_id.is_value())
                {
                    self.state.is_in_turn.store(true, Ordering::Release);
                }
                let line = line.trim_end_matches('\r').to_owned();
                self.state.mailbox.push(Received { entry, line }).await;
            }
        }
    }

    /// Reports a line that is not a message; if it is a control request, it gets an error response.
    fn handle_bad_line(&self, text: &str, error: &ReadError) {
        self.state.report_bad_line(text.as_bytes(), error_with_source(error));
        if let ReadError::Malformed(_) = error
            && let Some(request) = ControlRequest::from_unreadable(text)
        {
            self.callbacks.send_response(ControlResponse::error(&request.request_id, error_with_source(error)));
        }
    }

    /// Waits for the agent to exit; sends SIGTERM, then SIGKILL, if it does not.
    async fn shut_down_peer(&mut self, stopped: &StopReason) -> Exit {
        if matches!(stopped, StopReason::EndOfOutput) {
            if let Some(exit) = self.exit.take() {
                return exit;
            }
            tokio::select! {
                waited = timeout(self.close_timeout.max(EXIT_GRACE), self.peer.wait()) => if let Ok(Ok(exit)) = waited {
                    return exit;
                },
                () = self.state.abort.cancelled() => {}
            }
        }
        self.peer.terminate();
        let waited = timeout(EXIT_GRACE, self.peer.wait()).await;
        self.peer.kill();
        match waited {
            Ok(Ok(exit)) => exit,
            _ => timeout(EXIT_GRACE, self.peer.wait()).await.ok().and_then(Result::ok).unwrap_or_default(),
        }
    }
}

/// The message of an error and its cause.
fn error_with_source(error: &ReadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
