//! `/api/sessions`: the list of sessions.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};
use crate::live_sessions::LiveState;
use crate::session_list::SessionRow;

/// Sessions of one response unless `limit` names another number.
const DEFAULT_LIMIT: usize = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct ListParams {
    /// Only projects whose folder or working directory contains this.
    project: Option<String>,
    /// Only sessions whose title, first prompt or id contains this.
    q: Option<String>,
    /// Only models whose name contains this.
    model: Option<String>,
    #[serde(default)]
    sort: SortBy,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortBy {
    #[default]
    Time,
    Cost,
    Tokens,
    Turns,
}

#[derive(Debug, Serialize)]
struct SessionPage<'a> {
    /// Number of sessions that match.
    total: usize,
    sessions: Vec<ShownSession<'a>>,
}

/// A row with what changes from moment to moment.
#[derive(Debug, Serialize)]
pub(crate) struct ShownSession<'a> {
    #[serde(flatten)]
    row: &'a SessionRow,
    #[serde(flatten)]
    state: LiveState,
}

impl<'a> ShownSession<'a> {
    pub(crate) fn new(row: &'a SessionRow, app: &App) -> Self {
        Self { row, state: app.live.state(&row.session.path) }
    }
}

pub(crate) async fn list(State(app): State<Arc<App>>, Params(params): Params<ListParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let rows = app.list.rows();
        let mut sessions: Vec<&SessionRow> = rows.iter().filter(|row| params.matches(row)).collect();
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
        is_any(&self.project, &[Some(&session.project), session.cwd.as_deref()])
            && is_any(&self.q, &[session.title.as_deref(), session.first_prompt.as_deref(), Some(&session.session_id)])
            && is_any(&self.model, &models)
    }
}
