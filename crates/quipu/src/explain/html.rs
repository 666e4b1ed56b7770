//! The explanation as one HTML page without scripts or remote content.

use std::fmt::Write as _;

use quipu_render::escape_html;
use quipu_trace::explain::{Activity, Report, Timeline};

use super::Explained;
use crate::format;

/// Width of the timeline in SVG units.
const TIMELINE_WIDTH: f64 = 960.0;

/// Spans narrower than this are joined with their neighbours, so that a page of a long session
/// stays small.
const MIN_SPAN_WIDTH: f64 = 0.2;

const STYLE: &str = "\
:root{color-scheme:light dark;--model:#5b7fd6;--tool:#4a9c6d;--waiting:#d6a13b;--hooks:#9a6bc2;--retries:#c9504f;\
--compaction:#5aa7b5;--idle:#8883}\
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse;margin:.5rem 0 1rem}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600;border-bottom:1px solid #8886}\
svg{width:100%;height:auto}.legend span{margin-right:1rem;white-space:nowrap}\
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}\
.prompt{max-width:40rem;overflow-wrap:anywhere}";

pub(super) fn render(explained: &Explained) -> String {
    let report = &explained.report;
    let title = escape_html(&explained.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    let _ = writeln!(
        page,
        "<p>{} · {} in {}</p>",
        escape_html(report.session_id.as_deref().unwrap_or_default()),
        format::cost(report.cost_usd, report.unpriced_models.len()),
        format::duration(report.wall_ms as f64 / 1000.0)
    );
    page.push_str(&timeline_svg(&explained.timeline));
    page.push_str(&time_section(report));
    page.push_str(&money_section(report));
    page.push_str(&cache_section(report));
    page.push_str(&context_section(report));
    page.push_str(&advice_section(report));
    page.push_str("</body></html>\n");
    page
}

/// CSS variable and name of an activity.
fn activity_class(activity: &Activity) -> (&'static str, &'static str) {
    match activity {
        Activity::Model => ("model", "model"),
        Activity::Tool(_) => ("tool", "tools"),
        Activity::Waiting => ("waiting", "waiting for the user"),
        Activity::Hooks => ("hooks", "hooks"),
        Activity::Retries => ("retries", "retries"),
        Activity::Compaction => ("compaction", "compaction"),
        _ => ("idle", "idle"),
    }
}

fn timeline_svg(timeline: &Timeline) -> String {
    if timeline.wall_ms == 0 {
        return String::new();
    }
    let scale = TIMELINE_WIDTH / timeline.wall_ms as f64;
    let mut svg = format!("<svg viewBox=\"0 0 {TIMELINE_WIDTH} 40\" role=\"img\" aria-label=\"timeline\">\n");
    let mut drawn_to = 0.0;
    for span in &timeline.spans {
        let (start, end) = (span.start_ms as f64 * scale, (span.start_ms + span.duration_ms) as f64 * scale);
        if end - drawn_to < MIN_SPAN_WIDTH {
            continue;
        }
        let start = start.min(end - MIN_SPAN_WIDTH).max(drawn_to);
        let (class, name) = activity_class(&span.activity);
        let name = match &span.activity {
            Activity::Tool(tool) => escape_html(tool),
            _ => name.to_owned(),
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{start:.2}\" y=\"0\" width=\"{:.2}\" height=\"40\" fill=\"var(--{class})\"><title>{name}: {} \
             (line {})</title></rect>",
            end - start,
            format::duration(span.duration_ms as f64 / 1000.0),
            span.line
        );
        drawn_to = end;
    }
    svg.push_str("</svg>\n<p class=\"legend\">");
    for (class, name) in [
        ("model", "model"),
        ("tool", "tools"),
        ("waiting", "waiting for the user"),
        ("hooks", "hooks"),
        ("retries", "retries"),
        ("compaction", "compaction"),
        ("idle", "idle"),
    ] {
        let _ = write!(svg, "<span><i style=\"background:var(--{class})\"></i>{name}</span>");
    }
    svg + "</p>\n"
}

/// A table of names and values; empty if it has no rows.
fn table(heading: [&str; 2], rows: impl IntoIterator<Item = (String, String)>) -> String {
    let rows: String = rows
        .into_iter()
        .map(|(name, value)| {
            format!("<tr><td class=\"prompt\">{}</td><td class=\"n\">{value}</td></tr>\n", escape_html(&name))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("<table><tr><th>{}</th><th class=\"n\">{}</th></tr>\n{rows}</table>\n", heading[0], heading[1])
}

fn by_size<'a>(rows: impl IntoIterator<Item = (&'a String, &'a f64)>) -> Vec<(String, f64)> {
    let mut rows: Vec<(String, f64)> = rows.into_iter().map(|(name, size)| (name.clone(), *size)).collect();
    rows.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    rows
}

fn time_section(report: &Report) -> String {
    let rows = report.time.rows().into_iter().map(|(name, ms)| (name, format::duration(ms as f64 / 1000.0)));
    format!("<h2>Time</h2>\n{}", table(["activity", "time"], rows))
}

fn money_section(report: &Report) -> String {
    let money = |rows: Vec<(String, f64)>| rows.into_iter().map(|(name, cost)| (name, format::money(cost)));
    let turns =
        report.money.turns.iter().map(|turn| (format!("{}. {}", turn.turn, turn.prompt), format::money(turn.cost_usd)));
    let moments = report.moments.iter().map(|moment| {
        let tools = if moment.tools.is_empty() { String::new() } else { format!(", {}", moment.tools.join(", ")) };
        let what = format!(
            "turn {}, line {}: {} tokens in, {} out{tools}",
            moment.turn,
            moment.line,
            format::tokens(moment.tokens.prompt()),
            format::tokens(moment.tokens.output)
        );
        (what, format::money(moment.cost_usd))
    });
    [
        "<h2>Money</h2>\n".to_owned(),
        table(["turn", "cost"], turns),
        table(["tool", "cost"], money(by_size(&report.money.tools))),
        table(["agent", "cost"], money(by_size(&report.money.agents))),
        table(["MCP server", "cost"], money(by_size(&report.money.mcp))),
        table(["side call", "cost"], money(by_size(&report.money.side))),
        "<h2>Most expensive API calls</h2>\n".to_owned(),
        table(["call", "cost"], moments),
    ]
    .concat()
}

fn cache_section(report: &Report) -> String {
    let causes = report.cache.by_cause.iter().map(|(cause, misses)| {
        let name = format!(
            "{cause}: {} of {} tokens; {}",
            format::count(misses.misses, "miss"),
            format::tokens(misses.tokens),
            misses.advice
        );
        (name, format::money(misses.cost_usd))
    });
    let billed = format!("as billed ({})", format::count(report.cache.calls, "call"));
    let policies = report.cache.what_if.iter().map(|row| (row.policy.to_owned(), format::money(row.cost_usd)));
    let policies = std::iter::once((billed, format::money(report.cache.billed_usd))).chain(policies);
    format!(
        "<h2>Prompt cache</h2>\n{}{}",
        table(["misses by cause", "cost"], causes),
        table(["what if", "cost"], policies)
    )
}

fn context_section(report: &Report) -> String {
    let largest = report.context.iter().map(|size| size.tokens).max().unwrap_or_default();
    if largest == 0 {
        return String::new();
    }
    let step = TIMELINE_WIDTH / report.context.len() as f64;
    let points: String = report
        .context
        .iter()
        .enumerate()
        .map(|(n, size)| {
            format!("{:.1},{:.1} ", (n as f64 + 0.5) * step, 100.0 - size.tokens as f64 * 98.0 / largest as f64)
        })
        .collect();
    let filled = report
        .filled_by
        .iter()
        .map(|row| (format!("{} ({})", row.source, row.count), format!("{} kB", format::thousands(row.bytes / 1000))));
    format!(
        "<h2>Context</h2>\n<svg viewBox=\"0 0 {TIMELINE_WIDTH} 100\" role=\"img\" aria-label=\"prompt size of each API \
         call\"><polyline points=\"{points}\" fill=\"none\" stroke=\"var(--model)\" stroke-width=\"1.5\"/></svg>\n<p>up to \
         {} tokens in {}</p>\n{}",
        format::tokens(largest),
        format::count(report.context.len(), "API call"),
        table(["filled by", "size"], filled)
    )
}

fn advice_section(report: &Report) -> String {
    if report.advice.is_empty() {
        return String::new();
    }
    let items: String = report
        .advice
        .iter()
        .map(|advice| {
            let saves = if advice.saves_usd > 0.0 {
                format!(" (saves {})", format::money(advice.saves_usd))
            } else {
                String::new()
            };
            format!("<li>{}{saves}</li>\n", escape_html(&advice.text))
        })
        .collect();
    format!("<h2>Advice</h2>\n<ol>\n{items}</ol>\n")
}
