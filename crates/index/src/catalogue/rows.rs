//! Rows of the database, in and out.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::{MessageUse, Served, Tokens};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::hashed::Hashed;

/// What is credited is added up by so many milliseconds: days, weeks and blocks begin
/// at a full quarter of an hour in every time zone.
pub(super) const QUARTER_MS: i64 = 15 * 60 * 1000;

/// The quarter of an hour that a moment falls into the middle of.
pub(super) fn cut_quarter(edge: Timestamp) -> Option<i64> {
    let time = edge.as_millisecond();
    (time.rem_euclid(QUARTER_MS) != 0).then(|| time.div_euclid(QUARTER_MS))
}

/// Things by their number in the database.
pub(super) type Numbered<T> = HashMap<i64, T, BuildHasherDefault<Hashed>>;

/// The id and project of every session.
pub(super) fn names(db: &Connection) -> rusqlite::Result<Numbered<(String, Arc<str>)>> {
    let mut projects: HashMap<String, Arc<str>> = HashMap::new();
    let mut select = db.prepare_cached("SELECT id, name, project FROM session WHERE NOT gone")?;
    let mut rows = select.query([])?;
    let mut names = Numbered::default();
    while let Some(row) = rows.next()? {
        let project = row.get_ref(2)?.as_str()?;
        let project = match projects.get(project) {
            Some(known) => Arc::clone(known),
            None => projects.entry(project.to_owned()).or_insert_with(|| project.into()).clone(),
        };
        names.insert(row.get(0)?, (row.get(1)?, project));
    }
    Ok(names)
}

/// How messages were served, by number.
pub(super) fn served(db: &Connection) -> rusqlite::Result<Numbered<Arc<Served>>> {
    let mut select = db.prepare_cached("SELECT id, model, speed, geo FROM served")?;
    let some = |text: String| (!text.is_empty()).then(|| text.into());
    let rows = select.query_map([], |row| {
        let served = Served { model: row.get(1)?, speed: some(row.get(2)?), geo: some(row.get(3)?) };
        Ok((row.get(0)?, Arc::new(served)))
    })?;
    rows.collect()
}

/// The number of a way of serving.
pub(super) fn served_number(db: &Connection, served: &Served) -> rusqlite::Result<i64> {
    let Served { model, speed, geo } = served;
    let key = (model, speed.as_deref().unwrap_or_default(), geo.as_deref().unwrap_or_default());
    let known = db
        .prepare_cached("SELECT id FROM served WHERE (model, speed, geo) = (?, ?, ?)")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    match known {
        Some(number) => Ok(number),
        None => db
            .prepare_cached("INSERT INTO served (model, speed, geo) VALUES (?, ?, ?) RETURNING id")?
            .query_row(key, |row| row.get(0)),
    }
}

const MESSAGE: &str = "key, served, is_told, time, input, output, cache_write_5m, cache_write_1h, cache_read,
    searches_told, searches_found, recorded, times, first_line, last_line";

/// The messages of a session, in their order, with how they were served and whether
/// they are copies.
pub(super) fn messages(db: &Connection, session: i64) -> rusqlite::Result<Vec<(MessageUse, i64, bool)>> {
    let select = format!("SELECT {MESSAGE}, is_copy FROM message WHERE session = ? ORDER BY n");
    let served = served(db)?;
    let mut select = db.prepare_cached(&select)?;
    let rows = select.query_map([session], |row| {
        let how = row.get(1)?;
        let served = served.get(&how).map(Arc::clone).unwrap_or_default();
        Ok((MessageUse { served, ..message(row)? }, how, row.get(15)?))
    })?;
    rows.collect()
}

/// Counts beyond what the database holds, which only nonsense reaches, stay there.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn message(row: &Row<'_>) -> rusqlite::Result<MessageUse> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let key: Option<i64> = row.get(0)?;
    let time: Option<i64> = row.get(3)?;
    Ok(MessageUse {
        key: key.map(i64::cast_unsigned),
        is_told: row.get(2)?,
        time: time.and_then(|time| Timestamp::from_millisecond(time).ok()),
        tokens: Tokens {
            input: count(4)?,
            output: count(5)?,
            cache_write_5m: count(6)?,
            cache_write_1h: count(7)?,
            cache_read: count(8)?,
        },
        searches_told: count(9)?,
        searches_found: count(10)?,
        recorded: row.get(11)?,
        times: times(row.get_ref(12)?.as_blob()?),
        lines: [count(13)?, count(14)?],
        ..MessageUse::default()
    })
}

pub(super) fn times(blob: &[u8]) -> Vec<i64> {
    blob.as_chunks().0.iter().map(|time| i64::from_le_bytes(*time)).collect()
}

/// Puts a message in its place, and remembers that its key is to be credited anew.
pub(super) fn put_message(db: &Connection, session: i64, n: usize, message: &MessageUse) -> rusqlite::Result<()> {
    let served = served_number(db, &message.served)?;
    let times: Vec<u8> = message.times.iter().flat_map(|time| time.to_le_bytes()).collect();
    let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = message.tokens;
    let key = message.key.map(u64::cast_signed);
    db.prepare_cached(
        "INSERT INTO message (session, n, key, served, is_told, time, input, output, cache_write_5m, cache_write_1h,
             cache_read, searches_told, searches_found, recorded, times, first_line, last_line)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET (served, is_told, time, input, output, cache_write_5m, cache_write_1h, cache_read,
             searches_told, searches_found, recorded, times, first_line, last_line)
         = (excluded.served, excluded.is_told, excluded.time, excluded.input, excluded.output,
             excluded.cache_write_5m, excluded.cache_write_1h, excluded.cache_read, excluded.searches_told,
             excluded.searches_found, excluded.recorded, excluded.times, excluded.first_line, excluded.last_line)",
    )?
    .execute(params![
        session,
        signed(n as u64),
        key,
        served,
        message.is_told,
        message.time.map(Timestamp::as_millisecond),
        signed(input),
        signed(output),
        signed(cache_write_5m),
        signed(cache_write_1h),
        signed(cache_read),
        signed(message.searches_told),
        signed(message.searches_found),
        message.recorded,
        times,
        message.lines[0].cast_signed(),
        message.lines[1].cast_signed(),
    ])?;
    if let Some(key) = key {
        db.prepare_cached("INSERT OR IGNORE INTO touched (key) VALUES (?)")?.execute([key])?;
    }
    Ok(())
}
