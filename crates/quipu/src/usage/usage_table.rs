//! Renders the tables of `quipu usage` and the notes under them.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_index::{ListedSession, UsageReport, UsageRow};
use quipu_render::sanitize;

use crate::args::UsageGroup;
use crate::format::{self, count, money};
use crate::output::Output;
use crate::prices;
use crate::session_table::session_title;
use crate::table::{Column, Table};

fn table_columns(lead: Vec<Column>, group: UsageGroup) -> Vec<Column> {
    let mut columns = lead;
    columns.extend([
        Column::number("messages").drop_rank(4),
        Column::number("input").drop_rank(3),
        Column::number("output").drop_rank(1),
        Column::number("cache write").drop_rank(3),
        Column::number("cache read").drop_rank(2),
        Column::number("cost"),
    ]);
    columns.extend(match group {
        UsageGroup::Model => None,
        UsageGroup::Session | UsageGroup::Turn => Some(Column::text("title").drop_rank(6).flexible(16)),
        _ => Some(Column::text("models").drop_rank(5).flexible(16)),
    });
    columns
}

fn row_cells(lead: Vec<String>, row: &UsageRow, trail: Option<String>) -> Vec<String> {
    let tokens = &row.tokens;
    let mut cells = lead;
    cells.extend([
        format::thousands(row.messages),
        format::tokens(tokens.input),
        format::tokens(tokens.output),
        format::tokens(tokens.cache_write()),
        format::tokens(tokens.cache_read),
        format::cost(row.cost.as_f64(), row.unpriced.len()),
    ]);
    cells.push(trail.unwrap_or_else(|| {
        let models: BTreeSet<&str> = row.models.iter().map(|model| format::model(model)).collect();
        models.into_iter().collect::<Vec<_>>().join(", ")
    }));
    cells
}

/// A report and what is needed to name its rows.
pub(super) struct UsageTable<'a> {
    report: &'a UsageReport,
    group: UsageGroup,
    zone: &'a TimeZone,
    /// Token limit of a block.
    limit: Option<u64>,
    sessions: HashMap<&'a str, &'a ListedSession>,
    /// Names of projects by their folder.
    projects: HashMap<&'a str, String>,
    has_active_block: bool,
}

impl<'a> UsageTable<'a> {
    pub(super) fn new(
        report: &'a UsageReport,
        group: UsageGroup,
        sessions: &'a [ListedSession],
        zone: &'a TimeZone,
        limit: Option<u64>,
    ) -> Self {
        let mut table = Self {
            report,
            group,
            zone,
            limit,
            sessions: sessions.iter().rev().map(|session| (session.session_id.as_str(), session)).collect(),
            projects: HashMap::new(),
            has_active_block: report.rows.iter().any(|row| !time_left(row).is_empty()),
        };
        for session in sessions {
            let name = format::project(session.cwd.as_deref(), &session.project);
            table.projects.entry(&session.project).or_insert_with(|| name.to_owned());
        }
        // Projects with the same name are shown with their full path.
        let shown = |name: &str| {
            report
                .rows
                .iter()
                .filter_map(|row| table.projects.get(row.key.as_deref()?))
                .filter(|other| *other == name)
                .count()
        };
        let twice: Vec<&str> =
            table.projects.iter().filter(|(_, name)| shown(name) > 1).map(|(folder, _)| *folder).collect();
        for folder in twice {
            let cwd = sessions.iter().find(|session| session.project == folder).and_then(|session| session.cwd.clone());
            table.projects.insert(folder, cwd.unwrap_or_else(|| folder.to_owned()));
        }
        table
    }

    pub(super) fn render(&self, output: &Output) -> String {
        let lead = self.lead_columns().len();
        let blank = |name: &str| {
            let mut cells = vec![String::new(); lead];
            cells[0] = name.to_owned();
            cells
        };
        let mut table = Table::new(table_columns(self.lead_columns(), self.group));
        for row in &self.report.rows {
            table.push_row(row_cells(self.lead(row), row, self.trail(row)));
            for (model, part) in &row.breakdown {
                table.push_row(row_cells(blank(&format!("└ {}", format::model(model))), part, Some(String::new())));
            }
        }
        table.push_total(row_cells(blank("total"), &self.report.totals, Some(String::new())));
        table.render(output)
    }

    fn lead_columns(&self) -> Vec<Column> {
        match self.group {
            UsageGroup::Daily => vec![Column::text("day")],
            UsageGroup::Weekly => vec![Column::text("week of")],
            UsageGroup::Monthly => vec![Column::text("month")],
            UsageGroup::Model => vec![Column::text("model")],
            UsageGroup::Project => vec![Column::text("project").flexible(20)],
            UsageGroup::Tool => vec![Column::text("tool").flexible(20)],
            UsageGroup::Agent => vec![Column::text("agent").flexible(20)],
            UsageGroup::Block => {
                let mut columns = vec![Column::text("block")];
                columns.extend(self.has_active_block.then(|| Column::text("left").drop_rank(1)));
                columns.extend(self.limit.map(|_| Column::number("of limit")));
                columns
            }
            UsageGroup::Session | UsageGroup::Turn => {
                let first = if self.group == UsageGroup::Session { "session" } else { "turn" };
                vec![
                    Column::text(first),
                    Column::text("last").drop_rank(1),
                    Column::text("project").drop_rank(5).flexible(12),
                ]
            }
        }
    }

