//! Newer session files name every message they sent by hash. Each such message
//! is either stored in a line of its own or can be rebuilt from the entries, and
//! the hash proves the rebuild right.

use std::collections::{HashMap, HashSet};

use quipu_message::bookkeeping::ApiRequest;
use quipu_message::hash::message_hash;
use quipu_message::{Block, Entry, Message, Role, Uuid};

/// A longer run of `user` lines is no one message; hashing each of its beginnings
/// would take the square of its length.
const MAX_USER_RUN_BLOCKS: usize = 256;

/// Collects what a file says of its API calls.
#[derive(Debug, Default)]
pub struct RequestLog {
    stored_hashes: HashSet<String>,
    mismatched: Vec<(u64, String)>,
    requests: Vec<(u64, ApiRequest)>,
    rebuilt_hashes: HashSet<String>,
    responses: HashMap<String, Vec<Block>>,
    /// The lines of answers: one may be written again when its end is known.
    response_uuids: HashSet<Uuid>,
    user_run: Vec<Block>,
}

/// What the hashes prove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HashVerification {
    /// Messages named by a call and stored in a line of their own.
    pub stored: usize,
    /// Messages named by a call and rebuilt from the entries.
    pub rebuilt: usize,
    /// Messages named by a call that neither gives: the line and the hash.
    pub missing: Vec<(u64, String)>,
    /// Stored messages whose hash is not theirs: the line and the hash.
    pub mismatched: Vec<(u64, String)>,
}

impl RequestLog {
    /// Takes one entry, in the order of the file.
    pub fn push(&mut self, line: u64, entry: &Entry) {
        match entry {
            Entry::ApiRequestBlob(blob) => {
                if message_hash(&blob.message) != blob.hash {
                    self.mismatched.push((line, blob.hash.clone()));
                }
                self.stored_hashes.insert(blob.hash.clone());
            }
            Entry::ApiRequest(request) => self.requests.push((line, (**request).clone())),
            Entry::Assistant(answer) => {
                self.user_run.clear();
                let blocks = answer.message.content.clone().into_blocks();
                let id = answer.message.id.text().unwrap_or_default();
                let is_again = |uuid: &Uuid| !self.response_uuids.insert(uuid.clone());
                if answer.envelope.uuid.get().is_some_and(is_again) {
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

    /// Whether the file names its calls at all.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Compares what the calls name with what is there.
    pub fn verify(mut self) -> HashVerification {
        self.rebuilt_hashes.extend(self.responses.values().map(|blocks| hash_blocks(Role::Assistant, blocks)));
        let mut proof = HashVerification { mismatched: self.mismatched, ..HashVerification::default() };
        for (line, request) in self.requests {
            for name in request.tail {
                if self.stored_hashes.contains(&name) {
                    proof.stored += 1;
                } else if self.rebuilt_hashes.contains(&name) {
                    proof.rebuilt += 1;
                } else {
                    proof.missing.push((line, name));
                }
            }
        }
        proof
    }
}

fn hash_blocks(role: Role, blocks: &[Block]) -> String {
    message_hash(&Message::new(role, blocks.to_vec()))
}
