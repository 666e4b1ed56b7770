//! `quipu ls`

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::headline;
use quipu_index::Listed;

use crate::args::{Global, LsArgs, Sort};
use crate::catalogue;
use crate::error::note;
use crate::format;
use crate::output::Output;
use crate::sessions::no_sessions;
use crate::table::{Column, Table, truncate};
use crate::time::{local_time, now};

pub(crate) fn run(args: &LsArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let mut filters = args.filters.clone();
    filters.project = filters.project.or_else(|| args.folder.clone());
    let filter = filters.resolve(&now(), global)?;
    let mut rows = catalogue::sessions(global)?;
    if rows.is_empty() && !global.json {
        return Err(no_sessions(global));
    }
    rows.retain(|row| filter.matches(row));
    sort(&mut rows, args.sort);
    let found = rows.len();
    rows.truncate(args.limit.unwrap_or(if global.json { usize::MAX } else { 30 }));
    if global.json {
        output.json(&rows)?;
    } else if rows.is_empty() {
        note(global, &"no session matches the filters");
    } else {
        output.text(&table(&rows, output))?;
        if rows.len() < found {
            note(global, &format!("{} of {}; -n N shows more", rows.len(), format::count(found, "session")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sort(rows: &mut [Listed], by: Sort) {
    // The rows come latest first, and sorting is stable.
    match by {
        Sort::Time => {}
        Sort::Cost => rows.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd)),
        Sort::Tokens => rows.sort_by_key(|row| Reverse(row.tokens.total())),
        Sort::Turns => rows.sort_by_key(|row| Reverse(row.turns)),
    }
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
        let mark = if row.compacted { " (compacted)" } else { "" };
        table.row([
            short_id(row).to_owned(),
            row.ended_at.as_deref().map(local_time).unwrap_or_default(),
            format::project(row.cwd.as_deref(), &row.project).to_owned(),
            format::thousands(row.turns),
            format!("{} → {}", format::tokens(read), format::tokens(used.output)),
            format::cost(row.cost_usd, row.unpriced_models.len()),
            title(row) + mark,
        ]);
    }
    table.render(output)
}

/// A table of sessions that one name may mean, for an error message.
pub(crate) fn candidates(rows: &[Listed], name: impl Fn(&Listed) -> String) -> String {
    let mut table = Table::new([Column::text("session"), Column::text("last"), Column::text("title")]);
    for row in rows {
        table.row([name(row), row.ended_at.as_deref().map(local_time).unwrap_or_default(), title(row)]);
    }
    table.render(&Output::piped())
}

/// The beginning of a session's id that is shown in tables.
pub(crate) fn short_id(row: &Listed) -> &str {
    row.session_id.get(..8).unwrap_or(&row.session_id)
}

/// How much of a title is shown where nothing limits it.
const MAX_TITLE_CHARS: usize = 120;

/// What a session is called in tables.
pub(crate) fn title(row: &Listed) -> String {
    let line = headline(row.title.as_deref(), row.first_prompt.as_deref()).unwrap_or_default();
    truncate(line, MAX_TITLE_CHARS)
}
