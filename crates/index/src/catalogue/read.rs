//! What was used, out of the database.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_conversation::price::Prices;
use rusqlite::Connection;

use super::{rows, sums};
use crate::usage::{MAIN, UNKNOWN_AGENT, Used, Window};

/// Hands out what sessions are credited with, added up by quarter of an hour. A quarter
/// that the window cuts is handed out message by message.
pub(super) fn sums(
    db: &Connection,
    prices: &Prices,
    window: &Window,
    mut take: impl FnMut(&Used<'_>),
) -> rusqlite::Result<()> {
    let names = rows::names(db)?;
    let texts = rows::Texts::read(db)?;
    let mut hand = |(session, project): &(String, Arc<str>), how: i64, used: Used<'_>| {
        let served = texts.served.get(&how);
        let model = served.map_or("", |served| &served.model);
        take(&Used { session, project, model, speed: served.and_then(|served| served.speed.as_deref()), ..used });
    };
    let cut = [window.since, window.until].map(|edge| edge.and_then(rows::cut_quarter));
    let mut close = Vec::new();
    let mut select = db.prepare_cached("SELECT session, sums FROM used")?;
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        let session: i64 = row.get(0)?;
        let Some(name) = names.get(&session) else { continue };
        sums::each(row.get_ref(1)?.as_blob()?, |slot, used| match slot.quarter {
            Some(quarter) if cut.contains(&Some(quarter)) => close.push((session, name)),
            _ => hand(name, slot.served, used),
        });
    }
    close.dedup();
    for (session, name) in close {
        for kept in rows::credited(db, &texts, session)? {
            let quarter = kept.message.time.map(|time| time.as_millisecond().div_euclid(rows::QUARTER_MS));
            if quarter.is_some() && cut.contains(&quarter) {
                hand(name, kept.served, Used::of("", "", &kept.message, prices));
            }
        }
    }
    Ok(())
}

/// Hands out every credited message, with what it did.
pub(super) fn messages(db: &Connection, prices: &Prices, mut take: impl FnMut(&Used<'_>)) -> rusqlite::Result<()> {
    let names = rows::names(db)?;
    let texts = rows::Texts::read(db)?;
    let mut sessions: Vec<_> = names.iter().collect();
    sessions.sort_unstable_by_key(|(session, _)| **session);
    let mut select = db.prepare_cached("SELECT id, kind, turn FROM agent WHERE session = ?")?;
    for (session, (name, project)) in sessions {
        let agents = select.query_map([session], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let agents: HashMap<String, (Option<String>, u32)> = agents.collect::<rusqlite::Result<_>>()?;
        for kept in rows::credited(db, &texts, *session)? {
            let message = &kept.message;
            let known = message.agent.as_deref().map(|agent| agents.get(agent));
            let (agent, turn) = match known {
                None => (MAIN, message.turn),
                Some(None) => (UNKNOWN_AGENT, 0),
                Some(Some((kind, turn))) => (kind.as_deref().unwrap_or(UNKNOWN_AGENT), *turn),
            };
            take(&Used { agent, turn, ..Used::of(name, project, message, prices) });
        }
    }
    Ok(())
}
