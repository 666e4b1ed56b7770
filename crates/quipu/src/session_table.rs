//! Renders tables of sessions.

use quipu_conversation::headline;
use quipu_index::ListedSession;

use crate::format;
use crate::format::truncate;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::time::format_local_time;

const COLUMNS: [Column; 7] = [
    Column::text("id"),
    Column::text("last").drop_rank(1),
    Column::text("project").drop_rank(3).flexible(12),
    Column::number("turns").drop_rank(4),
    Column::number("tokens").drop_rank(5),
    Column::number("cost").drop_rank(2),
    Column::text("title").flexible(30),
];

/// Table with one row per session: id, last activity, project, usage and title.
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

/// Table of sessions that match an ambiguous name, for an error message.
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

/// First eight characters of the session id.
pub(crate) fn short_id(row: &ListedSession) -> &str {
    row.session_id.get(..8).unwrap_or(&row.session_id)
}

/// Longest title in a table without a limit on its width.
const MAX_TITLE_CHARS: usize = 120;

/// Title of a session, or else a line of its first prompt.
pub(crate) fn session_title(row: &ListedSession) -> String {
    let line = headline(row.title.as_deref(), row.first_prompt.as_deref()).unwrap_or_default();
    truncate(line, MAX_TITLE_CHARS)
}
