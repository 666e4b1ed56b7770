//! `quipu usage`

use std::collections::HashMap;
use std::process::ExitCode;

use anstyle::Style;
use anyhow::Result;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use jiff::tz::TimeZone;
use quipu_index::{By, Catalogue, Counter, Ledger, Report, Row, Used, Window, scan};
use quipu_render::clean;
use quipu_transcript::{Outline, find};

use crate::args::{Global, Group, UsageArgs};
use crate::catalogue::refreshed;
use crate::error::warn;
use crate::filter::Filter;
use crate::ls::short;
use crate::output::Output;
use crate::parallel;
use crate::prices;
use crate::sessions::claude_dirs;
use crate::time::now;

pub(crate) fn run(args: &UsageArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let zone = args.timezone.clone().unwrap_or_else(TimeZone::system);
    let filter = args.filters.resolve(&now().with_time_zone(zone.clone()), global)?;
    let window = Window { since: filter.since, until: filter.until, zone };
    let by = by(args.group);
    let report = if args.no_index {
        from_files(by, &window, &filter, global)?
    } else {
        from_catalogue(&refreshed(global)?.catalogue, by, &window, &filter)?
    };
    if global.json {
        output.json(&report)?;
    } else {
        output.text(&table(&report, args.group, output))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts what the catalogue knows.
pub(crate) fn report(catalogue: &Catalogue, by: By, window: &Window) -> Result<Report> {
    let mut counter = Counter::new(by, window);
    catalogue.each_used(window, |used| counter.add(used))?;
    Ok(counter.report())
}

/// Counts what the catalogue knows of the selected sessions and models.
fn from_catalogue(catalogue: &Catalogue, by: By, window: &Window, filter: &Filter) -> Result<Report> {
    let mut cwds = Cwds::new();
    if filter.needs_cwd() {
        cwds.extend(catalogue.sessions()?.into_iter().map(|row| ((row.project, row.session_id), row.cwd)));
    }
    let mut counter = Counter::new(by, window);
    catalogue.each_used(window, |used| add(&mut counter, used, filter, &cwds))?;
    Ok(counter.report())
}

/// Counts the selected sessions and models straight from the files.
fn from_files(by: By, window: &Window, filter: &Filter, global: &Global) -> Result<Report> {
    let prices = prices::load()?;
    let (projects, mut errors) = find::projects(&claude_dirs(global));
    let (mut sessions, mut cwds) = (Vec::new(), Cwds::new());
    // A project at a time: their lists of files need not be held together.
    for project in &projects {
        let (histories, unread) = find::histories(std::slice::from_ref(project), &());
        errors.extend(unread);
        for (session, broken) in parallel::each(&histories, "counting", global, scan) {
            sessions.push(session);
            errors.extend(broken);
        }
        for history in histories.iter().filter(|_| filter.needs_cwd()) {
            let cwd = Outline::read(&history.main().path).ok().and_then(|outline| outline.cwd);
            cwds.insert((history.project.to_string(), history.id.to_string()), cwd);
        }
    }
    errors.iter().for_each(|error| warn(error));
    let mut counter = Counter::new(by, window);
    Ledger::new(sessions).each(&prices, |used| add(&mut counter, used, filter, &cwds));
    Ok(counter.report())
}

/// Working directories by project folder and session.
type Cwds = HashMap<(String, String), Option<String>>;

fn add(counter: &mut Counter<'_>, used: &Used<'_>, filter: &Filter, cwds: &Cwds) {
    let cwd = || cwds.get(&(used.project.to_owned(), used.session.to_owned())).cloned().flatten();
    if filter.matches_model(used.model) && filter.matches_session(used.project, used.session, cwd) {
        counter.add(used);
    }
}

fn by(group: Group) -> By {
    match group {
        Group::Daily => By::Day,
        Group::Weekly => By::Week,
        Group::Monthly => By::Month,
        Group::Session => By::Session,
        Group::Model => By::Model,
        Group::Project => By::Project,
        Group::Block => By::Block,
    }
}

fn table(report: &Report, group: Group, output: &Output) -> String {
    if report.rows.is_empty() {
        return "nothing was used in that time\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let width = u16::try_from(output.width).unwrap_or(100);
    table.set_width(if output.is_terminal { width } else { width.max(120) });
    let first = match group {
        Group::Daily => "day",
        Group::Weekly => "week of",
        Group::Monthly => "month",
        Group::Session => "session",
        Group::Model => "model",
        Group::Project => "project",
        Group::Block => "block (UTC)",
    };
    table.set_header([first, "messages", "input", "output", "cache write", "cache read", "cost", "models"]);
    for row in &report.rows {
        table.add_row(cells(row.key.as_deref().unwrap_or_default(), row, group != Group::Model));
    }
    table.add_row(cells("total", &report.totals, false));
    let plain = table.to_string();
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    let bold = if output.color { Style::new().bold() } else { Style::new() };
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let strong = n == 0 || n + 1 == lines.len();
        text.push_str(&if strong { format!("{bold}{line}{bold:#}\n") } else { format!("{line}\n") });
    }
    text.push_str(&notes(report, group));
    text
}

fn cells(key: &str, row: &Row, with_models: bool) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let tokens = &row.tokens;
    let money = format!("${:.2}{}", row.cost.as_f64(), if row.unpriced_models.is_empty() { "" } else { " + ?" });
    let models = row.models.iter().map(|model| model.trim_start_matches("claude-")).collect::<Vec<_>>().join(", ");
    vec![
        Cell::new(clean(key)),
        right(row.messages.to_string()),
        right(short(tokens.input)),
        right(short(tokens.output)),
        right(short(tokens.cache_write_5m + tokens.cache_write_1h)),
        right(short(tokens.cache_read)),
        right(money),
        Cell::new(if with_models { clean(&models).into_owned() } else { String::new() }),
    ]
}

/// What stands under the table.
fn notes(report: &Report, group: Group) -> String {
    let totals = &report.totals;
    let mut text = format!("\nthe prompt cache saved ${:.2}", totals.cache_savings.as_f64());
    if totals.web_searches > 0 {
        text.push_str(&format!("; {} web searches", totals.web_searches));
    }
    text.push('\n');
    if group == Group::Block
        && let Some(row) = report.rows.last()
        && let Some((first, last)) = row.span
    {
        let minutes = (last.duration_since(first).as_secs_f64() / 60.0).max(1.0);
        let tokens = row.tokens.output as f64 / minutes;
        text.push_str(&format!(
            "latest block: {tokens:.0} output tokens and ${:.3} a minute\n",
            row.cost.as_f64() / minutes
        ));
    }
    if !totals.unpriced_models.is_empty() {
        let names = totals.unpriced_models.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("no price for {names}: their tokens count, their money is not known\n"));
    }
    text
}
