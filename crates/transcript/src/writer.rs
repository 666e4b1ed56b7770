//! The thread that writes one session file, so that a caller waits for the disk only if it asks
//! to.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_message::Line;
use quipu_message::user_assistant::Assistant;

use crate::append::{AppendError, Journal, LOCK_DEADLINE};

/// Called after the lines it was passed with are written or could not be written, on the writer's
/// thread, or at once if there is nothing to write. Lines that could not be written are tried
/// again with the next ones.
pub type OnWritten = Box<dyn FnOnce(Result<(), AppendError>) + Send>;

/// Called on the writer's thread with the path of the file and the lines just written.
pub type WriteObserver = Box<dyn Fn(&Path, &[Line]) + Send>;

/// Queued entries beyond this number are written at once, which bounds memory.
const MAX_QUEUED_ENTRIES: usize = 256;

/// How long the thread sleeps after writing before it waits to be woken. Entries that are queued
/// meanwhile need not wake it, because it wakes before they are due.
const SLEEP_AFTER_WRITE: Duration = Duration::from_millis(100);

/// How long to wait for a lock when the recorder is dropped.
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
    /// When to write the assistant entries at the end of the queue but the last one, even if nothing
    /// is recorded after them.
    flush_at: Option<Instant>,
    /// When to write the last one.
    flush_last_at: Option<Instant>,
    /// Number of commits in the queue.
    queued_commits: usize,
    /// Whether the thread has written and synced everything it took from the queue.
    is_synced: bool,
    observer: Option<WriteObserver>,
    closed: bool,
    thread: ThreadState,
}

#[derive(Default)]
enum ThreadState {
    /// The thread looks at the queue before it sleeps.
    #[default]
    Running,
    /// The thread sleeps until this time, or until it is woken if `until` is `None`.
    Sleeping { until: Option<Instant> },
}

enum QueueItem {
    Line(Line),
    Assistant(Arc<Mutex<QueuedAssistant>>),
    /// Write everything before this, and sync it if `sync` is set.
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
    /// Usage and stop reason may still change.
    Open,
    /// Complete, but not written yet.
    Finished,
    Written,
    Withdrawn,
}

impl QueuedAssistant {
    /// Whether the entry still has to be written.
    fn is_unwritten(&self) -> bool {
        matches!(self.state, QueuedState::Open | QueuedState::Finished)
    }

    /// Marks the entry as written and returns it; `None` if it was written or withdrawn before.
    fn take(&mut self) -> Option<&Assistant> {
        let is_unwritten = self.is_unwritten();
        if is_unwritten {
            self.state = QueuedState::Written;
        }
        is_unwritten.then_some(&self.entry)
    }
}

/// An assistant entry in the queue of a [`Recorder`](crate::Recorder).
#[derive(Debug, Clone)]
pub struct QueuedHandle(Arc<Mutex<QueuedAssistant>>);

impl QueuedHandle {
    /// Changes the entry. Returns false, without calling `change`, if it is written already.
    pub fn update(&self, change: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = lock(&self.0);
        let is_unwritten = answer.is_unwritten();
        if is_unwritten {
            change(&mut answer.entry);
        }
        is_unwritten
    }

    /// Changes the entry for the last time; from now on no later line overtakes it. Returns false if
    /// it is written already.
    pub(crate) fn finish(&self, end: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = lock(&self.0);
        let is_unwritten = answer.is_unwritten();
        if is_unwritten {
            end(&mut answer.entry);
            answer.state = QueuedState::Finished;
        }
        is_unwritten
    }

    /// Removes the entry from the queue. Returns false if it is written already.
    pub fn withdraw(&self) -> bool {
        let mut answer = lock(&self.0);
        let is_unwritten = answer.state != QueuedState::Written;
        if is_unwritten {
            answer.state = QueuedState::Withdrawn;
        }
        is_unwritten
    }
}

