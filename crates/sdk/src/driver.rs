//! The tasks of one conversation: reading, writing, and seeing it to its end.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use quipu_message::control::{ControlRequest, ControlResponse};
use quipu_message::{Entry, ReadError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::callbacks;
use crate::conversation_state::{ConversationEnd, ConversationState, OutgoingLine};
use crate::lines::{AsyncLineReader, ReadLine};
use crate::received::Received;
use crate::transport::{Connection, Peer};
use crate::{Error, Exit};

/// Hears a line of stderr.
pub(crate) type StderrFn = Arc<dyn Fn(&str) + Send + Sync>;

/// How long an agent may take to end once it has closed its side or was asked to end.
const EXIT_GRACE: Duration = Duration::from_secs(2);
const MAX_STDERR_LINE_BYTES: usize = 64 * 1024;

/// What a conversation is driven with.
pub(crate) struct DriverOptions {
    pub(crate) max_line_bytes: usize,
    /// How long the agent may go on after it was told that nothing more comes.
    pub(crate) close_timeout: Duration,
    pub(crate) on_stderr: Option<StderrFn>,
}

/// Starts the tasks.
pub(crate) fn spawn_tasks(
    link: &Arc<ConversationState>,
    lines: mpsc::Receiver<OutgoingLine>,
    connection: Connection,
    driving: DriverOptions,
) {
    let Connection { reader, writer, stderr, peer } = connection;
    let writing = tokio::spawn(write_lines(writer, lines, link.input_closed.clone()));
    let hearing = stderr.map(|stderr| tokio::spawn(read_stderr(Arc::clone(link), stderr, driving.on_stderr)));
    let link = Arc::clone(link);
    let lines = AsyncLineReader::new(reader, driving.max_line_bytes);
    let reading = ReaderTask { state: link, lines, peer, exit: None, close_timeout: driving.close_timeout };
    tokio::spawn(async move {
        reading.run(hearing).await;
        writing.abort();
    });
}

/// Writes lines until all is said, or nobody reads them.
async fn write_lines(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::Receiver<OutgoingLine>,
    said_all: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = said_all.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
        };
        let Some(OutgoingLine { bytes, on_written: written }) = line else { break };
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            break;
        }
        let _ = written.send(());
    }
    let _ = writer.shutdown().await;
}

async fn read_stderr(link: Arc<ConversationState>, stderr: Box<dyn AsyncRead + Send + Unpin>, tell: Option<StderrFn>) {
    let mut lines = AsyncLineReader::new(stderr, MAX_STDERR_LINE_BYTES);
    while let Ok(Some(ReadLine::Line(bytes) | ReadLine::TooLong(bytes) | ReadLine::Torn(bytes))) = lines.next().await {
        let line = String::from_utf8_lossy(&bytes);
        link.stderr.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        if let Some(tell) = &tell {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(&line)));
        }
    }
}

struct ReaderTask {
    state: Arc<ConversationState>,
    lines: AsyncLineReader<Box<dyn AsyncRead + Send + Unpin>>,
    peer: Box<dyn Peer>,
    /// How the agent has ended, when that is known before its side is closed.
    exit: Option<Exit>,
    close_timeout: Duration,
}

impl Drop for ReaderTask {
    /// When the runtime goes away, or a transport panics, nobody is left waiting.
    fn drop(&mut self) {
        self.state.end(ConversationEnd { exit: Exit::default(), error: Some(Error::Closed) });
    }
}

/// Why reading ended.
enum StopReason {
    /// The agent closed its side.
    EndOfOutput,
    /// The agent said that it cannot go on, or cannot be read.
    Failed(Error),
    /// The caller wants no more.
    Abandoned,
    /// The agent did not end in time.
    TimedOut,
}