    /// Cells before the numbers.
    fn lead(&self, row: &UsageRow) -> Vec<String> {
        let key = row.key.as_deref().unwrap_or_default();
        match self.group {
            UsageGroup::Project => vec![self.projects.get(key).cloned().unwrap_or_else(|| key.to_owned())],
            UsageGroup::Block => {
                let mut cells = vec![block_label(row, key, self.zone)];
                cells.extend(self.has_active_block.then(|| time_left(row)));
                cells.extend(self.limit.map(|limit| format_percent(row.tokens.total() as f64, limit)));
                cells
            }
            UsageGroup::Session | UsageGroup::Turn => {
                let (session, turn) = match self.group {
                    UsageGroup::Turn => key.split_at(key.rfind(':').unwrap_or(key.len())),
                    _ => (key, ""),
                };
                let short = session.get(..8).unwrap_or(session);
                let last = row.span.map(|(_, last)| format_time(last, self.zone, "%Y-%m-%d %H:%M")).unwrap_or_default();
                let project = self.sessions.get(session).and_then(|session| self.projects.get(&*session.project));
                vec![format!("{short}{turn}"), last, project.cloned().unwrap_or_default()]
            }
            _ => vec![key.to_owned()],
        }
    }

    /// Cell after the numbers; `None` for the list of models.
    fn trail(&self, row: &UsageRow) -> Option<String> {
        let key = row.key.as_deref().unwrap_or_default();
        let session = match self.group {
            UsageGroup::Session => key,
            UsageGroup::Turn => key.rsplit_once(':').map_or(key, |(session, _)| session),
            _ => return None,
        };
        let title = self.sessions.get(session).map(|session| session_title(session)).unwrap_or_default();
        let gone = if row.vanished_messages == row.messages { "(deleted) " } else { "" };
        Some(format!("{gone}{title}"))
    }
}

fn block_label(row: &UsageRow, key: &str, zone: &TimeZone) -> String {
    let Some(block) = &row.block else { return key.to_owned() };
    format!("{}–{}", format_time(block.start, zone, "%Y-%m-%d %H:%M"), format_time(block.end, zone, "%H:%M"))
}

fn format_percent(tokens: f64, limit: u64) -> String {
    format!("{:.0}%", tokens * 100.0 / limit as f64)
}

fn time_left(row: &UsageRow) -> String {
    row.block.and_then(|block| block.minutes_left).map(format::hours).unwrap_or_default()
}

fn format_time(time: Timestamp, zone: &TimeZone, form: &str) -> String {
    time.to_zoned(zone.clone()).strftime(form).to_string()
}

/// Notes for under the table. `has_copies` is set if sessions contain messages of others.
pub(super) fn report_notes(
    report: &UsageReport,
    group: UsageGroup,
    zone: &TimeZone,
    has_copies: bool,
    limit: Option<u64>,
) -> Vec<String> {
    let totals = &report.totals;
    let mut notes = vec![format!("the prompt cache saved {}", money(totals.cache_savings.as_f64()))];
    if totals.web_searches > 0 {
        notes[0].push_str(&format!("; {}", count(totals.web_searches as usize, "web search")));
    }
    if group == UsageGroup::Block {
        notes.extend(block_note(report, zone));
        notes.extend(limit.and_then(|limit| limit_note(report, zone, limit)));
    }
    if has_copies {
        notes.push(
            "messages that several sessions hold count once, for the earliest; `quipu ls` shows what each session holds"
                .to_owned(),
        );
    }
    if totals.vanished_messages > 0 {
        notes.push(format!(
            "{} ({}) are of session files that no longer exist",
            count(totals.vanished_messages as usize, "message"),
            money(totals.vanished_cost.as_f64())
        ));
    }
    if !totals.unpriced.is_empty() {
        let names = totals
            .unpriced
            .iter()
            .map(|(name, unknown)| format!("{}, {}", sanitize(name), count(unknown.messages as usize, "message")));
        let place = prices::prices_path().map_or_else(|| "prices.toml".to_owned(), |path| path.display().to_string());
        notes.push(format!(
            "no price for {}: their tokens count, their cost is unknown; add prices in {}",
            names.collect::<Vec<_>>().join("; "),
            sanitize(&place)
        ));
    }
    notes
}

fn active_block(report: &UsageReport) -> Option<&UsageRow> {
    report.rows.iter().find(|row| row.block.is_some_and(|block| block.minutes_left.is_some()))
}

fn block_note(report: &UsageReport, zone: &TimeZone) -> Option<String> {
    let Some(row) = active_block(report) else {
        let end = report.rows.iter().rev().find_map(|row| row.block)?.end;
        return Some(format!("no block is active; the last one ended {}", format_time(end, zone, "%Y-%m-%d %H:%M")));
    };
    let (block, (tokens, usd), projected) = (row.block?, row.per_minute()?, row.projected(row.cost.as_f64())?);
    Some(format!(
        "active block: {} left; {} output tokens and ${usd:.3} a minute, {} by {} at this rate",
        format::hours(block.minutes_left?),
        format::thousands(tokens.round() as u64),
        money(projected),
        format_time(block.end, zone, "%H:%M"),
    ))
}

/// Use of the limit by the active block, now and projected to its end.
fn limit_note(report: &UsageReport, zone: &TimeZone, limit: u64) -> Option<String> {
    let row = active_block(report)?;
    let (block, used, projected) = (row.block?, row.tokens.total(), row.projected(row.tokens.total() as f64)?);
    let warning = if projected > limit as f64 { ": more than the limit" } else { "" };
    Some(format!(
        "limit: {} of {} tokens used ({}), {} ({}) by {} at this rate{warning}",
        format::tokens(used),
        format::tokens(limit),
        format_percent(used as f64, limit),
        format::tokens(projected.round() as u64),
        format_percent(projected, limit),
        format_time(block.end, zone, "%H:%M"),
    ))
}
