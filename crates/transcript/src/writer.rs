//! The thread that writes one session file, so that whoever records waits for the disk
//! only if it wants to.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_message::Line;
use quipu_message::turn::Assistant;

use crate::append::{AppendError, Journal, LOCK_DEADLINE};

/// Called on the writer's thread when the lines it was passed with are written, or could
/// not be. Lines that could not be written are tried again with the next ones.
pub type Acknowledge = Box<dyn FnOnce(Result<(), AppendError>) + Send>;

/// Called with lines after they are written.
pub type Watch = Box<dyn Fn(&Path, &[Line]) + Send>;

/// How many answers may wait for their end.
const MAX_WAITING: usize = 256;

/// How long a lock is waited for when the recorder is dropped.
const CLOSING_DEADLINE: Duration = Duration::from_millis(200);

/// Writes lines in the order they are passed in.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Item>,
    /// When answers at the end of the queue are written, though nothing follows them.
    due: Option<Instant>,
    /// How many commits are in the queue.
    commits: usize,
    watch: Option<Watch>,
    closed: bool,
}

enum Item {
    Line(Line),
    Answer(Arc<Mutex<Answer>>),
    /// Everything before it is to be written, and synced if it says so.
    Commit {
        sync: bool,
        done: Acknowledge,
    },
}

#[derive(Debug)]
struct Answer {
    entry: Assistant,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its end may still change.
    Waiting,
    /// Its end is known; it is not written yet.
    Finished,
    Written,
    Withdrawn,
}

impl Answer {
    /// Whether it is still to be written.
    fn waits(&self) -> bool {
        matches!(self.state, State::Waiting | State::Finished)
    }

    /// The entry to write, which from now on counts as written; `None` if there is nothing
    /// to write.
    fn take(&mut self) -> Option<&Assistant> {
        let waits = self.waits();
        if waits {
            self.state = State::Written;
        }
        waits.then_some(&self.entry)
    }
}

/// An answer that waits to be written.
#[derive(Debug, Clone)]
pub struct Queued(Arc<Mutex<Answer>>);

impl Queued {
    /// Changes the answer. Returns false if it is written already.
    pub fn update(&self, change: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = held(&self.0);
        let waits = answer.waits();
        if waits {
            change(&mut answer.entry);
        }
        waits
    }

    /// Changes the answer for the last time: whatever comes after it is written after it.
    /// Returns false if it is written already.
    pub(crate) fn finish(&self, end: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = held(&self.0);
        let waits = answer.waits();
        if waits {
            end(&mut answer.entry);
            answer.state = State::Finished;
        }
        waits
    }

    /// The answer as it is.
    pub(crate) fn entry(&self) -> Assistant {
        held(&self.0).entry.clone()
    }

    /// Keeps the answer from being written. Returns false if it is written already.
    pub fn withdraw(&self) -> bool {
        let mut answer = held(&self.0);
        let waits = answer.state != State::Written;
        if waits {
            answer.state = State::Withdrawn;
        }
        waits
    }
}

impl Writer {
    pub(crate) fn new(journal: Journal) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let thread = {
            let mut work = Work { shared: Arc::clone(&shared), journal, pending: VecDeque::new(), unserialised: None };
            std::thread::Builder::new().name("quipu-recorder".to_owned()).spawn(move || work.run())?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells `watch` of all lines written from now on.
    pub(crate) fn watch(&self, watch: Watch) {
        held(&self.shared.waiting).watch = Some(watch);
    }

    /// Writes everything passed in before and then these lines.
    pub(crate) fn commit(&self, lines: Vec<Line>, sync: bool, done: Acknowledge) {
        let mut waiting = held(&self.shared.waiting);
        waiting.queue.extend(lines.into_iter().map(Item::Line));
        waiting.queue.push_back(Item::Commit { sync, done });
        waiting.commits += 1;
        self.shared.wake.notify_one();
    }

    /// Writes these lines before the answers that wait for their end.
    pub(crate) fn commit_before_answers(&self, lines: Vec<Line>, sync: bool, done: Acknowledge) {
        let mut waiting = held(&self.shared.waiting);
        let open = |item: &&Item| matches!(item, Item::Answer(answer) if held(answer).state == State::Waiting);
        let answers = waiting.queue.iter().rev().take_while(open).count();
        let at = waiting.queue.len() - answers;
        let answers = waiting.queue.split_off(at);
        waiting.queue.extend(lines.into_iter().map(Item::Line));
        waiting.queue.push_back(Item::Commit { sync, done });
        waiting.queue.extend(answers);
        waiting.commits += 1;
        self.shared.wake.notify_one();
    }

    /// Queues an answer: it is written with the next commit, or after `delay`.
    pub(crate) fn queue(&self, answer: Assistant, delay: Duration) -> Queued {
        let answer = Arc::new(Mutex::new(Answer { entry: answer, state: State::Waiting }));
        let mut waiting = held(&self.shared.waiting);
        waiting.queue.push_back(Item::Answer(Arc::clone(&answer)));
        let full = waiting.queue.len() >= MAX_WAITING;
        if full || waiting.due.is_none() {
            let delay = if full { Duration::ZERO } else { delay };
            waiting.due = Some(Instant::now() + delay);
            self.shared.wake.notify_one();
        }
        Queued(answer)
    }

    /// Writes what waits and ends the thread.
    pub(crate) fn stop(&mut self) {
        held(&self.shared.waiting).closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there has poisoned nothing we still need.
            let _ = thread.join();
        }
    }
}

