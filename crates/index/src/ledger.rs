//! Who is credited with a message that several sessions hold.

use std::collections::HashMap;

use quipu_conversation::MessageUse;

use crate::scan::SessionUse;

/// All messages of all sessions, each once.
#[derive(Debug)]
pub struct Ledger {
    sessions: Vec<SessionUse>,
}

/// A message and the session that is credited with it.
#[derive(Debug, Clone, Copy)]
pub struct Credited<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The name of its project's folder.
    pub project: &'a str,
    /// The message.
    pub message: &'a MessageUse,
}

impl Ledger {
    /// Drops copies: resumed, forked and backgrounded sessions hold messages of
    /// earlier ones, and the earliest session that holds one is credited with it.
    pub fn new(mut sessions: Vec<SessionUse>) -> Self {
        sessions.sort_by(|a, b| (&a.begins, &a.session_id).cmp(&(&b.begins, &b.session_id)));
        // Where a key was first seen; other messages may share it.
        let mut seen: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for s in 0..sessions.len() {
            let mut kept = Vec::new();
            for message in std::mem::take(&mut sessions[s].messages) {
                let places = if message.key.is_empty() { None } else { seen.get(&message.key) };
                let is_copy = |&(at, n): &(usize, usize)| message.is_copy_of(&sessions[at].messages[n]);
                if places.is_some_and(|places| places.iter().any(is_copy)) {
                    continue;
                }
                if !message.key.is_empty() {
                    seen.entry(message.key.clone()).or_default().push((s, kept.len()));
                }
                kept.push(message);
            }
            sessions[s].messages = kept;
        }
        Self { sessions }
    }

    /// Every message with its session, by session.
    pub fn messages(&self) -> impl Iterator<Item = Credited<'_>> {
        self.sessions.iter().flat_map(|session| {
            let SessionUse { session_id, project, messages, .. } = session;
            messages.iter().map(move |message| Credited { session_id, project, message })
        })
    }

    /// The sessions, earliest first.
    pub fn sessions(&self) -> &[SessionUse] {
        &self.sessions
    }
}
