//! Recording a conversation: only what is new, in one chain, each thing as durable
//! as it must be.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_message::system::{CompactBoundary, CompactMetadata, PreservedMessages, PreservedSegment, System};
use quipu_message::turn::{Assistant, User};
use quipu_message::{AgentId, Entry, Envelope, Line, Maybe, SessionId, Stamp, Uuid};

use crate::append::{AppendError, Journal, OneLine};
use crate::resume::Resumed;

/// What every entry of a session says of where it was written.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The session.
    pub session_id: SessionId,
    /// The working directory.
    pub cwd: String,
    /// The program's version.
    pub version: String,
    /// The git branch; `HEAD` outside git.
    pub git_branch: String,
    /// What started the program.
    pub entrypoint: String,
    /// The subagent, when the file is one's own.
    pub agent_id: Option<AgentId>,
}

/// How a recorder writes.
#[derive(Debug, Clone, Copy)]
pub struct Durability {
    /// Whether a person's words are on stable storage before [`Recorder::record`]
    /// returns. Scripts may do without.
    pub sync: bool,
    /// How long a queued answer may wait to be written.
    pub delay: Duration,
}

impl Default for Durability {
    fn default() -> Self {
        Self { sync: true, delay: Duration::from_millis(100) }
    }
}

/// How many answers may wait: a flood is written as it comes, in bounded memory.
const MOST_WAITING: usize = 256;

/// Writes one session's file.
///
/// Answers are [queued](Self::queue) and written within the delay, as they are
/// then: usage and stop reason filled in meanwhile are what is written. Everything
/// else is [recorded](Self::record) at once, after what is queued.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    known: HashSet<Uuid>,
    head: Option<Uuid>,
    facts: Facts,
    durability: Durability,
    path: PathBuf,
}

/// Two locks, so that queueing never waits for the disk. Whoever takes both takes
/// `writing` first: answers leave the queue in the order they are written.
#[derive(Debug)]
struct Shared {
    writing: Mutex<Writing>,
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

struct Writing {
    journal: Journal,
    /// Not yet written; what an error left is tried again at the next call.
    pending: VecDeque<Pending>,
    watch: Option<Watch>,
}

/// Hears of lines once they are written.
pub type Watch = Box<dyn Fn(&Path, &[Line]) + Send>;

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Writing");
        shown.field("journal", &self.journal).field("pending", &self.pending).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    queue: Vec<Pending>,
    due: Option<Instant>,
    closed: bool,
}

/// What waits to be written.
#[derive(Debug)]
enum Pending {
    Line(Line),
    Answer(Arc<Mutex<Answer>>),
}

#[derive(Debug)]
struct Answer {
    entry: Assistant,
    written: bool,
}

impl OneLine for Pending {
    fn put(&self, buffer: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Self::Line(line) => line.put(buffer),
            Self::Answer(answer) => {
                let mut answer = held(answer);
                answer.written = true;
                serde_json::to_writer(buffer, &answer.entry)
            }
        }
    }
}

impl Pending {
    /// The line as it will be written; an answer can no longer be changed then.
    fn line(&self) -> serde_json::Result<Line> {
        match self {
            Self::Line(line) => Ok(line.clone()),
            Self::Answer(answer) => {
                let mut answer = held(answer);
                answer.written = true;
                Line::of(&answer.entry)
            }
        }
    }
}

/// An answer that waits to be written.
#[derive(Debug, Clone)]
pub struct Queued(Arc<Mutex<Answer>>);

impl Queued {
    /// Changes the answer; false when it is written already.
    pub fn update(&self, change: impl FnOnce(&mut Assistant)) -> bool {
        let mut answer = held(&self.0);
        if !answer.written {
            change(&mut answer.entry);
        }
        !answer.written
    }
}

/// What a compaction keeps and says.
#[derive(Debug)]
pub struct Compaction {
    /// `manual` or `auto`.
    pub trigger: String,
    /// Tokens before.
    pub pre_tokens: u64,
    /// The summary, made by a factory.
    pub summary: User,
    /// The lines kept, in order; they hang after the summary.
    pub kept: Vec<Uuid>,
}

