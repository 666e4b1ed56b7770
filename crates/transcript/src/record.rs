//! Records a conversation: writes each new entry once, linked to its parent, and synced where
//! the user must not lose it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_message::system::{CompactBoundary, System};
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{AgentId, Entry, Envelope, Line, Maybe, SessionId, Uuid};

use crate::append::{AppendError, Journal};
use crate::resume::TranscriptState;
use crate::writer::{OnWritten, QueuedHandle, WriteObserver, Writer, wait_until_written};

/// Values that the recorder writes into the envelope of every entry.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeDefaults {
    /// Session the entries belong to; also the name of the file.
    pub session_id: SessionId,
    /// Working directory of the agent.
    pub cwd: String,
    /// Version of the agent.
    pub version: String,
    /// Current git branch; `HEAD` outside a repository.
    pub git_branch: String,
    /// How the agent was started, for example `cli`, `sdk-py` or `sdk-ts`.
    pub entrypoint: String,
    /// Set if the file is the transcript of a subagent; `None` for the main session.
    pub agent_id: Option<AgentId>,
}

/// When a recorder writes and syncs.
#[derive(Debug, Clone, Copy)]
pub struct Durability {
    /// Whether entries are on stable storage before [`Recorder::record`] returns. Scripts that can
    /// run again may do without.
    pub sync: bool,
    /// Longest time that a queued assistant entry stays unwritten once it is known not to be the
    /// last of its answer, or is finished.
    pub max_delay: Duration,
    /// Longest time that the last queued assistant entry waits for its usage and stop reason.
    pub max_open_delay: Duration,
}

impl Default for Durability {
    fn default() -> Self {
        Self { sync: true, max_delay: Duration::from_millis(100), max_open_delay: Duration::from_secs(2) }
    }
}

