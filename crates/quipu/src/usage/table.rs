//! The tables of `quipu usage`, and what stands under them.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_index::{Listed, Report, Row};
use quipu_render::clean;

use crate::args::Group;
use crate::format::{self, count, money};
use crate::output::Output;
use crate::prices;
use crate::table::{Column, Table};

/// The table of a report that has rows.
pub(super) fn table(report: &Report, group: Group, sessions: &[Listed], zone: &TimeZone, output: &Output) -> String {
    let names = Names::new(report, group, sessions);
    let mut table = Table::new(columns(group, names.has_active_block));
    for row in &report.rows {
        table.row(cells(names.lead(row, zone), row, names.trail(row)));
        for (model, part) in &row.breakdown {
            let mut lead = vec![String::new(); names.lead(row, zone).len()];
            lead[0] = format!("└ {}", format::model(model));
            table.row(cells(lead, part, Some(String::new())));
        }
    }
    let mut lead = vec![String::new(); lead_columns(group, names.has_active_block).len()];
    lead[0] = "total".to_owned();
    table.total(cells(lead, &report.totals, Some(String::new())));
    table.render(output)
}

fn lead_columns(group: Group, has_active_block: bool) -> Vec<Column> {
    match group {
        Group::Daily => vec![Column::text("day")],
        Group::Weekly => vec![Column::text("week of")],
        Group::Monthly => vec![Column::text("month")],
        Group::Model => vec![Column::text("model")],
        Group::Project => vec![Column::text("project").flexible(20)],
        Group::Tool => vec![Column::text("tool").flexible(20)],
        Group::Agent => vec![Column::text("agent").flexible(20)],
        Group::Block if has_active_block => vec![Column::text("block"), Column::text("left").drop_rank(1)],
        Group::Block => vec![Column::text("block")],
        Group::Session | Group::Turn => {
            let first = if group == Group::Session { "session" } else { "turn" };
            vec![
                Column::text(first),
                Column::text("last").drop_rank(1),
                Column::text("project").drop_rank(5).flexible(12),
            ]
        }
    }
}

fn columns(group: Group, has_active_block: bool) -> Vec<Column> {
    let mut columns = lead_columns(group, has_active_block);
    columns.extend([
        Column::number("messages").drop_rank(4),
        Column::number("input").drop_rank(3),
        Column::number("output").drop_rank(1),
        Column::number("cache write").drop_rank(3),
        Column::number("cache read").drop_rank(2),
        Column::number("cost"),
    ]);
    columns.extend(match group {
        Group::Model => None,
        Group::Session | Group::Turn => Some(Column::text("title").drop_rank(6).flexible(16)),
        _ => Some(Column::text("models").drop_rank(5).flexible(16)),
    });
    columns
}

fn cells(lead: Vec<String>, row: &Row, trail: Option<String>) -> Vec<String> {
    let tokens = &row.tokens;
    let mut cells = lead;
    cells.extend([
        format::thousands(row.messages),
        format::tokens(tokens.input),
        format::tokens(tokens.output),
        format::tokens(tokens.cache_write_5m + tokens.cache_write_1h),
        format::tokens(tokens.cache_read),
        format::cost(row.cost.as_f64(), row.unpriced.len()),
    ]);
    cells.push(trail.unwrap_or_else(|| {
        let models: BTreeSet<&str> = row.models.iter().map(|model| format::model(model)).collect();
        models.into_iter().collect::<Vec<_>>().join(", ")
    }));
    cells
}

/// What rows are called.
struct Names<'a> {
    group: Group,
    sessions: HashMap<&'a str, &'a Listed>,
    /// Projects by their folder.
    projects: HashMap<&'a str, String>,
    has_active_block: bool,
}

impl<'a> Names<'a> {
    fn new(report: &Report, group: Group, sessions: &'a [Listed]) -> Self {
        let mut names = Self {
            group,
            sessions: sessions.iter().rev().map(|session| (session.session_id.as_str(), session)).collect(),
            projects: HashMap::new(),
            has_active_block: report.rows.iter().any(|row| !left(row).is_empty()),
        };
        for session in sessions {
            let name = format::project(session.cwd.as_deref(), &session.project);
            names.projects.entry(&session.project).or_insert_with(|| name.to_owned());
        }
        // Two projects of one name are told apart by their whole path.
        let shown = |name: &str| {
            report
                .rows
                .iter()
                .filter_map(|row| names.projects.get(row.key.as_deref()?))
                .filter(|other| *other == name)
                .count()
        };
        let twice: Vec<&str> =
            names.projects.iter().filter(|(_, name)| shown(name) > 1).map(|(folder, _)| *folder).collect();
        for folder in twice {
            let cwd = sessions.iter().find(|session| session.project == folder).and_then(|session| session.cwd.clone());
            names.projects.insert(folder, cwd.unwrap_or_else(|| folder.to_owned()));
        }
        names
    }

