//! Reads the request log of newer transcripts, which name every message sent to the API by
//! its hash. Each message is stored in its own line or can be rebuilt from the entries; the
//! hash proves that the rebuilt message is correct.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use quipu_message::bookkeeping::ApiRequest;
use quipu_message::hash::{json_hash, message_hash};
use quipu_message::{Block, Entry, Json, Message, Role, Uuid};

mod rebuild;

pub use rebuild::{LoggedRequest, RebuiltRequests};

/// A run of `user` entries with more blocks is not one message. Every prefix of a run is
/// hashed, so the cost grows with the square of its length.
const MAX_USER_RUN_BLOCKS: usize = 256;

/// Collects the API requests that a transcript names and the messages it holds.
///
/// [`verify`](Self::verify) needs only the hashes; [`rebuild`](Self::rebuild) needs the
/// messages too, which [`with_messages`](Self::with_messages) keeps.
#[derive(Debug, Default)]
pub struct RequestLog {
    keeps_messages: bool,
    /// Where the message with each hash is.
    messages: HashMap<String, MessagePlace>,
    mismatched: Vec<(u64, String)>,
    requests: Vec<(u64, ApiRequest)>,
    shapes: HashMap<String, Json>,
    responses: HashMap<String, Vec<Block>>,
    /// UUIDs of `assistant` entries, which may be written again with a stop reason.
    response_uuids: HashSet<Uuid>,
    /// Blocks of `user` entries: those of the current run, or all if messages are kept.
    user_blocks: Vec<Block>,
    /// Where the current run of `user` entries starts in `user_blocks`.
    run_start: usize,
}

/// Where a message of the log is.
#[derive(Debug)]
enum MessagePlace {
    /// In its own line; `None` if messages are not kept.
    Stored(Option<Box<Message>>),
    /// In blocks of `user` entries.
    User(Range<usize>),
    /// In the entries of the response with this message id.
    Response(String),
}

/// Result of [`RequestLog::verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HashVerification {
    /// Number of messages that are stored in their own line.
    pub stored: usize,
    /// Number of messages that were rebuilt from the entries.
    pub rebuilt: usize,
    /// Messages that are neither stored nor can be rebuilt: line of the request, and hash.
    pub missing: Vec<(u64, String)>,
    /// Stored messages, system prompts and tools with a wrong hash: line and hash.
    pub mismatched: Vec<(u64, String)>,
}

impl RequestLog {
    /// A log that keeps the messages, so that requests can be rebuilt.
    pub fn with_messages() -> Self {
        Self { keeps_messages: true, ..Self::default() }
    }

    /// Adds one entry; entries must come in the order of the file.
    pub fn push(&mut self, line: u64, entry: &Entry) {
        match entry {
            Entry::ApiRequestShape(shape) => {
                if json_hash(&shape.shape).as_deref() != Some(shape.shape_hash.as_str()) {
                    self.mismatched.push((line, shape.shape_hash.clone()));
                }
                if self.keeps_messages {
                    self.shapes.insert(shape.shape_hash.clone(), shape.shape.clone());
                }
            }
            Entry::ApiRequestBlob(blob) => {
                if message_hash(&blob.message) != blob.hash {
                    self.mismatched.push((line, blob.hash.clone()));
                }
                let message = self.keeps_messages.then(|| Box::new(blob.message.clone()));
                self.messages.insert(blob.hash.clone(), MessagePlace::Stored(message));
            }
            Entry::ApiRequest(request) => self.requests.push((line, (**request).clone())),
            Entry::Assistant(response) => {
                self.end_user_run();
                let blocks = response.message.content.clone().into_blocks();
                let id = response.message.id.text().unwrap_or_default();
                let is_repeated = |uuid: &Uuid| !self.response_uuids.insert(uuid.clone());
                if response.envelope.uuid.get().is_some_and(is_repeated) {
                    return;
                }
                self.responses.entry(id.to_owned()).or_default().extend(blocks);
            }
            Entry::User(user) => {
                let start = self.user_blocks.len();
                self.user_blocks.extend(user.message.content.clone().into_blocks());
                self.add_user_message(start);
                if (1..MAX_USER_RUN_BLOCKS).contains(&(start - self.run_start)) {
                    self.add_user_message(self.run_start);
                }
            }
            _ => {}
        }
    }

    /// Whether the transcript has no request log.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Looks up every message that the requests name.
    pub fn verify(mut self) -> HashVerification {
        self.add_responses();
        let mut result = HashVerification { mismatched: self.mismatched, ..HashVerification::default() };
        for (line, request) in self.requests {
            for name in request.tail {
                match self.messages.get(&name) {
                    Some(MessagePlace::Stored(_)) => result.stored += 1,
                    Some(_) => result.rebuilt += 1,
                    None => result.missing.push((line, name)),
                }
            }
        }
        result
    }

    fn end_user_run(&mut self) {
        if !self.keeps_messages {
            self.user_blocks.clear();
        }
        self.run_start = self.user_blocks.len();
    }

    /// Adds the message that the blocks from `start` on are. A stored message with the same
    /// hash stays.
    fn add_user_message(&mut self, start: usize) {
        let hash = hash_blocks(Role::User, &self.user_blocks[start..]);
        self.messages.entry(hash).or_insert(MessagePlace::User(start..self.user_blocks.len()));
    }

    fn add_responses(&mut self) {
        let hash = |(id, blocks): (&String, &Vec<Block>)| (hash_blocks(Role::Assistant, blocks), id.clone());
        let hashes: Vec<(String, String)> = self.responses.iter().map(hash).collect();
        for (hash, id) in hashes {
            self.messages.entry(hash).or_insert(MessagePlace::Response(id));
        }
    }
}

fn hash_blocks(role: Role, blocks: &[Block]) -> String {
    message_hash(&Message::new(role, blocks.to_vec()))
}
