//! Verifies the request log of newer transcripts, which name every message sent to the API by
//! its hash. Each message is stored in its own line or can be rebuilt from the entries; the
//! hash proves that the rebuilt message is correct.

use std::collections::{HashMap, HashSet};

use quipu_message::bookkeeping::ApiRequest;
use quipu_message::hash::message_hash;
use quipu_message::{Block, Entry, Message, Role, Uuid};

/// A run of `user` entries with more blocks is not one message. Every prefix of a run is
/// hashed, so the cost grows with the square of its length.
const MAX_USER_RUN_BLOCKS: usize = 256;

/// Collects the API requests that a transcript names and the messages it holds.
#[derive(Debug, Default)]
pub struct RequestLog {
    stored_hashes: HashSet<String>,
    mismatched: Vec<(u64, String)>,
    requests: Vec<(u64, ApiRequest)>,
    rebuilt_hashes: HashSet<String>,
    responses: HashMap<String, Vec<Block>>,
    /// UUIDs of `assistant` entries, which may be written again with a stop reason.
    response_uuids: HashSet<Uuid>,
    user_run: Vec<Block>,
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
    /// Stored messages with a wrong hash: line and hash.
    pub mismatched: Vec<(u64, String)>,
}

impl RequestLog {
    /// Adds one entry; entries must come in the order of the file.
    pub fn push(&mut self, line: u64, entry: &Entry) {
        match entry {
            Entry::ApiRequestBlob(blob) => {
                if message_hash(&blob.message) != blob.hash {
                    self.mismatched.push((line, blob.hash.clone()));
                }
                self.stored_hashes.insert(blob.hash.clone());
            }
            Entry::ApiRequest(request) => self.requests.push((line, (**request).clone())),
            Entry::Assistant(response) => {
                self.user_run.clear();
                let blocks = response.message.content.clone().into_blocks();
                let id = response.message.id.text().unwrap_or_default();
                let is_repeated = |uuid: &Uuid| !self.response_uuids.insert(uuid.clone());
                if response.envelope.uuid.get().is_some_and(is_repeated) {
                    return;
                }
                self.responses.entry(id.to_owned()).or_default().extend(blocks);
            }
            Entry::User(user) => {
                let blocks = user.message.content.clone().into_blocks();
                self.rebuilt_hashes.insert(hash_blocks(Role::User, &blocks));
                if !self.user_run.is_empty() && self.user_run.len() < MAX_USER_RUN_BLOCKS {
                    self.user_run.extend(blocks);
                    self.rebuilt_hashes.insert(hash_blocks(Role::User, &self.user_run));
                } else {
                    self.user_run.extend(blocks);
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
        self.rebuilt_hashes.extend(self.responses.values().map(|blocks| hash_blocks(Role::Assistant, blocks)));
        let mut result = HashVerification { mismatched: self.mismatched, ..HashVerification::default() };
        for (line, request) in self.requests {
            for name in request.tail {
                if self.stored_hashes.contains(&name) {
                    result.stored += 1;
                } else if self.rebuilt_hashes.contains(&name) {
                    result.rebuilt += 1;
                } else {
                    result.missing.push((line, name));
                }
            }
        }
        result
    }
}

fn hash_blocks(role: Role, blocks: &[Block]) -> String {
    message_hash(&Message::new(role, blocks.to_vec()))
}
