//! Messages that the host has not read yet, in bounded memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Error;
use crate::received::Received;

/// Rough size of a message in memory besides its text.
const MESSAGE_OVERHEAD_BYTES: usize = 1024;

/// Queue of messages between the reader task and the host.
///
/// While it is full, nothing is read from the agent, whose writes then block. A control
/// response comes after the messages before it, so a host that waits for one and reads no
/// messages would wait for ever: as long as a response is pending, the queue may grow to
/// eight times its capacity.
pub(crate) struct Mailbox {
    state: Mutex<MailboxState>,
    /// A message was added, or the conversation ended.
    message_added: Notify,
    /// A message was taken, or the limit was raised.
    space_freed: Notify,
    pending_responses: AtomicUsize,
    capacity_bytes: usize,
}

#[derive(Default)]
struct MailboxState {
    queue: VecDeque<Received>,
    bytes: usize,
    /// Set at the end of the conversation; the error is returned once.
    end: Option<Option<Error>>,
    /// The client was dropped: new messages are discarded.
    is_abandoned: bool,
}

impl Mailbox {
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            message_added: Notify::new(),
            space_freed: Notify::new(),
            pending_responses: AtomicUsize::new(0),
            capacity_bytes,
        }
    }

    /// Adds a message, after waiting for room.
    pub(crate) async fn push(&self, message: Received) {
        loop {
            {
                let mut state = self.state.lock();
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

    /// The next message; `None` after the end.
    pub(crate) async fn pop(&self) -> Option<Result<Received, Error>> {
        loop {
            {
                let mut state = self.state.lock();
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

    /// Ends the queue after the messages that are in it.
    pub(crate) fn end(&self, error: Option<Error>) {
        self.state.lock().end.get_or_insert(error);
        self.message_added.notify_one();
    }

    /// Discards all messages, and those that follow.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.is_abandoned = true;
        state.queue = VecDeque::new();
        state.bytes = 0;
        self.space_freed.notify_one();
    }

    /// Raises the limit while the returned guard lives.
    pub(crate) fn expect_response(&self) -> ResponseExpectation<'_> {
        self.pending_responses.fetch_add(1, Ordering::Relaxed);
        self.space_freed.notify_one();
        ResponseExpectation(self)
    }
}

/// Bytes that a message counts for.
fn message_bytes(message: &Received) -> usize {
    message.line.len() + MESSAGE_OVERHEAD_BYTES
}

/// A pending control response; see [`Mailbox`].
pub(crate) struct ResponseExpectation<'a>(&'a Mailbox);

impl Drop for ResponseExpectation<'_> {
    fn drop(&mut self) {
        self.0.pending_responses.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
