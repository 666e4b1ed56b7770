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
use crate::lines::{Lines, Piece};
use crate::link::{Ending, Link, Outgoing};
use crate::received::Received;
use crate::transport::{Connection, Peer};
use crate::{Error, Exit};

/// Hears a line of stderr.
pub(crate) type StderrFn = Arc<dyn Fn(&str) + Send + Sync>;

/// How long an agent may take to end once it has closed its side or was asked to end.
const LAST_MOMENT: Duration = Duration::from_secs(2);
const LONGEST_STDERR: usize = 64 * 1024;

/// What a conversation is driven with.
pub(crate) struct Driving {
    pub(crate) longest_line: usize,
    /// How long the agent may go on after it was told that nothing more comes.
    pub(crate) grace: Duration,
    pub(crate) on_stderr: Option<StderrFn>,
}

/// Starts the tasks.
pub(crate) fn start(link: &Arc<Link>, lines: mpsc::Receiver<Outgoing>, connection: Connection, driving: Driving) {
    let Connection { reader, writer, stderr, peer } = connection;
    let writing = tokio::spawn(write(writer, lines, link.said_all.clone()));
    let hearing = stderr.map(|stderr| tokio::spawn(hear_stderr(Arc::clone(link), stderr, driving.on_stderr)));
    let link = Arc::clone(link);
    let lines = Lines::new(reader, driving.longest_line);
    let reading = Reading { link, lines, peer, exit: None, grace: driving.grace };
    tokio::spawn(async move {
        reading.run(hearing).await;
        writing.abort();
    });
}

/// Writes lines until all is said, or nobody reads them.
async fn write(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::Receiver<Outgoing>,
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
        let Some(Outgoing { bytes, written }) = line else { break };
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            break;
        }
        let _ = written.send(());
    }
    let _ = writer.shutdown().await;
}

async fn hear_stderr(link: Arc<Link>, stderr: Box<dyn AsyncRead + Send + Unpin>, tell: Option<StderrFn>) {
    let mut lines = Lines::new(stderr, LONGEST_STDERR);
    while let Ok(Some(Piece::Line(bytes) | Piece::TooLong(bytes) | Piece::Torn(bytes))) = lines.next().await {
        let line = String::from_utf8_lossy(&bytes);
        link.stderr.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        if let Some(tell) = &tell {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(&line)));
        }
    }
}

struct Reading {
    link: Arc<Link>,
    lines: Lines<Box<dyn AsyncRead + Send + Unpin>>,
    peer: Box<dyn Peer>,
    /// How the agent has ended, when that is known before its side is closed.
    exit: Option<Exit>,
    grace: Duration,
}

impl Drop for Reading {
    /// When the runtime goes away, or a transport panics, nobody is left waiting.
    fn drop(&mut self) {
        self.link.end(Ending { exit: Exit::default(), error: Some(Error::Closed) });
    }
}

/// Why reading ended.
enum Stopped {
    /// The agent closed its side.
    End,
    /// The agent said that it cannot go on, or cannot be read.
    Failed(Error),
    /// The caller wants no more.
    Abandoned,
    /// The agent did not end in time.
    Overtime,
}

impl Reading {
    async fn run(mut self, hearing: Option<tokio::task::JoinHandle<()>>) {
        let stopped = self.read_to_the_end().await;
        if matches!(stopped, Stopped::Abandoned) {
            self.link.callbacks.stop();
        }
        let mut exit = self.end_peer(&stopped).await;
        if let Some(mut hearing) = hearing
            && timeout(LAST_MOMENT, &mut hearing).await.is_err()
        {
            // Something the agent has started still holds the pipe.
            hearing.abort();
        }
        exit.stderr = self.link.stderr_tail();
        // A turn that failed ends with a result and an exit code, and both are as they should be.
        let early = self.link.in_turn.load(Ordering::Acquire)
            || exit.signal.is_some()
            || !exit.is_success() && !self.link.had_result.load(Ordering::Acquire);
        let error = match stopped {
            Stopped::Failed(error) => Some(error),
            Stopped::End if early && !self.link.is_wanted() => Some(Error::Ended(exit.clone())),
            _ => None,
        };
        self.link.end(Ending { exit, error });
    }