impl Writer {
    pub(crate) fn new(journal: Journal) -> io::Result<Self> {
        let shared = Arc::<SharedState>::default();
        let thread = {
            let mut writer_thread =
                WriterThread { shared: Arc::clone(&shared), journal, pending: VecDeque::new(), serialize_error: None };
            std::thread::Builder::new().name("quipu-recorder".to_owned()).spawn(move || writer_thread.run())?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Calls `observer` for every line that is written from now on.
    pub(crate) fn set_observer(&self, observer: WriteObserver) {
        lock(&self.shared.queue).observer = Some(observer);
    }

    /// Writes everything in the queue and then these lines.
    pub(crate) fn commit(&self, lines: Vec<Line>, sync: bool, done: OnWritten) {
        let mut queue = lock(&self.shared.queue);
        if lines.is_empty() && queue.items.is_empty() && queue.is_synced {
            drop(queue);
            return done(Ok(()));
        }
        queue.items.extend(lines.into_iter().map(QueueItem::Line));
        queue.items.push_back(QueueItem::Commit { sync, on_written: done });
        queue.queued_commits += 1;
        self.wake_thread(queue);
    }

    /// Writes these lines, but leaves the unfinished assistant entries at the end of the queue.
    pub(crate) fn commit_before_open_entries(&self, lines: Vec<Line>, sync: bool, done: OnWritten) {
        let mut queue = lock(&self.shared.queue);
        let answers = queue.split_off_open();
        queue.items.extend(lines.into_iter().map(QueueItem::Line));
        queue.items.push_back(QueueItem::Commit { sync, on_written: done });
        queue.items.extend(answers);
        queue.queued_commits += 1;
        self.wake_thread(queue);
    }

    /// Queues lines before the unfinished assistant entries at the end of the queue. They are written
    /// with the next commit or after `max_delay`, which starts again once if an entry is queued after them.
    pub(crate) fn queue_lines(&self, lines: Vec<Line>, max_delay: Duration) {
        let mut queue = lock(&self.shared.queue);
        let due = Instant::now() + max_delay;
        let answers = queue.split_off_open();
        queue.items.extend(lines.into_iter().map(QueueItem::Line));
        if answers.is_empty() {
            queue.flush_last_at = Some(queue.flush_last_at.map_or(due, |at| at.min(due)));
        } else {
            queue.flush_at.get_or_insert(due);
            queue.items.extend(answers);
        }
        self.wake_thread_if_due_earlier(queue);
    }

    /// Queues an assistant entry, which is written with the next commit or after `max_open_delay`. The
    /// entries before it are written after `max_delay`.
    pub(crate) fn queue_assistant(
        &self,
        answer: Assistant,
        max_delay: Duration,
        max_open_delay: Duration,
    ) -> QueuedHandle {
        let answer = Arc::new(Mutex::new(QueuedAssistant { entry: answer, state: QueuedState::Open }));
        let mut queue = lock(&self.shared.queue);
        let (now, follows) = (Instant::now(), !queue.items.is_empty());
        queue.items.push_back(QueueItem::Assistant(Arc::clone(&answer)));
        if queue.items.len() >= MAX_QUEUED_ENTRIES {
            queue.flush_last_at = Some(now);
        } else {
            if follows {
                queue.flush_at.get_or_insert(now + max_delay);
            }
            queue.flush_last_at = Some(now + max_open_delay);
        }
        self.wake_thread_if_due_earlier(queue);
        QueuedHandle(answer)
    }

    /// Writes everything in the queue after `delay` at the latest.
    pub(crate) fn write_within(&self, delay: Duration) {
        let mut queue = lock(&self.shared.queue);
        if !queue.items.is_empty() {
            let due = Instant::now() + delay;
            queue.flush_last_at = Some(queue.flush_last_at.map_or(due, |at| at.min(due)));
            self.wake_thread_if_due_earlier(queue);
        }
    }

    /// Wakes the thread if it sleeps. The lock is released first, because the thread would wait for it.
    fn wake_thread(&self, queue: MutexGuard<'_, WriterQueue>) {
        let is_sleeping = matches!(queue.thread, ThreadState::Sleeping { .. });
        drop(queue);
        if is_sleeping {
            self.shared.wake.notify_one();
        }
    }

    /// Wakes the thread if it would sleep too long.
    fn wake_thread_if_due_earlier(&self, queue: MutexGuard<'_, WriterQueue>) {
        let sleeps_too_long = match queue.thread {
            ThreadState::Running => false,
            ThreadState::Sleeping { until: None } => true,
            ThreadState::Sleeping { until: Some(until) } => queue.next_due().is_some_and(|due| due < until),
        };
        if sleeps_too_long {
            self.wake_thread(queue);
        }
    }

    /// Writes the queue and stops the thread.
    pub(crate) fn stop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread leaves nothing behind that is still needed.
            let _ = thread.join();
        }
    }
}

/// Blocks until the [`OnWritten`] that `send` gets is called, and returns its result.
pub(crate) fn wait_until_written(send: impl FnOnce(OnWritten) -> Result<(), AppendError>) -> Result<(), AppendError> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    send(Box::new(move |written| {
        let _ = sender.send(written);
    }))?;
    receiver.recv().unwrap_or(Err(AppendError::Stopped))
}

/// State of the writer's thread.
struct WriterThread {
    shared: Arc<SharedState>,
    journal: Journal,
    /// Lines to write, including those that an error left for the next commit.
    pending: VecDeque<Line>,
    /// Error of an entry that could not be serialised; the next commit reports it.
    serialize_error: Option<AppendError>,
}

impl WriterThread {
    fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut queue = lock(&shared.queue);
        let mut has_written = false;
        loop {
            let now = Instant::now();
            let next_due = queue.next_due();
            queue = if queue.queued_commits > 0 || queue.closed || next_due.is_some_and(|due| due <= now) {
                let ready = queue.take_ready(now);
                let closed = queue.closed;
                drop(queue);
                self.write_items(ready);
                if closed {
                    return;
                }
                has_written = true;
                let mut queue = lock(&shared.queue);
                queue.is_synced = self.pending.is_empty() && self.serialize_error.is_none() && self.journal.is_synced();
                queue
            } else {
                let after_write = std::mem::take(&mut has_written).then(|| now + SLEEP_AFTER_WRITE);
                let until = next_due.into_iter().chain(after_write).min();
                queue.thread = ThreadState::Sleeping { until };
                let mut queue = match until {
                    Some(until) => {
                        shared.wake.wait_timeout(queue, until - now).unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
                };
                queue.thread = ThreadState::Running;
                queue
            };
        }
    }

