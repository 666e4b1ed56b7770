//! Sessions with deleted files: their usage is archived and counted on.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use quipu_conversation::usage::{MessageUsage, SubagentAttribution};
use rusqlite::{Connection, OptionalExtension, params};

use super::message_rows::{self, InternedTexts};
use crate::listed_session::ListedSession;
use crate::message_copies;
use crate::usage_archive::{VanishedMessage, VanishedSession};

/// The usage to archive when these files are deleted. If a session keeps some of its files, all
/// its messages are archived; those still in a file are credited to that file.
pub(super) fn sessions_to_archive(
    db: &Connection,
    files: &[i64],
    dirs: &[PathBuf],
) -> rusqlite::Result<Vec<VanishedSession>> {
    let mut sessions = BTreeSet::new();
    for file in files {
        let mut select = db.prepare_cached("SELECT session FROM file WHERE id = ?")?;
        sessions.extend(select.query_row([file], |row| row.get::<_, i64>(0)).optional()?);
    }
    let interned = InternedTexts::load(db)?;
    let mut sessions_to_archive = Vec::new();
    for session in sessions {
        sessions_to_archive.extend(session_to_archive(db, &interned, session, dirs)?);
    }
    Ok(sessions_to_archive)
}

fn session_to_archive(
    db: &Connection,
    interned: &InternedTexts,
    session: i64,
    dirs: &[PathBuf],
) -> rusqlite::Result<Option<VanishedSession>> {
    let mut select =
        db.prepare_cached("SELECT place, begins, listed FROM session JOIN story ON session = id WHERE id = ?")?;
    let known = select.query_row([session], |row| {
        let listed = ListedSession::from_stored(row.get_ref(2)?.as_str()?, None);
        Ok((row.get::<_, String>(0)?, row.get(1)?, listed))
    });
    let Some((place, begins, Some(listed))) = known.optional()? else { return Ok(None) };
    let Some(dir) = dirs.iter().find(|dir| place.starts_with(&*dir.to_string_lossy())) else { return Ok(None) };
    let agents = load_subagents(db, session)?;
    let kept = match session_row_id(db, &vanished_location(dir, &listed))? {
        Some(vanished) => {
            message_rows::session_messages(db, interned, vanished)?.into_iter().map(|kept| kept.usage).collect()
        }
        None => Vec::new(),
    };
    let known = KnownMessages::new(&kept);
    let messages: Vec<VanishedMessage> = message_rows::session_messages(db, interned, session)?
        .iter()
        .map(|kept| &kept.usage)
        .filter(|message| message.has_usage && !known.contains(message))
        .map(|message| {
            VanishedMessage::new(
                message,
                message.agent.as_deref().map(|id| agents.get(id).unwrap_or(&UNKNOWN_SUBAGENT)),
            )
        })
        .collect();
    let session = VanishedSession { dir: dir.clone(), begins, session: listed, messages };
    Ok((!session.messages.is_empty()).then_some(session))
}

static UNKNOWN_SUBAGENT: SubagentAttribution = SubagentAttribution { agent_type: None, turn: 0 };

fn load_subagents(db: &Connection, session: i64) -> rusqlite::Result<HashMap<String, SubagentAttribution>> {
    let mut select = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    select
        .query_map([session], |row| {
            Ok((row.get(0)?, SubagentAttribution { agent_type: row.get(1)?, turn: row.get(2)? }))
        })?
        .collect()
}

/// Imports an archived session. Messages that were imported before are skipped; those that are
/// also in a file are credited to the file.
pub(super) fn import_session(db: &Connection, kept: VanishedSession) -> rusqlite::Result<()> {
    let listed = &kept.session;
    let session: i64 = db
        .prepare_cached(
            "INSERT INTO session (place, name, project, begins, vanished) VALUES (?, ?, ?, ?, 1)
             ON CONFLICT (place) DO UPDATE SET begins = excluded.begins RETURNING id",
        )?
        .query_row(
            params![vanished_location(&kept.dir, listed), listed.session_id, listed.project, kept.begins],
            |row| row.get(0),
        )?;
    db.prepare_cached("INSERT OR REPLACE INTO story (session, story, searches, listed) VALUES (?, '', '', ?)")?
        .execute(params![session, listed.to_stored()])?;
    let there: Vec<MessageUsage> = message_rows::session_messages(db, &InternedTexts::load(db)?, session)?
        .into_iter()
        .map(|kept| kept.usage)
        .collect();
    let known = KnownMessages::new(&there);
    let new = kept.messages.into_iter().map(VanishedMessage::into_usage).filter(|message| !known.contains(message));
    for (n, message) in (there.len()..).zip(new) {
        if let Some(kind) = &message.agent {
            // The message names the type instead of an id, and has its own turn.
            let mut insert_subagent =
                db.prepare_cached("INSERT OR IGNORE INTO agent (session, id, kind, turn) VALUES (?1, ?2, ?2, 0)")?;
            insert_subagent.execute(params![session, &**kind])?;
        }
        message_rows::write_message(db, session, n, &message)?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([session])?;
    Ok(())
}

/// Value of `place` for the deleted part of a session.
fn vanished_location(dir: &std::path::Path, listed: &ListedSession) -> String {
    format!("{}\0{}\0{}\0vanished", dir.to_string_lossy(), listed.project, listed.session_id)
}

fn session_row_id(db: &Connection, place: &str) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM session WHERE place = ?")?.query_row([place], |row| row.get(0)).optional()
}

/// Known messages by key and copy mark.
struct KnownMessages<'a>(HashMap<(Option<u64>, u64), &'a MessageUsage>);

impl<'a> KnownMessages<'a> {
    /// If a message is known in several versions, the last one counts.
    fn new(messages: &'a [MessageUsage]) -> Self {
        Self(messages.iter().flat_map(|known| known.copy_marks().map(move |mark| ((known.key, mark), known))).collect())
    }

    /// Whether a message is known with the same usage. A file may have grown after part of its
    /// session was archived.
    fn contains(&self, message: &MessageUsage) -> bool {
        let mut known = message.copy_marks().filter_map(|mark| self.0.get(&(message.key, mark)));
        known.any(|known| !message_copies::differs_from_own(known, &MessageUsage::merge_copies(known, &[message])))
    }
}
