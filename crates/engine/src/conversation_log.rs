//! Recording of entries: the transcript file, and the context that the model gets from it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quipu_api::Request;
use quipu_conversation::{Node, for_api, is_media_too_large_error};
use quipu_message::TranscriptMirror;
use quipu_message::attachment::AttachmentEntry;
use quipu_message::system::CompactBoundary;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{Block, Entry, Line, Maybe, Message, Role, SessionId, Uuid};
use quipu_transcript::{AppendError, Durability, EnvelopeDefaults, OnWritten, QueuedHandle, Recorder};
use tokio::sync::oneshot;

use crate::output::OutputStream;

mod request_log;

use request_log::RequestLogWriter;

/// A block of an answer, recorded before the end of the answer is known.
#[derive(Debug)]
pub(crate) struct AnswerBlock {
    pub(crate) uuid: Uuid,
    /// `None` if nothing is written.
    queued: Option<QueuedHandle>,
}

/// Entries that are recorded and not written yet.
#[derive(Debug)]
#[must_use = "whoever tells of it waits until it is written"]
pub(crate) struct PendingWrite(Option<oneshot::Receiver<Result<(), AppendError>>>);

impl PendingWrite {
    fn new() -> (OnWritten, Self) {
        let (told, written) = oneshot::channel();
        let done = move |written| {
            // The receiver is dropped when the turn is interrupted.
            let _ = told.send(written);
        };
        (Box::new(done), Self(Some(written)))
    }

    /// Returns when the entries are written; user prompts are then on stable storage.
    pub(crate) async fn wait(self) -> Result<(), AppendError> {
        match self.0 {
            Some(written) => written.await.unwrap_or(Err(AppendError::Stopped)),
            None => Ok(()),
        }
    }
}

/// A conversation and its transcript. No function here waits for the disk: a thread of the recorder
/// writes, and [`PendingWrite`] waits for it.
#[derive(Debug)]
pub(crate) struct ConversationLog {
    path: PathBuf,
    envelope_defaults: EnvelopeDefaults,
    durability: Durability,
    /// Opened at the first entry: a session without prompts leaves no file.
    recorder: Option<Recorder>,
    /// Whether a transcript is written at all.
    is_persistent: bool,
    /// UUID of the entry to continue from; `None` for the last one.
    rewind_to: Option<Uuid>,
    /// The context of the model: everything since the last compaction.
    context: Vec<Node>,
    /// Positions of the attachments in the context, which are few.
    attachment_positions: Vec<usize>,
    encoded_prefix: EncodedPrefix,
    /// The log of API calls in the transcript.
    request_log: RequestLogWriter,
    leaf_uuid: Option<Uuid>,
    /// Gets a copy of everything that is written.
    mirror: Option<OutputStream>,
}

impl ConversationLog {
    /// A log that writes to `path`, which need not exist.
    pub(crate) fn new(path: PathBuf, facts: EnvelopeDefaults, durability: Durability, persists: bool) -> Self {
        Self {
            path,
            envelope_defaults: facts,
            durability,
            recorder: None,
            is_persistent: persists,
            rewind_to: None,
            context: Vec::new(),
            attachment_positions: Vec::new(),
            encoded_prefix: EncodedPrefix::default(),
            request_log: RequestLogWriter::default(),
            leaf_uuid: None,
            mirror: None,
        }
    }

    /// Continues an earlier conversation: from the entry `rewind_to`, or else from its end. `stored` are
    /// the hashes that its log of API calls holds.
    pub(crate) fn resume(&mut self, context: Vec<Node>, rewind_to: Option<Uuid>, stored: HashSet<String>) {
        self.leaf_uuid = rewind_to.clone().or_else(|| context.iter().rev().find_map(|node| node.uuid().cloned()));
        (self.context, self.rewind_to) = (context, rewind_to);
        self.find_attachments();
        self.encoded_prefix = EncodedPrefix::default();
        self.request_log = RequestLogWriter::from_stored(stored);
    }