    fn write_items(&mut self, ready: VecDeque<QueueItem>) {
        // Commits that need no sync are written together with those after them.
        let mut commits = Vec::new();
        let mut locked = None;
        for item in ready {
            match item {
                QueueItem::Line(line) => self.pending.push_back(line),
                QueueItem::Assistant(answer) => self.serialize_assistant(&answer),
                QueueItem::Commit { sync, on_written } => {
                    commits.push(on_written);
                    if sync {
                        self.write_commits(&mut commits, true, &mut locked);
                    }
                }
            }
        }
        self.write_commits(&mut commits, false, &mut locked);
        if !self.pending.is_empty() && locked.is_none() {
            // Lines that fail here are tried again with the next commit, which reports the error.
            let _ = self.append_pending(false);
        }
    }

    /// Writes the pending lines and reports the result to all `commits`. `locked` is how long an earlier
    /// commit waited in vain for the lock.
    fn write_commits(&mut self, commits: &mut Vec<OnWritten>, sync: bool, locked: &mut Option<Duration>) {
        for on_written in commits.drain(..) {
            // After one deadline the later commits fail at once instead of waiting again. After an
            // append that succeeded there is nothing left to do for them.
            let written = match *locked {
                Some(waited) => Err(AppendError::Locked { path: self.journal.path().to_owned(), waited }),
                None => self.append_pending(sync),
            };
            if let Err(AppendError::Locked { waited, .. }) = &written {
                *locked = Some(*waited);
            }
            on_written(written);
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
        let observer = lock(&self.shared.queue).observer.take();
        let before: Vec<Line> = if observer.is_some() { self.pending.iter().cloned().collect() } else { Vec::new() };
        let shared = &self.shared;
        let keep_waiting =
            |waited| waited < LOCK_DEADLINE_ON_CLOSE || waited < LOCK_DEADLINE && !lock(&shared.queue).closed;
        let appended = self.journal.append_with_lock_wait(&mut self.pending, sync, keep_waiting);
        if let Some(observer) = observer {
            let written = before.len() - self.pending.len();
            if written > 0 {
                observer(self.journal.path(), &before[..written]);
            }
            lock(&self.shared.queue).observer.get_or_insert(observer);
        }
        match self.serialize_error.take() {
            Some(error) => appended.and(Err(error)),
            None => appended,
        }
    }
}

impl WriterQueue {
    /// Removes the unfinished assistant entries at the end of the queue and returns them.
    fn split_off_open(&mut self) -> VecDeque<QueueItem> {
        let is_open =
            |item: &&QueueItem| matches!(item, QueueItem::Assistant(answer) if lock(answer).state == QueuedState::Open);
        let open_count = self.items.iter().rev().take_while(is_open).count();
        self.items.split_off(self.items.len() - open_count)
    }

    /// When the next queued entry must be written, even if nothing is committed.
    fn next_due(&self) -> Option<Instant> {
        self.flush_at.into_iter().chain(self.flush_last_at).min()
    }

    /// Removes the items to write now: those up to the last commit, and assistant entries after it
    /// that are due. The others may still change.
    fn take_ready(&mut self, now: Instant) -> VecDeque<QueueItem> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let last_commit = self.items.iter().rposition(|item| matches!(item, QueueItem::Commit { .. }));
        let committed = last_commit.map_or(0, |last| last + 1);
        let count = match self.items.len() {
            all if self.closed || is_due(self.flush_last_at) => all,
            all if is_due(self.flush_at) => committed.max(all.saturating_sub(1)),
            _ => committed,
        };
        let rest = self.items.split_off(count);
        if rest.len() <= 1 {
            self.flush_at = None;
        }
        if rest.is_empty() {
            self.flush_last_at = None;
        }
        self.queued_commits = 0;
        self.is_synced = false;
        std::mem::replace(&mut self.items, rest)
    }
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &lock(&self.queue).items.len()).finish_non_exhaustive()
    }
}

/// Locks the mutex even if a thread panicked while holding it: the queue is consistent after
/// every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_commit_without_lines_is_done_at_once_if_everything_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let writer = Writer::new(Journal::create(&path).unwrap()).unwrap();
        let commit = |lines: Vec<Line>, sync| {
            let (sender, receiver) = std::sync::mpsc::channel();
            writer.commit(lines, sync, Box::new(move |_| sender.send(std::thread::current().id()).unwrap()));
            receiver.recv().unwrap()
        };
        let caller = std::thread::current().id();
        let line = Line::from_serialize(&Assistant::default()).unwrap();
        assert_ne!(commit(vec![line.clone()], false), caller);
        assert_ne!(commit(Vec::new(), true), caller, "the line is not synced yet");
        while !lock(&writer.shared.queue).is_synced {
            std::thread::yield_now();
        }
        assert_eq!(commit(Vec::new(), true), caller);
        assert_ne!(commit(vec![line], true), caller);
    }

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