    /// The cells before the numbers.
    fn lead(&self, row: &Row, zone: &TimeZone) -> Vec<String> {
        let key = row.key.as_deref().unwrap_or_default();
        match self.group {
            Group::Project => vec![self.projects.get(key).cloned().unwrap_or_else(|| key.to_owned())],
            Group::Block if self.has_active_block => vec![block(row, key, zone), left(row)],
            Group::Block => vec![block(row, key, zone)],
            Group::Session | Group::Turn => {
                let (session, turn) = match self.group {
                    Group::Turn => key.split_at(key.rfind(':').unwrap_or(key.len())),
                    _ => (key, ""),
                };
                let short = session.get(..8).unwrap_or(session);
                let last = row.span.map(|(_, last)| local(last, zone, "%Y-%m-%d %H:%M")).unwrap_or_default();
                let project = self.sessions.get(session).and_then(|session| self.projects.get(&*session.project));
                vec![format!("{short}{turn}"), last, project.cloned().unwrap_or_default()]
            }
            _ => vec![key.to_owned()],
        }
    }

    /// The cell after the numbers, where it is not the models.
    fn trail(&self, row: &Row) -> Option<String> {
        let key = row.key.as_deref().unwrap_or_default();
        let session = match self.group {
            Group::Session => key,
            Group::Turn => key.rsplit_once(':').map_or(key, |(session, _)| session),
            _ => return None,
        };
        let title =
            self.sessions.get(session).and_then(|session| session.title.as_ref().or(session.first_prompt.as_ref()));
        let gone = if row.vanished_messages == row.messages { "(deleted) " } else { "" };
        Some(format!("{gone}{}", title.map_or("", String::as_str)))
    }
}

fn block(row: &Row, key: &str, zone: &TimeZone) -> String {
    let Some(block) = &row.block else { return key.to_owned() };
    format!("{}–{}", local(block.start, zone, "%Y-%m-%d %H:%M"), local(block.end, zone, "%H:%M"))
}

fn left(row: &Row) -> String {
    row.block.and_then(|block| block.minutes_left).map(duration).unwrap_or_default()
}

/// Minutes as hours and minutes: `2h 10m`.
pub(crate) fn duration(minutes: f64) -> String {
    let minutes = minutes.floor() as u64;
    if minutes < 60 { format!("{minutes}m") } else { format!("{}h {:02}m", minutes / 60, minutes % 60) }
}

fn local(time: Timestamp, zone: &TimeZone, form: &str) -> String {
    time.to_zoned(zone.clone()).strftime(form).to_string()
}

/// What to know beside the table. `has_copies` when sessions hold messages of others.
pub(super) fn notes(report: &Report, group: Group, zone: &TimeZone, has_copies: bool) -> Vec<String> {
    let totals = &report.totals;
    let mut notes = vec![format!("the prompt cache saved {}", money(totals.cache_savings.as_f64()))];
    if totals.web_searches > 0 {
        notes[0].push_str(&format!("; {}", count(totals.web_searches as usize, "web search")));
    }
    if group == Group::Block {
        notes.extend(block_note(report, zone));
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
            .map(|(name, unknown)| format!("{}, {}", clean(name), count(unknown.messages as usize, "message")));
        let place = prices::path().map_or_else(|| "prices.toml".to_owned(), |path| path.display().to_string());
        notes.push(format!(
            "no price for {}: their tokens count, their cost is unknown; add prices in {}",
            names.collect::<Vec<_>>().join("; "),
            clean(&place)
        ));
    }
    notes
}

fn block_note(report: &Report, zone: &TimeZone) -> Option<String> {
    let active = report.rows.iter().find(|row| row.block.is_some_and(|block| block.minutes_left.is_some()));
    let Some(row) = active else {
        let end = report.rows.iter().rev().find_map(|row| row.block)?.end;
        return Some(format!("no block is active; the last one ended {}", local(end, zone, "%Y-%m-%d %H:%M")));
    };
    let (block, (tokens, usd), (_, projected)) = (row.block?, row.rate()?, row.projection()?);
    Some(format!(
        "active block: {} left; {} output tokens and ${usd:.3} a minute, {} by {} at this rate",
        duration(block.minutes_left?),
        format::thousands(tokens.round() as u64),
        money(projected),
        local(block.end, zone, "%H:%M"),
    ))
}
