//! Messages that wait for the caller, in bounded memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::Error;
use crate::received::Received;

/// What a message takes besides its text, more or less.
const MESSAGE_OVERHEAD_BYTES: usize = 1024;

/// What has been heard and not yet been taken.
///
/// When it is full nothing more is read from the agent, which then waits. As long as
/// somebody waits for an answer of the agent (which stands behind these messages) it
/// may grow eight times as large.
pub(crate) struct Mailbox {
    state: Mutex<MailboxState>,
    /// Something came, or the end.
    message_added: Notify,
    /// Something was taken, or somebody waits for an answer.
    space_freed: Notify,
    pending_responses: AtomicUsize,
    capacity_bytes: usize,
}

#[derive(Default)]
struct MailboxState {
    queue: VecDeque<Received>,
    bytes: usize,
    /// How it ended; the error is told once.
    end: Option<Option<Error>>,
    /// Nobody listens any more.
    is_abandoned: bool,
}

impl Mailbox {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            state: Mutex::default(),
            message_added: Notify::new(),
            space_freed: Notify::new(),
            pending_responses: AtomicUsize::new(0),
            capacity_bytes: size,
        }
    }

    fn state(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in when there is room.
    pub(crate) async fn push(&self, message: Received) {
        loop {
            {
                let mut state = self.state();
                if state.is_abandoned {
                    return;
                }
                let room = if self.pending_responses.load(Ordering::Relaxed) > 0 {
                    8 * self.capacity_bytes
                } else {
                    self.capacity_bytes
                };
                if state.bytes < room {
                    state.bytes += message_bytes(&message);
                    state.queue.push_back(message);
                    break;
                }
            }
            self.space_freed.notified().await;
        }
        self.message_added.notify_one();
    }

    /// The next message; none after the end.
    pub(crate) async fn pop(&self) -> Option<Result<Received, Error>> {
        loop {
            {
                let mut state = self.state();
                if let Some(message) = state.queue.pop_front() {
                    state.bytes -= message_bytes(&message);
                    self.space_freed.notify_one();
                    return Some(Ok(message));
                }
                if let Some(end) = &mut state.end {
                    return end.take().map(Err);
                }
            }
            self.message_added.notified().await;
        }
    }

    /// Nothing more will come.
    pub(crate) fn end(&self, error: Option<Error>) {
        self.state().end.get_or_insert(error);
        self.message_added.notify_one();
    }

    /// Nobody will take anything any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.is_abandoned = true;
        state.queue = VecDeque::new();
        state.bytes = 0;
        self.space_freed.notify_one();
    }

    /// Makes room for what stands before an answer, as long as the guard lives.
    pub(crate) fn expect_response(&self) -> ResponseExpectation<'_> {
        self.pending_responses.fetch_add(1, Ordering::Relaxed);
        self.space_freed.notify_one();
        ResponseExpectation(self)
    }
}

/// What a message counts for, in bytes.
fn message_bytes(message: &Received) -> usize {
    message.line.len() + MESSAGE_OVERHEAD_BYTES
}

/// Somebody waits for an answer.
pub(crate) struct ResponseExpectation<'a>(&'a Mailbox);

impl Drop for ResponseExpectation<'_> {
    fn drop(&mut self) {
        self.0.pending_responses.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
