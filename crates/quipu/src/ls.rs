//! `quipu ls`

use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::Tokens;
use quipu_index::Listed;

use crate::args::{Global, LsArgs, Sort};
use crate::catalogue::refreshed;
use crate::error::{Failure, note};
use crate::format;
use crate::output::Output;
use crate::sessions::claude_dirs;
use crate::table::{Column, Table, truncate};
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
        output.text(&table(&rows, output))?;
        if rows.len() < found {
            note(global, &format!("{} of {}; -n N shows more", rows.len(), format::count(found, "session")));
        }
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

const COLUMNS: [Column; 7] = [
    Column::text("id"),
    Column::text("last").drop_rank(1),
    Column::text("project").drop_rank(3).flexible(12),
    Column::number("turns").drop_rank(4),
    Column::number("tokens").drop_rank(5),
    Column::number("cost").drop_rank(2),
    Column::text("title").flexible(30),
];

/// One row a session: what it is called, when it was last active, and what it used.
pub(crate) fn table(rows: &[Listed], output: &Output) -> String {
    let mut table = Table::new(COLUMNS);
    for row in rows {
        let used = &row.tokens;
        let read = used.input + used.cache_read + used.cache_write_5m + used.cache_write_1h;
        let title = row.title.as_ref().or(row.first_prompt.as_ref()).map(|text| one_line(text)).unwrap_or_default();
        let mark = if row.compacted { " (compacted)" } else { "" };
        table.row([
            row.session_id.get(..8).unwrap_or(&row.session_id).to_owned(),
            row.ended_at.as_deref().map(local_time).unwrap_or_default(),
            format::project(row.cwd.as_deref(), &row.project).to_owned(),
            format::thousands(row.turns),
            format!("{} → {}", format::tokens(read), format::tokens(used.output)),
            format::cost(row.cost_usd, row.unpriced_models.len()),
            format!("{title}{mark}"),
        ]);
    }
    table.render(output)
}

/// How much of a title is shown where nothing limits it.
const MAX_TITLE_CHARS: usize = 120;

fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    truncate(line, MAX_TITLE_CHARS)
}
