//! Rows of the database, in and out.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::{MessageUse, Served, Tokens};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

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

/// How messages were served, and the names of tools and subagents, by number.
pub(super) struct Texts {
    pub(super) served: Numbered<Arc<Served>>,
    labels: Numbered<Arc<str>>,
}

impl Texts {
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut select = db.prepare_cached("SELECT id, model, speed, geo FROM served")?;
        let some = |text: String| (!text.is_empty()).then(|| text.into());
        let served = select.query_map([], |row| {
            let served = Served { model: row.get(1)?, speed: some(row.get(2)?), geo: some(row.get(3)?) };
            Ok((row.get(0)?, Arc::new(served)))
        })?;
        let served = served.collect::<rusqlite::Result<_>>()?;
        let mut select = db.prepare_cached("SELECT id, text FROM label")?;
        let labels = select.query_map([], |row| Ok((row.get(0)?, Arc::from(row.get_ref(1)?.as_str()?))))?;
        Ok(Self { served, labels: labels.collect::<rusqlite::Result<_>>()? })
    }

    fn message(&self, row: &Row<'_>) -> rusqlite::Result<Kept> {
        let label = |at: usize| row.get::<_, Option<i64>>(at).map(|id| id.and_then(|id| self.labels.get(&id)));
        let served = row.get(3)?;
        let tools = label(18)?.map(|tools| tools.split('\n').map(Arc::from).collect());
        let message = MessageUse {
            served: self.served.get(&served).map(Arc::clone).unwrap_or_default(),
            tools: tools.unwrap_or_default(),
            agent: label(19)?.cloned(),
            ..message(row)?
        };
        Ok(Kept { session: row.get(0)?, n: row.get(1)?, served, message })
    }
}

/// A message as the database has it.
pub(super) struct Kept {
    pub(super) session: i64,
    pub(super) n: i64,
    /// The number of the way of serving.
    pub(super) served: i64,
    pub(super) message: MessageUse,
}

/// How a message counts.
pub(super) mod credit {
    /// With its own figures.
    pub(in crate::catalogue) const OWN: i64 = 0;
    /// Not at all: it is a copy.
    pub(in crate::catalogue) const COPY: i64 = 1;
    /// With the figures of a fuller copy, which are in the table `credited`.
    pub(in crate::catalogue) const MERGED: i64 = 2;
}

const MESSAGE: &str = "session, n, key, served, is_told, is_progress, time, input, output, cache_write_5m,
    cache_write_1h, cache_read, searches_told, searches_found, recorded, times, first_line, last_line, tools, agent, turn";

/// The messages of a session, in their order, as its files say.
pub(super) fn messages(db: &Connection, texts: &Texts, session: i64) -> rusqlite::Result<Vec<Kept>> {
    let mut select = db.prepare_cached(&format!("SELECT {MESSAGE} FROM message WHERE session = ? ORDER BY n"))?;
    select.query_map([session], |row| texts.message(row))?.collect()
}

/// The messages that a session is credited with, and what each counts with.
pub(super) fn credited(db: &Connection, texts: &Texts, session: i64) -> rusqlite::Result<Vec<Kept>> {
    let select = format!("SELECT {MESSAGE} FROM message WHERE session = ? AND is_told AND credit = {}", credit::OWN);
    let mut select = db.prepare_cached(&select)?;
    let mut found: Vec<Kept> =
        select.query_map([session], |row| texts.message(row))?.collect::<rusqlite::Result<_>>()?;
    let mut select = db.prepare_cached(&format!("SELECT {MESSAGE} FROM credited WHERE session = ?"))?;
    for merged in select.query_map([session], |row| texts.message(row))? {
        found.push(merged?);
    }
    Ok(found)
}

/// The last message of a session's main conversation that says what it used.
pub(super) fn last_of_main(db: &Connection, texts: &Texts, session: i64) -> rusqlite::Result<Option<MessageUse>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {MESSAGE} FROM message WHERE session = ? AND is_told AND agent IS NULL AND input + cache_read > 0
         ORDER BY n DESC LIMIT 1"
    ))?;
    Ok(select.query_row([session], |row| texts.message(row)).optional()?.map(|kept| kept.message))
}

/// All sessions' copies of a message, those to credit first, with how each counts now.
pub(super) fn holders(db: &Connection, texts: &Texts, key: i64) -> rusqlite::Result<Vec<(Kept, i64)>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {MESSAGE}, credit FROM message JOIN session ON session.id = session
         WHERE key = ? AND is_told AND NOT gone ORDER BY vanished, is_progress, begins, name, place, n"
    ))?;
    select.query_map([key], |row| Ok((texts.message(row)?, row.get(21)?)))?.collect()
}

