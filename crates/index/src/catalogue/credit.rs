//! Who is credited with a message that several sessions hold, and what each session
//! is credited with.

use std::collections::{BTreeMap, HashSet};

use quipu_conversation::price::Prices;
use rusqlite::{Connection, params};

use super::rows::{self, QUARTER_MS};
use super::sums::{self, Slot, Sum};
use crate::usage::Used;

/// Credits the keys and adds up the sessions that changed. What is left of a command
/// that was killed in between is done by the next.
pub(super) fn credit(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    // A key is of interest when several sessions hold it, or did.
    let keys: Vec<i64> = db
        .prepare_cached(
            "SELECT touched.key FROM touched JOIN message ON message.key = touched.key
             GROUP BY touched.key HAVING count(*) > 1 OR max(is_copy)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for key in keys {
        credit_key(db, key)?;
    }
    let sessions: Vec<i64> =
        db.prepare_cached("SELECT session FROM changed")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in sessions {
        add_up(db, session, prices)?;
    }
    db.execute_batch("DELETE FROM touched; DELETE FROM changed;")
}

struct Holder {
    session: i64,
    n: i64,
    is_copy: bool,
    marks: Vec<u64>,
}

/// The earliest session that holds a message is credited with it. The same key is
/// another message when no line has the same time or id.
fn credit_key(db: &Connection, key: i64) -> rusqlite::Result<()> {
    let mut select = db.prepare_cached(
        "SELECT session, n, is_copy, times, first_line, last_line FROM message JOIN session ON session.id = session
         WHERE key = ? AND is_told AND NOT gone ORDER BY begins, name",
    )?;
    let holders = select.query_map([key], |row| {
        let lines = [row.get::<_, i64>(4)?, row.get(5)?];
        let times = rows::times(row.get_ref(3)?.as_blob()?);
        let marks = times.into_iter().chain(lines.into_iter().filter(|line| *line != 0));
        Ok(Holder {
            session: row.get(0)?,
            n: row.get(1)?,
            is_copy: row.get(2)?,
            marks: marks.map(i64::cast_unsigned).collect(),
        })
    })?;
    let mut seen: HashSet<u64> = HashSet::new();
    for holder in holders.collect::<rusqlite::Result<Vec<_>>>()? {
        let is_copy = holder.marks.iter().any(|mark| seen.contains(mark));
        seen.extend(&holder.marks);
        if is_copy != holder.is_copy {
            let place = params![is_copy, holder.session, holder.n];
            db.prepare_cached("UPDATE message SET is_copy = ? WHERE session = ? AND n = ?")?.execute(place)?;
            db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([holder.session])?;
        }
    }
    Ok(())
}

/// Adds up what a session is credited with, by quarter of an hour, way of serving and
/// whether there is a price.
fn add_up(db: &Connection, session: i64, prices: &Prices) -> rusqlite::Result<()> {
    let is_gone = |row: &rusqlite::Row<'_>| row.get(0);
    let is_gone: bool = db.prepare_cached("SELECT gone FROM session WHERE id = ?")?.query_row([session], is_gone)?;
    let mut sums: BTreeMap<Slot, Sum> = BTreeMap::new();
    let messages = if is_gone { Vec::new() } else { rows::messages(db, session)? };
    for (message, served, is_copy) in &messages {
        if *is_copy || !message.is_told {
            continue;
        }
        let used = Used::of("", "", message, prices);
        let quarter = message.time.map(|time| time.as_millisecond().div_euclid(QUARTER_MS));
        let slot = Slot { quarter, served: *served, is_priced: used.cost.is_some() };
        sums.entry(slot).or_default().add(&used);
    }
    if sums.is_empty() {
        db.prepare_cached("DELETE FROM used WHERE session = ?")?.execute([session])?;
    } else {
        let row = params![session, sums::packed(&sums)];
        db.prepare_cached("INSERT OR REPLACE INTO used (session, sums) VALUES (?, ?)")?.execute(row)?;
    }
    Ok(())
}
