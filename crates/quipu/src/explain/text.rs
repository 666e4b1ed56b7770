//! The explanation as text for terminals and pipes.

use anstyle::Style;
use quipu_render::sanitize;
use quipu_trace::cache::Policy;
use quipu_trace::explain::{MomentReport, Report, TurnReport};

use super::Explained;
use crate::format;
use crate::format::truncate;
use crate::output::Output;
use crate::overview::bar_chart;
use crate::table::{Column, Table};

/// Rows of a list before the rest is summed up in one row.
const MAX_ROWS: usize = 6;

/// Bars of the context chart.
const MAX_CHART_BARS: usize = 60;

pub(super) fn render(explained: &Explained, output: &Output) -> String {
    let report = &explained.report;
    let sections = [
        header(explained, output),
        section("Time", &time_table(report, output), output),
        section("Money", &money_tables(report, output), output),
        section("Most expensive API calls", &moments_table(report, output), output),
        section("Prompt cache", &cache_tables(report, output), output),
        section("Context", &context_text(report, output), output),
        section("Advice", &advice_text(report), output),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn header(explained: &Explained, output: &Output) -> String {
    let report = &explained.report;
    let bold = output.style(Style::new().bold());
    let id = report.session_id.as_deref().unwrap_or_default().chars().take(8).collect::<String>();
    let calls: u64 = report.money.turns.iter().map(|turn| turn.calls).sum();
    let width = output.columns.unwrap_or(usize::MAX);
    format!(
        "{bold}{}{bold:#}\n{id}  {} in {}  {}\n",
        truncate(&sanitize(&explained.title), width),
        format::cost(report.cost_usd, report.unpriced_models.len()),
        format::duration(report.wall_ms as f64 / 1000.0),
        format::count(calls as usize, "API call"),
    )
}

/// A heading with a body; empty if the body is.
fn section(heading: &str, body: &str, output: &Output) -> String {
    if body.is_empty() {
        return String::new();
    }
    let bold = output.style(Style::new().bold());
    format!("{bold}{heading}{bold:#}\n{body}")
}

/// Rows by size, the largest first, each with its share of the whole.
fn share_table(
    heading: &'static str,
    rows: Vec<(String, f64)>,
    show: impl Fn(f64) -> String,
    output: &Output,
) -> String {
    let whole: f64 = rows.iter().map(|(_, size)| size).sum();
    let mut rows: Vec<_> = rows.into_iter().filter(|(_, size)| *size > 0.0).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    let rest = rows.split_off(rows.len().min(if rows.len() > MAX_ROWS { MAX_ROWS - 1 } else { MAX_ROWS }));
    if !rest.is_empty() {
        let sum = rest.iter().map(|(_, size)| size).sum();
        rows.push((format!("{} more", rest.len()), sum));
    }
    let columns = [Column::text(heading).flexible(12), Column::number(""), Column::number("%")];
    let mut table = Table::new(columns);
    for (name, size) in rows {
        table.push_row([sanitize(&name).into_owned(), show(size), format!("{:.0}", size * 100.0 / whole)]);
    }
    table.render(output)
}

fn time_table(report: &Report, output: &Output) -> String {
    let time = &report.time;
    let rows = time.rows().into_iter().map(|(name, duration)| (name, duration as f64)).collect();
    let mut text = share_table("activity", rows, |duration| format::duration(duration / 1000.0), output);
    if let Some(first_event) = time.model_first_event {
        text.push_str(&format!(
            "until the first event of each response: {}\n",
            format::duration(first_event as f64 / 1000.0)
        ));
    }
    text
}

fn money_tables(report: &Report, output: &Output) -> String {
    let name = |turn: &TurnReport| match turn.turn {
        0 => "outside of a turn".to_owned(),
        number => format!("{number} {}", turn.prompt.lines().next().unwrap_or_default()),
    };
    let turns = report.money.turns.iter().map(|turn| (name(turn), turn.cost_usd)).collect();
    let rows = |costs: &std::collections::BTreeMap<String, f64>| -> Vec<(String, f64)> {
        costs.iter().map(|(name, cost)| (name.clone(), *cost)).collect()
    };
    let mut tables = vec![share_table("turn", turns, format::money, output)];
    tables.push(share_table("tool", rows(&report.money.tools), format::money, output));
    if report.money.agents.len() > 1 {
        tables.push(share_table("agent", rows(&report.money.agents), format::money, output));
    }
    tables.push(share_table("MCP server", rows(&report.money.mcp), format::money, output));
    tables.push(share_table("side call", rows(&report.money.side), format::money, output));
    tables.retain(|table| !table.is_empty());
    let mut text = tables.join("\n");
    if !report.unpriced_models.is_empty() {
        text.push_str(&format!("no price for {}\n", sanitize(&report.unpriced_models.join(", "))));
    }
    text
}

fn moments_table(report: &Report, output: &Output) -> String {
    if report.moments.is_empty() {
        return String::new();
    }
    let id = report.session_id.as_deref().unwrap_or_default().chars().take(8).collect::<String>();
    let columns = [
        Column::text("show"),
        Column::number("turn").drop_rank(1),
        Column::number("cost"),
        Column::number("prompt"),
        Column::number("cached").drop_rank(2),
        Column::number("output"),
        Column::text("model").drop_rank(4),
        Column::text("tools").flexible(8).drop_rank(3),
    ];
    let mut table = Table::new(columns);
    for moment in &report.moments {
        let place = match (moment.line, &moment.agent) {
            (0, Some(agent)) => format!("({agent})"),
            (line, _) => format!("{id}:{line}"),
        };
        table.push_row([
            place,
            moment.turn.to_string(),
            format::money(moment.cost_usd),
            format::tokens(moment.tokens.prompt()),
            format::tokens(moment.tokens.cache_read),
            format::tokens(moment.tokens.output),
            format::model(&moment.model).to_owned(),
            tools_of(moment),
        ]);
    }
    table.render(output)
}

fn tools_of(moment: &MomentReport) -> String {
    sanitize(&moment.tools.join(", ")).into_owned()
}

fn cache_tables(report: &Report, output: &Output) -> String {
    let mut text = String::new();
    if !report.cache.by_cause.is_empty() {
        let columns =
            [Column::text("cause"), Column::number("misses"), Column::number("tokens"), Column::number("cost")];
        let mut table = Table::new(columns);
        let mut causes: Vec<_> = report.cache.by_cause.iter().collect();
        causes.sort_by(|(_, a), (_, b)| b.cost_usd.total_cmp(&a.cost_usd));
        for (cause, misses) in causes {
            table.push_row([
                cause.clone(),
                misses.misses.to_string(),
                format::tokens(misses.tokens),
                format::money(misses.cost_usd),
            ]);
        }
        text.push_str(&table.render(output));
    }
    if report.cache.what_if.iter().any(|row| row.cost_usd > 0.0) {
        let mut table = Table::new([Column::text("what if (by the rules of the cache)"), Column::number("cost")]);
        let billed = format!("as billed ({})", format::count(report.cache.calls, "call"));
        table.push_row([billed, format::money(report.cache.billed_usd)]);
        for row in &report.cache.what_if {
            let name = if row.policy == Policy::Recorded.name() { "as sent" } else { row.policy };
            table.push_row([name.to_owned(), format::money(row.cost_usd)]);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table.render(output));
    }
    text
}

fn context_text(report: &Report, output: &Output) -> String {
    let Some(largest) = report.context.iter().map(|size| size.tokens).max().filter(|largest| *largest > 0) else {
        return String::new();
    };
    let calls = report.context.len();
    let bars = MAX_CHART_BARS.min(output.columns.unwrap_or(MAX_CHART_BARS).saturating_sub(2)).min(calls).max(1);
    let chart: Vec<f64> = (0..bars)
        .map(|bar| {
            let part = &report.context[bar * calls / bars..((bar + 1) * calls / bars).max(bar * calls / bars + 1)];
            part.iter().map(|size| size.tokens).max().unwrap_or_default() as f64
        })
        .collect();
    let mut text = format!("{}  up to {} tokens\n", bar_chart(&chart), format::tokens(largest));
    let rows =
        report.filled_by.iter().map(|row| (format!("{} ({})", row.source, row.count), row.bytes as f64)).collect();
    text.push_str(&share_table(
        "filled by",
        rows,
        |bytes| format!("{} kB", format::thousands(bytes as u64 / 1000)),
        output,
    ));
    text
}

fn advice_text(report: &Report) -> String {
    let line = |(n, advice): (usize, &quipu_trace::explain::Advice)| {
        let saves = if advice.saves_usd > 0.0 {
            format!(" (saves {})", format::money(advice.saves_usd))
        } else {
            String::new()
        };
        format!("{}. {}{saves}\n", n + 1, advice.text)
    };
    report.advice.iter().enumerate().map(line).collect()
}