    /// An empty log of another session, in a file in the same folder.
    pub(crate) fn for_new_session(&self, session: SessionId) -> Self {
        let path = self.path.with_file_name(format!("{session}.jsonl"));
        let facts = EnvelopeDefaults { session_id: session, ..self.envelope_defaults.clone() };
        Self { mirror: self.mirror.clone(), ..Self::new(path, facts, self.durability, self.is_persistent) }
    }

    /// Emits everything that is written to `output` too.
    pub(crate) fn set_mirror(&mut self, output: OutputStream) {
        self.mirror = Some(output);
    }

    /// Path of the transcript.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The fields that every entry gets, such as the session id and the folder.
    pub(crate) fn envelope_defaults(&self) -> &EnvelopeDefaults {
        &self.envelope_defaults
    }

    /// UUID of the last entry of the conversation.
    pub(crate) fn leaf_uuid(&self) -> Option<&Uuid> {
        self.leaf_uuid.as_ref()
    }

    /// The context of the model: everything since the last compaction.
    pub(crate) fn context(&self) -> &[Node] {
        &self.context
    }

    /// The attachments in the context.
    pub(crate) fn attachments(&self) -> impl DoubleEndedIterator<Item = &AttachmentEntry> {
        self.attachment_positions.iter().filter_map(|at| match &self.context[*at].entry {
            Entry::Attachment(line) => Some(&**line),
            _ => None,
        })
    }

    fn find_attachments(&mut self) {
        let entries = self.context.iter().enumerate();
        let attachments = entries.filter(|(_, node)| matches!(node.entry, Entry::Attachment(_)));
        self.attachment_positions = attachments.map(|(at, _)| at).collect();
    }

    /// The messages of the next request.
    pub(crate) fn api_messages(&self) -> Vec<Message> {
        for_api(&self.context.iter().collect::<Vec<_>>())
    }

    /// The messages of the next request: finished turns as JSON text, then the rest.
    pub(crate) fn encoded_messages(&mut self) -> (quipu_api::EncodedHistory, Vec<Message>) {
        self.encode_finished_turns();
        let rest: Vec<&Node> = self.context[self.encoded_prefix.node_count..].iter().collect();
        (self.encoded_prefix.history.clone(), for_api(&rest))
    }

    /// Encodes all turns but the last two, which hold the cache breakpoints. A turn that does not end
    /// in an answer is encoded together with the next one that does.
    fn encode_finished_turns(&mut self) {
        let from = self.encoded_prefix.node_count;
        let begins: Vec<usize> = (from..self.context.len()).filter(|at| is_user_prompt(&self.context[*at])).collect();
        let [.., to, _] = begins[..] else { return };
        if to == from {
            return;
        }
        let over: Vec<&Node> = self.context[from..to].iter().collect();
        let messages = for_api(&over);
        if messages.last().is_none_or(|message| message.role != Role::Assistant) {
            return;
        }
        if self.encoded_prefix.history.append(&messages).is_ok() {
            self.encoded_prefix.node_count = to;
            self.encoded_prefix.message_count += messages.len();
            self.request_log.add_encoded(&messages, &self.context);
        }
    }

    /// Logs an API call that is about to send [these messages](Self::encoded_messages). Returns the id
    /// of the log entry; `None` if no transcript is written.
    pub(crate) fn log_request(&mut self, request: &mut Request, source: String) -> Result<Option<String>, AppendError> {
        if !self.is_persistent {
            return Ok(None);
        }
        let settled = self.encoded_prefix.message_count;
        let logged = request.to_logged(settled, self.request_log.last_shape());
        let messages = (settled, &request.messages[..]);
        let (lines, id) = self.request_log.log_call(logged, source, messages, &self.context, &self.envelope_defaults);
        if let Some(recorder) = self.open_recorder()? {
            recorder.queue_bookkeeping(&lines)?;
        }
        Ok(Some(id))
    }

