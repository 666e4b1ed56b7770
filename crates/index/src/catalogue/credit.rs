//! Which session is credited with a message that several hold, and what each session
//! is credited with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quipu_conversation::MessageUse;
use quipu_conversation::price::Prices;
use rusqlite::{Connection, params};

use super::rows::{self, QUARTER_MS, Texts, credit};
use super::sums::{self, Slot, Sum};
use crate::crediting;
use crate::usage::Used;

/// Credits the keys and adds up the sessions that changed. What is left of a command
/// that was killed in between is done by the next.
pub(super) fn credit(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    // A key is of interest when several sessions hold it, or did. The join is a cross
    // join so that the few touched keys are looked up, and not all keys of all messages.
    let keys: Vec<i64> = db
        .prepare_cached(
            "SELECT touched.key FROM touched CROSS JOIN message ON message.key = touched.key
             GROUP BY touched.key HAVING count(*) > 1 OR max(credit)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let texts = Texts::read(db)?;
    for key in keys {
        credit_key(db, &texts, key)?;
    }
    let sessions: Vec<i64> =
        db.prepare_cached("SELECT session FROM changed")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in sessions {
        add_up(db, &texts, session, prices)?;
    }
    db.execute_batch("DELETE FROM touched; DELETE FROM changed;")
}

/// Credits the first holder of each message with this key, with what its fullest copy says.
fn credit_key(db: &Connection, texts: &Texts, key: i64) -> rusqlite::Result<()> {
    let holders = rows::holders(db, texts, key)?;
    let messages: Vec<&MessageUse> = holders.iter().map(|(kept, _)| &kept.message).collect();
    for group in crediting::groups(&messages) {
        let copies: Vec<&MessageUse> = group.iter().map(|at| messages[*at]).collect();
        let merged = MessageUse::merged(&copies);
        for (place, at) in group.iter().enumerate() {
            let (kept, before) = &holders[*at];
            let now = match place {
                0 if crediting::differs(&kept.message, &merged) => credit::MERGED,
                0 => credit::OWN,
                _ => credit::COPY,
            };
            if now == credit::MERGED {
                rows::put_credited(db, kept, &merged)?;
            }
            if now != *before {
                rows::set_credit(db, kept, now)?;
            }
            if now != *before || now == credit::MERGED {
                let mut change = db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?;
                change.execute([kept.session])?;
            }
        }
    }
    Ok(())
}

/// Adds up what a session is credited with, by quarter of an hour, way of serving and
/// whether there is a price.
fn add_up(db: &Connection, texts: &Texts, session: i64, prices: &Prices) -> rusqlite::Result<()> {
    let is_gone = |row: &rusqlite::Row<'_>| row.get(0);
    let is_gone: bool = db.prepare_cached("SELECT gone FROM session WHERE id = ?")?.query_row([session], is_gone)?;
    let mut sums: BTreeMap<Slot, Sum> = BTreeMap::new();
    let messages = if is_gone { Vec::new() } else { rows::credited(db, texts, session)? };
    for kept in &messages {
        let used = Used::of("", "", &kept.message, prices);
        let quarter = kept.message.time.map(|time| time.as_millisecond().div_euclid(QUARTER_MS));
        let slot = Slot { quarter, served: kept.served, unpriced: used.cost.err() };
        sums.entry(slot).or_default().add(&used);
    }
    if sums.is_empty() {
        db.prepare_cached("DELETE FROM used WHERE session = ?")?.execute([session])?;
    } else {
        let last = messages.iter().filter_map(|kept| kept.message.time).max().map(Timestamp::as_millisecond);
        let row = params![session, last, sums::packed(&sums)];
        db.prepare_cached("INSERT OR REPLACE INTO used (session, last, sums) VALUES (?, ?, ?)")?.execute(row)?;
    }
    Ok(())
}
