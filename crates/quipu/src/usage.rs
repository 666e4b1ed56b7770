//! `quipu usage`

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::Result;
use jiff::tz::TimeZone;
use quipu_index::{By, Catalogue, Counter, Ledger, Listed, Report, Used, Window, kept_usage, scan};
use quipu_transcript::{Outline, find};
use serde_json::{Map, Value, json};

use crate::args::{Global, Group, UsageArgs};
use crate::catalogue;
use crate::error::{Failure, note, warn, warn_all};
use crate::filter::Filter;
use crate::format::{count, money};
use crate::output::Output;
use crate::parallel;
use crate::prices;
use crate::sessions::claude_dirs;
use crate::time::now;
use table::UsageTable;

mod limit;
mod table;

pub(crate) use limit::TokenLimit;

pub(crate) fn run(args: &UsageArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    if args.token_limit.is_some() && args.group != Group::Block {
        let hint = "run `quipu usage block --token-limit max`";
        return Err(Failure::usage("usage.token_limit", "--token-limit is for blocks", hint));
    }
    let zone = args.timezone.clone().unwrap_or_else(TimeZone::system);
    let filter = args.filters.resolve(&now().with_time_zone(zone.clone()), global)?;
    let window = Window { since: filter.since, until: filter.until, zone };
    let by = by(args.group);
    let counter = || match args.breakdown {
        true => Counter::new(by, &window).with_breakdown(),
        false => Counter::new(by, &window),
    };
    let (report, sessions) = if args.no_index {
        (from_files(by, counter(), &filter, global)?, Vec::new())
    } else {
        catalogue::with(global, |catalogue| from_catalogue(catalogue, by, counter(), &window, &filter))?
    };
    let limit = args.token_limit.and_then(|limit| limit.resolve(&report));
    if args.token_limit.is_some() && limit.is_none() {
        note(global, &"no block of that time is over, so `--token-limit max` has nothing to compare with");
    }
    if global.json {
        output.json(&document(&report, args.group, &sessions, limit)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if report.rows.is_empty() {
        note(global, &"nothing was used in that time");
        return Ok(ExitCode::SUCCESS);
    }
    let table = UsageTable::new(&report, args.group, &sessions, &window.zone, limit).render(output);
    let notes = table::notes(&report, args.group, &window.zone, copies(&report, args, &sessions), limit);
    if output.is_terminal {
        output.text(&format!("{table}\n{}\n", notes.join("\n")))?;
    } else {
        output.text(&table)?;
        notes.iter().for_each(|text| note(global, text));
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts what the catalogue knows.
pub(crate) fn report(catalogue: &Catalogue, by: By, window: &Window) -> Result<Report> {
    let mut counter = Counter::new(by, window);
    catalogue.each_used(by, window, |used| counter.add(used))?;
    Ok(counter.report(now().timestamp()))
}

/// Counts what the catalogue knows of the selected sessions and models; with the sessions
/// where rows are named by them.
fn from_catalogue(
    catalogue: &Catalogue,
    by: By,
    mut counter: Counter<'_>,
    window: &Window,
    filter: &Filter,
) -> Result<(Report, Vec<Listed>)> {
    let mut sessions = Vec::new();
    if filter.needs_cwd() || matches!(by, By::Session | By::Turn | By::Project) {
        sessions = catalogue.sessions()?;
        sessions.extend(catalogue.vanished()?);
    }
    let cwds = sessions.iter().map(|row| ((row.project.clone(), row.session_id.clone()), row.cwd.clone())).collect();
    catalogue.each_used(by, window, |used| add(&mut counter, used, filter, &cwds))?;
    Ok((counter.report(now().timestamp()), sessions))
}

/// Counts the selected sessions and models straight from the files.
fn from_files(by: By, mut counter: Counter<'_>, filter: &Filter, global: &Global) -> Result<Report> {
    let prices = prices::load()?;
    let dirs = claude_dirs(global);
    let (projects, mut errors) = find::projects(&dirs);
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
    warn_all(&errors);
    match catalogue::data_folder().map(|folder| kept_usage(&folder, &dirs)) {
        Some(Ok(kept)) => sessions.extend(kept),
        Some(Err(error)) => warn(&format!("cannot read the usage of deleted sessions: {error}")),
        None => {}
    }
    let everything = Window::default();
    let mut vanished = Counter::new(By::Model, &everything);
    Ledger::new(sessions).each(&prices, |used| match used.is_vanished {
        true => vanished.add(used),
        false => add(&mut counter, used, filter, &cwds),
    });
    let vanished = vanished.report(now().timestamp()).totals;
    if vanished.messages > 0 {
        let (messages, cost) = (count(vanished.messages as usize, "message"), money(vanished.cost.as_f64()));
        warn(&format!("not counted: {messages} ({cost}) of deleted sessions; leave out --no-index to count them"));
    }
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
        Group::Tool => By::Tool,
        Group::Agent => By::Agent,
        Group::Turn => By::Turn,
    }
}

/// Whether `ls` shows more money than the report, because several sessions hold the same
/// messages and all of them are in it.
fn copies(report: &Report, args: &UsageArgs, sessions: &[Listed]) -> bool {
    let all: f64 = sessions.iter().map(|session| session.cost_usd).sum();
    args.group == Group::Session && args.filters.is_empty() && all > report.totals.cost.as_f64() + 0.005
}

/// The report as JSON: each row also has its key under a name of its own, and what is
/// known of its session.
fn document(report: &Report, group: Group, sessions: &[Listed], limit: Option<u64>) -> Result<Value> {
    let mut document = serde_json::to_value(report)?;
    let sessions: HashMap<&str, &Listed> =
        sessions.iter().rev().map(|session| (session.session_id.as_str(), session)).collect();
    let rows = document["rows"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    for (row, counted) in rows.zip(&report.rows) {
        let key = row["key"].as_str().unwrap_or_default().to_owned();
        let mut more = |name: &str, value: Value| {
            row.entry(name.to_owned()).or_insert(value);
        };
        match group {
            Group::Daily => more("date", json!(key)),
            Group::Weekly => more("week", json!(key)),
            Group::Monthly => more("month", json!(key)),
            Group::Model => more("model", json!(key)),
            Group::Tool => more("tool", json!(key)),
            Group::Agent => more("agent", json!(key)),
            Group::Block => {
                if let Some(limit) = limit {
                    more("token_limit", json!(limit));
                    more("token_limit_used", json!(counted.tokens.total() as f64 / limit as f64));
                }
            }
            Group::Project => {
                let cwd = sessions.values().find(|session| session.project == key).and_then(|s| s.cwd.clone());
                more("project", json!(key));
                more("cwd", json!(cwd));
            }
            Group::Session => describe(row, &key, &sessions),
            Group::Turn => {
                let (session, turn) = key.rsplit_once(':').unwrap_or((&key, "0"));
                more("turn", json!(turn.parse::<u32>().unwrap_or_default()));
                describe(row, session, &sessions);
            }
        }
    }
    Ok(document)
}

fn describe(row: &mut Map<String, Value>, id: &str, sessions: &HashMap<&str, &Listed>) {
    row.insert("session_id".to_owned(), json!(id));
    if let Some(session) = sessions.get(id) {
        row.insert("project".to_owned(), json!(session.project));
        row.insert("cwd".to_owned(), json!(session.cwd));
        row.insert("title".to_owned(), json!(session.title.as_ref().or(session.first_prompt.as_ref())));
    }
}
