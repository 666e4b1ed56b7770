//! The log of API calls in a transcript: each call as the difference to the one before, every message
//! named by its hash. `quipu_conversation::RequestLog` verifies it.

use std::collections::HashSet;
use std::sync::Arc;

use quipu_api::{LoggedRequest, LoggedShape};
use quipu_conversation::Node;
use quipu_message::bookkeeping::{ApiRequest, ApiRequestBlob, ApiRequestShape};
use quipu_message::hash::message_hash;
use quipu_message::{Block, Entry, Json, Maybe, Message, MessageId, Role};
use quipu_transcript::EnvelopeDefaults;

use crate::clock::{new_id, now};

/// The most blocks of a message that is rebuilt from several `user` entries.
const MAX_RUN_BLOCKS: usize = 256;

/// What the transcript holds about the calls so far.
#[derive(Debug, Default)]
pub(super) struct RequestLogWriter {
    /// Hashes of the shapes and messages that have entries of their own.
    stored_hashes: HashSet<String>,
    /// The shape of the last call: it seldom changes, and encoding and hashing it takes longer than
    /// everything else here.
    last_shape: Option<Arc<LoggedShape>>,
    last_call: Option<LoggedCall>,
    /// The encoded messages that no call has named yet.
    pending_encoded: Vec<HashedMessage>,
    derivable: DerivableMessages,
}

/// The last call.
#[derive(Debug)]
struct LoggedCall {
    id: String,
    /// How many of its messages were encoded.
    encoded_count: usize,
    /// The hashes of the others.
    tail_hashes: Vec<String>,
}

/// The hash of a message, and the message itself if it cannot be rebuilt from entries.
#[derive(Debug)]
struct HashedMessage {
    hash: String,
    message: Option<Message>,
}

/// Hashes of the messages that can be rebuilt from entries, in the way the verification does it.
#[derive(Debug, Default)]
struct DerivableMessages {
    hashes: HashSet<String>,
    /// How many entries of the context have been read.
    entries_read: usize,
    /// The `user` entries since the last answer.
    user_run: Vec<Block>,
    /// The answer so far.
    answer: Option<DerivableAnswer>,
}

#[derive(Debug)]
struct DerivableAnswer {
    id: Maybe<MessageId>,
    blocks: Vec<Block>,
    /// The hash of these blocks; `None` while more of them are being read, because each would change it.
    hash: Option<String>,
}

impl DerivableMessages {
    fn read_entries(&mut self, context: &[Node]) {
        for node in context.iter().skip(self.entries_read) {
            match &node.entry {
                Entry::User(line) => {
                    let blocks = line.message.content.clone().into_blocks();
                    self.hashes.insert(blocks_hash(Role::User, &blocks));
                    // A longer run is more than one message.
                    let is_more = (1..MAX_RUN_BLOCKS).contains(&self.user_run.len());
                    self.user_run.extend(blocks);
                    if is_more {
                        self.hashes.insert(blocks_hash(Role::User, &self.user_run));
                    }
                }
                Entry::Assistant(line) => {
                    self.user_run.clear();
                    let new_blocks = line.message.content.clone().into_blocks();
                    match &mut self.answer {
                        Some(DerivableAnswer { id, blocks, hash }) if *id == line.message.id => {
                            // A part of an answer is not a message.
                            if let Some(hash) = hash.take() {
                                self.hashes.remove(&hash);
                            }
                            blocks.extend(new_blocks);
                        }
                        _ => {
                            self.hash_answer();
                            self.answer =
                                Some(DerivableAnswer { id: line.message.id.clone(), blocks: new_blocks, hash: None });
                        }
                    }
                }
                _ => {}
            }
        }
        self.hash_answer();
        self.entries_read = context.len();
    }

    fn hash_answer(&mut self) {
        if let Some(DerivableAnswer { blocks, hash: hash @ None, .. }) = &mut self.answer {
            let new = blocks_hash(Role::Assistant, blocks);
            self.hashes.insert(new.clone());
            *hash = Some(new);
        }
    }

    /// Removes the messages that a call has named: later calls do not name them again.
    fn forget_named(&mut self) {
        self.hashes.clear();
        self.hashes.extend(self.answer.as_ref().and_then(|answer| answer.hash.clone()));
    }
}

fn blocks_hash(role: Role, blocks: &[Block]) -> String {
    message_hash(&Message::new(role, blocks.to_vec()))
}

impl RequestLogWriter {
    /// The log of a file that holds these shapes and messages.
    pub(super) fn from_stored(stored: HashSet<String>) -> Self {
        Self { stored_hashes: stored, ..Self::default() }
    }

    /// The shape of the last call.
    pub(super) fn last_shape(&self) -> Option<&Arc<LoggedShape>> {
        self.last_shape.as_ref()
    }

