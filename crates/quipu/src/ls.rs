//! `quipu ls`

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::headline;
use quipu_index::ListedSession;

use crate::args::{GlobalArgs, LsArgs, SortBy};
use crate::catalogue;
use crate::error::print_note;
use crate::format;
use crate::output::Output;
use crate::sessions::no_sessions_error;
use crate::table::{Column, Table, truncate};
use crate::time::{format_local_time, now};

pub(crate) fn run(args: &LsArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let mut filters = args.filters.clone();
    filters.project = filters.project.or_else(|| args.folder.clone());
    let filter = filters.resolve(&now(), global)?;
    let mut rows = catalogue::list_sessions(global)?;
    if rows.is_empty() && !global.json {
        return Err(no_sessions_error(global));
    }
    rows.retain(|row| filter.matches(row));
    sort_rows(&mut rows, args.sort);
    let found = rows.len();
    rows.truncate(args.limit.unwrap_or(if global.json { usize::MAX } else { 30 }));
    if global.json {
        output.print_json(&rows)?;
    } else if rows.is_empty() {
        print_note(global, &"no session matches the filters");
    } else {
        output.print_text(&session_table(&rows, output))?;
        if rows.len() < found {
            print_note(global, &format!("{} of {}; -n N shows more", rows.len(), format::count(found, "session")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sort_rows(rows: &mut [ListedSession], by: SortBy) {
    // The rows come latest first, and sorting is stable.
    match by {
        SortBy::Time => {}
        SortBy::Cost => rows.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd)),
        SortBy::Tokens => rows.sort_by_key(|row| Reverse(row.tokens.total())),
        SortBy::Turns => rows.sort_by_key(|row| Reverse(row.turns)),
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
pub(crate) fn session_table(rows: &[ListedSession], output: &Output) -> String {
    let mut table = Table::new(COLUMNS);
    for row in rows {
        let used = &row.tokens;
        let read = used.input + used.cache_read + used.cache_write_5m + used.cache_write_1h;
        let mark = if row.compacted { " (compacted)" } else { "" };
        table.push_row([
            short_id(row).to_owned(),
            row.ended_at.as_deref().map(format_local_time).unwrap_or_default(),
            format::project(row.cwd.as_deref(), &row.project).to_owned(),
            format::thousands(row.turns),
            format!("{} → {}", format::tokens(read), format::tokens(used.output)),
            format::cost(row.cost_usd, row.unpriced_models.len()),
            session_title(row) + mark,
        ]);
    }
    table.render(output)
}

/// A table of sessions that one name may mean, for an error message.
pub(crate) fn candidate_table(rows: &[ListedSession], name: impl Fn(&ListedSession) -> String) -> String {
    let mut table = Table::new([Column::text("session"), Column::text("last"), Column::text("title")]);
    for row in rows {
        table.push_row([
            name(row),
            row.ended_at.as_deref().map(format_local_time).unwrap_or_default(),
            session_title(row),
        ]);
    }
    table.render(&Output::plain())
}

/// The beginning of a session's id that is shown in tables.
pub(crate) fn short_id(row: &ListedSession) -> &str {
    row.session_id.get(..8).unwrap_or(&row.session_id)
}

/// How much of a title is shown where nothing limits it.
const MAX_TITLE_CHARS: usize = 120;

/// What a session is called in tables.
pub(crate) fn session_title(row: &ListedSession) -> String {
    let line = headline(row.title.as_deref(), row.first_prompt.as_deref()).unwrap_or_default();
    truncate(line, MAX_TITLE_CHARS)
}
