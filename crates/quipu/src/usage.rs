//! `quipu usage`

use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;

use anyhow::Result;
use jiff::tz::TimeZone;
use quipu_index::{By, Catalogue, Counter, Ledger, Report, Row, Used, Window, scan};
use quipu_render::clean;
use quipu_transcript::{Outline, find};

use crate::args::{Global, Group, UsageArgs};
use crate::catalogue::refreshed;
use crate::error::warn;
use crate::filter::Filter;
use crate::format::{self, count, money};
use crate::output::Output;
use crate::parallel;
use crate::prices;
use crate::sessions::claude_dirs;
use crate::table::{Column, Table};
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
    catalogue.each_used(by, window, |used| counter.add(used))?;
    Ok(counter.report(now().timestamp()))
}

/// Counts what the catalogue knows of the selected sessions and models.
fn from_catalogue(catalogue: &Catalogue, by: By, window: &Window, filter: &Filter) -> Result<Report> {
    let mut cwds = Cwds::new();
    if filter.needs_cwd() {
        cwds.extend(catalogue.sessions()?.into_iter().map(|row| ((row.project, row.session_id), row.cwd)));
    }
    let mut counter = Counter::new(by, window);
    catalogue.each_used(by, window, |used| add(&mut counter, used, filter, &cwds))?;
    Ok(counter.report(now().timestamp()))
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
        for (session, broken) in parallel::each(&histories, "counting", global, |history| scan(history, by)) {
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
    Ok(counter.report(now().timestamp()))
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
    let first = match group {
        Group::Daily => "day",
        Group::Weekly => "week of",
        Group::Monthly => "month",
        Group::Session => "session",
        Group::Model => "model",
        Group::Project => "project",
        Group::Block => "block (UTC)",
    };
    let mut columns = vec![
        Column::text(first),
        Column::number("messages").drop_rank(4),
        Column::number("input").drop_rank(3),
        Column::number("output").drop_rank(1),
        Column::number("cache write").drop_rank(3),
        Column::number("cache read").drop_rank(2),
        Column::number("cost"),
        Column::text("models").drop_rank(5).flexible(16),
    ];
    if group == Group::Model {
        columns.pop();
    }
    let mut table = Table::new(columns);
    for row in &report.rows {
        table.row(cells(row.key.as_deref().unwrap_or_default(), row));
    }
    table.total(cells("total", &Row { models: BTreeSet::new(), ..report.totals.clone() }));
    table.render(output) + &notes(report, group)
}

fn cells(key: &str, row: &Row) -> [String; 8] {
    let tokens = &row.tokens;
    let models: BTreeSet<&str> = row.models.iter().map(|model| format::model(model)).collect();
    [
        key.to_owned(),
        format::thousands(row.messages),
        format::tokens(tokens.input),
        format::tokens(tokens.output),
        format::tokens(tokens.cache_write_5m + tokens.cache_write_1h),
        format::tokens(tokens.cache_read),
        format::cost(row.cost.as_f64(), row.unpriced.len()),
        models.into_iter().collect::<Vec<_>>().join(", "),
    ]
}

/// What stands under the table.
fn notes(report: &Report, group: Group) -> String {
    let totals = &report.totals;
    let mut text = format!("\nthe prompt cache saved {}", money(totals.cache_savings.as_f64()));
    if totals.web_searches > 0 {
        text.push_str(&format!("; {}", count(totals.web_searches as usize, "web search")));
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
    if !totals.unpriced.is_empty() {
        let names = totals.unpriced.keys().map(|name| clean(name)).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("no price for {names}: their tokens count, their money is not known\n"));
    }
    text
}
