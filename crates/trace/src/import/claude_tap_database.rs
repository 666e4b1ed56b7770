//! Database of claude-tap: records whose large fields are stored once, by hash.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Deserialize;
use serde_json::Value;

use super::{ImportError, claude_tap};
use crate::builder::TraceBuilder;

/// A record whose large fields are replaced by references.
#[derive(Deserialize)]
struct CompactRecord {
    #[serde(rename = "__claude_tap_compact_record__")]
    marker: CompactMarker,
    record: Value,
}

#[derive(Deserialize)]
struct CompactMarker {
    #[serde(default)]
    refs: Vec<BlobRef>,
}

#[derive(Deserialize)]
struct BlobRef {
    /// JSON pointer of the replaced field.
    path: String,
    hash: String,
}

/// Imports the records of all sessions, in order. The database is opened read-only.
pub(super) fn import(path: &Path, builder: &mut TraceBuilder) -> Result<(), ImportError> {
    read_records(path, builder).map_err(|source| ImportError::Database { path: path.to_owned(), source })
}

fn read_records(path: &Path, builder: &mut TraceBuilder) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    let mut select = database
        .prepare("SELECT session_id, payload_json FROM records ORDER BY timestamp, session_id, record_index")?;
    let mut rows = select.query([])?;
    let mut number = 0;
    while let Some(row) = rows.next()? {
        number += 1;
        let (session, payload): (String, String) = (row.get(0)?, row.get(1)?);
        let imported = match expand(&database, &session, &payload)? {
            Ok(Some(record)) => claude_tap::import_line(&record, number, builder).map_err(|error| error.to_string()),
            Ok(None) => claude_tap::import_line(&payload, number, builder).map_err(|error| error.to_string()),
            Err(message) => Err(message),
        };
        if let Err(message) = imported {
            builder.push_problem(number, message);
        }
    }
    Ok(())
}

/// The record with its references replaced by what they refer to. `None` if the record is
/// stored whole.
fn expand(database: &Connection, session: &str, payload: &str) -> rusqlite::Result<Result<Option<String>, String>> {
    let Ok(compact) = serde_json::from_str::<CompactRecord>(payload) else { return Ok(Ok(None)) };
    let mut record = compact.record;
    let mut select =
        database.prepare_cached("SELECT payload_json FROM record_blobs WHERE session_id = ?1 AND hash = ?2")?;
    for BlobRef { path, hash } in &compact.marker.refs {
        let blob: Option<String> = select.query_row([session, hash], |row| row.get(0)).optional()?;
        let Some(field) = record.pointer_mut(path) else { return Ok(Err(format!("the record has no field {path}"))) };
        let Some(blob) = blob else { return Ok(Err(format!("{path} refers to {hash}, which is not in the database"))) };
        match serde_json::from_str(&blob) {
            Ok(value) => *field = value,
            Err(error) => return Ok(Err(format!("{hash}: {error}"))),
        }
    }
    Ok(Ok(Some(record.to_string())))
}
