//! `/api/usage`: tokens and cost.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use quipu_index::{GroupBy, TimeWindow, UsageCounter, UsageRecord, UsageReport, UsageRow, usage_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};
use crate::period::time_window;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UsageParams {
    by: Group,
    since: Option<String>,
    until: Option<String>,
    /// Only projects whose folder or working directory contains this.
    project: Option<String>,
    /// Only models whose name contains this.
    model: Option<String>,
    /// Days of this year; all without it.
    year: Option<i16>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    #[default]
    Daily,
    Weekly,
    Monthly,
    Session,
    Model,
    Project,
    Block,
    Tool,
    Agent,
}

impl From<Group> for GroupBy {
    fn from(group: Group) -> Self {
        match group {
            Group::Daily => Self::Day,
            Group::Weekly => Self::Week,
            Group::Monthly => Self::Month,
            Group::Session => Self::Session,
            Group::Model => Self::Model,
            Group::Project => Self::Project,
            Group::Block => Self::Block,
            Group::Tool => Self::Tool,
            Group::Agent => Self::Agent,
        }
    }
}

pub(crate) async fn usage(State(app): State<Arc<App>>, Params(params): Params<UsageParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| Ok(Json::new(&params.document(app)?))).await
}

/// The same as a table for spreadsheets.
pub(crate) async fn csv(
    State(app): State<Arc<App>>,
    Params(params): Params<UsageParams>,
) -> Result<Response, ApiError> {
    let table = app.blocking(move |app| Ok(csv_table(&params.document(app)?))).await?;
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, "attachment; filename=\"usage.csv\"")];
    Ok((headers, table).into_response())
}

/// A report, in the shape of `quipu usage --json`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes what `usage_json` returns")]
pub(crate) struct UsageDocument {
    rows: Vec<UsageFields>,
    totals: UsageFields,
}

/// Usage of one day, session, model or whatever the report is grouped by.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes what `usage_json` returns")]
pub(crate) struct UsageFields {
    /// What the row is about; absent in totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    models: Vec<String>,
    input_tokens: u64,
    output_tokens: u64,
    cache_write_5m_tokens: u64,
    cache_write_1h_tokens: u64,
    cache_read_tokens: u64,
    web_searches: u64,
    messages: u64,
    /// Cost in US dollars, without unpriced models.
    cost_usd: f64,
    /// What the prompt cache saved, in US dollars.
    cache_savings_usd: f64,
    unpriced_models: Vec<String>,
    /// Time of the first message, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_at: Option<String>,
    /// Time of the last message, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<String>,
    /// Title of the session, of rows by session.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Working directory, of rows by session and project.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// Whether messages of deleted sessions are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    vanished: bool,
}

/// Totals of a period and of the one before, which has the same length.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Comparison {
    #[schemars(with = "UsageFields")]
    current: UsageRow,
    #[schemars(with = "UsageFields")]
    previous: UsageRow,
    previous_since: Option<String>,
}

pub(crate) async fn compare(
    State(app): State<Arc<App>>,
    Params(params): Params<UsageParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let now = (app.now)();
        let window = params.window(app)?;
        let end = window.until.unwrap_or_else(|| now.timestamp());
        let current = params.report(app, GroupBy::Month, &window)?.totals;
        let start = window.since.and_then(|since| since.checked_sub(end.duration_since(since)).ok());
        let before = TimeWindow { since: start, until: window.since, zone: window.zone.clone() };
        let previous = match start {
            Some(_) => params.report(app, GroupBy::Month, &before)?.totals,
            None => UsageRow::default(),
        };
        Ok(Json::new(&Comparison { current, previous, previous_since: start.map(|start| start.to_string()) }))
    })
    .await
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DayCell {
    day: String,
    cost_usd: f64,
    messages: u64,
}

pub(crate) async fn heatmap(
    State(app): State<Arc<App>>,
    Params(params): Params<UsageParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let report = params.report(app, GroupBy::Day, &params.window(app)?)?;
        let year = params.year.map(|year| format!("{year:04}-"));
        let cell = |row: UsageRow| Some(DayCell { day: row.key?, cost_usd: row.cost.as_f64(), messages: row.messages });
        let cells = report.rows.into_iter().filter_map(cell);
        let is_wanted = |cell: &DayCell| year.as_ref().is_none_or(|year| cell.day.starts_with(year.as_str()));
        Ok(Json::new(&cells.filter(is_wanted).collect::<Vec<_>>()))
    })
    .await
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct HourCell {
    /// 0 is Monday.
    weekday: i8,
    /// Hour of the day in the time zone of the user.
    hour: i8,
    cost_usd: f64,
    messages: u64,
}

