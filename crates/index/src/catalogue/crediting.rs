//! Which session is credited with a message that several hold, and what each session
//! is credited with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::MessageUsage;
use rusqlite::{Connection, params};

use super::message_rows::{self, InternedTexts, QUARTER_MS, credit};
use super::usage_sums::{self, SumKey, UsageSum};
use crate::message_copies;
use crate::usage::UsageRecord;

/// Credits the keys and adds up the sessions that changed. What is left of a command
/// that was killed in between is done by the next.
pub(super) fn credit_changed(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    // A key is of interest when several sessions hold it, or did. The join is a cross
    // join so that the few touched keys are looked up, and not all keys of all messages.
    let keys: Vec<i64> = db
        .prepare_cached(
            "SELECT touched.key FROM touched CROSS JOIN message ON message.key = touched.key
             GROUP BY touched.key HAVING count(*) > 1 OR max(credit)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let texts = InternedTexts::load(db)?;
    for key in keys {
        credit_message(db, &texts, key)?;
    }
    let sessions: Vec<i64> =
        db.prepare_cached("SELECT session FROM changed")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in sessions {
        sum_session(db, &texts, session, prices)?;
    }
    db.execute_batch("DELETE FROM touched; DELETE FROM changed;")
}

/// Credits the first holder of each message with this key, with what its fullest copy says.
fn credit_message(db: &Connection, texts: &InternedTexts, key: i64) -> rusqlite::Result<()> {
    let holders = message_rows::message_copies(db, texts, key)?;
    let messages: Vec<&MessageUsage> = holders.iter().map(|(kept, _)| &kept.usage).collect();
    for group in message_copies::group_copies(&messages) {
        let copies: Vec<&MessageUsage> = group.iter().map(|at| messages[*at]).collect();
        let merged = MessageUsage::merge_copies(&copies);
        for (place, at) in group.iter().enumerate() {
            let (kept, before) = &holders[*at];
            let now = match place {
                0 if message_copies::differs_from_own(&kept.usage, &merged) => credit::MERGED,
                0 => credit::OWN,
                _ => credit::COPY,
            };
            if now == credit::MERGED {
                message_rows::write_credited(db, kept, &merged)?;
            }
            if now != *before {
                message_rows::set_credit(db, kept, now)?;
            }
            if now != *before || now == credit::MERGED {
                let mut change = db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?;
                change.execute([kept.session_row_id])?;
            }
        }
    }
    Ok(())
}

/// Adds up what a session is credited with, by quarter of an hour, way of serving and
/// whether there is a price.
fn sum_session(db: &Connection, texts: &InternedTexts, session: i64, prices: &Prices) -> rusqlite::Result<()> {
    let is_gone = |row: &rusqlite::Row<'_>| row.get(0);
    let is_gone: bool = db.prepare_cached("SELECT gone FROM session WHERE id = ?")?.query_row([session], is_gone)?;
    let mut sums: BTreeMap<SumKey, UsageSum> = BTreeMap::new();
    let messages = if is_gone { Vec::new() } else { message_rows::credited_messages(db, texts, session)? };
    for kept in &messages {
        let used = UsageRecord::from_message("", "", &kept.usage, prices);
        let quarter = kept.usage.earliest_time.map(|time| time.as_millisecond().div_euclid(QUARTER_MS));
        let slot = SumKey { quarter, serving_id: kept.serving_id, unpriced: used.cost.err() };
        sums.entry(slot).or_default().add(&used);
    }
    if sums.is_empty() {
        db.prepare_cached("DELETE FROM used WHERE session = ?")?.execute([session])?;
    } else {
        let last = messages.iter().filter_map(|kept| kept.usage.earliest_time).max().map(Timestamp::as_millisecond);
        let row = params![session, last, usage_sums::pack_sums(&sums)];
        db.prepare_cached("INSERT OR REPLACE INTO used (session, last, sums) VALUES (?, ?, ?)")?.execute(row)?;
    }
    Ok(())
}
