//! Reads and writes the rows of messages.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::usage::{MessageUsage, ServingInfo};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::hashing::IntegerHasher;

/// Length of the periods that usage is summed by, in milliseconds: days, weeks and blocks start
/// at a full quarter of an hour in every time zone.
pub(super) const QUARTER_MS: i64 = 15 * 60 * 1000;

/// The quarter of an hour that a time cuts; `None` if it is at the start of one.
pub(super) fn partial_quarter(edge: Timestamp) -> Option<i64> {
    let time = edge.as_millisecond();
    (time.rem_euclid(QUARTER_MS) != 0).then(|| time.div_euclid(QUARTER_MS))
}

/// Values by row id.
pub(super) type ById<T> = HashMap<i64, T, BuildHasherDefault<IntegerHasher>>;

/// The tables `served` and `label` in memory. Load once and use for all sessions.
pub(super) struct InternedTexts {
    pub(super) serving_infos: ById<Arc<ServingInfo>>,
    labels: ById<Arc<str>>,
}

impl InternedTexts {
    pub(super) fn load(db: &Connection) -> rusqlite::Result<Self> {
        let mut select = db.prepare_cached("SELECT id, model, speed, geo FROM served")?;
        let some = |text: String| (!text.is_empty()).then(|| text.into());
        let served = select.query_map([], |row| {
            let served = ServingInfo { model: row.get(1)?, speed: some(row.get(2)?), geo: some(row.get(3)?) };
            Ok((row.get(0)?, Arc::new(served)))
        })?;
        let served = served.collect::<rusqlite::Result<_>>()?;
        let mut select = db.prepare_cached("SELECT id, text FROM label")?;
        let labels = select.query_map([], |row| Ok((row.get(0)?, Arc::from(row.get_ref(1)?.as_str()?))))?;
        Ok(Self { serving_infos: served, labels: labels.collect::<rusqlite::Result<_>>()? })
    }

    fn read_row(&self, row: &Row<'_>) -> rusqlite::Result<MessageRow> {
        let label = |at: usize| row.get::<_, Option<i64>>(at).map(|id| id.and_then(|id| self.labels.get(&id)));
        let serving_id = row.get(3)?;
        let tools = label(18)?.map(|tools| tools.split('\n').map(Arc::from).collect());
        let message = MessageUsage {
            serving: self.serving_infos.get(&serving_id).map(Arc::clone).unwrap_or_default(),
            tools: tools.unwrap_or_default(),
            agent: label(19)?.cloned(),
            ..read_message(row)?
        };
        Ok(MessageRow { session_row_id: row.get(0)?, position: row.get(1)?, serving_id, usage: message })
    }
}

/// A message with its row ids.
pub(super) struct MessageRow {
    pub(super) session_row_id: i64,
    pub(super) position: i64,
    /// Row id in the table `served`.
    pub(super) serving_id: i64,
    pub(super) usage: MessageUsage,
}

/// Values of the column `credit`: how a message counts.
pub(super) mod credit_state {
    /// With its own usage.
    pub(in crate::catalogue) const OWN: i64 = 0;
    /// Not at all: it is a copy.
    pub(in crate::catalogue) const COPY: i64 = 1;
    /// With the joined usage of its copies, which is in the table `credited`.
    pub(in crate::catalogue) const MERGED: i64 = 2;
}

const MESSAGE_COLUMNS: &str = "session, n, key, served, is_told, is_progress, time, input, output, cache_write_5m,
    cache_write_1h, cache_read, searches_told, searches_found, recorded, times, first_line, last_line, tools, agent, turn";

/// The messages of a session in their order, with their own usage.
pub(super) fn session_messages(
    db: &Connection,
    interned: &InternedTexts,
    session: i64,
) -> rusqlite::Result<Vec<MessageRow>> {
    let mut select =
        db.prepare_cached(&format!("SELECT {MESSAGE_COLUMNS} FROM message WHERE session = ? ORDER BY n"))?;
    select.query_map([session], |row| interned.read_row(row))?.collect()
}

