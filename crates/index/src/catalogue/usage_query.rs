//! What was used, out of the database.

use std::collections::HashMap;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::MessageUsage;
use quipu_transcript::find::SessionFiles;
use rusqlite::{Connection, OptionalExtension};

use super::list::ListedSession;
use super::{message_rows, refresh, usage_sums};
use crate::usage::{MAIN_AGENT, TimeWindow, UNKNOWN_AGENT, UsageRecord};

/// Hands out what sessions are credited with, added up by quarter of an hour. A quarter
/// that the window cuts is handed out message by message.
pub(super) fn for_each_credited_sum(
    db: &Connection,
    prices: &Prices,
    window: &TimeWindow,
    mut take: impl FnMut(&UsageRecord<'_>),
) -> rusqlite::Result<()> {
    let texts = message_rows::InternedTexts::load(db)?;
    let mut hand = |name: &SessionName, how: i64, used: UsageRecord<'_>| {
        let served = texts.serving_infos.get(&how);
        take(&UsageRecord {
            session: &name.session,
            project: &name.project,
            is_vanished: name.is_vanished,
            model: served.map_or("", |served| &served.model),
            speed: served.and_then(|served| served.speed.as_deref()),
            ..used
        });
    };
    let cut = [window.since, window.until].map(|edge| edge.and_then(message_rows::partial_quarter));
    let mut close: Vec<(i64, SessionName)> = Vec::new();
    let mut select = db.prepare_cached(
        "SELECT session, sums, name, project, vanished FROM used JOIN session ON session.id = session
         WHERE NOT gone AND (?1 IS NULL OR last >= ?1)",
    )?;
    let mut found = select.query([window.since.map(Timestamp::as_millisecond)])?;
    while let Some(row) = found.next()? {
        let session: i64 = row.get(0)?;
        let name = SessionName { session: row.get(2)?, project: row.get(3)?, is_vanished: row.get(4)? };
        let mut is_cut = false;
        usage_sums::for_each_sum(row.get_ref(1)?.as_blob()?, |slot, used| match slot.quarter {
            Some(quarter) if cut.contains(&Some(quarter)) => is_cut = true,
            _ => hand(&name, slot.serving_id, used),
        })?;
        if is_cut {
            close.push((session, name));
        }
    }
    for (session, name) in close {
        for kept in message_rows::credited_messages(db, &texts, session)? {
            let quarter =
                kept.usage.earliest_time.map(|time| time.as_millisecond().div_euclid(message_rows::QUARTER_MS));
            if quarter.is_some() && cut.contains(&quarter) {
                hand(&name, kept.serving_id, UsageRecord::from_message("", "", &kept.usage, prices));
            }
        }
    }
    Ok(())
}

struct SessionName {
    session: String,
    project: String,
    is_vanished: bool,
}

/// Hands out every credited message, with what it did.
pub(super) fn for_each_credited_message(
    db: &Connection,
    prices: &Prices,
    mut take: impl FnMut(&UsageRecord<'_>),
) -> rusqlite::Result<()> {
    let texts = message_rows::InternedTexts::load(db)?;
    let mut sessions = db.prepare_cached("SELECT id, name, project, vanished FROM session WHERE NOT gone")?;
    let mut agents = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    let mut found = sessions.query([])?;
    while let Some(row) = found.next()? {
        let session: i64 = row.get(0)?;
        let (name, project, is_vanished): (String, String, bool) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let agents = agents.query_map([session], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let agents: HashMap<String, (Option<String>, u32)> = agents.collect::<rusqlite::Result<_>>()?;
        for kept in message_rows::credited_messages(db, &texts, session)? {
            let message = &kept.usage;
            let known = message.agent.as_deref().map(|agent| agents.get(agent));
            let (agent, turn) = match known {
                None => (MAIN_AGENT, message.turn),
                Some(None) => (UNKNOWN_AGENT, message.turn),
                Some(Some((kind, turn))) => (kind.as_deref().unwrap_or(UNKNOWN_AGENT), message.turn.max(*turn)),
            };
            take(&UsageRecord {
                agent,
                turn,
                is_vanished,
                ..UsageRecord::from_message(&name, &project, message, prices)
            });
        }
    }
    Ok(())
}

/// One session, as a status line shows it.
#[derive(Debug, Clone)]
pub struct SessionStatus {
    /// What `ls` shows of it.
    pub session: ListedSession,
    /// The last API message of the main conversation that says what it used.
    pub last_message: Option<MessageUsage>,
}

/// What is known of a session.
pub(super) fn session_status(db: &Connection, history: &SessionFiles) -> rusqlite::Result<Option<SessionStatus>> {
    let mut select = db.prepare_cached(
        "SELECT session.id, listed FROM session JOIN story ON story.session = session.id
         WHERE place = ? AND NOT gone",
    )?;
    let found = select.query_row([refresh::session_location(history)], |row| {
        Ok((row.get::<_, i64>(0)?, ListedSession::from_stored(row.get_ref(1)?.as_str()?, None)))
    });
    let Some((number, Some(session))) = found.optional()? else { return Ok(None) };
    let last_message = message_rows::last_main_message(db, &message_rows::InternedTexts::load(db)?, number)?;
    Ok(Some(SessionStatus { session, last_message }))
}
