//! `quipu` without a command: an overview of sessions, cost, projects and models.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use jiff::civil::Date;
use jiff::{SignedDuration, Span};
use quipu_conversation::price::Usd;
use quipu_index::{Catalogue, GroupBy, ListedSession, TimeWindow, UsageRow};
use quipu_render::sanitize;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::catalogue;
use crate::claude_dirs::claude_dirs;
use crate::cleanup::UpcomingCleanup;
use crate::format::{self, money};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::session_table::session_table;
use crate::time::now;
use crate::usage::usage_report;

/// A session with a message this recent counts as active.
const ACTIVE_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// Days in the chart.
const CHART_DAYS: i32 = 14;

pub(crate) fn run(global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    catalogue::with_catalogue(global, |catalogue| print_overview(catalogue, global, output))
}

fn print_overview(catalogue: &Catalogue, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let sessions = catalogue.sessions()?;
    if sessions.is_empty() && !global.json {
        let looked = claude_dirs(global).iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        output.print_text(&format!(
            "No sessions under {}.\n\n  quipu --claude-dir DIR     sessions kept elsewhere\n  \
             quipu show FILE            a session file, or `-` for a live stream\n  quipu --help\n",
            sanitize(&looked)
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = now();
    let today = now.date();
    let days = usage_report(catalogue, GroupBy::Day, &TimeWindow::default())?;
    let by_day: BTreeMap<&str, &UsageRow> =
        days.rows.iter().filter_map(|row| Some((row.key.as_deref()?, row))).collect();
    let cost = |day: Date| by_day.get(&*day.to_string()).map_or(0.0, |row| row.cost.as_f64());
    // Messages without a time or with one in the future count for no week or month.
    let since = |first: Date| -> f64 {
        let (first, last) = (first.to_string(), today.to_string());
        let days = by_day.range(&*first..=&*last);
        days.map(|(_, row)| row.cost).sum::<Usd>().as_f64()
    };
    let monday = today.saturating_sub(Span::new().days(today.weekday().to_monday_zero_offset()));
    let spend = [("today", cost(today)), ("this week", since(monday)), ("this month", since(today.first_of_month()))];
    let (recent, present) = ((now.timestamp() - ACTIVE_WITHIN).as_nanosecond(), now.timestamp().as_nanosecond());
    // By the time of its last message: a file that was just copied has old messages.
    let is_active = |session: &ListedSession| (recent..=present).contains(&session.last_active_ns());
    let active: Vec<_> = sessions.iter().filter(|session| is_active(session)).map(|s| s.session_id.as_str()).collect();
    let month =
        TimeWindow { since: now.checked_sub(Span::new().days(30))?.timestamp().into(), ..TimeWindow::default() };
    let top = |by: GroupBy| -> Vec<(String, f64)> {
        let mut rows: Vec<_> = usage_report(catalogue, by, &month)
            .unwrap_or_default()
            .rows
            .into_iter()
            .filter_map(|row| Some((row.key.clone()?, row.cost.as_f64())))
            .filter(|(key, cost)| !key.is_empty() && *cost > 0.0)
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows.truncate(3);
        rows
    };
    let name = |folder: &str| {
        let cwd = sessions.iter().find(|session| session.project == folder).and_then(|session| session.cwd.as_deref());
        format::project(cwd, folder).to_owned()
    };
    let projects: Vec<_> =
        top(GroupBy::Project).into_iter().map(|(folder, usd)| (name(&folder), folder, usd)).collect();
    let models = top(GroupBy::Model);
    let latest = &sessions[..sessions.len().min(5)];
    let cleanup = UpcomingCleanup::find(&claude_dirs(global), &sessions);
    if global.json {
        let spend: BTreeMap<_, _> = spend.iter().map(|(name, usd)| (name.replace(' ', "_"), usd)).collect();
        output.print_json(&json!({
            "sessions": sessions.len(), "live": active, "spend_usd": spend, "total": days.totals,
            "top_projects": projects.iter().map(|(_, key, usd)| json!({"project": key, "cost_usd": usd})).collect::<Vec<_>>(),
            "top_models": models.iter().map(|(key, usd)| json!({"model": key, "cost_usd": usd})).collect::<Vec<_>>(),
            "latest": latest, "cleanup": cleanup,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (bold, dim) = (output.style(Style::new().bold()), output.style(Style::new().dimmed()));
    let green = output.style(AnsiColor::Green.on_default());
    let going = match active.len() {
        0 => String::new(),
        n => format!(", {green}{n} active in the last {} minutes{green:#}", ACTIVE_WITHIN.as_mins()),
    };
    let mut text = format!("{bold}{}{bold:#}{going}\n\n", format::count(sessions.len(), "session"));
    let mut amounts: Vec<_> = spend.iter().map(|(name, usd)| format!("{name} {bold}{}{bold:#}", money(*usd))).collect();
    let chart: Vec<f64> = (0..CHART_DAYS).rev().map(|ago| cost(today.saturating_sub(Span::new().days(ago)))).collect();
    amounts.push(format!("{dim}{CHART_DAYS} days{dim:#} {}", bar_chart(&chart)));
    text.push_str(&wrap_items("spend", &amounts, "   ", output));
    let projects: Vec<_> = projects.into_iter().map(|(name, _, usd)| (name, usd)).collect();
    let models: Vec<_> = models.iter().map(|(key, usd)| (format::model(key).to_owned(), *usd)).collect();
    for (name, rows) in [("projects", projects), ("models", models)] {
        if !rows.is_empty() {
            let mut list: Vec<_> = rows.iter().map(|(key, usd)| format!("{} {}", sanitize(key), money(*usd))).collect();
            list.push(format!("{dim}in 30 days{dim:#}"));
            text.push_str(&wrap_items(name, &list, "   ", output));
        }
    }
    text.push_str(&format!("\n{}\n", session_table(latest, output)));
    for soon in &cleanup {
        text.push_str(&format!("{}\n\n", soon.warning()));
    }
    let next = ["show ID", "ls", "search WORDS", "usage", "follow", "--help"]
        .map(|words| format!("{dim}quipu {words}{dim:#}"));
    text.push_str(&wrap_items("next", &next, "   ", output));
    output.print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A label with items after it, wrapped to the width of the terminal.
pub(crate) fn wrap_items(label: &str, items: &[String], gap: &str, output: &Output) -> String {
    const LABEL_COLUMNS: usize = 11;
    let limit = output.columns.unwrap_or(usize::MAX);
    let (mut text, mut used) = (format!("{label:<LABEL_COLUMNS$}"), LABEL_COLUMNS);
    for (n, item) in items.iter().enumerate() {
        let width = anstream::adapter::strip_str(item).to_string().width();
        if n > 0 && used + gap.len() + width > limit {
            text.push_str(&format!("\n{:LABEL_COLUMNS$}", ""));
            used = LABEL_COLUMNS;
        } else if n > 0 {
            text.push_str(gap);
            used += gap.len();
        }
        text.push_str(item);
        used += width;
    }
    text + "\n"
}

/// One bar character for each number, relative to the largest.
pub(crate) fn bar_chart(numbers: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let max = numbers.iter().copied().fold(0.0, f64::max);
    let bar = |n: &f64| if max == 0.0 { BARS[0] } else { BARS[((n / max * 7.0).round() as usize).min(7)] };
    numbers.iter().map(bar).collect()
}
