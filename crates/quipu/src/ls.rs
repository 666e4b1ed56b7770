//! `quipu ls`

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::Result;
use quipu_index::ListedSession;

use crate::args::{LsArgs, SortBy};
use crate::catalogue;
use crate::claude_dirs::no_sessions_error;
use crate::error::print_note;
use crate::format;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::session_table::session_table;
use crate::time::now;

pub(crate) fn run(args: &LsArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let mut filters = args.filters.clone();
    filters.project = filters.project.or_else(|| args.folder.clone());
    let filter = filters.resolve(&now(), global)?;
    let mut sessions = catalogue::list_sessions(global)?;
    if sessions.is_empty() && !global.json {
        return Err(no_sessions_error(global));
    }
    sessions.retain(|session| filter.matches(session));
    sort_rows(&mut sessions, args.sort);
    let match_count = sessions.len();
    sessions.truncate(args.limit.unwrap_or(if global.json { usize::MAX } else { 30 }));
    if global.json {
        output.print_json(&sessions)?;
    } else if sessions.is_empty() {
        print_note(global, &"no session matches the filters");
    } else {
        output.print_text(&session_table(&sessions, output))?;
        if sessions.len() < match_count {
            print_note(
                global,
                &format!("{} of {}; -n N shows more", sessions.len(), format::count(match_count, "session")),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sort_rows(sessions: &mut [ListedSession], by: SortBy) {
    // Sessions are sorted by time already, and sorting is stable.
    match by {
        SortBy::Time => {}
        SortBy::Cost => sessions.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd)),
        SortBy::Tokens => sessions.sort_by_key(|session| Reverse(session.tokens.total())),
        SortBy::Turns => sessions.sort_by_key(|session| Reverse(session.turns)),
    }
}
