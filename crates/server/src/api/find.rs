//! `/api/sessions/{key}/find`: finds text in the whole of a session.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_index::{Pattern, PatternError, Query, hits_in_line, matching_lines};
use quipu_transcript::find::find_session_files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};

/// Matches of one response.
const MAX_MATCHES: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FindParams {
    /// The text to find; upper and lower case letters are the same.
    q: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Matches {
    /// In the order of the conversation.
    matches: Vec<Match>,
    /// Whether these are all.
    complete: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// Position of the entry that shows the line; that of the tool call for text of a subagent.
    position: usize,
    line: u64,
    /// Id of the subagent whose file the line is in.
    agent: Option<String>,
    /// The text around the match, with the match in «».
    snippet: String,
}

pub(crate) async fn find(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<FindParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let text = format!("(?i){}", regex::escape(&params.q));
        let pattern = match params.q.is_empty() {
            true => Err(PatternError::Empty),
            false => Pattern::regex(&text),
        };
        let pattern = pattern.map_err(super::search::pattern_error)?;
        let not_found = || ApiError::not_found("session.not_found", "the session was deleted");
        let files = find_session_files(&path).ok_or_else(not_found)?;
        let (places, _) = matching_lines(&files, &pattern);
        let query = Query::default();
        let (mut found, mut complete) = (Vec::new(), true);
        for place in &places {
            if found.len() >= MAX_MATCHES {
                complete = false;
                break;
            }
            found.extend(hits_in_line(&files, place, &pattern, &query).into_iter().filter(|hit| !hit.is_title));
        }
        let matches = app.sessions.with(&path, |session| {
            let view = session.view();
            let mut matches: Vec<Match> = found
                .into_iter()
                .map(|hit| {
                    let agent = hit.agent.as_deref().and_then(|name| name.strip_prefix("agent-")).map(str::to_owned);
                    let position = match &agent {
                        Some(agent) => view.position_of_subagent(agent).unwrap_or_default(),
                        None => view.position_of_line(hit.line),
                    };
                    Match { position, line: hit.line, agent, snippet: hit.snippet }
                })
                .collect();
            matches.sort_by_key(|found| (found.position, found.agent.clone(), found.line));
            matches
        })?;
        Ok(Json::new(&Matches { matches, complete }))
    })
    .await
}
