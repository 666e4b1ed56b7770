//! Recording a conversation: only what is new, in one chain, each thing as durable
//! as it must be.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_message::system::{CompactBoundary, System};
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{AgentId, Entry, Envelope, Line, Maybe, SessionId, Uuid};

use crate::append::{AppendError, Journal};
use crate::resume::TranscriptState;
use crate::writer::{OnWritten, QueuedHandle, WriteObserver, Writer, wait_until_written};

/// What every entry of a session says of where it was written.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeDefaults {
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
    pub max_delay: Duration,
}

impl Default for Durability {
    fn default() -> Self {
        Self { sync: true, max_delay: Duration::from_millis(100) }
    }
}

/// Writes one session's file.
///
/// Answers are [queued](Self::queue_assistant) and written within the delay, as they are
/// then: usage and stop reason filled in meanwhile are what is written. Everything
/// else is [recorded](Self::record) at once, after what is queued. A thread does the
/// writing: methods whose name ends in `then` return before it has, and call what they
/// are passed when it has.
#[derive(Debug)]
pub struct Recorder {
    writer: Writer,
    recorded_uuids: HashSet<Uuid>,
    leaf_uuid: Option<Uuid>,
    defaults: EnvelopeDefaults,
    durability: Durability,
    path: PathBuf,
}

impl Recorder {
    /// Begins a new session's file.
    pub fn create(path: &Path, facts: EnvelopeDefaults, durability: Durability) -> Result<Self, AppendError> {
        Self::new(Journal::create(path)?, HashSet::new(), None, facts, durability)
    }

    /// Goes on with a session's file, from its last line.
    pub fn resume(path: &Path, facts: EnvelopeDefaults, durability: Durability) -> Result<Self, AppendError> {
        let journal = Journal::open(path)?;
        let TranscriptState { uuids: known, leaf_uuid: head, .. } = TranscriptState::read(path)?;
        Self::new(journal, known, head, facts, durability)
    }

    fn new(
        journal: Journal,
        known: HashSet<Uuid>,
        head: Option<Uuid>,
        facts: EnvelopeDefaults,
        durability: Durability,
    ) -> Result<Self, AppendError> {
        let path = journal.path().to_owned();
        let writer = Writer::new(journal).map_err(|source| AppendError::Open { path: path.clone(), source })?;
        Ok(Self { writer, recorded_uuids: known, leaf_uuid: head, defaults: facts, durability, path })
    }

    /// Tells `watch` of all lines written from now on.
    pub fn set_observer(&mut self, watch: WriteObserver) {
        self.writer.set_observer(watch);
    }

    /// The line the next one hangs on.
    pub fn leaf_uuid(&self) -> Option<&Uuid> {
        self.leaf_uuid.as_ref()
    }

    /// Whether the session holds a line of that id.
    pub fn contains(&self, uuid: &Uuid) -> bool {
        self.recorded_uuids.contains(uuid)
    }

    /// Records the entries that are not yet recorded and returns the last line of
    /// the chain.
    ///
    /// Entries already recorded move the chain's start only while they stand before
    /// every new one: a compaction puts new lines before kept ones. After an error
    /// the entries are not acknowledged; the next call tries to write them again.
    pub fn record(&mut self, entries: &[Entry]) -> Result<Option<Uuid>, AppendError> {
        wait_until_written(|done| self.record_then(entries, done))?;
        Ok(self.leaf_uuid.clone())
    }

    /// Like [`record`](Self::record), but returns at once.
    pub fn record_then(&mut self, entries: &[Entry], done: OnWritten) -> Result<(), AppendError> {
        let mut lines = Vec::new();
        let mut head = self.leaf_uuid.clone();
        for entry in entries {
            let Some(uuid) = entry.envelope().and_then(|e| e.uuid.get()).cloned() else {
                return Err(AppendError::NoUuid { kind: entry.kind() });
            };
            let in_chain = !matches!(entry, Entry::Progress(_));
            if self.recorded_uuids.contains(&uuid) {
                if lines.is_empty() && in_chain {
                    head = Some(uuid);
                }
                continue;
            }
            lines.push(self.to_line(entry.clone(), head.as_ref())?);
            self.recorded_uuids.insert(uuid.clone());
            if in_chain {
                head = Some(uuid);
            }
        }
        self.leaf_uuid = head;
        self.writer.commit(lines, self.durability.sync, done);
        Ok(())
    }

