//! What was used, out of the database.

use std::collections::HashMap;

use jiff::Timestamp;
use quipu_conversation::MessageUse;
use quipu_conversation::price::Prices;
use quipu_transcript::find::History;
use rusqlite::{Connection, OptionalExtension};

use super::list::Listed;
use super::{refresh, rows, sums};
use crate::usage::{MAIN, UNKNOWN_AGENT, Used, Window};

/// Hands out what sessions are credited with, added up by quarter of an hour. A quarter
/// that the window cuts is handed out message by message.
pub(super) fn sums(
    db: &Connection,
    prices: &Prices,
    window: &Window,
    mut take: impl FnMut(&Used<'_>),
) -> rusqlite::Result<()> {
    let texts = rows::Texts::read(db)?;
    let mut hand = |name: &Name, how: i64, used: Used<'_>| {
        let served = texts.served.get(&how);
        take(&Used {
            session: &name.session,
            project: &name.project,
            is_vanished: name.is_vanished,
            model: served.map_or("", |served| &served.model),
            speed: served.and_then(|served| served.speed.as_deref()),
            ..used
        });
    };
    let cut = [window.since, window.until].map(|edge| edge.and_then(rows::cut_quarter));
    let mut close: Vec<(i64, Name)> = Vec::new();
    let mut select = db.prepare_cached(
        "SELECT session, sums, name, project, vanished FROM used JOIN session ON session.id = session
         WHERE NOT gone AND (?1 IS NULL OR last >= ?1)",
    )?;
    let mut found = select.query([window.since.map(Timestamp::as_millisecond)])?;
    while let Some(row) = found.next()? {
        let session: i64 = row.get(0)?;
        let name = Name { session: row.get(2)?, project: row.get(3)?, is_vanished: row.get(4)? };
        let mut is_cut = false;
        sums::each(row.get_ref(1)?.as_blob()?, |slot, used| match slot.quarter {
            Some(quarter) if cut.contains(&Some(quarter)) => is_cut = true,
            _ => hand(&name, slot.served, used),
        })?;
        if is_cut {
            close.push((session, name));
        }
    }
    for (session, name) in close {
        for kept in rows::credited(db, &texts, session)? {
            let quarter = kept.message.time.map(|time| time.as_millisecond().div_euclid(rows::QUARTER_MS));
            if quarter.is_some() && cut.contains(&quarter) {
                hand(&name, kept.served, Used::of("", "", &kept.message, prices));
            }
        }
    }
    Ok(())
}

struct Name {
    session: String,
    project: String,
    is_vanished: bool,
}

/// Hands out every credited message, with what it did.
pub(super) fn messages(db: &Connection, prices: &Prices, mut take: impl FnMut(&Used<'_>)) -> rusqlite::Result<()> {
    let texts = rows::Texts::read(db)?;
    let mut sessions = db.prepare_cached("SELECT id, name, project, vanished FROM session WHERE NOT gone")?;
    let mut agents = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    let mut found = sessions.query([])?;
    while let Some(row) = found.next()? {
        let session: i64 = row.get(0)?;
        let (name, project, is_vanished): (String, String, bool) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let agents = agents.query_map([session], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let agents: HashMap<String, (Option<String>, u32)> = agents.collect::<rusqlite::Result<_>>()?;
        for kept in rows::credited(db, &texts, session)? {
            let message = &kept.message;
            let known = message.agent.as_deref().map(|agent| agents.get(agent));
            let (agent, turn) = match known {
                None => (MAIN, message.turn),
                Some(None) => (UNKNOWN_AGENT, message.turn),
                Some(Some((kind, turn))) => (kind.as_deref().unwrap_or(UNKNOWN_AGENT), message.turn.max(*turn)),
            };
            take(&Used { agent, turn, is_vanished, ..Used::of(&name, &project, message, prices) });
        }
    }
    Ok(())
}

/// One session, as a status line shows it.
#[derive(Debug, Clone)]
pub struct SessionStatus {
    /// What `ls` shows of it.
    pub session: Listed,
    /// The last API message of the main conversation that says what it used.
    pub last_message: Option<MessageUse>,
}

/// What is known of a session.
pub(super) fn session(db: &Connection, history: &History) -> rusqlite::Result<Option<SessionStatus>> {
    let mut select = db.prepare_cached(
        "SELECT session.id, listed FROM session JOIN story ON story.session = session.id
         WHERE place = ? AND NOT gone",
    )?;
    let found = select.query_row([refresh::place_of(history)], |row| {
        Ok((row.get::<_, i64>(0)?, Listed::from_kept(row.get_ref(1)?.as_str()?, None)))
    });
    let Some((number, Some(session))) = found.optional()? else { return Ok(None) };
    let last_message = rows::last_of_main(db, &rows::Texts::read(db)?, number)?;
    Ok(Some(SessionStatus { session, last_message }))
}
