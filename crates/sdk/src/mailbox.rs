//! Messages that wait for the caller, in bounded memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::Error;
use crate::received::Received;

/// What a message takes besides its text, more or less.
const FRAME: usize = 1024;

/// What has been heard and not yet been taken.
///
/// When it is full nothing more is read from the agent, which then waits. As long as
/// somebody waits for an answer of the agent (which stands behind these messages) it
/// may grow eight times as large.
pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// Something came, or the end.
    came: Notify,
    /// Something was taken, or somebody waits for an answer.
    went: Notify,
    waiting: AtomicUsize,
    size: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Received>,
    bytes: usize,
    /// How it ended; the error is told once.
    end: Option<Option<Error>>,
    /// Nobody listens any more.
    deaf: bool,
}

impl Mailbox {
    pub(crate) fn new(size: usize) -> Self {
        Self { state: Mutex::default(), came: Notify::new(), went: Notify::new(), waiting: AtomicUsize::new(0), size }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in when there is room.
    pub(crate) async fn put(&self, message: Received) {
        loop {
            {
                let mut state = self.state();
                if state.deaf {
                    return;
                }
                let room = if self.waiting.load(Ordering::Relaxed) > 0 { 8 * self.size } else { self.size };
                if state.bytes < room {
                    state.bytes += size(&message);
                    state.queue.push_back(message);
                    break;
                }
            }
            self.went.notified().await;
        }
        self.came.notify_one();
    }

    /// The next message; none after the end.
    pub(crate) async fn take(&self) -> Option<Result<Received, Error>> {
        loop {
            {
                let mut state = self.state();
                if let Some(message) = state.queue.pop_front() {
                    state.bytes -= size(&message);
                    self.went.notify_one();
                    return Some(Ok(message));
                }
                if let Some(end) = &mut state.end {
                    return end.take().map(Err);
                }
            }
            self.came.notified().await;
        }
    }

    /// Nothing more will come.
    pub(crate) fn end(&self, error: Option<Error>) {
        self.state().end.get_or_insert(error);
        self.came.notify_one();
    }

    /// Nobody will take anything any more.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.deaf = true;
        state.queue = VecDeque::new();
        state.bytes = 0;
        self.went.notify_one();
    }

    /// Makes room for what stands before an answer, as long as the guard lives.
    pub(crate) fn expect_answer(&self) -> Expecting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.went.notify_one();
        Expecting(self)
    }
}

/// What a message counts for, in bytes.
fn size(message: &Received) -> usize {
    message.line.len() + FRAME
}

/// Somebody waits for an answer.
pub(crate) struct Expecting<'a>(&'a Mailbox);

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
