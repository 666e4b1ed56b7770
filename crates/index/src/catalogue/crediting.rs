//! Decides which session is credited with a message that several hold, and stores the sums
//! of each session.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::MessageUsage;
use rusqlite::{Connection, params};

use super::message_rows::{self, InternedTexts, QUARTER_MS, credit_state};
use super::usage_sums::{self, SumKey};
use crate::message_copies::{self, Credit};
use crate::usage::UsageAmounts;

/// Credits the keys in the table `touched` and sums the sessions in `changed`. Both tables
/// are emptied in the same transaction, so the next command finishes what a killed one left.
pub(super) fn credit_changed(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    // Only keys that several sessions hold, or held, need a decision. The join is a cross
    // join so that the few touched keys are looked up, and not all keys of all messages.
    let keys: Vec<i64> = db
        .prepare_cached(
            "SELECT touched.key FROM touched CROSS JOIN message ON message.key = touched.key
             GROUP BY touched.key HAVING count(*) > 1 OR max(credit)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let interned = InternedTexts::load(db)?;
    for key in keys {
        credit_message(db, &interned, key)?;
    }
    let sessions: Vec<i64> =
        db.prepare_cached("SELECT session FROM changed")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in sessions {
        sum_session(db, &interned, session, prices)?;
    }
    db.execute_batch("DELETE FROM touched; DELETE FROM changed;")
}

/// Credits the messages with this key and queues the sessions whose sums change.
fn credit_message(db: &Connection, interned: &InternedTexts, key: i64) -> rusqlite::Result<()> {
    let holders = message_rows::message_copies(db, interned, key)?;
    let messages: Vec<&MessageUsage> = holders.iter().map(|(row, _)| &row.usage).collect();
    for ((row, before), credit) in holders.iter().zip(message_copies::credit_holders(&messages)) {
        let now = match credit {
            Credit::Own => credit_state::OWN,
            Credit::Copy => credit_state::COPY,
            Credit::Merged(merged) => {
                message_rows::write_credited(db, row, &merged)?;
                credit_state::MERGED
            }
        };
        if now != *before {
            message_rows::set_credit(db, row, now)?;
        }
        if now != *before || now == credit_state::MERGED {
            db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([row.session_row_id])?;
        }
    }
    Ok(())
}

/// Stores the sums that a session is credited with, by quarter of an hour, model and
/// whether there is a price.
fn sum_session(db: &Connection, interned: &InternedTexts, session: i64, prices: &Prices) -> rusqlite::Result<()> {
    let is_gone = |row: &rusqlite::Row<'_>| row.get(0);
    let is_gone: bool = db.prepare_cached("SELECT gone FROM session WHERE id = ?")?.query_row([session], is_gone)?;
    let mut sums: BTreeMap<SumKey, UsageAmounts> = BTreeMap::new();
    let messages = if is_gone { Vec::new() } else { message_rows::credited_messages(db, interned, session)? };
    for row in &messages {
        let amounts = UsageAmounts::from_message(&row.usage, prices);
        let quarter = row.usage.earliest_time.map(|time| time.as_millisecond().div_euclid(QUARTER_MS));
        let key = SumKey { quarter, serving_id: row.serving_id, unpriced: amounts.cost.err() };
        sums.entry(key).and_modify(|sum| sum.add(&amounts)).or_insert(amounts);
    }
    if sums.is_empty() {
        db.prepare_cached("DELETE FROM used WHERE session = ?")?.execute([session])?;
    } else {
        let last = messages.iter().filter_map(|row| row.usage.earliest_time).max().map(Timestamp::as_millisecond);
        let row = params![session, last, usage_sums::pack_sums(&sums)];
        db.prepare_cached("INSERT OR REPLACE INTO used (session, last, sums) VALUES (?, ?, ?)")?.execute(row)?;
    }
    Ok(())
}
