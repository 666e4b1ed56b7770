//! `quipu stats`: length, turns, context, tools and hours of sessions.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;

use anyhow::Result;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use quipu_conversation::parse_timestamp;
use quipu_index::{Catalogue, GroupBy, ListedSession, TimeWindow, UsageRecord};
use quipu_render::sanitize;
use serde_json::{Value, json};

use crate::args::StatsArgs;
use crate::catalogue;
use crate::error::print_note;
use crate::filter::Filter;
use crate::format;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::overview::{bar_chart, wrap_items};
use crate::session_table::short_id;
use crate::time::now;

/// Tools in the text output; JSON has all.
const MAX_TOOLS_SHOWN: usize = 12;

pub(crate) fn run(args: &StatsArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let filter = args.filters.resolve(&now(), global)?;
    let (sessions, messages) = catalogue::with_catalogue(global, |catalogue| collect_stats(catalogue, &filter))?;
    let stats = SessionStats::new(&sessions, messages);
    if global.json {
        output.print_json(&stats.to_json())?;
    } else if sessions.is_empty() {
        print_note(global, &"no session matches the filters");
    } else {
        output.print_text(&stats.render(output))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sessions that the filter selects, and statistics of their messages in the selected period.
fn collect_stats(catalogue: &Catalogue, filter: &Filter) -> Result<(Vec<ListedSession>, MessageStats)> {
    let mut sessions = catalogue.sessions()?;
    sessions.retain(|session| filter.matches(session));
    let cwds: HashMap<_, _> = sessions.iter().map(|row| ((&*row.project, &*row.session_id), &row.cwd)).collect();
    let window = TimeWindow { since: filter.since, until: filter.until, ..TimeWindow::default() };
    let mut messages = MessageStats::default();
    catalogue.for_each_usage(GroupBy::Turn, &window, |usage| {
        let cwd = || cwds.get(&(usage.project, usage.session)).and_then(|cwd| cwd.as_ref()).cloned();
        if !usage.is_vanished
            && filter.matches_model(usage.model)
            && filter.matches_session(usage.project, usage.session, cwd)
            && window.contains(usage.amounts.span.map(|(first, _)| first))
        {
            messages.add(usage, &window.zone);
        }
    })?;
    Ok((sessions, messages))
}

/// Statistics of API messages.
#[derive(Default)]
struct MessageStats {
    total: u64,
    by_subagents: u64,
    /// Number of messages that call each tool.
    tools: BTreeMap<String, u64>,
    /// Number of messages in each hour of the day, in local time.
    hours: [u64; 24],
    weekdays: [u64; 7],
    /// Largest prompt in tokens, and the id of its session.
    largest_context: Option<(u64, String)>,
}

impl MessageStats {
    fn add(&mut self, usage: &UsageRecord<'_>, zone: &TimeZone) {
        let tokens = &usage.amounts.tokens;
        let context = tokens.prompt();
        if tokens.total() == 0 {
            return;
        }
        self.total += usage.amounts.messages;
        self.by_subagents += if usage.agent == "main" { 0 } else { usage.amounts.messages };
        for tool in usage.tools {
            *self.tools.entry(tool.to_string()).or_default() += 1;
        }
        if let Some((time, _)) = usage.amounts.span {
            let time = time.to_zoned(zone.clone());
            self.hours[time.hour().unsigned_abs() as usize % 24] += usage.amounts.messages;
            self.weekdays[time.weekday().to_monday_zero_offset().unsigned_abs() as usize % 7] += usage.amounts.messages;
        }
        if self.largest_context.as_ref().is_none_or(|(largest, _)| context > *largest) {
            self.largest_context = Some((context, usage.session.to_owned()));
        }
    }
}

struct SessionStats<'a> {
    sessions: &'a [ListedSession],
    /// Seconds from the first to the last entry of each session, the shortest first.
    lengths: Vec<(f64, &'a ListedSession)>,
    /// Turns of each session, the fewest first.
    turns: Vec<(u64, &'a ListedSession)>,
    messages: MessageStats,
}

impl<'a> SessionStats<'a> {
    fn new(sessions: &'a [ListedSession], messages: MessageStats) -> Self {
        let length = |session: &ListedSession| {
            let (start, end) =
                (parse_timestamp(session.started_at.as_deref()?)?, parse_timestamp(session.ended_at.as_deref()?)?);
            Some(end.duration_since(start).as_secs_f64())
        };
        let mut lengths: Vec<_> = sessions.iter().filter_map(|session| Some((length(session)?, session))).collect();
        lengths.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut turns: Vec<_> = sessions.iter().map(|session| (session.turns, session)).collect();
        turns.sort_by_key(|(turns, _)| *turns);
        Self { sessions, lengths, turns, messages }
    }

    fn to_json(&self) -> Value {
        let MessageStats { total: all, by_subagents, tools, hours, weekdays, largest_context } = &self.messages;
        let (length, turns) = (median_and_max(&self.lengths), median_and_max(&self.turns));
        json!({
            "sessions": self.sessions.len(),
            "turns": self.turns.iter().map(|(turns, _)| turns).sum::<u64>(),
            "messages": all,
            "subagent_messages": by_subagents,
            "length_secs": length.map(|(median, longest, id)| json!({"median": median, "longest": longest, "session_id": id})),
            "turns_per_session": turns.map(|(median, most, id)| json!({"median": median, "most": most, "session_id": id})),
            "largest_context": largest_context.as_ref().map(|(tokens, id)| json!({"tokens": tokens, "session_id": id})),
            "tools": tools,
            "hours": hours,
            "weekdays": weekdays,
        })
    }

    fn render(&self, output: &Output) -> String {
        let MessageStats { total: all, by_subagents, tools, hours, weekdays, largest_context } = &self.messages;
        let turns: u64 = self.turns.iter().map(|(turns, _)| turns).sum();
        let mut text = format!(
            "{}, {}, {}\n\n",
            format::count(self.sessions.len(), "session"),
            format::count(turns as usize, "turn"),
            format::count(*all as usize, "message"),
        );
        let named = |id: &str| {
            let short = self.sessions.iter().find(|session| session.session_id == id).map_or(id, short_id);
            format!("({})", sanitize(short))
        };
        let mut row = |name: &str, items: &[String]| {
            if !items.is_empty() {
                text.push_str(&wrap_items(name, items, "   ", output));
            }
        };
        if let Some((median, longest, id)) = median_and_max(&self.lengths) {
            row(
                "length",
                &[
                    format!("median {}", format::duration(median)),
                    format!("longest {} {}", format::duration(longest), named(id)),
                ],
            );
        }
        if let Some((median, most, id)) = median_and_max(&self.turns) {
            row("turns", &[format!("median {median}"), format!("most {most} {}", named(id))]);
        }
        if let Some((tokens, id)) = largest_context {
            row("context", &[format!("largest {} tokens {}", format::tokens(*tokens), named(id))]);
        }
        if *by_subagents > 0 {
            row(
                "subagents",
                &[format!("{} of {} messages", format::thousands(*by_subagents), format::thousands(*all))],
            );
        }
        let mut by_count: Vec<_> = tools.iter().collect();
        by_count.sort_by_key(|(_, messages)| std::cmp::Reverse(**messages));
        let shown = by_count.iter().take(MAX_TOOLS_SHOWN);
        let mut list: Vec<String> =
            shown.map(|(tool, n)| format!("{} {}", sanitize(tool), format::thousands(**n))).collect();
        list.extend((by_count.len() > MAX_TOOLS_SHOWN).then(|| format!("{} more", by_count.len() - MAX_TOOLS_SHOWN)));
        row("tools", &list);
        let counts = |numbers: &[u64]| numbers.iter().map(|n| *n as f64).collect::<Vec<_>>();
        let [night, morning, afternoon, evening] =
            [0, 6, 12, 18].map(|from| format!("{from:02}h {}", &six_hours(&bar_chart(&counts(hours)), from)));
        row("hours", &[night, morning, afternoon, evening]);
        let days = std::iter::successors(Some(Weekday::Monday), |day| Some(day.next()));
        let days = days.zip(weekdays).map(|(day, n)| format!("{} {}", &format!("{day:?}")[..3], format::thousands(*n)));
        row("weekdays", &days.collect::<Vec<_>>());
        text
    }
}

/// The bars of six hours of a chart.
fn six_hours(chart: &str, from: usize) -> String {
    chart.chars().skip(from).take(6).collect()
}

/// Median, maximum and the session of the maximum of sorted numbers; `None` if there are none.
/// Of two middle numbers the smaller one is the median.
fn median_and_max<'a, T: Copy>(sorted: &[(T, &'a ListedSession)]) -> Option<(T, T, &'a str)> {
    let (largest, session) = sorted.last()?;
    Some((sorted[(sorted.len() - 1) / 2].0, *largest, &session.session_id))
}
