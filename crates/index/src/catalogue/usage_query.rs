//! Reads credited usage from the database.

use std::collections::HashMap;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::MessageUsage;
use quipu_transcript::find::SessionFiles;
use rusqlite::{Connection, OptionalExtension};

use super::{message_rows, refresh, usage_sums};
use crate::listed_session::ListedSession;
use crate::usage::{MAIN_AGENT, TimeWindow, UNKNOWN_AGENT, UsageAmounts, UsageRecord};

/// Passes the sums that sessions are credited with to `visit`, by quarter of an hour. The
/// quarters at the edges of the window are counted message by message if it cuts them.
pub(super) fn for_each_credited_sum(
    db: &Connection,
    prices: &Prices,
    window: &TimeWindow,
    mut visit: impl FnMut(&UsageRecord<'_>),
) -> rusqlite::Result<()> {
    let interned = message_rows::InternedTexts::load(db)?;
    let mut visit_sum = |name: &SessionName, serving_id: i64, amounts: UsageAmounts| {
        let serving = interned.serving_infos.get(&serving_id);
        visit(&UsageRecord {
            session: &name.session,
            project: &name.project,
            is_vanished: name.is_vanished,
            model: serving.map_or("", |serving| &serving.model),
            speed: serving.and_then(|serving| serving.speed.as_deref()),
            tools: &[],
            agent: "",
            turn: 0,
            amounts,
        });
    };
    let cut_quarters = [window.since, window.until].map(|edge| edge.and_then(message_rows::partial_quarter));
    let mut cut_sessions: Vec<(i64, SessionName)> = Vec::new();
    let mut select = db.prepare_cached(
        "SELECT session, sums, name, project, vanished FROM used JOIN session ON session.id = session
         WHERE NOT gone AND (?1 IS NULL OR last >= ?1)",
    )?;
    let mut rows = select.query([window.since.map(Timestamp::as_millisecond)])?;
    while let Some(row) = rows.next()? {
        let session: i64 = row.get(0)?;
        let name = SessionName { session: row.get(2)?, project: row.get(3)?, is_vanished: row.get(4)? };
        let mut is_cut = false;
        usage_sums::for_each_sum(row.get_ref(1)?.as_blob()?, |key, amounts| match key.quarter {
            Some(quarter) if cut_quarters.contains(&Some(quarter)) => is_cut = true,
            _ => visit_sum(&name, key.serving_id, amounts),
        })?;
        if is_cut {
            cut_sessions.push((session, name));
        }
    }
    for (session, name) in cut_sessions {
        for row in message_rows::credited_messages(db, &interned, session)? {
            let time = row.usage.earliest_time;
            let quarter = time.map(|time| time.as_millisecond().div_euclid(message_rows::QUARTER_MS));
            if quarter.is_some() && cut_quarters.contains(&quarter) {
                visit_sum(&name, row.serving_id, UsageAmounts::from_message(&row.usage, prices));
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

/// Passes every credited message to `visit`, with its tools, agent and turn.
pub(super) fn for_each_credited_message(
    db: &Connection,
    prices: &Prices,
    mut visit: impl FnMut(&UsageRecord<'_>),
) -> rusqlite::Result<()> {
    let interned = message_rows::InternedTexts::load(db)?;
    let mut sessions = db.prepare_cached("SELECT id, name, project, vanished FROM session WHERE NOT gone")?;
    let mut agents = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    let mut rows = sessions.query([])?;
    while let Some(session_row) = rows.next()? {
        let session: i64 = session_row.get(0)?;
        let (name, project, is_vanished): (String, String, bool) =
            (session_row.get(1)?, session_row.get(2)?, session_row.get(3)?);
        let agents = agents.query_map([session], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let agents: HashMap<String, (Option<String>, u32)> = agents.collect::<rusqlite::Result<_>>()?;
        for row in message_rows::credited_messages(db, &interned, session)? {
            let message = &row.usage;
            let known = message.agent.as_deref().map(|agent| agents.get(agent));
            let (agent, turn) = match known {
                None => (MAIN_AGENT, message.turn),
                Some(None) => (UNKNOWN_AGENT, message.turn),
                Some(Some((kind, turn))) => (kind.as_deref().unwrap_or(UNKNOWN_AGENT), message.turn.max(*turn)),
            };
            visit(&UsageRecord {
                agent,
                turn,
                is_vanished,
                ..UsageRecord::from_message(&name, &project, message, prices)
            });
        }
    }
    Ok(())
}

/// What a status line shows of one session.
#[derive(Debug, Clone)]
pub struct SessionStatus {
    /// The values that `quipu ls` shows.
    pub session: ListedSession,
    /// Last API message of the main conversation that has usage; `None` if there is none.
    pub last_message: Option<MessageUsage>,
}

/// Reads one session; `None` if it is not in the index.
pub(super) fn session_status(db: &Connection, session_files: &SessionFiles) -> rusqlite::Result<Option<SessionStatus>> {
    let mut select = db.prepare_cached(
        "SELECT session.id, listed FROM session JOIN story ON story.session = session.id
         WHERE place = ? AND NOT gone",
    )?;
    let found = select.query_row([refresh::session_location(session_files)], |row| {
        Ok((row.get::<_, i64>(0)?, ListedSession::from_stored(row.get_ref(1)?.as_str()?, None)))
    });
    let Some((session_row_id, Some(session))) = found.optional()? else { return Ok(None) };
    let last_message = message_rows::last_main_message(db, &message_rows::InternedTexts::load(db)?, session_row_id)?;
    Ok(Some(SessionStatus { session, last_message }))
}
