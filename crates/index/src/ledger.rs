//! All messages of all sessions, small enough to hold, each credited once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::{Agent, Key, MessageUse};
use quipu_message::SessionId;

use crate::crediting;
use crate::hashed::Hashed;
use crate::pack::Packed;
use crate::usage::{UNKNOWN_AGENT, Used};

/// A session and what its messages used.
#[derive(Debug)]
pub struct SessionUse {
    /// The session.
    pub session_id: SessionId,
    /// The name of the project's folder.
    pub project: Arc<str>,
    /// When its file begins: the first time it says.
    pub begins: Option<Timestamp>,
    messages: Packed,
    agents: BTreeMap<String, Agent>,
    is_vanished: bool,
}

impl SessionUse {
    /// Packs what was gathered, but for messages that do not say what they used.
    pub fn new(session_id: SessionId, project: Arc<str>, begins: Option<Timestamp>, messages: &[MessageUse]) -> Self {
        let messages = Packed::new(messages.iter().filter(|m| m.is_told));
        Self { session_id, project, begins, messages, agents: BTreeMap::new(), is_vanished: false }
    }

    /// The same, of files that no longer exist.
    pub(crate) fn vanished(self) -> Self {
        Self { is_vanished: true, ..self }
    }

    /// With what is known of its subagents.
    pub(crate) fn with_agents(self, agents: BTreeMap<String, Agent>) -> Self {
        Self { agents, ..self }
    }
}

/// All messages of all sessions, each credited to the earliest session that holds it, one
/// that still exists before one that does not:
/// resumed, forked and backgrounded sessions hold copies of earlier ones.
#[derive(Debug)]
pub struct Ledger {
    sessions: Vec<SessionUse>,
    /// Copies: session and message.
    copies: HashSet<(u32, u32)>,
    /// Messages that count with the figures of a fuller copy.
    fuller: HashMap<(u32, u32), MessageUse>,
}

/// Messages compared at a time, which bounds the memory it takes.
const MESSAGES_COMPARED: usize = 25_000;

impl Ledger {
    /// Finds the copies.
    pub fn new(mut sessions: Vec<SessionUse>) -> Self {
        let order = |s: &SessionUse| (s.is_vanished, s.begins.map(Timestamp::as_millisecond));
        sessions.sort_by(|a, b| (order(a), &a.session_id).cmp(&(order(b), &b.session_id)));
        let mut keys = Vec::with_capacity(sessions.iter().map(|session| session.messages.keys().len()).sum());
        keys.extend(sessions.iter().flat_map(|session| session.messages.keys()));
        // Only keys that occur again can be copies.
        let (again, holders) = repeated(keys);
        let portions = 1 + (holders / MESSAGES_COMPARED) as u64;
        let mut ledger = Self { sessions, copies: HashSet::new(), fuller: HashMap::new() };
        for portion in 0..portions {
            ledger.compare(|key| key % portions == portion && again.contains(key));
        }
        ledger
    }

    /// Finds the copies among the messages with some of the keys.
    fn compare(&mut self, concerns: impl Fn(&Key) -> bool) {
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
            let messages: Vec<&MessageUse> = same_key.iter().map(|(.., message)| message).collect();
            for group in crediting::groups(&messages) {
                let place = |at: usize| same_key[at].2;
                let [first, rest @ ..] = &group[..] else { continue };
                self.copies.extend(rest.iter().map(|at| place(*at)));
                let copies: Vec<&MessageUse> = group.iter().map(|at| messages[*at]).collect();
                let merged = MessageUse::merged(&copies);
                if crediting::differs(messages[*first], &merged) {
                    self.fuller.insert(place(*first), merged);
                }
            }
        }
    }

    /// Hands out every message with its price, by session; copies left out.
    pub fn each(&self, prices: &Prices, mut take: impl FnMut(&Used<'_>)) {
        for (s, session) in (0..).zip(&self.sessions) {
            for (m, message) in (0..).zip(session.messages.iter()) {
                if !self.copies.contains(&(s, m)) {
                    let message = self.fuller.get(&(s, m)).unwrap_or(&message);
                    let mut used = Used::of(session.session_id.as_str(), &session.project, message, prices);
                    used.is_vanished = session.is_vanished;
                    if let Some(agent) = &message.agent {
                        let agent = session.agents.get(&**agent);
                        used.agent = agent.and_then(|agent| agent.kind.as_deref()).unwrap_or(UNKNOWN_AGENT);
                        used.turn = agent.map_or(message.turn, |agent| agent.turn.max(message.turn));
                    }
                    take(&used);
                }
            }
        }
    }
}

/// The keys that occur more than once, and how many messages have one of them.
fn repeated(mut keys: Vec<Key>) -> (HashSet<Key, BuildHasherDefault<Hashed>>, usize) {
    keys.sort_unstable();
    let groups = keys.chunk_by(|a, b| a == b).filter(|group| group.len() > 1 && group[0] != 0);
    let holders = groups.clone().map(<[Key]>::len).sum();
    (groups.map(|group| group[0]).collect(), holders)
}