    /// Queues an answer. It is written within the delay, before whatever is recorded
    /// next, or when many wait.
    pub fn queue_assistant(&mut self, mut answer: Assistant) -> Result<QueuedHandle, AppendError> {
        let Some(uuid) = answer.envelope.uuid.get().cloned() else {
            return Err(AppendError::NoUuid { kind: "assistant".to_owned() });
        };
        self.fill_envelope(&mut answer.envelope, self.leaf_uuid.clone().as_ref());
        self.recorded_uuids.insert(uuid.clone());
        self.leaf_uuid = Some(uuid);
        Ok(self.writer.queue_assistant(answer, self.durability.max_delay))
    }

    /// The end of an answer is known, whose blocks were queued: those that are not written
    /// yet get it. If the last one is written already, it is written again with the end,
    /// under the same id: readers take the later line.
    pub fn finish_assistant(
        &mut self,
        answer: &[&QueuedHandle],
        end: impl Fn(&mut Assistant),
    ) -> Result<(), AppendError> {
        let Some((last, early)) = answer.split_last() else { return Ok(()) };
        for block in early {
            block.finish(&end);
        }
        if last.finish(&end) {
            return Ok(());
        }
        let mut answer = last.entry();
        end(&mut answer);
        self.record_bookkeeping_then(&[Entry::Assistant(Box::new(answer))], false, Box::new(|_| ()))
    }

    /// Appends lines that are not part of the chain: titles, the last prompt, costs. Queued
    /// answers whose end is not known go on waiting.
    pub fn record_bookkeeping(&mut self, entries: &[Entry]) -> Result<(), AppendError> {
        wait_until_written(|done| self.record_bookkeeping_then(entries, false, done))
    }

    /// Like [`note`](Self::record_bookkeeping), but returns at once; with `sync`, the lines are on stable
    /// storage when `done` is called.
    pub fn record_bookkeeping_then(
        &mut self,
        entries: &[Entry],
        sync: bool,
        done: OnWritten,
    ) -> Result<(), AppendError> {
        let lines: Result<Vec<Line>, _> =
            entries.iter().map(|entry| Line::from_serialize(entry).map_err(AppendError::Serialize)).collect();
        self.writer.commit_before_open_entries(lines?, sync, done);
        Ok(())
    }

    /// Goes on from an earlier line; what came after it stays in the file as another
    /// branch.
    pub fn rewind_to(&mut self, to: &Uuid) -> Result<(), AppendError> {
        if !self.recorded_uuids.contains(to) {
            return Err(AppendError::EntryNotFound { path: self.path.clone(), uuid: to.clone() });
        }
        self.leaf_uuid = Some(to.clone());
        Ok(())
    }

    /// Writes a compaction: the boundary, which has no parent, then the summary, after which
    /// the lines hang that the boundary keeps. Everything before is written, and synced
    /// like a user's words, before the boundary is.
    pub fn compact(&mut self, boundary: CompactBoundary, summary: User) -> Result<Option<Uuid>, AppendError> {
        wait_until_written(|done| self.compact_then(boundary, summary, done))?;
        Ok(self.leaf_uuid.clone())
    }