impl Recorder {
    /// Begins a new session's file.
    pub fn create(path: &Path, facts: Facts, durability: Durability) -> Result<Self, AppendError> {
        Ok(Self::new(Journal::create(path)?, HashSet::new(), None, facts, durability))
    }

    /// Goes on with a session's file, from its last line.
    pub fn resume(path: &Path, facts: Facts, durability: Durability) -> Result<Self, AppendError> {
        let journal = Journal::open(path)?;
        let Resumed { known, head, .. } = Resumed::read(path)?;
        Ok(Self::new(journal, known, head, facts, durability))
    }

    fn new(journal: Journal, known: HashSet<Uuid>, head: Option<Uuid>, facts: Facts, durability: Durability) -> Self {
        let path = journal.path().to_owned();
        let shared = Arc::new(Shared {
            writing: Mutex::new(Writing { journal, pending: VecDeque::new(), watch: None }),
            waiting: Mutex::default(),
            wake: Condvar::new(),
        });
        let worker = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("quipu-recorder".to_owned()).spawn(move || write_behind(&shared)).ok()
        };
        Self { shared, worker, known, head, facts, durability, path }
    }

    /// Tells `watch` of all lines written from now on.
    pub fn watch(&mut self, watch: Watch) {
        held(&self.shared.writing).watch = Some(watch);
    }

    /// The line the next one hangs on.
    pub fn head(&self) -> Option<&Uuid> {
        self.head.as_ref()
    }

    /// Whether the session holds a line of that id.
    pub fn holds(&self, uuid: &Uuid) -> bool {
        self.known.contains(uuid)
    }

    /// Records the entries that are not yet recorded and returns the last line of
    /// the chain.
    ///
    /// Entries already recorded move the chain's start only while they stand before
    /// every new one: a compaction puts new lines before kept ones. After an error
    /// the entries are not acknowledged; the next call tries to write them again.
    pub fn record(&mut self, entries: &[Entry]) -> Result<Option<Uuid>, AppendError> {
        let mut lines = Vec::new();
        let mut head = self.head.clone();
        for entry in entries {
            let Some(uuid) = entry.envelope().and_then(|e| e.uuid.get()).cloned() else {
                return Err(AppendError::NoUuid { kind: entry.kind() });
            };
            let in_chain = !matches!(entry, Entry::Progress(_));
            if self.known.contains(&uuid) {
                if lines.is_empty() && in_chain {
                    head = Some(uuid);
                }
                continue;
            }
            lines.push(self.line(entry.clone(), head.as_ref())?);
            self.known.insert(uuid.clone());
            if in_chain {
                head = Some(uuid);
            }
        }
        self.head = head;
        self.write(lines, self.durability.sync)?;
        Ok(self.head.clone())
    }

    /// Queues an answer. It is written within the delay, before whatever is recorded
    /// next, or with many others when too many wait.
    pub fn queue(&mut self, mut answer: Assistant) -> Result<Queued, AppendError> {
        let Some(uuid) = answer.envelope.uuid.get().cloned() else {
            return Err(AppendError::NoUuid { kind: "assistant".to_owned() });
        };
        self.place(&mut answer.envelope, self.head.clone().as_ref());
        let answer = Arc::new(Mutex::new(Answer { entry: answer, written: false }));
        if self.known.insert(uuid.clone()) {
            self.head = Some(uuid);
            let mut waiting = held(&self.shared.waiting);
            waiting.queue.push(Pending::Answer(Arc::clone(&answer)));
            let full = waiting.queue.len() >= MOST_WAITING;
            if waiting.due.is_none() {
                waiting.due = Some(Instant::now() + self.durability.delay);
                self.shared.wake.notify_one();
            }
            drop(waiting);
            if full {
                self.write(Vec::new(), false)?;
            }
        }
        Ok(Queued(answer))
    }

    /// Appends lines that are not part of the chain: titles, the last prompt, costs.
    pub fn note(&mut self, entries: &[Entry]) -> Result<(), AppendError> {
        let lines: Result<Vec<Line>, _> =
            entries.iter().map(|entry| Line::of(entry).map_err(AppendError::Serialise)).collect();
        self.write(lines?, false)
    }

    /// Goes on from an earlier line; what came after it stays in the file as another
    /// branch.
    pub fn rewind(&mut self, to: &Uuid) -> Result<(), AppendError> {
        if !self.known.contains(to) {
            return Err(AppendError::NoEntry { path: self.path.clone(), uuid: to.clone() });
        }
        self.head = Some(to.clone());
        Ok(())
    }

    /// Writes a compaction: a boundary without a parent, then the summary, after
    /// which the kept lines hang. Everything up to the kept lines is written,
    /// and synced like a person's words, before the boundary is.
    pub fn compact(&mut self, compaction: Compaction, stamp: &mut dyn Stamp) -> Result<Option<Uuid>, AppendError> {
        let Compaction { trigger, pre_tokens, mut summary, kept } = compaction;
        if let Some(missing) = kept.iter().find(|uuid| !self.known.contains(*uuid)) {
            return Err(AppendError::NoEntry { path: self.path.clone(), uuid: missing.clone() });
        }
        let Some(anchor) = summary.envelope.uuid.get().cloned() else {
            return Err(AppendError::NoUuid { kind: "user".to_owned() });
        };
        self.write(Vec::new(), self.durability.sync)?;
        let uuid = stamp.uuid();
        let segment = kept.first().zip(kept.last()).map(|(first, last)| PreservedSegment {
            head_uuid: Maybe::Value(first.clone()),
            anchor_uuid: Maybe::Value(anchor.clone()),
            tail_uuid: Maybe::Value(last.clone()),
            ..PreservedSegment::default()
        });
        let messages = segment.is_some().then(|| PreservedMessages {
            anchor_uuid: Maybe::Value(anchor.clone()),
            uuids: Maybe::Value(kept.clone()),
            all_uuids: Maybe::Value(kept),
            ..PreservedMessages::default()
        });
        let mut boundary = CompactBoundary {
            content: Maybe::Value("Conversation compacted".to_owned()),
            level: Maybe::Value("info".to_owned()),
            is_meta: Maybe::Value(false),
            compact_metadata: Maybe::Value(CompactMetadata {
                trigger: Maybe::Value(trigger),
                pre_tokens: Maybe::Value(pre_tokens),
                preserved_segment: segment.into(),
                preserved_messages: messages.into(),
                ..CompactMetadata::default()
            }),
            envelope: Envelope {
                uuid: Maybe::Value(uuid.clone()),
                timestamp: Maybe::Value(stamp.now()),
                logical_parent_uuid: self.head.clone().into(),
                ..Envelope::default()
            },
            ..CompactBoundary::default()
        };
        self.place(&mut boundary.envelope, None);
        summary.is_compact_summary = Maybe::Value(true);
        summary.is_visible_in_transcript_only = Maybe::Value(true);
        self.place(&mut summary.envelope, Some(&uuid));
        let boundary = Entry::System(Box::new(System::CompactBoundary(Box::new(boundary))));
        let summary = Entry::User(Box::new(summary));
        let lines = [Line::of(&boundary), Line::of(&summary)];
        let lines: Result<Vec<Line>, _> = lines.into_iter().map(|line| line.map_err(AppendError::Serialise)).collect();
        self.known.extend([uuid, anchor.clone()]);
        self.head = Some(anchor);
        self.write(lines?, self.durability.sync)?;
        Ok(self.head.clone())
    }

    /// Writes what is queued and returns when all is on stable storage.
    pub fn flush(&mut self) -> Result<(), AppendError> {
        self.write(Vec::new(), true)
    }

    /// Writes what is queued, as durably as everything else, and ends.
    pub fn close(mut self) -> Result<(), AppendError> {
        let written = self.write(Vec::new(), self.durability.sync);
        self.stop();
        written
    }

    /// Writes what is queued, then these lines.
    fn write(&self, lines: Vec<Line>, sync: bool) -> Result<(), AppendError> {
        self.shared.write(lines, sync)
    }

    /// The entry as a line in its place.
    fn line(&self, mut entry: Entry, head: Option<&Uuid>) -> Result<Line, AppendError> {
        let source = match &entry {
            Entry::User(user) => user.source_tool_assistant_uuid.get().cloned(),
            _ => None,
        };
        // A result hangs on the line of its own call, so that results of parallel
        // calls are told apart.
        let parent = source.filter(|call| self.known.contains(call)).or_else(|| head.cloned());
        let envelope = match &mut entry {
            Entry::User(line) => Some(&mut line.envelope),
            Entry::Assistant(line) => Some(&mut line.envelope),
            Entry::Attachment(line) => Some(&mut line.envelope),
            Entry::Progress(line) => Some(&mut line.envelope),
            Entry::System(line) => line.envelope_mut(),
            _ => None,
        };
        if let Some(envelope) = envelope {
            self.place(envelope, parent.as_ref());
        }
        Line::of(&entry).map_err(AppendError::Serialise)
    }

    /// Fills in what the entry does not say itself.
    fn place(&self, envelope: &mut Envelope, parent: Option<&Uuid>) {
        fn fill<T>(slot: &mut Maybe<T>, value: T) {
            if !slot.is_value() {
                *slot = Maybe::Value(value);
            }
        }
        envelope.parent_uuid = parent.cloned().map_or(Maybe::Null, Maybe::Value);
        let Facts { session_id, cwd, version, git_branch, entrypoint, agent_id } = &self.facts;
        envelope.session_id = Maybe::Value(session_id.clone());
        fill(&mut envelope.is_sidechain, agent_id.is_some());
        fill(&mut envelope.user_type, "external".to_owned());
        fill(&mut envelope.entrypoint, entrypoint.clone());
        fill(&mut envelope.cwd, cwd.clone());
        fill(&mut envelope.version, version.clone());
        fill(&mut envelope.git_branch, git_branch.clone());
        if let Some(agent) = agent_id {
            fill(&mut envelope.agent_id, agent.clone());
        }
    }

    fn stop(&mut self) {
        held(&self.shared.waiting).closed = true;
        self.shared.wake.notify_one();
        if let Some(worker) = self.worker.take() {
            // A panic there has poisoned nothing we still need.
            let _ = worker.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.worker.is_some() {
            // Whoever wants to know of errors calls `close`.
            let _ = self.write(Vec::new(), self.durability.sync);
            self.stop();
        }
    }
}

