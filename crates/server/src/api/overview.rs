//! `/api/overview`: what the first page shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use jiff::Span;
use quipu_conversation::ActivityState;
use quipu_index::{GroupBy, TimeWindow, UsageCounter, UsageRow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::sessions::ShownSession;
use crate::app::App;
use crate::error::ApiError;
use crate::json::Json;
use crate::session_list::SessionRow;

/// Sessions in the list of recent ones.
const RECENT_SESSIONS: usize = 12;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Overview<'a> {
    /// The project with the latest session first.
    projects: Vec<Project>,
    recent: Vec<ShownSession<'a>>,
    live: Vec<ShownSession<'a>>,
    waiting: Vec<Waiting>,
    today: Day,
    yesterday_cost_usd: f64,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Project {
    /// Name of the project folder.
    project: String,
    cwd: Option<String>,
    sessions: usize,
    /// Time of the last message, as ISO 8601.
    last_at: Option<String>,
    /// Cost of its sessions in US dollars, copies included.
    cost_usd: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waiting {
    key: String,
    session_id: String,
    on: ActivityState,
    detail: Option<String>,
    since: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Day {
    cost_usd: f64,
    messages: u64,
    /// Sessions with a message on that day.
    sessions: usize,
}

pub(crate) async fn overview(State(app): State<Arc<App>>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let rows = app.list.first_rows();
        let states = app.live.states();
        let followed = |row: &&SessionRow| states.contains_key(&row.session.path);
        let waiting = rows.iter().filter(followed).filter_map(|row| {
            let state = states.get(&row.session.path)?;
            Some(Waiting {
                key: row.key.clone(),
                session_id: row.session.session_id.clone(),
                on: state.waiting?,
                detail: state.activity_detail.clone(),
                since: state.since.clone(),
            })
        });
        let is_live = |row: &&SessionRow| states.get(&row.session.path).is_some_and(|state| state.live);
        let today = (app.now)().date();
        let (day, sessions) = (usage_of_day(app, today)?, usage_rows(app, GroupBy::Session, today)?);
        let yesterday = usage_of_day(app, today.saturating_sub(Span::new().days(1)))?;
        Ok(Json::new(&Overview {
            projects: projects(&rows),
            recent: rows.iter().take(RECENT_SESSIONS).map(|row| ShownSession::new(row, app)).collect(),
            live: rows.iter().filter(is_live).map(|row| ShownSession::new(row, app)).collect(),
            waiting: waiting.collect(),
            today: Day { cost_usd: day.cost.as_f64(), messages: day.messages, sessions: sessions.len() },
            yesterday_cost_usd: yesterday.cost.as_f64(),
        }))
    })
    .await
}

/// Projects in the order of their latest sessions.
fn projects(rows: &[SessionRow]) -> Vec<Project> {
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    let mut projects: Vec<Project> = Vec::new();
    for SessionRow { session, .. } in rows {
        let index = *order.entry(&session.project).or_insert(projects.len());
        if index == projects.len() {
            let (project, last_at) = (session.project.clone(), session.ended_at.clone());
            projects.push(Project { project, last_at, ..Project::default() });
        }
        let project = &mut projects[index];
        project.sessions += 1;
        project.cost_usd += session.cost_usd;
        if project.cwd.is_none() {
            project.cwd.clone_from(&session.cwd);
        }
    }
    projects
}

fn usage_of_day(app: &App, day: jiff::civil::Date) -> Result<UsageRow, ApiError> {
    Ok(usage_rows(app, GroupBy::Day, day)?.pop().unwrap_or_default())
}

/// Usage of one day.
fn usage_rows(app: &App, group_by: GroupBy, day: jiff::civil::Date) -> Result<Vec<UsageRow>, ApiError> {
    let now = (app.now)();
    let start = |day: jiff::civil::Date| day.to_zoned(now.time_zone().clone()).ok().map(|start| start.timestamp());
    let next = day.saturating_add(Span::new().days(1));
    let window = TimeWindow { since: start(day), until: start(next), zone: now.time_zone().clone() };
    let mut counter = UsageCounter::new(group_by, &window);
    app.with_index(|catalogue| catalogue.for_each_usage(group_by, &window, |record| counter.add(record)))?;
    Ok(counter.report(now.timestamp()).rows)
}