pub(crate) async fn hours(State(app): State<Arc<App>>, Params(params): Params<UsageParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let window = params.window(app)?;
        let mut cells: HashMap<(i8, i8), HourCell> = HashMap::new();
        params.for_each(app, GroupBy::Day, &window, |record| {
            let amounts = record.amounts;
            // Messages that the agent wrote itself have no tokens.
            let Some((time, _)) = amounts.span.filter(|(time, _)| window.contains(Some(*time))) else { return };
            if amounts.tokens.total() == 0 {
                return;
            }
            let local = time.to_zoned(window.zone.clone());
            let (weekday, hour) = (local.weekday().to_monday_zero_offset(), local.hour());
            let cell =
                cells.entry((weekday, hour)).or_insert_with(|| HourCell { weekday, hour, ..HourCell::default() });
            cell.cost_usd += amounts.cost.unwrap_or_default().as_f64();
            cell.messages += amounts.messages;
        })?;
        let mut cells: Vec<HourCell> = cells.into_values().collect();
        cells.sort_by_key(|cell| (cell.weekday, cell.hour));
        Ok(Json::new(&cells))
    })
    .await
}

impl UsageParams {
    fn window(&self, app: &App) -> Result<TimeWindow, ApiError> {
        time_window(self.since.as_deref(), self.until.as_deref(), &(app.now)())
    }

    /// The report in the shape of `quipu usage --json`.
    fn document(&self, app: &App) -> Result<Value, ApiError> {
        let group_by = GroupBy::from(self.by);
        let report = self.report(app, group_by, &self.window(app)?)?;
        let rows = app.list.rows();
        let sessions: Vec<_> = match group_by {
            GroupBy::Session | GroupBy::Project => rows.iter().map(|row| row.session.clone()).collect(),
            _ => Vec::new(),
        };
        Ok(usage_json(&report, group_by, &sessions, None))
    }

    fn report(&self, app: &App, group_by: GroupBy, window: &TimeWindow) -> Result<UsageReport, ApiError> {
        let mut counter = UsageCounter::new(group_by, window);
        self.for_each(app, group_by, window, |record| counter.add(record))?;
        Ok(counter.report((app.now)().timestamp()))
    }

    /// Passes the usage that the filters select to `visit`.
    fn for_each(
        &self,
        app: &App,
        group_by: GroupBy,
        window: &TimeWindow,
        mut visit: impl FnMut(&UsageRecord<'_>),
    ) -> Result<(), ApiError> {
        let text = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_lowercase);
        let (project, model) = (text(&self.project), text(&self.model));
        // Working directories are known of sessions that exist; others are found by their folder.
        let folders: Option<Vec<String>> = project.as_ref().map(|project| {
            let rows = app.list.rows();
            rows.iter().filter(|row| row.is_in_project(project)).map(|row| row.session.project.clone()).collect()
        });
        let is_selected = |record: &UsageRecord<'_>| {
            let is_project = |folders: &Vec<String>, part: &String| {
                folders.iter().any(|folder| folder == record.project) || record.project.to_lowercase().contains(part)
            };
            folders.as_ref().zip(project.as_ref()).is_none_or(|(folders, part)| is_project(folders, part))
                && model.as_ref().is_none_or(|part| record.model.to_lowercase().contains(part))
        };
        app.with_index(|catalogue| {
            catalogue.for_each_usage(group_by, window, |record| {
                if is_selected(record) {
                    visit(record);
                }
            })
        })
    }
}

/// The columns of every row that are plain values.
fn csv_table(document: &Value) -> String {
    let columns = [
        "key",
        "title",
        "cwd",
        "input_tokens",
        "output_tokens",
        "cache_write_5m_tokens",
        "cache_write_1h_tokens",
        "cache_read_tokens",
        "web_searches",
        "messages",
        "cost_usd",
        "cache_savings_usd",
        "models",
        "unpriced_models",
    ];
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => csv_text(text),
        Value::Array(list) => csv_text(&list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        number => number.to_string(),
    };
    let mut table = columns.join(",") + "\r\n";
    for row in document["rows"].as_array().into_iter().flatten() {
        table.push_str(&columns.map(|column| cell(&row[column])).join(","));
        table.push_str("\r\n");
    }
    table
}

/// A text for a spreadsheet: quoted, and never taken for a formula.
fn csv_text(text: &str) -> String {
    let marker = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{marker}{}\"", text.replace('"', "\"\""))
}
