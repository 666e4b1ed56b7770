//! The thread that writes one session file, so that whoever records waits for the disk
//! only if it wants to.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_message::Line;
use quipu_message::user_assistant::Assistant;

use crate::append::{AppendError, Journal, LOCK_DEADLINE};

/// Called on the writer's thread when the lines it was passed with are written, or could
/// not be. Lines that could not be written are tried again with the next ones.
pub type OnWritten = Box<dyn FnOnce(Result<(), AppendError>) + Send>;

/// Called with lines after they are written.
pub type WriteObserver = Box<dyn Fn(&Path, &[Line]) + Send>;

/// How many answers may wait for their end.
const MAX_QUEUED_ENTRIES: usize = 256;

/// How long a lock is waited for when the recorder is dropped.
const LOCK_DEADLINE_ON_CLOSE: Duration = Duration::from_millis(200);

/// Writes lines in the order they are passed in.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<SharedState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SharedState {
    queue: Mutex<WriterQueue>,
    wake: Condvar,
}

#[derive(Default)]
struct WriterQueue {
    items: VecDeque<QueueItem>,
    /// When answers at the end of the queue are written, though nothing follows them.
    flush_at: Option<Instant>,
    /// How many commits are in the queue.
    queued_commits: usize,
    observer: Option<WriteObserver>,
    closed: bool,
}

enum QueueItem {
    Line(Line),
    Assistant(Arc<Mutex<QueuedAssistant>>),
    /// Everything before it is to be written, and synced if it says so.
    Commit {
        sync: bool,
        on_written: OnWritten,
    },
}

#[derive(Debug)]
struct QueuedAssistant {
    entry: Assistant,
    state: QueuedState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedState {
    /// Its end may still change.
    Open,
    /// Its end is known; it is not written yet.
    Finished,
    Written,
    Withdrawn,
}

impl QueuedAssistant {
    /// Whether it is still to be written.
    fn is_unwritten(&self) -> bool {
        matches!(self.state, QueuedState::Open | QueuedState::Finished)
    }

    /// The entry to write, which from now on counts as written; `None` if there is nothing
    /// to write.
    fn take(&mut self) -> Option<&Assistant> {
        let waits = self.is_unwritten();
        if waits {
            self.state = QueuedState::Written;
        }
        waits.then_some(&self.entry)
    }
}

/// An answer that waits to be written.
#[derive(Debug, Clone)]
pub struct QueuedHandle(Arc<Mutex<QueuedAssistant>>);

impl QueuedHandle {
    /// Changes the answer. Returns false if it is written already.
    pub fn update(&self, change: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = lock(&self.0);
        let waits = answer.is_unwritten();
        if waits {
            change(&mut answer.entry);
        }
        waits
    }

    /// Changes the answer for the last time: whatever comes after it is written after it.
    /// Returns false if it is written already.
    pub(crate) fn finish(&self, end: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = lock(&self.0);
        let waits = answer.is_unwritten();
        if waits {
            end(&mut answer.entry);
            answer.state = QueuedState::Finished;
        }
        waits
    }

    /// The answer as it is.
    pub(crate) fn entry(&self) -> Assistant {
        lock(&self.0).entry.clone()
    }

