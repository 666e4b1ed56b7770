//! Searches the full-text index.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use quipu_message::View;
use rusqlite::{Connection, OptionalExtension, params};

use crate::line_text::{TextExtractor, TextKind, ToolNameByCall};
use crate::search::{Hit, Query, SearchHits, SessionKey, agent_name, read_line_at, snippet};
use crate::store::path_from_sql;
use crate::terms::SearchTerms;

/// Position of a text that may match; the text itself is read from its file.
struct Candidate {
    path: PathBuf,
    session: String,
    project: String,
    line: u64,
    offset: u64,
    text_index: usize,
    kind: TextKind,
    tool: Option<String>,
}

/// Number of latest candidates that are ranked first. A common word occurs in hundreds of
/// thousands of texts.
const INITIAL_CANDIDATES: usize = 500;
/// Largest number of candidates without filters, unless more hits are requested.
const MAX_CANDIDATES: usize = 10_000;
/// Added to the score of texts in which the words are adjacent, so that they rank first.
const ADJACENT_BONUS: f64 = 100.0;

pub(super) fn search_index(db: &Connection, terms: &SearchTerms, query: &Query) -> rusqlite::Result<SearchHits> {
    let Some(all) = terms.candidate_expression() else { return Ok(SearchHits::default()) };
    let adjacent = terms.adjacent_expression();
    // Ranks the latest candidates; takes more only if these give too few hits.
    let mut candidate_limit = INITIAL_CANDIDATES;
    loop {
        let mut ranked: HashMap<i64, f64> = HashMap::new();
        let mut is_all = true;
        if let Some(adjacent) = &adjacent {
            let latest = latest_matches(db, adjacent, candidate_limit)?;
            is_all &= latest.len() < candidate_limit;
            ranked.extend(latest.into_iter().map(|id| (id, ADJACENT_BONUS)));
            if ranked.len() >= query.limit {
                let found = best_hits(db, &ranked, terms, query)?;
                if found.hits.len() >= query.limit {
                    return Ok(found);
                }
            }
        }
        let latest = latest_candidates(db, &all, candidate_limit)?;
        is_all &= latest.len() < candidate_limit;
        for (id, score) in latest {
            *ranked.entry(id).or_default() += score;
        }
        let found = best_hits(db, &ranked, terms, query)?;
        if is_all || found.hits.len() >= query.limit {
            return Ok(found);
        }
        // Testing many candidates for rare punctuation takes longer than scanning the files.
        if terms.has_punctuation() {
            return Ok(SearchHits { is_incomplete: true, ..found });
        }
        if candidate_limit >= MAX_CANDIDATES.max(query.limit) && !query.is_filtered() {
            return Ok(found);
        }
        candidate_limit = candidate_limit.saturating_mul(20);
    }
}

/// The latest texts that match an expression. Scores would count all matches of each phrase.
fn latest_matches(db: &Connection, expression: &str, count: usize) -> rusqlite::Result<Vec<i64>> {
    let mut select = db.prepare_cached("SELECT rowid FROM text WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?")?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    select.query_map(params![expression, count], |row| row.get(0))?.collect()
}

/// The latest texts that match an expression, with their scores.
fn latest_candidates(db: &Connection, expression: &str, count: usize) -> rusqlite::Result<Vec<(i64, f64)>> {
    let mut select =
        db.prepare_cached("SELECT rowid, -bm25(text) FROM text WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?")?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    select.query_map(params![expression, count], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The candidates that match, best first, up to the limits of the query.
fn best_hits(
    db: &Connection,
    ranked: &HashMap<i64, f64>,
    terms: &SearchTerms,
    query: &Query,
) -> rusqlite::Result<SearchHits> {
    let mut ranked: Vec<(i64, f64)> = ranked.iter().map(|(id, score)| (*id, *score)).collect();
    // The later of equal scores comes first.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let mut found = SearchHits::default();
    let (mut seen, mut counts) = (HashSet::new(), HashMap::<SessionKey, usize>::new());
    for (id, score) in ranked {
        if found.hits.len() >= query.limit {
            break;
        }
        let Some(candidate) = load_candidate(db, id, query)? else { continue };
        let session = SessionKey { project: candidate.project.clone(), id: candidate.session.clone() };
        if found.capped_sessions.contains(&session) {
            continue;
        }
        let Some(hit) = read_hit(candidate, terms, score) else { continue };
        let (entry, snippet) = hit.dedup_key();
        if !seen.insert((entry, snippet.to_owned())) {
            continue;
        }
        let count = counts.entry(session).or_default();
        if *count < query.limit_per_session {
            *count += 1;
            found.hits.push(hit);
        } else {
            found.capped_sessions.insert(hit.session());
        }
    }
    Ok(found)
}

/// Looks up a candidate; `None` if it is filtered out.
fn load_candidate(db: &Connection, id: i64, query: &Query) -> rusqlite::Result<Option<Candidate>> {
    let mut select = db.prepare_cached(
        "SELECT path, name, project, line, offset, block, kind, tool, said.time
         FROM said JOIN file ON file.id = said.file JOIN session ON session.id = file.session
         WHERE said.id = ? AND NOT file.gone",
    )?;
    let found = select.query_row([id], |row| {
        let kind = TextKind::ALL.into_iter().find(|kind| Ok(*kind as i64) == row.get(6));
        let time: Option<i64> = row.get(8)?;
        let candidate = Candidate {
            path: path_from_sql(row.get_ref(0)?),
            session: row.get(1)?,
            project: row.get(2)?,
            line: row.get::<_, i64>(3)?.cast_unsigned(),
            offset: row.get::<_, i64>(4)?.cast_unsigned(),
            text_index: row.get::<_, i64>(5)? as usize,
            kind: kind.unwrap_or(TextKind::Response),
            tool: row.get(7)?,
        };
        Ok((candidate, time.and_then(|time| Timestamp::from_millisecond(time).ok())))
    });
    let wanted = |(found, time): &(Candidate, Option<Timestamp>)| {
        query.matches(found.kind, found.tool.as_deref(), *time)
            && query.includes_session(&found.project, &found.session)
    };
    Ok(found.optional()?.filter(wanted).map(|(found, _)| found))
}

/// Reads the line of a candidate and tests it; `None` if it does not match.
fn read_hit(candidate: Candidate, terms: &SearchTerms, score: f64) -> Option<Hit> {
    let line = read_line_at(&candidate.path, candidate.offset).ok()?;
    let view = View::read(&line).ok()?;
    let said = TextExtractor::new(&candidate.path, ToolNameByCall::new())
        .line_texts(&view, &line)
        .into_iter()
        .nth(candidate.text_index)?;
    let matches = terms.find_matches(&said.text)?;
    Some(Hit {
        session_id: candidate.session,
        uuid: view.uuid.as_deref().map(str::to_owned),
        line: candidate.line,
        timestamp: view.timestamp.as_deref().map(str::to_owned),
        role: candidate.kind.role_name(),
        tool: candidate.tool,
        snippet: snippet(&said.text, &matches),
        score,
        project: candidate.project,
        agent: agent_name(&candidate.path),
        is_title: candidate.kind == TextKind::Title,
        path: candidate.path,
    })
}