/// Waits for what `send` is acknowledged with.
pub(crate) fn wait(send: impl FnOnce(Acknowledge) -> Result<(), AppendError>) -> Result<(), AppendError> {
    let (told, acknowledged) = std::sync::mpsc::sync_channel(1);
    send(Box::new(move |written| {
        let _ = told.send(written);
    }))?;
    acknowledged.recv().unwrap_or(Err(AppendError::Stopped))
}

/// What the thread works with.
struct Work {
    shared: Arc<Shared>,
    journal: Journal,
    /// Not yet written; what an error left is tried again with the next commit.
    pending: VecDeque<Line>,
    /// An answer that could not be made into a line, which the next commit tells.
    unserialised: Option<AppendError>,
}

impl Work {
    fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut waiting = held(&shared.waiting);
        loop {
            let now = Instant::now();
            let due = waiting.due.is_some_and(|due| due <= now);
            waiting = if waiting.commits > 0 || due || waiting.closed {
                let all = due || waiting.closed;
                let ready = waiting.ready(all);
                let closed = waiting.closed;
                drop(waiting);
                self.write(ready);
                if closed {
                    return;
                }
                held(&shared.waiting)
            } else if let Some(due) = waiting.due {
                shared.wake.wait_timeout(waiting, due - now).unwrap_or_else(PoisonError::into_inner).0
            } else {
                shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    fn write(&mut self, ready: VecDeque<Item>) {
        let mut locked = None;
        for item in ready {
            match item {
                Item::Line(line) => self.pending.push_back(line),
                Item::Answer(answer) => self.take(&answer),
                Item::Commit { sync, done } => {
                    // Whoever waits behind a lock does not wait for it one by one.
                    let written = match locked {
                        Some(waited) => Err(AppendError::Locked { path: self.journal.path().to_owned(), waited }),
                        None => self.append(sync),
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
            let _ = self.append(false);
        }
    }

    fn take(&mut self, answer: &Mutex<Answer>) {
        match held(answer).take().map(Line::of) {
            Some(Ok(line)) => self.pending.push_back(line),
            Some(Err(error)) => self.unserialised = Some(AppendError::Serialise(error)),
            None => {}
        }
    }

    fn append(&mut self, sync: bool) -> Result<(), AppendError> {
        let watch = held(&self.shared.waiting).watch.take();
        let before: Vec<Line> = if watch.is_some() { self.pending.iter().cloned().collect() } else { Vec::new() };
        let shared = &self.shared;
        let patient = |waited| waited < CLOSING_DEADLINE || waited < LOCK_DEADLINE && !held(&shared.waiting).closed;
        let appended = self.journal.append_while(&mut self.pending, sync, patient);
        if let Some(watch) = watch {
            let written = before.len() - self.pending.len();
            if written > 0 {
                watch(self.journal.path(), &before[..written]);
            }
            held(&self.shared.waiting).watch.get_or_insert(watch);
        }
        match self.unserialised.take() {
            Some(error) => appended.and(Err(error)),
            None => appended,
        }
    }
}

impl Waiting {
    /// Takes what is to be written now: all, or everything up to the last commit. Answers
    /// behind that may still change.
    fn ready(&mut self, all: bool) -> VecDeque<Item> {
        let last = self.queue.iter().rposition(|item| matches!(item, Item::Commit { .. }));
        let count = if all { self.queue.len() } else { last.map_or(0, |last| last + 1) };
        let rest = self.queue.split_off(count);
        if rest.is_empty() {
            self.due = None;
        }
        self.commits = 0;
        std::mem::replace(&mut self.queue, rest)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &held(&self.waiting).queue.len()).finish_non_exhaustive()
    }
}

/// The lock, even when a thread died holding it: what it guards is whole between
/// any two steps.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn an_answer_that_is_written_while_it_ends_stays_written() {
        for _ in 0..2000 {
            let answer = Arc::new(Mutex::new(Answer { entry: Assistant::default(), state: State::Waiting }));
            let (queued, both) = (Queued(Arc::clone(&answer)), Barrier::new(2));
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
