//! Collects the hits of a search that reads files.

use std::collections::HashSet;

use quipu_transcript::find::SessionFiles;

use super::{MatchingLine, Pattern, Query, SearchHits, SessionKey, hits_in_line};

/// The hits of files that are added in the order of their sessions, the latest first.
#[derive(Debug)]
pub struct FileHits<'a> {
    pattern: &'a Pattern,
    query: &'a Query,
    found: SearchHits,
    is_more: bool,
    seen: HashSet<(String, String)>,
}

impl<'a> FileHits<'a> {
    /// Collects hits of a pattern within the limits of a query.
    pub fn new(pattern: &'a Pattern, query: &'a Query) -> Self {
        Self { pattern, query, found: SearchHits::default(), is_more: false, seen: HashSet::new() }
    }

    /// Adds the hits in the matching lines of a session, the last line first. Copies of an entry
    /// count once.
    pub fn add(&mut self, session: &SessionFiles, places: &[MatchingLine]) {
        let mut left = self.query.limit_per_session;
        for place in places.iter().rev() {
            if self.found.hits.len() >= self.query.limit {
                self.is_more = true;
                break;
            }
            let mut hits = hits_in_line(session, place, self.pattern, self.query);
            hits.retain(|hit| {
                let (entry, snippet) = hit.dedup_key();
                self.seen.insert((entry, snippet.to_owned()))
            });
            let is_capped = hits.len() > left;
            hits.truncate(left);
            left -= hits.len();
            self.found.hits.extend(hits);
            if is_capped {
                let key = SessionKey { project: session.project.to_string(), id: session.id.to_string() };
                self.found.capped_sessions.insert(key);
                break;
            }
        }
    }

    /// The hits, latest first, and whether there are more than the query's limit.
    pub fn finish(self) -> (SearchHits, bool) {
        let Self { mut found, mut is_more, query, .. } = self;
        is_more |= found.hits.len() > query.limit;
        found.hits.truncate(query.limit);
        found.hits.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
        (found, is_more)
    }
}