    /// Records entries of the conversation. Without entries it does nothing.
    pub(crate) fn record(&mut self, entries: Vec<Entry>) -> Result<PendingWrite, AppendError> {
        if entries.is_empty() {
            return Ok(PendingWrite(None));
        }
        let recorded = self.send_to_recorder(|recorder, done| recorder.record_then(&entries, done))?;
        for entry in entries {
            self.add_to_context(entry);
        }
        Ok(recorded)
    }

    /// Continues from an entry that is not the last one recorded.
    pub(crate) fn continue_from(&mut self, entry: Uuid) -> Result<(), AppendError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.rewind_to(&entry)?;
        }
        self.leaf_uuid = Some(entry);
        Ok(())
    }

    /// Records a block of an answer whose end is not known yet.
    pub(crate) fn record_answer_block(&mut self, answer: Assistant) -> Result<AnswerBlock, AppendError> {
        let queued = match self.open_recorder()? {
            Some(recorder) => Some(recorder.queue_assistant(answer.clone())?),
            None => None,
        };
        let uuid = answer.envelope.uuid.get().cloned().unwrap_or_default();
        self.add_to_context(Entry::Assistant(Box::new(answer)));
        Ok(AnswerBlock { uuid, queued })
    }

    /// Records that another block of an answer has begun, so that those before it need not wait for its
    /// end.
    pub(crate) fn answer_continues(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.write_queued_soon();
        }
    }

    /// Completes an answer: `end` changes its blocks that are not written yet.
    pub(crate) fn finish_answer(&mut self, blocks: &[AnswerBlock], end: impl Fn(&mut Assistant)) {
        let blocks: Vec<&QueuedHandle> = blocks.iter().filter_map(|block| block.queued.as_ref()).collect();
        if let Some(recorder) = &mut self.recorder {
            recorder.finish_assistant(&blocks, end);
        }
    }

    /// Removes a failed answer from the conversation, which continues from `before`. Blocks that are
    /// written already stay in the transcript as an abandoned branch.
    pub(crate) fn withdraw_answer(&mut self, blocks: &[AnswerBlock], before: Option<Uuid>) -> Result<(), AppendError> {
        for queued in blocks.iter().filter_map(|block| block.queued.as_ref()) {
            queued.withdraw();
        }
        self.context.retain(|node| blocks.iter().all(|block| node.uuid() != Some(&block.uuid)));
        self.find_attachments();
        before.map_or(Ok(()), |before| self.continue_from(before))
    }

    /// Appends entries that are not part of the conversation. If that fails, it is tried again with the
    /// next entries, which then return the error.
    pub(crate) fn record_bookkeeping(&mut self, entries: &[Entry]) -> Result<(), AppendError> {
        match self.open_recorder()? {
            Some(recorder) => recorder.record_bookkeeping_then(entries, false, Box::new(|_| ())),
            None => Ok(()),
        }
    }

    /// Appends entries that are not part of the conversation, and syncs the file.
    pub(crate) fn record_bookkeeping_synced(&mut self, entries: &[Entry]) -> Result<PendingWrite, AppendError> {
        self.send_to_recorder(|recorder, done| recorder.record_bookkeeping_then(entries, true, done))
    }

    /// Waits for all bookkeeping entries so far.
    pub(crate) fn bookkeeping_written(&mut self) -> Result<PendingWrite, AppendError> {
        self.send_to_recorder(|recorder, done| recorder.record_bookkeeping_then(&[], false, done))
    }

    /// Records a compaction. The context is then the summary and the entries in `kept`.
    pub(crate) fn compact(
        &mut self,
        boundary: CompactBoundary,
        summary: User,
        kept: &[Uuid],
    ) -> Result<PendingWrite, AppendError> {
        let recorded =
            self.send_to_recorder(|recorder, done| recorder.compact_then(boundary, summary.clone(), done))?;
        let is_kept = |node: &Node| node.uuid().is_some_and(|uuid| kept.contains(uuid));
        self.encoded_prefix = EncodedPrefix::default();
        self.request_log.reset();
        let kept: Vec<Node> = std::mem::take(&mut self.context).into_iter().filter(is_kept).collect();
        self.add_to_context(Entry::User(Box::new(summary)));
        let anchor = self.leaf_uuid.clone();
        self.context.extend(kept);
        self.find_attachments();
        self.leaf_uuid = anchor;
        Ok(recorded)
    }

    /// Writes all queued entries and syncs the file.
    pub(crate) fn flush(&mut self) -> PendingWrite {
        match &mut self.recorder {
            Some(recorder) => {
                let (done, recorded) = PendingWrite::new();
                recorder.flush_then(done);
                recorded
            }
            None => PendingWrite(None),
        }
    }

    fn send_to_recorder(
        &mut self,
        send: impl FnOnce(&mut Recorder, OnWritten) -> Result<(), AppendError>,
    ) -> Result<PendingWrite, AppendError> {
        let Some(recorder) = self.open_recorder()? else { return Ok(PendingWrite(None)) };
        let (done, recorded) = PendingWrite::new();
        send(recorder, done)?;
        Ok(recorded)
    }

    /// Whether anything has been written.
    pub(crate) fn is_open(&self) -> bool {
        self.recorder.is_some()
    }

    /// Adds entries to the context.
    fn add_to_context(&mut self, entry: Entry) {
        // Entries that later requests leave out may be encoded already.
        if matches!(&entry, Entry::Assistant(answer) if is_media_too_large_error(answer)) {
            self.encoded_prefix = EncodedPrefix::default();
            self.request_log.reset();
        }
        let node = Node { line: 0, entry };
        if let Some(uuid) = node.uuid() {
            self.leaf_uuid = Some(uuid.clone());
        }
        if matches!(node.entry, Entry::Attachment(_)) {
            self.attachment_positions.push(self.context.len());
        }
        self.context.push(node);
    }

    fn open_recorder(&mut self) -> Result<Option<&mut Recorder>, AppendError> {
        if self.recorder.is_none() && self.is_persistent {
            let (facts, durability) = (self.envelope_defaults.clone(), self.durability);
            let mut recorder = if self.path.exists() {
                Recorder::resume(&self.path, facts, durability)?
            } else {
                Recorder::create(&self.path, facts, durability)?
            };
            if let Some(output) = self.mirror.clone() {
                recorder.set_observer(Box::new(move |path, lines| output.emit(mirror_entry(path, lines))));
            }
            if let Some(line) = self.rewind_to.take() {
                recorder.rewind_to(&line)?;
            }
            self.recorder = Some(recorder);
        }
        Ok(self.recorder.as_mut())
    }
}

