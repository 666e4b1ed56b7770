//! `quipu usage`

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::Result;
use jiff::tz::TimeZone;
use quipu_index::{
    Catalogue, GroupBy, ListedSession, TimeWindow, UsageCounter, UsageLedger, UsageRecord, UsageReport, archived_usage,
    scan_session, usage_json,
};
use quipu_transcript::{SessionOverview, find};

use crate::args::{UsageArgs, UsageGroup};
use crate::catalogue;
use crate::claude_dirs::claude_dirs;
use crate::error::{Failure, print_note, print_warning, print_warnings};
use crate::filter::Filter;
use crate::format::{count, money};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::parallel;
use crate::prices;
use crate::time::now;
use usage_table::UsageTable;

mod usage_table;

pub(crate) fn run(args: &UsageArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    if args.token_limit.is_some() && args.group != UsageGroup::Block {
        let hint = "run `quipu usage block --token-limit max`";
        return Err(Failure::usage("usage.token_limit", "--token-limit is for blocks", hint));
    }
    let zone = args.timezone.clone().unwrap_or_else(TimeZone::system);
    let filter = args.filters.resolve(&now().with_time_zone(zone.clone()), global)?;
    let window = TimeWindow { since: filter.since, until: filter.until, zone };
    let by = group_by(args.group);
    let counter = || match args.breakdown {
        true => UsageCounter::new(by, &window).with_breakdown(),
        false => UsageCounter::new(by, &window),
    };
    let (report, sessions) = if args.no_index {
        (count_in_files(by, counter(), &filter, global)?, Vec::new())
    } else {
        catalogue::with_catalogue(global, |catalogue| count_in_catalogue(catalogue, by, counter(), &window, &filter))?
    };
    let limit = args.token_limit.and_then(|limit| limit.resolve(&report));
    if args.token_limit.is_some() && limit.is_none() {
        print_note(global, &"no block of that time is over, so `--token-limit max` has nothing to compare with");
    }
    if global.json {
        output.print_json(&usage_json(&report, by, &sessions, limit))?;
        return Ok(ExitCode::SUCCESS);
    }
    if report.rows.is_empty() {
        print_note(global, &"nothing was used in that time");
        return Ok(ExitCode::SUCCESS);
    }
    let table = UsageTable::new(&report, args.group, &sessions, &window.zone, limit).render(output);
    let notes =
        usage_table::report_notes(&report, args.group, &window.zone, has_copies(&report, args, &sessions), limit);
    if output.is_terminal {
        output.print_text(&format!("{table}\n{}\n", notes.join("\n")))?;
    } else {
        output.print_text(&table)?;
        notes.iter().for_each(|text| print_note(global, text));
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts the usage of all sessions in the catalogue.
pub(crate) fn usage_report(catalogue: &Catalogue, by: GroupBy, window: &TimeWindow) -> Result<UsageReport> {
    let mut counter = UsageCounter::new(by, window);
    catalogue.for_each_usage(by, window, |usage| counter.add(usage))?;
    Ok(counter.report(now().timestamp()))
}

/// Counts the usage of the selected sessions and models in the catalogue. Also returns the
/// sessions if they are needed to name the rows.
fn count_in_catalogue(
    catalogue: &Catalogue,
    by: GroupBy,
    mut counter: UsageCounter<'_>,
    window: &TimeWindow,
    filter: &Filter,
) -> Result<(UsageReport, Vec<ListedSession>)> {
    let mut sessions = Vec::new();
    if filter.needs_cwd() || matches!(by, GroupBy::Session | GroupBy::Turn | GroupBy::Project) {
        sessions = catalogue.sessions()?;
        sessions.extend(catalogue.vanished_sessions()?);
    }
    let cwds = sessions.iter().map(|row| ((row.project.clone(), row.session_id.clone()), row.cwd.clone())).collect();
    catalogue.for_each_usage(by, window, |usage| add_selected(&mut counter, usage, filter, &cwds))?;
    Ok((counter.report(now().timestamp()), sessions))
}

/// Counts the usage of the selected sessions and models by reading the files.
fn count_in_files(
    by: GroupBy,
    mut counter: UsageCounter<'_>,
    filter: &Filter,
    global: &GlobalArgs,
) -> Result<UsageReport> {
    let prices = prices::load()?;
    let dirs = claude_dirs(global);
    let (projects, mut errors) = find::list_project_folders(&dirs);
    let (mut sessions, mut cwds) = (Vec::new(), CwdBySession::new());
    // One project at a time, so that not all lists of files are in memory together.
    for project in &projects {
        let (session_files, unread) = find::list_session_files(std::slice::from_ref(project), &());
        errors.extend(unread);
        for (session, broken) in
            parallel::map_files(&session_files, "counting", global, |files| scan_session(files, by))
        {
            sessions.push(session);
            errors.extend(broken);
        }
        for files in session_files.iter().filter(|_| filter.needs_cwd()) {
            let cwd = SessionOverview::read_both_ends(&files.main_file().path).ok().and_then(|overview| overview.cwd);
            cwds.insert((files.project.to_string(), files.id.to_string()), cwd);
        }
    }
    print_warnings(&errors);
    match catalogue::data_folder().map(|folder| archived_usage(&folder, &dirs)) {
        Some(Ok(kept)) => sessions.extend(kept),
        Some(Err(error)) => print_warning(&format!("cannot read the usage of deleted sessions: {error}")),
        None => {}
    }
    let everything = TimeWindow::default();
    let mut vanished = UsageCounter::new(GroupBy::Model, &everything);
    UsageLedger::new(sessions).for_each_usage(&prices, |usage| match usage.is_vanished {
        true => vanished.add(usage),
        false => add_selected(&mut counter, usage, filter, &cwds),
    });
    let vanished = vanished.report(now().timestamp()).totals;
    if vanished.messages > 0 {
        let (messages, cost) = (count(vanished.messages as usize, "message"), money(vanished.cost.as_f64()));
        print_warning(&format!(
            "not counted: {messages} ({cost}) of deleted sessions; leave out --no-index to count them"
        ));
    }
    Ok(counter.report(now().timestamp()))
}

/// Working directories by project folder and session id.
type CwdBySession = HashMap<(String, String), Option<String>>;

fn add_selected(counter: &mut UsageCounter<'_>, usage: &UsageRecord<'_>, filter: &Filter, cwds: &CwdBySession) {
    let cwd = || cwds.get(&(usage.project.to_owned(), usage.session.to_owned())).cloned().flatten();
    if filter.matches_model(usage.model) && filter.matches_session(usage.project, usage.session, cwd) {
        counter.add(usage);
    }
}

fn group_by(group: UsageGroup) -> GroupBy {
    match group {
        UsageGroup::Daily => GroupBy::Day,
        UsageGroup::Weekly => GroupBy::Week,
        UsageGroup::Monthly => GroupBy::Month,
        UsageGroup::Session => GroupBy::Session,
        UsageGroup::Model => GroupBy::Model,
        UsageGroup::Project => GroupBy::Project,
        UsageGroup::Block => GroupBy::Block,
        UsageGroup::Tool => GroupBy::Tool,
        UsageGroup::Agent => GroupBy::Agent,
        UsageGroup::Turn => GroupBy::Turn,
    }
}

/// Whether `quipu ls` shows a higher cost than the report, because several sessions contain the
/// same messages.
fn has_copies(report: &UsageReport, args: &UsageArgs, sessions: &[ListedSession]) -> bool {
    let all: f64 = sessions.iter().map(|session| session.cost_usd).sum();
    args.group == UsageGroup::Session && args.filters.is_empty() && all > report.totals.cost.as_f64() + 0.005
}
