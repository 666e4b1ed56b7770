//! Newer session files name every message they sent by hash. Each such message
//! is either stored in a line of its own or can be rebuilt from the entries, and
//! the hash proves the rebuild right.

use std::collections::{HashMap, HashSet};

use quipu_message::bookkeeping::ApiRequest;
use quipu_message::hash::message_hash;
use quipu_message::{Block, Entry, Message, Role, Uuid};

/// A longer run of `user` lines is no one message; hashing each of its beginnings
/// would take the square of its length.
const LONGEST_RUN: usize = 256;

/// Collects what a file says of its API calls.
#[derive(Debug, Default)]
pub struct RequestLog {
    stored: HashSet<String>,
    wrong: Vec<(u64, String)>,
    requests: Vec<(u64, ApiRequest)>,
    rebuilt: HashSet<String>,
    answers: HashMap<String, Vec<Block>>,
    /// The lines of answers: one may be written again when its end is known.
    answer_lines: HashSet<Uuid>,
    run: Vec<Block>,
}

/// What the hashes prove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// Messages named by a call and stored in a line of their own.
    pub stored: usize,
    /// Messages named by a call and rebuilt from the entries.
    pub rebuilt: usize,
    /// Messages named by a call that neither gives: the line and the hash.
    pub unproven: Vec<(u64, String)>,
    /// Stored messages whose hash is not theirs: the line and the hash.
    pub wrong: Vec<(u64, String)>,
}

impl RequestLog {
    /// Takes one entry, in the order of the file.
    pub fn push(&mut self, line: u64, entry: &Entry) {
        match entry {
            Entry::ApiRequestBlob(blob) => {
                if message_hash(&blob.message) != blob.hash {
                    self.wrong.push((line, blob.hash.clone()));
                }
                self.stored.insert(blob.hash.clone());
            }
            Entry::ApiRequest(request) => self.requests.push((line, (**request).clone())),
            Entry::Assistant(answer) => {
                self.run.clear();
                let blocks = answer.message.content.clone().into_blocks();
                let id = answer.message.id.text().unwrap_or_default();
                let is_again = |uuid: &Uuid| !self.answer_lines.insert(uuid.clone());
                if answer.envelope.uuid.get().is_some_and(is_again) {
                    return;
                }
                self.answers.entry(id.to_owned()).or_default().extend(blocks);
            }
            Entry::User(user) => {
                let blocks = user.message.content.clone().into_blocks();
                self.rebuilt.insert(hash(Role::User, &blocks));
                if !self.run.is_empty() && self.run.len() < LONGEST_RUN {
                    self.run.extend(blocks);
                    self.rebuilt.insert(hash(Role::User, &self.run));
                } else {
                    self.run.extend(blocks);
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
    pub fn prove(mut self) -> Proof {
        self.rebuilt.extend(self.answers.values().map(|blocks| hash(Role::Assistant, blocks)));
        let mut proof = Proof { wrong: self.wrong, ..Proof::default() };
        for (line, request) in self.requests {
            for name in request.tail {
                if self.stored.contains(&name) {
                    proof.stored += 1;
                } else if self.rebuilt.contains(&name) {
                    proof.rebuilt += 1;
                } else {
                    proof.unproven.push((line, name));
                }
            }
        }
        proof
    }
}

fn hash(role: Role, blocks: &[Block]) -> String {
    message_hash(&Message::new(role, blocks.to_vec()))
}
