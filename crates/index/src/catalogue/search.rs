//! Asking the index.

use std::collections::HashSet;
use std::path::PathBuf;

use grep_regex::RegexMatcher;
use jiff::Timestamp;
use quipu_message::View;
use quipu_message::line::mend;
use rusqlite::{Connection, OptionalExtension, params};

use crate::said::{Calls, Kind, Said, said};
use crate::search::{Hit, Query, found, line_at, marker, snippet};
use crate::words;

/// A block that fits, without its words.
struct Found {
    score: f64,
    path: PathBuf,
    session: String,
    project: String,
    line: u64,
    offset: u64,
    block: usize,
    kind: Kind,
    tool: Option<String>,
}

/// So many of the latest blocks that fit are ranked: a common word stands in hundreds
/// of thousands.
const LATEST: i64 = 500;

pub(super) fn search(db: &Connection, query: &Query) -> rusqlite::Result<Vec<Hit>> {
    let Some(terms) = words::query(&query.text) else { return Ok(Vec::new()) };
    let marks = marker(&words::spellings(&query.text));
    // Of the latest, the best: more are looked at only when filters leave too few.
    let mut looked = LATEST;
    loop {
        let mut fits: Vec<(i64, f64)> = db
            .prepare_cached("SELECT rowid, bm25(text) FROM text WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?")?
            .query_map(params![terms, looked], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let is_all = fits.len() < usize::try_from(looked).unwrap_or(usize::MAX);
        // Lower is better; of equals the later comes first.
        fits.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut hits, mut seen) = (Vec::new(), HashSet::new());
        for (id, rank) in fits {
            if hits.len() == query.limit {
                break;
            }
            let Some(found) = fitting(db, id, rank, query)? else { continue };
            if let Some(hit) = read(found, marks.as_ref())
                // A fork holds the same lines: one is enough.
                && seen.insert((hit.uuid.clone(), hit.snippet.clone()))
            {
                hits.push(hit);
            }
        }
        if is_all || hits.len() == query.limit {
            return Ok(hits);
        }
        looked = looked.saturating_mul(20);
    }
}

fn fitting(db: &Connection, id: i64, rank: f64, query: &Query) -> rusqlite::Result<Option<Found>> {
    let mut select = db.prepare_cached(
        "SELECT path, name, project, line, offset, block, kind, tool, said.time
         FROM said JOIN file ON file.id = said.file JOIN session ON session.id = file.session
         WHERE said.id = ? AND NOT file.gone",
    )?;
    let found = select.query_row([id], |row| {
        let kind = Kind::ALL.into_iter().find(|kind| Ok(*kind as i64) == row.get(6));
        let time: Option<i64> = row.get(8)?;
        let found = Found {
            score: -rank,
            path: PathBuf::from(row.get::<_, String>(0)?),
            session: row.get(1)?,
            project: row.get(2)?,
            line: row.get::<_, i64>(3)?.cast_unsigned(),
            offset: row.get::<_, i64>(4)?.cast_unsigned(),
            block: row.get::<_, i64>(5)? as usize,
            kind: kind.unwrap_or(Kind::Answer),
            tool: row.get(7)?,
        };
        Ok((found, time.and_then(|time| Timestamp::from_millisecond(time).ok())))
    });
    let wanted = |(found, time): &(Found, Option<Timestamp>)| {
        query.wants(found.kind, found.tool.as_deref(), *time) && query.wants_session(&found.project, &found.session)
    };
    Ok(found.optional()?.filter(wanted).map(|(found, _)| found))
}

/// Reads the line again and shows what was looked for.
fn read(place: Found, marks: Option<&RegexMatcher>) -> Option<Hit> {
    let line = line_at(&place.path, place.offset).ok()?;
    let line = mend(&line);
    let view = View::read(&line).ok()?;
    let Said { text, .. } = said(&view, &mut Calls::new()).into_iter().find(|said| said.block == place.block)?;
    Some(Hit {
        session_id: place.session,
        uuid: view.uuid.as_deref().map(str::to_owned),
        path: place.path,
        line: place.line,
        timestamp: view.timestamp.as_deref().map(str::to_owned),
        role: place.kind.role(),
        tool: place.tool,
        snippet: snippet(&text, &marks.map(|marks| found(marks, &text)).unwrap_or_default()),
        score: place.score,
        project: place.project,
    })
}
