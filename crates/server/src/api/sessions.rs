//! `/api/sessions`: the list of sessions.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::State;
use quipu_conversation::parse_timestamp;
use quipu_index::TimeWindow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};
use crate::live_sessions::LiveState;
use crate::period::time_window;
use crate::session_list::{SessionRow, split_tags};

/// Sessions of one response unless `limit` names another number.
const DEFAULT_LIMIT: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only projects whose folder or working directory contains this.
    project: Option<String>,
    /// Only sessions whose title, first prompt or id contains this.
    q: Option<String>,
    /// Only models whose name contains this.
    model: Option<String>,
    /// Only sessions with a message on or after this day or time.
    since: Option<String>,
    /// Only sessions that began on or before this day or time.
    until: Option<String>,
    /// Only sessions with this tag.
    tag: Option<String>,
    /// 1 for sessions with a star only.
    #[serde(default)]
    starred: u8,
    #[serde(default)]
    sort: SortBy,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SortBy {
    #[default]
    Time,
    Cost,
    Tokens,
    Turns,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionPage<'a> {
    /// Number of sessions that match.
    total: usize,
    sessions: Vec<ShownSession<'a>>,
}

/// A row with what changes from moment to moment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShownSession<'a> {
    #[serde(flatten)]
    row: &'a SessionRow,
    #[serde(flatten)]
    state: LiveState,
    tags: Vec<String>,
    starred: bool,
    /// Bytes of the session file.
    size_bytes: u64,
}

impl<'a> ShownSession<'a> {
    pub(crate) fn new(row: &'a SessionRow, app: &App) -> Self {
        Self {
            row,
            state: app.live.state(&row.session.path),
            tags: split_tags(row.session.tag.as_deref()),
            starred: app.stars.contains(&row.session.project, &row.session.session_id),
            size_bytes: std::fs::metadata(&row.session.path).map(|metadata| metadata.len()).unwrap_or_default(),
        }
    }
}

pub(crate) async fn list(State(app): State<Arc<App>>, Params(params): Params<ListParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let rows = app.list.first_rows();
        let window = time_window(params.since.as_deref(), params.until.as_deref(), &(app.now)())?;
        let is_starred = |row: &SessionRow| app.stars.contains(&row.session.project, &row.session.session_id);
        let is_wanted = |row: &&SessionRow| {
            params.matches(row) && is_active_in(row, &window) && (params.starred != 1 || is_starred(row))
        };
        let mut sessions: Vec<&SessionRow> = rows.iter().filter(is_wanted).collect();
        match params.sort {
            // Rows are sorted by time already, and sorting is stable.
            SortBy::Time => {}
            SortBy::Cost => sessions.sort_by(|a, b| b.session.cost_usd.total_cmp(&a.session.cost_usd)),
            SortBy::Tokens => sessions.sort_by_key(|row| Reverse(row.session.tokens.total())),
            SortBy::Turns => sessions.sort_by_key(|row| Reverse(row.session.turns)),
        }
        let total = sessions.len();
        let shown = sessions.into_iter().skip(params.offset).take(params.limit.unwrap_or(DEFAULT_LIMIT));
        let sessions = shown.map(|row| ShownSession::new(row, app)).collect();
        Ok(Json::new(&SessionPage { total, sessions }))
    })
    .await
}

impl ListParams {
    fn matches(&self, row: &SessionRow) -> bool {
        let session = &row.session;
        let contains = |text: Option<&str>, part: &str| text.is_some_and(|text| text.to_lowercase().contains(part));
        let is_any = |wanted: &Option<String>, texts: &[Option<&str>]| {
            let wanted = wanted.as_deref().filter(|wanted| !wanted.is_empty()).map(str::to_lowercase);
            wanted.is_none_or(|wanted| texts.iter().any(|text| contains(*text, &wanted)))
        };
        let models: Vec<Option<&str>> = session.models.iter().map(|model| Some(model.as_str())).collect();
        let tag = self.tag.as_ref().filter(|tag| !tag.is_empty());
        self.project.as_deref().is_none_or(|project| row.is_in_project(project))
            && tag.is_none_or(|tag| split_tags(session.tag.as_deref()).contains(tag))
            && is_any(&self.q, &[session.title.as_deref(), session.first_prompt.as_deref(), Some(&session.session_id)])
            && is_any(&self.model, &models)
    }
}

/// Whether a session has entries in a window.
fn is_active_in(row: &SessionRow, window: &TimeWindow) -> bool {
    let time = |text: &Option<String>| text.as_deref().and_then(parse_timestamp);
    window.since.is_none_or(|since| time(&row.session.ended_at).is_some_and(|end| end >= since))
        && window.until.is_none_or(|until| time(&row.session.started_at).is_some_and(|start| start < until))
}
