//! `quipu ls`

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use quipu_conversation::Tokens;
use quipu_index::Listed;
use quipu_render::clean;

use crate::args::{Global, LsArgs, Sort};
use crate::catalogue::refreshed;
use crate::error::Failure;
use crate::output::Output;
use crate::sessions::claude_dirs;
use crate::time::{local_time, now};

pub(crate) fn run(args: &LsArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let mut filters = args.filters.clone();
    filters.project = filters.project.or_else(|| args.folder.clone());
    let filter = filters.resolve(&now(), global)?;
    let mut rows = refreshed(global)?.catalogue.sessions()?;
    if rows.is_empty() && !global.json {
        let looked = claude_dirs(global).iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        let hint = "say where sessions are with --claude-dir";
        return Err(Failure::error("session.none", format!("no sessions found under {looked}"), hint));
    }
    rows.retain(|row| filter.matches(row));
    sort(&mut rows, args.sort);
    let found = rows.len();
    rows.truncate(args.limit.unwrap_or(if global.json { usize::MAX } else { 30 }));
    if global.json {
        output.json(&rows)?;
    } else {
        let mut text = table(&rows, output);
        if rows.len() < found && !global.quiet {
            text.push_str(&format!("{} of {found} sessions; --limit shows more\n", rows.len()));
        }
        output.text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sort(rows: &mut [Listed], by: Sort) {
    let all = |t: &Tokens| t.input + t.output + t.cache_read + t.cache_write_5m + t.cache_write_1h;
    rows.sort_by(|a, b| {
        let order = match by {
            Sort::Time => std::cmp::Ordering::Equal,
            Sort::Cost => b.cost_usd.total_cmp(&a.cost_usd),
            Sort::Tokens => all(&b.tokens).cmp(&all(&a.tokens)),
            Sort::Turns => b.turns.cmp(&a.turns),
        };
        order.then_with(|| b.ended_at.cmp(&a.ended_at))
    });
}

pub(crate) fn table(rows: &[Listed], output: &Output) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let width = u16::try_from(output.width).unwrap_or(100);
    table.set_width(if output.is_terminal { width } else { width.max(120) });
    table.set_header(["id", "last", "project", "turns", "tokens", "cost", "title"]);
    for row in rows {
        let tokens = &row.tokens;
        let read = tokens.input + tokens.cache_read + tokens.cache_write_5m + tokens.cache_write_1h;
        let money = if row.unpriced_models.is_empty() {
            format!("${:.2}", row.cost_usd)
        } else {
            format!("${:.2}+?", row.cost_usd)
        };
        let title = row.title.as_ref().or(row.first_prompt.as_ref()).map(|text| one_line(text)).unwrap_or_default();
        let mark = if row.compacted { " (compacted)" } else { "" };
        let project = row.cwd.as_deref().and_then(|cwd| cwd.rsplit(['/', '\\']).next()).unwrap_or(&row.project);
        table.add_row([
            Cell::new(row.session_id.get(..8).unwrap_or(&row.session_id)),
            Cell::new(row.ended_at.as_deref().map(local_time).unwrap_or_default()),
            Cell::new(clean(project)),
            Cell::new(row.turns).set_alignment(CellAlignment::Right),
            Cell::new(format!("{} → {}", short(read), short(tokens.output))).set_alignment(CellAlignment::Right),
            Cell::new(money).set_alignment(CellAlignment::Right),
            Cell::new(format!("{title}{mark}")),
        ]);
    }
    let plain = table.to_string();
    let lines = plain.lines().map(str::trim_end);
    if !output.color {
        return lines.map(|line| format!("{line}\n")).collect();
    }
    let (bold, cyan) = (Style::new().bold(), AnsiColor::Cyan.on_default());
    lines
        .enumerate()
        .map(|(n, line)| match line.split_at_checked(line.len().min(9)) {
            Some((id, rest)) if n > 0 => format!("{cyan}{id}{cyan:#}{rest}\n"),
            _ => format!("{bold}{line}{bold:#}\n"),
        })
        .collect()
}

fn one_line(text: &str) -> String {
    let text = clean(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() > 60 { line.chars().take(59).chain(['…']).collect() } else { line.to_owned() }
}

pub(crate) fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}
