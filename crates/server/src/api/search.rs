//! `/api/search`: finds text in all sessions.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use quipu_index::{
    FileHits, Hit, Pattern, PatternError, Query, SearchHits, SearchRole, SearchTerms, SessionKey, matching_lines,
};
use quipu_transcript::{error_chain, find};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};
use crate::period::time_window;

/// Hits of one response unless `limit` names another number.
const DEFAULT_LIMIT: usize = 50;
/// Hits of one response at most.
const MAX_LIMIT: usize = 1000;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SearchParams {
    /// Words, "phrases", `OR`, `-word`, as of `quipu search`.
    q: String,
    /// 1 if `q` is a regular expression.
    regex: u8,
    /// 1 if `q` is text that is searched for as it is.
    exact: u8,
    project: Option<String>,
    role: Option<Role>,
    tool: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
    Thinking,
    Tool,
    System,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    hits: Vec<FoundHit>,
    /// Whether all sessions were searched and all hits are here.
    complete: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundHit {
    /// Key of the session.
    key: String,
    #[serde(flatten)]
    hit: Hit,
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Params(params): Params<SearchParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let query = params.query(app)?;
        let (found, complete) = if params.exact == 1 {
            search_files(&Pattern::exact(&params.q).map_err(pattern_error)?, &query, app)
        } else if params.regex == 1 {
            search_files(&Pattern::regex(&params.q).map_err(pattern_error)?, &query, app)
        } else {
            search_index(SearchTerms::parse(&params.q).map_err(pattern_error)?, &query, app)?
        };
        let rows = app.list.rows();
        let key = |hit: &Hit| {
            let row =
                rows.iter().find(|row| row.session.session_id == hit.session_id && row.session.project == hit.project);
            row.map_or_else(|| hit.session_id.clone(), |row| row.key.clone())
        };
        let hits = found.hits.into_iter().map(|hit| FoundHit { key: key(&hit), hit }).collect();
        Ok(Json::new(&Found { hits, complete }))
    })
    .await
}

impl SearchParams {
    fn query(&self, app: &App) -> Result<Query, ApiError> {
        let window = time_window(self.since.as_deref(), self.until.as_deref(), &(app.now)())?;
        let project = self.project.as_deref().filter(|text| !text.is_empty());
        let sessions = project.map(|project| {
            let rows = app.list.rows();
            let matching = rows.iter().filter(|row| row.is_in_project(project));
            let key = |row: &crate::session_list::SessionRow| SessionKey {
                project: row.session.project.clone(),
                id: row.session.session_id.clone(),
            };
            matching.map(key).collect::<HashSet<_>>()
        });
        Ok(Query {
            sessions,
            role: self.role.map(|role| match role {
                Role::User => SearchRole::User,
                Role::Assistant => SearchRole::Assistant,
                Role::Thinking => SearchRole::Thinking,
                Role::Tool => SearchRole::Tool,
                Role::System => SearchRole::System,
            }),
            tool: self.tool.clone().filter(|tool| !tool.is_empty()),
            since: window.since,
            until: window.until,
            limit: self.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
            limit_per_session: usize::MAX,
        })
    }
}

/// Searches the index, which is complete after the first search has had its texts added.
fn search_index(terms: SearchTerms, query: &Query, app: &App) -> Result<(SearchHits, bool), ApiError> {
    if !terms.has_words() {
        return Ok(search_files(&Pattern::from_terms(terms), query, app));
    }
    app.index.request_texts();
    let has_texts = app.index.has_texts();
    let found = app.with_index(|catalogue| catalogue.search(&terms, query))?;
    // Where the index has many candidates and few have the signs, the files are quicker.
    if found.is_incomplete {
        return Ok(search_files(&Pattern::from_terms(terms), query, app));
    }
    let complete = has_texts && found.hits.len() < query.limit;
    Ok((found, complete))
}

/// Searches every file, the latest sessions first.
fn search_files(pattern: &Pattern, query: &Query, app: &App) -> (SearchHits, bool) {
    let (projects, _) = find::list_project_folders(&app.claude_dirs);
    let (mut sessions, _) = find::list_session_files(&projects, &());
    sessions.retain(|session| query.includes_session(&session.project, session.id.as_str()));
    sessions.sort_by_key(|session| std::cmp::Reverse(session.main_file().modified));
    let places: Vec<_> = sessions.par_iter().map(|session| matching_lines(session, pattern).0).collect();
    let mut found = FileHits::new(pattern, query);
    for (session, places) in sessions.iter().zip(&places) {
        found.add(session, places);
    }
    let (found, is_more) = found.finish();
    (found, !is_more)
}

pub(super) fn pattern_error(error: PatternError) -> ApiError {
    let hint = match error {
        PatternError::Empty => "name at least one word",
        PatternError::TooManyTerms { .. } | PatternError::Syntax { .. } => "exact=1 searches for a text as it is",
    };
    ApiError::new(StatusCode::BAD_REQUEST, error.code(), error_chain(&error)).with_hint(hint)
}