impl Shared {
    /// Writes the queued answers, as they are now, and then these lines.
    fn write(&self, lines: Vec<Line>, sync: bool) -> Result<(), AppendError> {
        let mut writing = held(&self.writing);
        let queue = {
            let mut waiting = held(&self.waiting);
            waiting.due = None;
            std::mem::take(&mut waiting.queue)
        };
        writing.pending.extend(queue);
        writing.pending.extend(lines.into_iter().map(Pending::Line));
        let Writing { journal, pending, watch } = &mut *writing;
        let Some(watch) = watch else { return journal.append(pending, sync) };
        let written: Result<Vec<Line>, _> = pending.iter().map(Pending::line).collect();
        let written = written.map_err(AppendError::Serialise)?;
        journal.append(pending, sync)?;
        if !written.is_empty() {
            watch(journal.path(), &written);
        }
        Ok(())
    }
}

/// Writes queued answers when they are due, until the recorder ends.
fn write_behind(shared: &Shared) {
    let mut waiting = held(&shared.waiting);
    while !waiting.closed {
        let now = Instant::now();
        waiting = match waiting.due {
            None => shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            Some(due) if due > now => {
                shared.wake.wait_timeout(waiting, due - now).unwrap_or_else(PoisonError::into_inner).0
            }
            Some(_) => {
                drop(waiting);
                // What fails here is tried again by the next call, which tells.
                let _ = shared.write(Vec::new(), false);
                held(&shared.waiting)
            }
        };
    }
}

/// The lock, even when a thread died holding it: what it guards is whole between
/// any two steps.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
