//! Usage without a database: all messages of all sessions in memory, each credited once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::{MessageKey, MessageUsage, SubagentAttribution};
use quipu_message::SessionId;

use crate::hashing::IntegerHasher;
use crate::message_copies::{self, Credit};
use crate::packed_messages::PackedMessages;
use crate::usage::{UNKNOWN_AGENT, UsageRecord};

/// The usage of one session.
#[derive(Debug)]
pub struct SessionUsage {
    /// Id of the session.
    pub session_id: SessionId,
    /// Name of the project folder.
    pub project: Arc<str>,
    /// First timestamp in its file.
    pub started_at: Option<Timestamp>,
    messages: PackedMessages,
    subagents: BTreeMap<String, SubagentAttribution>,
    is_vanished: bool,
}

impl SessionUsage {
    /// Packs the messages that have usage.
    pub fn new(
        session_id: SessionId,
        project: Arc<str>,
        started_at: Option<Timestamp>,
        messages: &[MessageUsage],
    ) -> Self {
        let messages = PackedMessages::new(messages.iter().filter(|m| m.has_usage));
        Self { session_id, project, started_at, messages, subagents: BTreeMap::new(), is_vanished: false }
    }

    /// Marks the usage as that of deleted files.
    pub(crate) fn into_vanished(self) -> Self {
        Self { is_vanished: true, ..self }
    }

    /// Adds the types and turns of its subagents.
    pub(crate) fn with_subagents(self, agents: BTreeMap<String, SubagentAttribution>) -> Self {
        Self { subagents: agents, ..self }
    }
}

/// The messages of all sessions, each credited to one.
///
/// Resumed and forked sessions hold copies of earlier messages. A message is credited to the
/// earliest session that holds it, existing sessions before deleted ones.
#[derive(Debug)]
pub struct UsageLedger {
    sessions: Vec<SessionUsage>,
    /// Messages that count in another session.
    copies: HashSet<Position, BuildHasherDefault<IntegerHasher>>,
    /// Messages that count with the joined usage of their copies.
    merged: HashMap<Position, MessageUsage, BuildHasherDefault<IntegerHasher>>,
}

/// The index of a session and that of a message in it, as one number.
type Position = u64;

fn position(session: u32, message: u32) -> Position {
    u64::from(session) << 32 | u64::from(message)
}

/// Number of messages unpacked and compared at a time, which bounds memory.
const MAX_MESSAGES_PER_PASS: usize = 25_000;

impl UsageLedger {
    /// Finds the copies among the sessions.
    pub fn new(mut sessions: Vec<SessionUsage>) -> Self {
        let order = |s: &SessionUsage| (s.is_vanished, s.started_at.map(Timestamp::as_millisecond));
        sessions.sort_by(|a, b| (order(a), &a.session_id).cmp(&(order(b), &b.session_id)));
        let mut keys = Vec::with_capacity(sessions.iter().map(|session| session.messages.keys().len()).sum());
        keys.extend(sessions.iter().flat_map(|session| session.messages.keys()));
        // Only keys that occur more than once can be copies.
        let (repeated, holders) = repeated_keys(keys);
        let portions = 1 + (holders / MAX_MESSAGES_PER_PASS) as u64;
        let mut ledger = Self { sessions, copies: HashSet::default(), merged: HashMap::default() };
        for portion in 0..portions {
            ledger.find_copies(|key| key % portions == portion && repeated.contains(key));
        }
        ledger
    }

    /// Credits the messages with the selected keys.
    fn find_copies(&mut self, is_selected: impl Fn(&MessageKey) -> bool) {
        let mut holders = Vec::new();
        for (s, session) in (0..).zip(&self.sessions) {
            if !session.messages.keys().any(|key| is_selected(&key)) {
                continue;
            }
            for (m, message) in session.messages.unpack(|_, key| is_selected(&key)) {
                holders.push((message.key, (session.is_vanished, message.is_progress), position(s, m), message));
            }
        }
        // Messages are large, so pointers to them are sorted.
        let mut by_key: Vec<_> = holders.iter().collect();
        by_key.sort_unstable_by_key(|(key, rank, position, _)| (*key, *rank, *position));
        for same_key in by_key.chunk_by(|a, b| a.0 == b.0) {
            let messages: Vec<&MessageUsage> = same_key.iter().map(|(.., message)| message).collect();
            for ((.., position, _), credit) in same_key.iter().zip(message_copies::credit_holders(&messages)) {
                match credit {
                    Credit::Own => {}
                    Credit::Copy => _ = self.copies.insert(*position),
                    Credit::Merged(merged) => _ = self.merged.insert(*position, *merged),
                }
            }
        }
    }

    /// Passes every credited message to `visit`, by session.
    pub fn for_each_usage(&self, prices: &Prices, mut visit: impl FnMut(&UsageRecord<'_>)) {
        for (s, session) in (0..).zip(&self.sessions) {
            for (m, message) in session.messages.unpack(|m, _| !self.copies.contains(&position(s, m))) {
                let message = self.merged.get(&position(s, m)).unwrap_or(&message);
                let mut record =
                    UsageRecord::from_message(session.session_id.as_str(), &session.project, message, prices);
                record.is_vanished = session.is_vanished;
                if let Some(agent) = &message.agent {
                    let agent = session.subagents.get(&**agent);
                    record.agent = agent.and_then(|agent| agent.agent_type.as_deref()).unwrap_or(UNKNOWN_AGENT);
                    record.turn = agent.map_or(message.turn, |agent| agent.turn.max(message.turn));
                }
                visit(&record);
            }
        }
    }
}

/// The keys that occur more than once, and the number of messages with such a key.
fn repeated_keys(mut keys: Vec<MessageKey>) -> (HashSet<MessageKey, BuildHasherDefault<IntegerHasher>>, usize) {
    keys.sort_unstable();
    let groups = keys.chunk_by(|a, b| a == b).filter(|group| group.len() > 1 && group[0] != 0);
    let holders = groups.clone().map(<[MessageKey]>::len).sum();
    (groups.map(|group| group[0]).collect(), holders)
}
