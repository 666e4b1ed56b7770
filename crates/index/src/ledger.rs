//! All messages of all sessions, small enough to hold, each credited once.

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

/// A session and what its messages used.
#[derive(Debug)]
pub struct SessionUsage {
    /// The session.
    pub session_id: SessionId,
    /// The name of the project's folder.
    pub project: Arc<str>,
    /// When its file begins: the first time it says.
    pub started_at: Option<Timestamp>,
    messages: PackedMessages,
    subagents: BTreeMap<String, SubagentAttribution>,
    is_vanished: bool,
}

impl SessionUsage {
    /// Packs what was gathered, but for messages that do not say what they used.
    pub fn new(session_id: SessionId, project: Arc<str>, begins: Option<Timestamp>, messages: &[MessageUsage]) -> Self {
        let messages = PackedMessages::new(messages.iter().filter(|m| m.has_usage));
        Self { session_id, project, started_at: begins, messages, subagents: BTreeMap::new(), is_vanished: false }
    }

    /// The same, of files that no longer exist.
    pub(crate) fn into_vanished(self) -> Self {
        Self { is_vanished: true, ..self }
    }

    /// With what is known of its subagents.
    pub(crate) fn with_subagents(self, agents: BTreeMap<String, SubagentAttribution>) -> Self {
        Self { subagents: agents, ..self }
    }
}

/// All messages of all sessions, each credited to the earliest session that holds it, one
/// that still exists before one that does not:
/// resumed, forked and backgrounded sessions hold copies of earlier ones.
#[derive(Debug)]
pub struct UsageLedger {
    sessions: Vec<SessionUsage>,
    /// Copies: session and message.
    copies: HashSet<(u32, u32)>,
    /// Messages that count with the figures of a fuller copy.
    merged: HashMap<(u32, u32), MessageUsage>,
}

/// Messages compared at a time, which bounds the memory it takes.
const MAX_MESSAGES_PER_PASS: usize = 25_000;

impl UsageLedger {
    /// Finds the copies.
    pub fn new(mut sessions: Vec<SessionUsage>) -> Self {
        let order = |s: &SessionUsage| (s.is_vanished, s.started_at.map(Timestamp::as_millisecond));
        sessions.sort_by(|a, b| (order(a), &a.session_id).cmp(&(order(b), &b.session_id)));
        let mut keys = Vec::with_capacity(sessions.iter().map(|session| session.messages.keys().len()).sum());
        keys.extend(sessions.iter().flat_map(|session| session.messages.keys()));
        // Only keys that occur again can be copies.
        let (again, holders) = repeated_keys(keys);
        let portions = 1 + (holders / MAX_MESSAGES_PER_PASS) as u64;
        let mut ledger = Self { sessions, copies: HashSet::new(), merged: HashMap::new() };
        for portion in 0..portions {
            ledger.find_copies(|key| key % portions == portion && again.contains(key));
        }
        ledger
    }

    /// Finds the copies among the messages with some of the keys.
    fn find_copies(&mut self, concerns: impl Fn(&MessageKey) -> bool) {
        let mut holders = Vec::new();
        for (s, session) in (0..).zip(&self.sessions) {
            if !session.messages.keys().any(|key| concerns(&key)) {
                continue;
            }
            for (m, message) in (0..).zip(session.messages.iter()) {
                if let Some(key) = message.key.filter(&concerns) {
                    holders.push((key, (session.is_vanished, message.is_progress), (s, m), message));
                }
            }
        }
        holders.sort_by_key(|(key, rank, place, _)| (*key, *rank, *place));
        for same_key in holders.chunk_by(|a, b| a.0 == b.0) {
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

    /// Hands out every message with its price, by session; copies left out.
    pub fn for_each_usage(&self, prices: &Prices, mut take: impl FnMut(&UsageRecord<'_>)) {
        for (s, session) in (0..).zip(&self.sessions) {
            for (m, message) in (0..).zip(session.messages.iter()) {
                if !self.copies.contains(&(s, m)) {
                    let message = self.merged.get(&(s, m)).unwrap_or(&message);
                    let mut used =
                        UsageRecord::from_message(session.session_id.as_str(), &session.project, message, prices);
                    used.is_vanished = session.is_vanished;
                    if let Some(agent) = &message.agent {
                        let agent = session.subagents.get(&**agent);
                        used.agent = agent.and_then(|agent| agent.agent_type.as_deref()).unwrap_or(UNKNOWN_AGENT);
                        used.turn = agent.map_or(message.turn, |agent| agent.turn.max(message.turn));
                    }
                    take(&used);
                }
            }
        }
    }
}

/// The keys that occur more than once, and how many messages have one of them.
fn repeated_keys(mut keys: Vec<MessageKey>) -> (HashSet<MessageKey, BuildHasherDefault<IntegerHasher>>, usize) {
    keys.sort_unstable();
    let groups = keys.chunk_by(|a, b| a == b).filter(|group| group.len() > 1 && group[0] != 0);
    let holders = groups.clone().map(<[MessageKey]>::len).sum();
    (groups.map(|group| group[0]).collect(), holders)
}