    async fn read_to_the_end(&mut self) -> Stopped {
        let link = Arc::clone(&self.link);
        let grace = self.grace;
        let overtime = async {
            link.finish.cancelled().await;
            link.said_all.cancel();
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            stopped = self.read() => stopped,
            () = link.abandon.cancelled() => Stopped::Abandoned,
            () = overtime => Stopped::Overtime,
        }
    }

    async fn read(&mut self) -> Stopped {
        loop {
            let line = match self.piece().await {
                Ok(Some(Piece::Line(line))) => line,
                Ok(Some(Piece::TooLong(head))) => {
                    self.link.bad_line(&head, "longer than allowed");
                    continue;
                }
                Ok(Some(Piece::Torn(rest))) => {
                    self.link.bad_line(&rest, "broken off");
                    continue;
                }
                Ok(None) => return Stopped::End,
                Err(error) => return Stopped::Failed(Error::Read(Arc::new(error))),
            };
            let Ok(text) = std::str::from_utf8(&line) else {
                self.link.bad_line(&line, "not UTF-8");
                continue;
            };
            match Entry::read(text) {
                Ok(Entry::Error(error)) => return Stopped::Failed(Error::Agent(error)),
                Ok(entry) => self.hear(entry, text).await,
                Err(_) if text.trim().is_empty() => {}
                Err(error) => self.bad(text, &error),
            }
        }
    }

    /// The next piece of what the agent says; none at the end. An agent that is dead and
    /// silent has come to its end too: something it has started holds its pipe open.
    async fn piece(&mut self) -> io::Result<Option<Piece>> {
        if let Some(piece) = self.lines.take() {
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
            tokio::time::sleep(LAST_MOMENT).await;
        };
        tokio::select! {
            biased;
            piece = lines.next() => piece,
            () = dead_and_silent => Ok(None),
        }
    }

    async fn hear(&mut self, entry: Entry, line: &str) {
        match entry {
            Entry::ControlResponse(response) => {
                let id = response.response.request_id().unwrap_or_default().into_owned();
                if !self.link.answered(*response) {
                    self.link.bad_line(id.as_bytes(), "an answer to a question that nobody waits for");
                }
            }
            Entry::ControlRequest(request) => callbacks::answer(&self.link, *request),
            Entry::ControlCancel(cancel) => self.link.callbacks.cancel(&cancel.request_id),
            entry => {
                // Whoever speaks after a result is in the turn of a prompt that was said before it.
                let speaker = match &entry {
                    Entry::Assistant(said) => Some(&said.envelope),
                    Entry::StreamEvent(piece) => Some(&piece.envelope),
                    _ => None,
                };
                if matches!(entry, Entry::Result(_)) {
                    self.link.in_turn.store(false, Ordering::Release);
                    self.link.had_result.store(true, Ordering::Release);
                } else if self.link.had_result.load(Ordering::Acquire)
                    && speaker.is_some_and(|envelope| !envelope.parent_tool_use_id.is_value())
                {
                    self.link.in_turn.store(true, Ordering::Release);
                }
                let line = line.trim_end_matches('\r').to_owned();
                self.link.mailbox.put(Received { entry, line }).await;
            }
        }
    }

    /// A line that is no message is told of; when it asks something it is answered.
    fn bad(&self, text: &str, error: &ReadError) {
        self.link.bad_line(text.as_bytes(), why(error));
        if let ReadError::Malformed(_) = error
            && let Some(request) = ControlRequest::unreadable(text)
        {
            callbacks::say(&self.link, ControlResponse::error(&request.request_id, why(error)));
        }
    }

    /// Sees to it that the agent has ended.
    async fn end_peer(&mut self, stopped: &Stopped) -> Exit {
        if matches!(stopped, Stopped::End) {
            if let Some(exit) = self.exit.take() {
                return exit;
            }
            tokio::select! {
                waited = timeout(self.grace.max(LAST_MOMENT), self.peer.wait()) => if let Ok(Ok(exit)) = waited {
                    return exit;
                },
                () = self.link.abandon.cancelled() => {}
            }
        }
        self.peer.terminate();
        let waited = timeout(LAST_MOMENT, self.peer.wait()).await;
        self.peer.kill();
        match waited {
            Ok(Ok(exit)) => exit,
            _ => timeout(LAST_MOMENT, self.peer.wait()).await.ok().and_then(Result::ok).unwrap_or_default(),
        }
    }
}

/// An error with what caused it.
fn why(error: &ReadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
