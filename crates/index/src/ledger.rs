//! Who is credited with a message that several sessions hold.

use std::collections::HashSet;

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
        let mut seen: HashSet<u64> = HashSet::new();
        for session in &mut sessions {
            session.messages.retain(|message| {
                let copy = message.fingerprints().any(|print| seen.contains(&print));
                seen.extend(message.fingerprints());
                !copy
            });
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