/// Finished turns: the number of their nodes, and their messages as JSON text. Without it, every call
/// of a long session would serialise the whole conversation.
#[derive(Debug, Default)]
struct EncodedPrefix {
    node_count: usize,
    message_count: usize,
    history: quipu_api::EncodedHistory,
}

/// Whether an entry is a user prompt, which begins a turn.
fn is_user_prompt(node: &Node) -> bool {
    let Entry::User(user) = &node.entry else { return false };
    let answers = |block: &Block| matches!(block, Block::ToolResult(_));
    !user.is_meta.is_true() && !user.message.content.blocks().iter().any(answers)
}

/// Whether an entry is mirrored to the host; the log of API calls is not.
fn is_mirrored(entry: &Entry) -> bool {
    !matches!(entry, Entry::ApiRequest(_) | Entry::ApiRequestBlob(_) | Entry::ApiRequestShape(_))
}

/// The stream line that mirrors written entries.
fn mirror_entry(path: &Path, lines: &[Line]) -> Entry {
    Entry::TranscriptMirror(Box::new(TranscriptMirror {
        file_path: Maybe::Value(path.display().to_string()),
        entries: lines.iter().filter_map(|line| Entry::read(line.as_str()).ok()).filter(is_mirrored).collect(),
        ..TranscriptMirror::default()
    }))
}

#[cfg(test)]
mod tests;