    /// Like [`compact`](Self::compact), but returns at once.
    pub fn compact_then(
        &mut self,
        mut boundary: CompactBoundary,
        mut summary: User,
        done: OnWritten,
    ) -> Result<(), AppendError> {
        let no_uuid = |kind: &str| AppendError::NoUuid { kind: kind.to_owned() };
        let uuid = boundary.envelope.uuid.get().cloned().ok_or_else(|| no_uuid("system"))?;
        let anchor = summary.envelope.uuid.get().cloned().ok_or_else(|| no_uuid("user"))?;
        let kept = boundary.compact_metadata.get().and_then(|data| data.preserved_messages.get()?.uuids.get());
        if let Some(missing) = kept.into_iter().flatten().find(|uuid| !self.recorded_uuids.contains(*uuid)) {
            return Err(AppendError::EntryNotFound { path: self.path.clone(), uuid: missing.clone() });
        }
        boundary.envelope.logical_parent_uuid = self.leaf_uuid.clone().into();
        self.fill_envelope(&mut boundary.envelope, None);
        summary.is_compact_summary = Maybe::Value(true);
        summary.is_visible_in_transcript_only = Maybe::Value(true);
        self.fill_envelope(&mut summary.envelope, Some(&uuid));
        let boundary = Entry::System(Box::new(System::CompactBoundary(Box::new(boundary))));
        let summary = Entry::User(Box::new(summary));
        let lines = [Line::from_serialize(&boundary), Line::from_serialize(&summary)];
        let lines: Result<Vec<Line>, _> = lines.into_iter().map(|line| line.map_err(AppendError::Serialize)).collect();
        let lines = lines?;
        self.recorded_uuids.extend([uuid, anchor.clone()]);
        self.leaf_uuid = Some(anchor);
        self.writer.commit(Vec::new(), self.durability.sync, Box::new(|_| ()));
        self.writer.commit(lines, self.durability.sync, done);
        Ok(())
    }

    /// Writes what is queued and returns when all is on stable storage.
    pub fn flush(&mut self) -> Result<(), AppendError> {
        wait_until_written(|done| {
            self.flush_then(done);
            Ok(())
        })
    }

    /// Like [`flush`](Self::flush), but returns at once.
    pub fn flush_then(&mut self, done: OnWritten) {
        self.writer.commit(Vec::new(), true, done);
    }

    /// Writes what is queued, as durably as everything else, and ends.
    pub fn close(mut self) -> Result<(), AppendError> {
        let sync = self.durability.sync;
        let written = wait_until_written(|done| {
            self.writer.commit(Vec::new(), sync, done);
            Ok(())
        });
        self.writer.stop();
        written
    }

    /// The entry as a line in its place.
    fn to_line(&self, mut entry: Entry, head: Option<&Uuid>) -> Result<Line, AppendError> {
        let source = match &entry {
            Entry::User(user) => user.source_tool_assistant_uuid.get().cloned(),
            _ => None,
        };
        // A result hangs on the line of its own call, so that results of parallel
        // calls are told apart.
        let parent = source.filter(|call| self.recorded_uuids.contains(call)).or_else(|| head.cloned());
        let envelope = match &mut entry {
            Entry::User(line) => Some(&mut line.envelope),
            Entry::Assistant(line) => Some(&mut line.envelope),
            Entry::Attachment(line) => Some(&mut line.envelope),
            Entry::Progress(line) => Some(&mut line.envelope),
            Entry::System(line) => line.envelope_mut(),
            _ => None,
        };
        if let Some(envelope) = envelope {
            self.fill_envelope(envelope, parent.as_ref());
        }
        Line::from_serialize(&entry).map_err(AppendError::Serialize)
    }

    /// Fills in what the entry does not say itself.
    fn fill_envelope(&self, envelope: &mut Envelope, parent: Option<&Uuid>) {
        fn fill<T>(slot: &mut Maybe<T>, value: T) {
            if !slot.is_value() {
                *slot = Maybe::Value(value);
            }
        }
        envelope.parent_uuid = parent.cloned().map_or(Maybe::Null, Maybe::Value);
        let EnvelopeDefaults { session_id, cwd, version, git_branch, entrypoint, agent_id } = &self.defaults;
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
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`.
        self.writer.commit(Vec::new(), self.durability.sync, Box::new(|_| ()));
        self.writer.stop();
    }
}
