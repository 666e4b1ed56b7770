//! All messages of all sessions, small enough to hold, each credited once.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::price::{Cost, Prices};
use quipu_conversation::{Key, MessageUse};
use quipu_message::SessionId;

use crate::hashed::{Hashed, mix};
use crate::pack::Packed;
use crate::usage::Used;

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
}

impl SessionUse {
    /// Packs what was gathered, but for messages that do not say what they used.
    pub fn new(session_id: SessionId, project: Arc<str>, begins: Option<Timestamp>, messages: &[MessageUse]) -> Self {
        Self { session_id, project, begins, messages: Packed::new(messages.iter().filter(|m| m.is_told)) }
    }
}

/// All messages of all sessions, each credited to the earliest session that holds it:
/// resumed, forked and backgrounded sessions hold copies of earlier ones.
#[derive(Debug)]
pub struct Ledger {
    sessions: Vec<SessionUse>,
    /// Copies: session and message.
    copies: HashSet<(u32, u32)>,
}

/// Keys are taken in so many portions, that what was seen of them stays small.
const PORTIONS: u64 = 8;

impl Ledger {
    /// Finds the copies.
    pub fn new(mut sessions: Vec<SessionUse>) -> Self {
        sessions.sort_by(|a, b| (a.begins, &a.session_id).cmp(&(b.begins, &b.session_id)));
        let mut copies = HashSet::new();
        for portion in 0..PORTIONS {
            // Only keys that occur again can be copies.
            let keys = sessions.iter().flat_map(|session| session.messages.keys());
            let again = repeated(keys.filter(|key| key % PORTIONS == portion).collect());
            let concerns = |key: &Key| key % PORTIONS == portion && again.binary_search(key).is_ok();
            let mut seen: HashSet<u64, BuildHasherDefault<Hashed>> = HashSet::default();
            for (s, session) in (0..).zip(&sessions) {
                if !session.messages.keys().any(|key| concerns(&key)) {
                    continue;
                }
                for (m, message) in (0..).zip(session.messages.iter()) {
                    let Some(key) = message.key.filter(concerns) else { continue };
                    let marks = || message.marks().map(|mark| mix(key) ^ mark);
                    if marks().any(|mark| seen.contains(&mark)) {
                        copies.insert((s, m));
                    }
                    seen.extend(marks());
                }
            }
        }
        Self { sessions, copies }
    }

    /// Hands out every message with its price, by session; copies left out.
    pub fn each(&self, prices: &Prices, mut take: impl FnMut(&Used<'_>)) {
        for (s, session) in (0..).zip(&self.sessions) {
            for (m, message) in (0..).zip(session.messages.iter()) {
                if !self.copies.contains(&(s, m)) {
                    take(&Used::of(session.session_id.as_str(), &session.project, &message, prices));
                }
            }
        }
    }
}

/// The keys that occur more than once, sorted.
fn repeated(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    let twice = |pair: &&[Key]| pair[0] == pair[1] && pair[0] != 0;
    let mut again: Vec<Key> = keys.windows(2).filter(twice).map(|pair| pair[0]).collect();
    again.dedup();
    again
}

impl<'a> Used<'a> {
    /// One message.
    pub(crate) fn of(session: &'a str, project: &'a str, message: &'a MessageUse, prices: &Prices) -> Self {
        Self {
            session,
            project,
            model: &message.served.model,
            span: message.time.map(|time| (time, time)),
            messages: 1,
            tokens: message.tokens,
            web_searches: message.web_searches(),
            cost: match message.cost(prices) {
                Cost::Priced { usd, .. } => Some(usd),
                Cost::Unpriced { .. } => None,
            },
            cache_savings: message.cache_savings(prices).unwrap_or_default(),
        }
    }
}