    /// Keeps the answer from being written. Returns false if it is written already.
    pub fn withdraw(&self) -> bool {
        let mut answer = lock(&self.0);
        let waits = answer.state != QueuedState::Written;
        if waits {
            answer.state = QueuedState::Withdrawn;
        }
        waits
    }
}

impl Writer {
    pub(crate) fn new(journal: Journal) -> io::Result<Self> {
        let shared = Arc::<SharedState>::default();
        let thread = {
            let mut work =
                WriterThread { shared: Arc::clone(&shared), journal, pending: VecDeque::new(), serialize_error: None };
            std::thread::Builder::new().name("quipu-recorder".to_owned()).spawn(move || work.run())?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells `watch` of all lines written from now on.
    pub(crate) fn set_observer(&self, watch: WriteObserver) {
        lock(&self.shared.queue).observer = Some(watch);
    }

    /// Writes everything passed in before and then these lines.
    pub(crate) fn commit(&self, lines: Vec<Line>, sync: bool, done: OnWritten) {
        let mut waiting = lock(&self.shared.queue);
        waiting.items.extend(lines.into_iter().map(QueueItem::Line));
        waiting.items.push_back(QueueItem::Commit { sync, on_written: done });
        waiting.queued_commits += 1;
        self.shared.wake.notify_one();
    }

    /// Writes these lines before the answers that wait for their end.
    pub(crate) fn commit_before_open_entries(&self, lines: Vec<Line>, sync: bool, done: OnWritten) {
        let mut waiting = lock(&self.shared.queue);
        let open =
            |item: &&QueueItem| matches!(item, QueueItem::Assistant(answer) if lock(answer).state == QueuedState::Open);
        let answers = waiting.items.iter().rev().take_while(open).count();
        let at = waiting.items.len() - answers;
        let answers = waiting.items.split_off(at);
        waiting.items.extend(lines.into_iter().map(QueueItem::Line));
        waiting.items.push_back(QueueItem::Commit { sync, on_written: done });
        waiting.items.extend(answers);
        waiting.queued_commits += 1;
        self.shared.wake.notify_one();
    }

    /// Queues an answer: it is written with the next commit, or after `delay`.
    pub(crate) fn queue_assistant(&self, answer: Assistant, delay: Duration) -> QueuedHandle {
        let answer = Arc::new(Mutex::new(QueuedAssistant { entry: answer, state: QueuedState::Open }));
        let mut waiting = lock(&self.shared.queue);
        waiting.items.push_back(QueueItem::Assistant(Arc::clone(&answer)));
        let full = waiting.items.len() >= MAX_QUEUED_ENTRIES;
        if full || waiting.flush_at.is_none() {
            let delay = if full { Duration::ZERO } else { delay };
            waiting.flush_at = Some(Instant::now() + delay);
            self.shared.wake.notify_one();
        }
        QueuedHandle(answer)
    }

    /// Writes what waits and ends the thread.
    pub(crate) fn stop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there has poisoned nothing we still need.
            let _ = thread.join();
        }
    }
}

/// Waits for what `send` is acknowledged with.
pub(crate) fn wait_until_written(send: impl FnOnce(OnWritten) -> Result<(), AppendError>) -> Result<(), AppendError> {
    let (told, acknowledged) = std::sync::mpsc::sync_channel(1);
    send(Box::new(move |written| {
        let _ = told.send(written);
    }))?;
    acknowledged.recv().unwrap_or(Err(AppendError::Stopped))
}

/// What the thread works with.
struct WriterThread {
    shared: Arc<SharedState>,
    journal: Journal,
    /// Not yet written; what an error left is tried again with the next commit.
    pending: VecDeque<Line>,
    /// An answer that could not be made into a line, which the next commit tells.
    serialize_error: Option<AppendError>,
}

impl WriterThread {
    fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut waiting = lock(&shared.queue);
        loop {
            let now = Instant::now();
            let due = waiting.flush_at.is_some_and(|due| due <= now);
            waiting = if waiting.queued_commits > 0 || due || waiting.closed {
                let all = due || waiting.closed;
                let ready = waiting.take_ready(all);
                let closed = waiting.closed;
                drop(waiting);
                self.write_items(ready);
                if closed {
                    return;
                }
                lock(&shared.queue)
            } else if let Some(due) = waiting.flush_at {
                shared.wake.wait_timeout(waiting, due - now).unwrap_or_else(PoisonError::into_inner).0
            } else {
                shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    fn write_items(&mut self, ready: VecDeque<QueueItem>) {
        let mut locked = None;
        for item in ready {
            match item {
                QueueItem::Line(line) => self.pending.push_back(line),
                QueueItem::Assistant(answer) => self.serialize_assistant(&answer),
                QueueItem::Commit { sync, on_written: done } => {
                    // Whoever waits behind a lock does not wait for it one by one.
                    let written = match locked {
                        Some(waited) => Err(AppendError::Locked { path: self.journal.path().to_owned(), waited }),
                        None => self.append_pending(sync),
                    };
                    if let Err(AppendError::Locked { waited, .. }) = &written {
                        locked = Some(*waited);
                    }
                    done(written);
                }
            }
        }
        if !self.pending.is_empty() && locked.is_none() {
            // What fails here is tried again with the next commit, which tells.
            let _ = self.append_pending(false);
        }
    }

    fn serialize_assistant(&mut self, answer: &Mutex<QueuedAssistant>) {
        match lock(answer).take().map(Line::from_serialize) {
            Some(Ok(line)) => self.pending.push_back(line),
            Some(Err(error)) => self.serialize_error = Some(AppendError::Serialize(error)),
            None => {}
        }
    }

    fn append_pending(&mut self, sync: bool) -> Result<(), AppendError> {
        let watch = lock(&self.shared.queue).observer.take();
        let before: Vec<Line> = if watch.is_some() { self.pending.iter().cloned().collect() } else { Vec::new() };
        let shared = &self.shared;
        let patient = |waited| waited < LOCK_DEADLINE_ON_CLOSE || waited < LOCK_DEADLINE && !lock(&shared.queue).closed;
        let appended = self.journal.append_with_lock_wait(&mut self.pending, sync, patient);
        if let Some(watch) = watch {
            let written = before.len() - self.pending.len();
            if written > 0 {
                watch(self.journal.path(), &before[..written]);
            }
            lock(&self.shared.queue).observer.get_or_insert(watch);
        }
        match self.serialize_error.take() {
            Some(error) => appended.and(Err(error)),
            None => appended,
        }
    }
}

impl WriterQueue {
    /// Takes what is to be written now: all, or everything up to the last commit. Answers
    /// behind that may still change.
    fn take_ready(&mut self, all: bool) -> VecDeque<QueueItem> {
        let last = self.items.iter().rposition(|item| matches!(item, QueueItem::Commit { .. }));
        let count = if all { self.items.len() } else { last.map_or(0, |last| last + 1) };
        let rest = self.items.split_off(count);
        if rest.is_empty() {
            self.flush_at = None;
        }
        self.queued_commits = 0;
        std::mem::replace(&mut self.items, rest)
    }
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &lock(&self.queue).items.len()).finish_non_exhaustive()
    }
}

/// The lock, even when a thread died holding it: what it guards is whole between
/// any two steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn an_answer_that_is_written_while_it_ends_stays_written() {
        for _ in 0..2000 {
            let answer =
                Arc::new(Mutex::new(QueuedAssistant { entry: Assistant::default(), state: QueuedState::Open }));
            let (queued, both) = (QueuedHandle(Arc::clone(&answer)), Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    queued.finish(|_| std::thread::yield_now());
                });
                both.wait();
                assert!(answer.lock().is_ok_and(|mut answer| answer.take().is_some()));
            });
            assert!(!queued.update(|_| ()), "what is written can no longer change");
        }
    }
}
