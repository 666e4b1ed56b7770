//! Asking the index.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use quipu_message::View;
use quipu_message::line::replace_lone_surrogates;
use rusqlite::{Connection, OptionalExtension, params};

use crate::line_text::{TextExtractor, TextKind, ToolNameByCall};
use crate::search::{Hit, Query, SearchHits, SessionKey, agent_name, read_line_at, snippet};
use crate::store::path_from_sql;
use crate::terms::SearchTerms;

/// A text that may match, without the text.
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

/// This many of the latest candidates are ranked: a common word stands in hundreds of
/// thousands of texts.
const INITIAL_CANDIDATES: usize = 500;
/// Without filters, no more candidates than this are looked at, unless more hits are wanted.
const MAX_CANDIDATES: usize = 10_000;
/// Added to the score of texts that hold the words side by side, so that they come first.
const ADJACENT_BONUS: f64 = 100.0;

pub(super) fn search_index(db: &Connection, terms: &SearchTerms, query: &Query) -> rusqlite::Result<SearchHits> {
    let Some(all) = terms.candidate_expression() else { return Ok(SearchHits::default()) };
    let adjacent = terms.adjacent_expression();
    // Of the latest, the best: more are looked at only when these give too few hits.
    let mut looked = INITIAL_CANDIDATES;
    loop {
        let mut ranked: HashMap<i64, f64> = HashMap::new();
        let mut is_all = true;
        for (expression, bonus) in adjacent.iter().map(|it| (it, ADJACENT_BONUS)).chain([(&all, 0.0)]) {
            let latest = latest_candidates(db, expression, looked)?;
            is_all &= latest.len() < looked;
            for (id, score) in latest {
                ranked.entry(id).or_insert(score + bonus);
            }
            if ranked.len() >= looked {
                is_all = false;
                break;
            }
        }
        let found = best_hits(db, ranked, terms, query)?;
        if is_all || found.hits.len() >= query.limit {
            return Ok(found);
        }
        // Reading candidate after candidate for a rare sign takes longer than scanning files.
        if terms.has_punctuation() {
            return Ok(SearchHits { is_incomplete: true, ..found });
        }
        if looked >= MAX_CANDIDATES.max(query.limit) && !query.is_filtered() {
            return Ok(found);
        }
        looked = looked.saturating_mul(20);
    }
}

/// The latest texts that an expression finds, each with its score.
fn latest_candidates(db: &Connection, expression: &str, count: usize) -> rusqlite::Result<Vec<(i64, f64)>> {
    let mut select =
        db.prepare_cached("SELECT rowid, -bm25(text) FROM text WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?")?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    select.query_map(params![expression, count], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The best candidates that are what was looked for, best first.
fn best_hits(
    db: &Connection,
    ranked: HashMap<i64, f64>,
    terms: &SearchTerms,
    query: &Query,
) -> rusqlite::Result<SearchHits> {
    let mut ranked: Vec<(i64, f64)> = ranked.into_iter().collect();
    // Of equals the later comes first.
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

/// Reads a candidate's line again; `None` if it does not say what was looked for.
fn read_hit(place: Candidate, terms: &SearchTerms, score: f64) -> Option<Hit> {
    let line = read_line_at(&place.path, place.offset).ok()?;
    let line = replace_lone_surrogates(&line);
    let view = View::read(&line).ok()?;
    let said = TextExtractor::new(&place.path, ToolNameByCall::new())
        .line_texts(&view, &line)
        .into_iter()
        .nth(place.text_index)?;
    let marks = terms.find_matches(&said.text)?;
    Some(Hit {
        session_id: place.session,
        uuid: view.uuid.as_deref().map(str::to_owned),
        line: place.line,
        timestamp: view.timestamp.as_deref().map(str::to_owned),
        role: place.kind.role_name(),
        tool: place.tool,
        snippet: snippet(&said.text, &marks),
        score,
        project: place.project,
        agent: agent_name(&place.path),
        is_title: place.kind == TextKind::Title,
        path: place.path,
    })
}