impl ReaderTask {
    async fn run(mut self, hearing: Option<tokio::task::JoinHandle<()>>) {
        let stopped = self.read_until_stopped().await;
        if matches!(stopped, StopReason::Abandoned) {
            self.state.callbacks.cancel_all();
        }
        let mut exit = self.shut_down_peer(&stopped).await;
        if let Some(mut hearing) = hearing
            && timeout(EXIT_GRACE, &mut hearing).await.is_err()
        {
            // Something the agent has started still holds the pipe.
            hearing.abort();
        }
        exit.stderr = self.state.stderr_tail();
        // A turn that failed ends with a result and an exit code, and both are as they should be.
        let early = self.state.is_in_turn.load(Ordering::Acquire)
            || exit.signal.is_some()
            || !exit.is_success() && !self.state.has_had_result.load(Ordering::Acquire);
        let error = match stopped {
            StopReason::Failed(error) => Some(error),
            StopReason::EndOfOutput if early && !self.state.is_closing() => Some(Error::Ended(exit.clone())),
            _ => None,
        };
        self.state.end(ConversationEnd { exit, error });
    }

    async fn read_until_stopped(&mut self) -> StopReason {
        let link = Arc::clone(&self.state);
        let grace = self.close_timeout;
        let overtime = async {
            link.finish.cancelled().await;
            link.input_closed.cancel();
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            stopped = self.read_entries() => stopped,
            () = link.abort.cancelled() => StopReason::Abandoned,
            () = overtime => StopReason::TimedOut,
        }
    }

    async fn read_entries(&mut self) -> StopReason {
        loop {
            let line = match self.next_line().await {
                Ok(Some(ReadLine::Line(line))) => line,
                Ok(Some(ReadLine::TooLong(head))) => {
                    self.state.report_bad_line(&head, "longer than allowed");
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

    /// The next piece of what the agent says; none at the end. An agent that is dead and
    /// silent has come to its end too: something it has started holds its pipe open.
    async fn next_line(&mut self) -> io::Result<Option<ReadLine>> {
        if let Some(piece) = self.lines.next_buffered() {
            return Ok(Some(piece));
        }
        let Self { lines, peer, exit, .. } = self;
        let dead_and_silent = async {
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
            piece = lines.next() => piece,
            () = dead_and_silent => Ok(None),
        }
    }

    async fn dispatch(&mut self, entry: Entry, line: &str) {
        match entry {
            Entry::ControlResponse(response) => {
                let id = response.response.request_id().unwrap_or_default().into_owned();
                if !self.state.complete_request(*response) {
                    self.state.report_bad_line(id.as_bytes(), "an answer to a question that nobody waits for");
                }
            }
            Entry::ControlRequest(request) => callbacks::handle_request(&self.state, *request),
            Entry::ControlCancelRequest(cancel) => self.state.callbacks.cancel(&cancel.request_id),
            entry => {
                // Whoever speaks after a result is in the turn of a prompt that was said before it.
                let speaker = match &entry {
                    Entry::Assistant(said) => Some(&said.envelope),
                    Entry::StreamEvent(piece) => Some(&piece.envelope),
                    _ => None,
                };
                if matches!(entry, Entry::Result(_)) {
                    self.state.is_in_turn.store(false, Ordering::Release);
                    self.state.has_had_result.store(true, Ordering::Release);
                } else if self.state.has_had_result.load(Ordering::Acquire)
                    && speaker.is_some_and(|envelope| !envelope.parent_tool_use_id.is_value())
                {
                    self.state.is_in_turn.store(true, Ordering::Release);
                }
                let line = line.trim_end_matches('\r').to_owned();
                self.state.mailbox.push(Received { entry, line }).await;
            }
        }
    }

    /// A line that is no message is told of; when it asks something it is answered.
    fn handle_bad_line(&self, text: &str, error: &ReadError) {
        self.state.report_bad_line(text.as_bytes(), error_with_source(error));
        if let ReadError::Malformed(_) = error
            && let Some(request) = ControlRequest::from_unreadable(text)
        {
            callbacks::send_response(
                &self.state,
                ControlResponse::error(&request.request_id, error_with_source(error)),
            );
        }
    }

    /// Sees to it that the agent has ended.
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

/// An error with what caused it.
fn error_with_source(error: &ReadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