/// Has a message count in another way.
pub(super) fn set_credit(db: &Connection, kept: &Kept, credit: i64) -> rusqlite::Result<()> {
    let place = params![credit, kept.session, kept.n];
    db.prepare_cached("UPDATE message SET credit = ? WHERE session = ? AND n = ?")?.execute(place)?;
    if credit != credit::MERGED {
        let place = params![kept.session, kept.n];
        db.prepare_cached("DELETE FROM credited WHERE session = ? AND n = ?")?.execute(place)?;
    }
    Ok(())
}

/// Counts beyond what the database holds, which only nonsense reaches, stay there.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn message(row: &Row<'_>) -> rusqlite::Result<MessageUse> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let key: Option<i64> = row.get(2)?;
    let time: Option<i64> = row.get(6)?;
    let times = row.get_ref(15)?.as_blob()?.as_chunks().0;
    Ok(MessageUse {
        key: key.map(i64::cast_unsigned),
        is_told: row.get(4)?,
        is_progress: row.get(5)?,
        time: time.and_then(|time| Timestamp::from_millisecond(time).ok()),
        tokens: Tokens {
            input: count(7)?,
            output: count(8)?,
            cache_write_5m: count(9)?,
            cache_write_1h: count(10)?,
            cache_read: count(11)?,
        },
        searches_told: count(12)?,
        searches_found: count(13)?,
        recorded: row.get(14)?,
        times: times.iter().map(|time| i64::from_le_bytes(*time)).collect(),
        lines: [count(16)?, count(17)?],
        turn: row.get(20)?,
        ..MessageUse::default()
    })
}

/// Puts a message in its place, and remembers that its key is to be credited anew.
pub(super) fn put_message(db: &Connection, session: i64, n: usize, message: &MessageUse) -> rusqlite::Result<()> {
    put(db, "message", session, signed(n as u64), message)?;
    if let Some(key) = message.key.map(u64::cast_signed) {
        db.prepare_cached("INSERT OR IGNORE INTO touched (key) VALUES (?)")?.execute([key])?;
    }
    Ok(())
}

/// Puts what a message counts with.
pub(super) fn put_credited(db: &Connection, kept: &Kept, merged: &MessageUse) -> rusqlite::Result<()> {
    put(db, "credited", kept.session, kept.n, merged)
}

fn put(db: &Connection, table: &str, session: i64, n: i64, message: &MessageUse) -> rusqlite::Result<()> {
    let served = served_number(db, &message.served)?;
    let tools = message.tools.join("\n");
    let tools = if tools.is_empty() { None } else { Some(label(db, &tools)?) };
    let agent = message.agent.as_deref().map(|agent| label(db, agent)).transpose()?;
    let times: Vec<u8> = message.times.iter().flat_map(|time| time.to_le_bytes()).collect();
    let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = message.tokens;
    // How it counts stays as it is until its key is credited anew.
    db.prepare_cached(&format!(
        "INSERT INTO {table} ({MESSAGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
        message.is_told,
        message.is_progress,
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
        tools,
        agent,
        message.turn,
    ])?;
    Ok(())
}

/// The number of a way of serving.
fn served_number(db: &Connection, served: &Served) -> rusqlite::Result<i64> {
    let Served { model, speed, geo } = served;
    let key: [&dyn ToSql; 3] = [model, &speed.as_deref().unwrap_or_default(), &geo.as_deref().unwrap_or_default()];
    number(
        db,
        "SELECT id FROM served WHERE (model, speed, geo) = (?, ?, ?)",
        "INSERT INTO served (model, speed, geo) VALUES (?, ?, ?) RETURNING id",
        &key,
    )
}

/// The number of a name.
fn label(db: &Connection, text: &str) -> rusqlite::Result<i64> {
    let (known, new) = ("SELECT id FROM label WHERE text = ?", "INSERT INTO label (text) VALUES (?) RETURNING id");
    number(db, known, new, &[&text])
}

fn number(db: &Connection, known: &str, new: &str, key: &[&dyn ToSql]) -> rusqlite::Result<i64> {
    let number = db.prepare_cached(known)?.query_row(key, |row| row.get(0)).optional()?;
    number.map_or_else(|| db.prepare_cached(new)?.query_row(key, |row| row.get(0)), Ok)
}

/// A path as a value of the database: text, or bytes where it is not Unicode.
pub(super) fn path_value(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path.as_os_str().as_encoded_bytes().to_vec()),
    }
}

/// The path that a value of the database stands for.
pub(super) fn path_of(value: ValueRef<'_>) -> PathBuf {
    match value {
        #[cfg(unix)]
        ValueRef::Blob(bytes) => PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes)),
        #[cfg(not(unix))]
        ValueRef::Blob(bytes) => PathBuf::from(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Text(bytes) => PathBuf::from(String::from_utf8_lossy(bytes).into_owned()),
        _ => PathBuf::new(),
    }
}