    /// Earlier messages have changed: the next call names all its messages.
    pub(super) fn reset(&mut self) {
        (self.last_call, self.derivable) = (None, DerivableMessages::default());
        self.pending_encoded.clear();
    }

    /// Adds encoded messages, which come before those of the next call.
    pub(super) fn add_encoded(&mut self, messages: &[Message], context: &[Node]) {
        if self.last_call.is_none() {
            self.derivable.read_entries(context);
            let named: Vec<HashedMessage> = messages.iter().map(|message| self.hash_message(message)).collect();
            self.pending_encoded.extend(named);
        }
    }

    /// The entries of a call that begins with this many encoded messages, and its id.
    pub(super) fn log_call(
        &mut self,
        request: LoggedRequest,
        source: String,
        (settled, messages): (usize, &[Message]),
        context: &[Node],
        facts: &EnvelopeDefaults,
    ) -> (Vec<Entry>, String) {
        self.derivable.read_entries(context);
        let last = self.last_call.take().filter(|last| last.encoded_count <= settled);
        // All but the last message of that call are as they were: an answer followed them.
        let known = last
            .as_ref()
            .map_or(&[][..], |last| last.tail_hashes.get(settled - last.encoded_count..).unwrap_or_default());
        let same = known.len().saturating_sub(1).min(messages.len());
        let mut tail: Vec<HashedMessage> = messages[same..].iter().map(|message| self.hash_message(message)).collect();
        let again = usize::from(tail.first().is_some_and(|first| known.get(same) == Some(&first.hash)));
        let mut hashes = known[..same].to_vec();
        hashes.extend(tail.iter().map(|named| named.hash.clone()));
        let base = last.filter(|_| settled + same + again > 0);
        let keep = if base.is_some() { settled + same + again } else { 0 };
        if base.is_some() {
            tail.drain(..again);
        } else {
            tail.splice(..0, std::mem::take(&mut self.pending_encoded));
        }
        self.pending_encoded.clear();
        let id = new_id().to_string();
        let lines = self.call_entries(request, source, &id, (base.map(|base| base.id), keep, tail), facts);
        self.last_call = Some(LoggedCall { id: id.clone(), encoded_count: settled, tail_hashes: hashes });
        self.derivable.forget_named();
        (lines, id)
    }

    fn hash_message(&self, message: &Message) -> HashedMessage {
        let hash = message_hash(message);
        let given = self.derivable.hashes.contains(&hash) || self.stored_hashes.contains(&hash);
        HashedMessage { message: (!given).then(|| message.clone()), hash }
    }

    fn call_entries(
        &mut self,
        request: LoggedRequest,
        source: String,
        id: &str,
        (base, keep, tail): (Option<String>, usize, Vec<HashedMessage>),
        facts: &EnvelopeDefaults,
    ) -> Vec<Entry> {
        let (session_id, agent_id) = (Maybe::Value(facts.session_id.clone()), Maybe::from(facts.agent_id.clone()));
        let (timestamp, version) = (Maybe::Value(now()), Maybe::Value(facts.version.clone()));
        let mut lines = Vec::new();
        let shape_hash = request.shape.hash.clone();
        self.last_shape = Some(Arc::clone(&request.shape));
        if self.stored_hashes.insert(shape_hash.clone()) {
            lines.push(Entry::ApiRequestShape(Box::new(ApiRequestShape {
                session_id: session_id.clone(),
                agent_id: agent_id.clone(),
                shape_hash: shape_hash.clone(),
                shape: request.shape.json.clone(),
                timestamp: timestamp.clone(),
                version: version.clone(),
                ..ApiRequestShape::default()
            })));
        }
        let mut names = Vec::with_capacity(tail.len());
        for HashedMessage { hash, message } in tail {
            if let Some(message) = message
                && self.stored_hashes.insert(hash.clone())
            {
                lines.push(Entry::ApiRequestBlob(Box::new(ApiRequestBlob {
                    session_id: session_id.clone(),
                    agent_id: agent_id.clone(),
                    hash: hash.clone(),
                    message,
                    ..ApiRequestBlob::default()
                })));
            }
            names.push(hash);
        }
        lines.push(Entry::ApiRequest(Box::new(ApiRequest {
            session_id,
            agent_id,
            id: id.to_owned(),
            timestamp,
            version,
            query_source: Maybe::Value(source),
            shape_hash: Maybe::Value(shape_hash),
            params: Maybe::Value(Json::from(request.params)),
            base: base.into(),
            keep: Maybe::Value(keep as u64),
            tail: names,
            cache_control: Maybe::Value(Json::from(request.cache_control)),
            ..ApiRequest::default()
        })));
        lines
    }
}
