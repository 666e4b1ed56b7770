//! Sessions whose files are gone: what was counted of them stays.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use quipu_conversation::{Agent, MessageUse};
use rusqlite::{Connection, OptionalExtension, params};

use super::list::Listed;
use super::rows::{self, Texts};
use crate::crediting;
use crate::kept::{KeptMessage, KeptSession};

/// What was counted of the sessions that lose these files. Of a session that keeps some
/// of its files all messages are returned: those that are still in a file are credited
/// to that.
pub(super) fn lost(db: &Connection, files: &[i64], dirs: &[PathBuf]) -> rusqlite::Result<Vec<KeptSession>> {
    let mut sessions = BTreeSet::new();
    for file in files {
        let mut select = db.prepare_cached("SELECT session FROM file WHERE id = ?")?;
        sessions.extend(select.query_row([file], |row| row.get::<_, i64>(0)).optional()?);
    }
    let texts = Texts::read(db)?;
    let mut lost = Vec::new();
    for session in sessions {
        lost.extend(counted(db, &texts, session, dirs)?);
    }
    Ok(lost)
}

fn counted(db: &Connection, texts: &Texts, session: i64, dirs: &[PathBuf]) -> rusqlite::Result<Option<KeptSession>> {
    let mut select =
        db.prepare_cached("SELECT place, begins, listed FROM session JOIN story ON session = id WHERE id = ?")?;
    let known = select.query_row([session], |row| {
        let listed = Listed::from_kept(row.get_ref(2)?.as_str()?, None);
        Ok((row.get::<_, String>(0)?, row.get(1)?, listed))
    });
    let Some((place, begins, Some(listed))) = known.optional()? else { return Ok(None) };
    let Some(dir) = dirs.iter().find(|dir| place.starts_with(&*dir.to_string_lossy())) else { return Ok(None) };
    let agents = agents(db, session)?;
    let kept = match number(db, &vanished_place(dir, &listed))? {
        Some(vanished) => rows::messages(db, texts, vanished)?.into_iter().map(|kept| kept.message).collect(),
        None => Vec::new(),
    };
    let known = Known::new(&kept);
    let messages: Vec<KeptMessage> = rows::messages(db, texts, session)?
        .iter()
        .map(|kept| &kept.message)
        .filter(|message| message.is_told && !known.holds(message))
        .map(|message| KeptMessage::new(message, message.agent.as_deref().map(|id| agents.get(id).unwrap_or(&UNKNOWN))))
        .collect();
    let session = KeptSession { dir: dir.clone(), begins, session: listed, messages };
    Ok((!session.messages.is_empty()).then_some(session))
}

static UNKNOWN: Agent = Agent { kind: None, turn: 0 };

fn agents(db: &Connection, session: i64) -> rusqlite::Result<HashMap<String, Agent>> {
    let mut select = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    select.query_map([session], |row| Ok((row.get(0)?, Agent { kind: row.get(1)?, turn: row.get(2)? })))?.collect()
}

/// Puts what was kept of a session beside the others; messages that are there already,
/// or in a file, add nothing.
pub(super) fn import(db: &Connection, kept: KeptSession) -> rusqlite::Result<()> {
    let listed = &kept.session;
    let session: i64 = db
        .prepare_cached(
            "INSERT INTO session (place, name, project, begins, vanished) VALUES (?, ?, ?, ?, 1)
             ON CONFLICT (place) DO UPDATE SET begins = excluded.begins RETURNING id",
        )?
        .query_row(
            params![vanished_place(&kept.dir, listed), listed.session_id, listed.project, kept.begins],
            |row| row.get(0),
        )?;
    db.prepare_cached("INSERT OR REPLACE INTO story (session, story, searches, listed) VALUES (?, '', '', ?)")?
        .execute(params![session, listed.kept()])?;
    let there: Vec<MessageUse> =
        rows::messages(db, &Texts::read(db)?, session)?.into_iter().map(|kept| kept.message).collect();
    let known = Known::new(&there);
    let new = kept.messages.into_iter().map(KeptMessage::message).filter(|message| !known.holds(message));
    for (n, message) in (there.len()..).zip(new) {
        if let Some(kind) = &message.agent {
            // The type stands for the id; the turn is the message's.
            let mut learn =
                db.prepare_cached("INSERT OR IGNORE INTO agent (session, id, kind, turn) VALUES (?1, ?2, ?2, 0)")?;
            learn.execute(params![session, &**kind])?;
        }
        rows::put_message(db, session, n, &message)?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([session])?;
    Ok(())
}

/// What tells a session's deleted part from the session, in a database.
fn vanished_place(dir: &std::path::Path, listed: &Listed) -> String {
    format!("{}\0{}\0{}\0vanished", dir.to_string_lossy(), listed.project, listed.session_id)
}

fn number(db: &Connection, place: &str) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM session WHERE place = ?")?.query_row([place], |row| row.get(0)).optional()
}

/// Messages that are known, by key and marks.
struct Known<'a>(HashMap<(Option<u64>, u64), &'a MessageUse>);

impl<'a> Known<'a> {
    /// Where a message is known in several versions, the last counts.
    fn new(messages: &'a [MessageUse]) -> Self {
        Self(messages.iter().flat_map(|known| known.marks().map(move |mark| ((known.key, mark), known))).collect())
    }

    /// Whether a message is known with all that is said of it here: a file may have said
    /// more after part of its session was kept.
    fn holds(&self, message: &MessageUse) -> bool {
        let mut known = message.marks().filter_map(|mark| self.0.get(&(message.key, mark)));
        known.any(|known| !crediting::differs(known, &MessageUse::merged(&[known, message])))
    }
}