/// Writes the file of one session.
///
/// Assistant entries are [queued](Self::queue_assistant) for a while ([`Durability`]), so that
/// usage and stop reason, which arrive last, can still be filled in. Everything else is
/// [recorded](Self::record) at once, after the queued entries. A thread does the writing:
/// methods whose name ends in `_then` return at once and call their [`OnWritten`] when the
/// entries are written.
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
    /// Creates the file of a new session. Fails if it exists.
    pub fn create(path: &Path, defaults: EnvelopeDefaults, durability: Durability) -> Result<Self, AppendError> {
        Self::new(Journal::create(path)?, HashSet::new(), None, defaults, durability)
    }

    /// Continues a session file after its last entry. Reads the whole file once.
    pub fn resume(path: &Path, defaults: EnvelopeDefaults, durability: Durability) -> Result<Self, AppendError> {
        let journal = Journal::open(path)?;
        let TranscriptState { uuids: known, leaf_uuid: head, .. } = TranscriptState::read(path)?;
        Self::new(journal, known, head, defaults, durability)
    }

    fn new(
        journal: Journal,
        known: HashSet<Uuid>,
        head: Option<Uuid>,
        defaults: EnvelopeDefaults,
        durability: Durability,
    ) -> Result<Self, AppendError> {
        let path = journal.path().to_owned();
        let writer = Writer::new(journal).map_err(|source| AppendError::Open { path: path.clone(), source })?;
        Ok(Self { writer, recorded_uuids: known, leaf_uuid: head, defaults, durability, path })
    }

    /// Calls `observer` with all lines written from now on.
    pub fn set_observer(&mut self, observer: WriteObserver) {
        self.writer.set_observer(observer);
    }

    /// UUID of the last entry of the chain, the parent of the next one.
    pub fn leaf_uuid(&self) -> Option<&Uuid> {
        self.leaf_uuid.as_ref()
    }

    /// Whether the session has an entry with this UUID.
    pub fn contains(&self, uuid: &Uuid) -> bool {
        self.recorded_uuids.contains(uuid)
    }

    /// Records the entries that are not yet recorded and returns the UUID of the last entry of the
    /// chain.
    ///
    /// The first new entry is linked to the last recorded entry before it in `entries`, or else to
    /// the end of the chain. Recorded entries after a new one change nothing: a compaction puts new
    /// entries before preserved ones. After an error the entries are kept and the next call tries to
    /// write them again.
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

    /// Queues an assistant entry. It is written when [`Durability`] says, before the next recorded
    /// entry, or when the queue is full.
    pub fn queue_assistant(&mut self, mut answer: Assistant) -> Result<QueuedHandle, AppendError> {
        let Some(uuid) = answer.envelope.uuid.get().cloned() else {
            return Err(AppendError::NoUuid { kind: "assistant".to_owned() });
        };
        self.fill_envelope(&mut answer.envelope, self.leaf_uuid.clone().as_ref());
        self.recorded_uuids.insert(uuid.clone());
        self.leaf_uuid = Some(uuid);
        let Durability { max_delay, max_open_delay, .. } = self.durability;
        Ok(self.writer.queue_assistant(answer, max_delay, max_open_delay))
    }

    /// Writes queued assistant entries within [`Durability::max_delay`], because none of them is the last
    /// of its answer.
    pub fn write_queued_soon(&mut self) {
        self.writer.write_within(self.durability.max_delay);
    }

    /// Fills in usage and stop reason of an answer whose blocks were queued as one entry each.
    /// Entries that are written already stay as they are: each entry is written once.
    pub fn finish_assistant(&mut self, answer: &[&QueuedHandle], end: impl Fn(&mut Assistant)) {
        for block in answer {
            block.finish(&end);
        }
        self.write_queued_soon();
    }

    /// Appends lines that are not part of the chain, such as titles, the last prompt and costs.
    /// Queued assistant entries that are not finished stay in the queue.
    pub fn record_bookkeeping(&mut self, entries: &[Entry]) -> Result<(), AppendError> {
        wait_until_written(|done| self.record_bookkeeping_then(entries, false, done))
    }

    /// Like [`record_bookkeeping`](Self::record_bookkeeping), but returns at once. With `sync`, the
    /// lines are on stable storage when `done` is called.
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

    /// Queues lines that are not part of the chain. They are written before the next recorded entry, or
    /// within twice [`Durability::max_delay`]. An error is returned by the next call that waits.
    pub fn queue_bookkeeping(&mut self, entries: &[Entry]) -> Result<(), AppendError> {
        let lines: Result<Vec<Line>, _> =
            entries.iter().map(|entry| Line::from_serialize(entry).map_err(AppendError::Serialize)).collect();
        self.writer.queue_lines(lines?, self.durability.max_delay);
        Ok(())
    }

    /// Continues from an earlier entry. Later entries stay in the file as another branch.
    pub fn rewind_to(&mut self, to: &Uuid) -> Result<(), AppendError> {
        if !self.recorded_uuids.contains(to) {
            return Err(AppendError::EntryNotFound { path: self.path.clone(), uuid: to.clone() });
        }
        self.leaf_uuid = Some(to.clone());
        Ok(())
    }

    /// Writes a compaction: the boundary, which has no parent, then the summary, which the preserved
    /// entries follow. Everything before is written, and synced, before the boundary.
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
        let preserved = boundary.compact_metadata.get().and_then(|data| data.preserved_messages.get()?.uuids.get());
        if let Some(missing) = preserved.into_iter().flatten().find(|uuid| !self.recorded_uuids.contains(*uuid)) {
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

    /// Writes queued entries and returns when everything is on stable storage.
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

    /// Writes queued entries, syncs as [`Durability`] asks, and stops the thread.
    pub fn close(mut self) -> Result<(), AppendError> {
        let sync = self.durability.sync;
        let written = wait_until_written(|done| {
            self.writer.commit(Vec::new(), sync, done);
            Ok(())
        });
        self.writer.stop();
        written
    }

    /// Serialises the entry with its envelope filled in.
    fn to_line(&self, mut entry: Entry, head: Option<&Uuid>) -> Result<Line, AppendError> {
        let source = match &entry {
            Entry::User(user) => user.source_tool_assistant_uuid.get().cloned(),
            _ => None,
        };
        // The parent of a tool result is the entry of its own tool call, so that results of
        // parallel calls form branches of their own.
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

    /// Sets the parent and the fields that the entry leaves open.
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
        // Errors are lost here; `close` returns them.
        self.writer.commit(Vec::new(), self.durability.sync, Box::new(|_| ()));
        self.writer.stop();
    }
}