/// The messages that a session is credited with, with the usage they count with.
pub(super) fn credited_messages(
    db: &Connection,
    interned: &InternedTexts,
    session: i64,
) -> rusqlite::Result<Vec<MessageRow>> {
    let select = format!(
        "SELECT {MESSAGE_COLUMNS} FROM message WHERE session = ? AND is_told AND credit = {}",
        credit_state::OWN
    );
    let mut select = db.prepare_cached(&select)?;
    let mut found: Vec<MessageRow> =
        select.query_map([session], |row| interned.read_row(row))?.collect::<rusqlite::Result<_>>()?;
    let mut select = db.prepare_cached(&format!("SELECT {MESSAGE_COLUMNS} FROM credited WHERE session = ?"))?;
    for merged in select.query_map([session], |row| interned.read_row(row))? {
        found.push(merged?);
    }
    Ok(found)
}

/// The last message of the main conversation that has usage.
pub(super) fn last_main_message(
    db: &Connection,
    interned: &InternedTexts,
    session: i64,
) -> rusqlite::Result<Option<MessageUsage>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {MESSAGE_COLUMNS} FROM message WHERE session = ? AND is_told AND agent IS NULL AND input + cache_read > 0
         ORDER BY n DESC LIMIT 1"
    ))?;
    Ok(select.query_row([session], |row| interned.read_row(row)).optional()?.map(|row| row.usage))
}

/// All holders of a key in the order of precedence for credit, each with its present credit
/// state.
pub(super) fn message_copies(
    db: &Connection,
    interned: &InternedTexts,
    key: i64,
) -> rusqlite::Result<Vec<(MessageRow, i64)>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {MESSAGE_COLUMNS}, credit FROM message JOIN session ON session.id = session
         WHERE key = ? AND is_told AND NOT gone ORDER BY vanished, is_progress, begins, name, place, n"
    ))?;
    select.query_map([key], |row| Ok((interned.read_row(row)?, row.get(21)?)))?.collect()
}

/// Changes the credit state of a message.
pub(super) fn set_credit(db: &Connection, row: &MessageRow, credit: i64) -> rusqlite::Result<()> {
    let place = params![credit, row.session_row_id, row.position];
    db.prepare_cached("UPDATE message SET credit = ? WHERE session = ? AND n = ?")?.execute(place)?;
    if credit != credit_state::MERGED {
        let place = params![row.session_row_id, row.position];
        db.prepare_cached("DELETE FROM credited WHERE session = ? AND n = ?")?.execute(place)?;
    }
    Ok(())
}

/// Converts a count for SQLite; counts above `i64::MAX`, which are never real, are capped.
fn to_signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn read_message(row: &Row<'_>) -> rusqlite::Result<MessageUsage> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let key: Option<i64> = row.get(2)?;
    let time: Option<i64> = row.get(6)?;
    let times = row.get_ref(15)?.as_blob()?.as_chunks().0;
    Ok(MessageUsage {
        key: key.map(i64::cast_unsigned),
        has_usage: row.get(4)?,
        is_progress: row.get(5)?,
        earliest_time: time.and_then(|time| Timestamp::from_millisecond(time).ok()),
        tokens: Tokens {
            input: count(7)?,
            output: count(8)?,
            cache_write_5m: count(9)?,
            cache_write_1h: count(10)?,
            cache_read: count(11)?,
        },
        reported_searches: count(12)?,
        answered_searches: count(13)?,
        recorded_cost_usd: row.get(14)?,
        line_times_ms: times.iter().map(|time| i64::from_le_bytes(*time)).collect(),
        line_hashes: [count(16)?, count(17)?],
        turn: row.get(20)?,
        ..MessageUsage::default()
    })
}

/// Writes a message and queues its key for crediting.
pub(super) fn write_message(db: &Connection, session: i64, n: usize, message: &MessageUsage) -> rusqlite::Result<()> {
    upsert_message(db, "message", session, to_signed(n as u64), message)?;
    if let Some(key) = message.key.map(u64::cast_signed) {
        db.prepare_cached("INSERT OR IGNORE INTO touched (key) VALUES (?)")?.execute([key])?;
    }
    Ok(())
}

/// Writes the joined usage that a message counts with.
pub(super) fn write_credited(db: &Connection, row: &MessageRow, merged: &MessageUsage) -> rusqlite::Result<()> {
    upsert_message(db, "credited", row.session_row_id, row.position, merged)
}

fn upsert_message(db: &Connection, table: &str, session: i64, n: i64, message: &MessageUsage) -> rusqlite::Result<()> {
    let served = serving_id(db, &message.serving)?;
    let tools = message.tools.join("\n");
    let tools = if tools.is_empty() { None } else { Some(label_id(db, &tools)?) };
    let agent = message.agent.as_deref().map(|agent| label_id(db, agent)).transpose()?;
    let times: Vec<u8> = message.line_times_ms.iter().flat_map(|time| time.to_le_bytes()).collect();
    let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = message.tokens;
    // The column `credit` is row until the key is credited again.
    db.prepare_cached(&format!(
        "INSERT INTO {table} ({MESSAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET (served, is_told, is_progress, time, input, output, cache_write_5m, cache_write_1h,
             cache_read, searches_told, searches_found, recorded, times, first_line, last_line, tools, agent, turn)
         = (excluded.served, excluded.is_told, excluded.is_progress, excluded.time, excluded.input, excluded.output,
             excluded.cache_write_5m, excluded.cache_write_1h, excluded.cache_read, excluded.searches_told,
             excluded.searches_found, excluded.recorded, excluded.times, excluded.first_line, excluded.last_line,
             excluded.tools, excluded.agent, excluded.turn)"
    ))?
    .execute(params![
        session,
        n,
        message.key.map(u64::cast_signed),
        served,
        message.has_usage,
        message.is_progress,
        message.earliest_time.map(Timestamp::as_millisecond),
        to_signed(input),
        to_signed(output),
        to_signed(cache_write_5m),
        to_signed(cache_write_1h),
        to_signed(cache_read),
        to_signed(message.reported_searches),
        to_signed(message.answered_searches),
        message.recorded_cost_usd,
        times,
        message.line_hashes[0].cast_signed(),
        message.line_hashes[1].cast_signed(),
        tools,
        agent,
        message.turn,
    ])?;
    Ok(())
}

/// Row id of a `served` row, which is inserted if it is new.
fn serving_id(db: &Connection, serving: &ServingInfo) -> rusqlite::Result<i64> {
    let ServingInfo { model, speed, geo } = serving;
    let key: [&dyn ToSql; 3] = [model, &speed.as_deref().unwrap_or_default(), &geo.as_deref().unwrap_or_default()];
    find_or_insert_id(
        db,
        "SELECT id FROM served WHERE (model, speed, geo) = (?, ?, ?)",
        "INSERT INTO served (model, speed, geo) VALUES (?, ?, ?) RETURNING id",
        &key,
    )
}

/// Row id of a `label` row, which is inserted if it is new.
fn label_id(db: &Connection, text: &str) -> rusqlite::Result<i64> {
    let (known, new) = ("SELECT id FROM label WHERE text = ?", "INSERT INTO label (text) VALUES (?) RETURNING id");
    find_or_insert_id(db, known, new, &[&text])
}

fn find_or_insert_id(db: &Connection, known: &str, new: &str, key: &[&dyn ToSql]) -> rusqlite::Result<i64> {
    let number = db.prepare_cached(known)?.query_row(key, |row| row.get(0)).optional()?;
    number.map_or_else(|| db.prepare_cached(new)?.query_row(key, |row| row.get(0)), Ok)
}
