//! `quipu search`

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_index::{Hit, Pattern, Query, Role, hits_at, places};
use quipu_render::clean;
use quipu_transcript::find;

use crate::args::{self, Global, SearchArgs};
use crate::catalogue::{self, bar, step};
use crate::error::{Failure, warn};
use crate::output::Output;
use crate::parallel;
use crate::sessions::claude_dirs;
use crate::time::{local_time, now};

pub(crate) fn run(args: &SearchArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let filter = args.filters.resolve(&now(), global)?;
    let query = Query {
        text: args.query.join(" "),
        sessions: filter.sessions(global)?,
        role: args.role.map(role),
        tool: args.tool.clone(),
        since: filter.since,
        until: filter.until,
        limit: args.limit,
    };
    let hits = if args.exact || args.regex { in_files(args, &query, global)? } else { in_index(&query, global)? };
    if global.json {
        output.json(&hits)?;
    } else if hits.is_empty() {
        warn(&format!("nothing found for {}", clean(&query.text)));
    } else {
        output.text(&list(&hits, output)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn role(role: args::Role) -> Role {
    match role {
        args::Role::User => Role::User,
        args::Role::Assistant => Role::Assistant,
        args::Role::Thinking => Role::Thinking,
        args::Role::Tool => Role::Tool,
    }
}

fn in_index(query: &Query, global: &Global) -> Result<Vec<Hit>> {
    if !query.text.chars().any(char::is_alphanumeric) {
        let message = format!("no word to search for in '{}'", query.text);
        return Err(Failure::usage("search.no_word", message, "--exact looks for any text"));
    }
    let begun = Instant::now();
    let (hits, up_to_date) = catalogue::with(global, |catalogue| {
        let bar = bar("indexing (MB)", global);
        let errors = catalogue.index_text(&|done, all| step(&bar, done, all));
        bar.finish_and_clear();
        errors?.iter().for_each(|error| warn(error));
        let up_to_date = Instant::now();
        Ok((catalogue.search(query)?, up_to_date))
    })?;
    if global.verbose {
        let (update, search) = (up_to_date - begun, up_to_date.elapsed());
        warn(&format!("the index took {:.1} ms to bring up to date, the search {:.1} ms", ms(update), ms(search)));
    }
    Ok(hits)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Looks into every file and shows the latest.
fn in_files(args: &SearchArgs, query: &Query, global: &Global) -> Result<Vec<Hit>> {
    let pattern = if args.exact { Pattern::exact(&query.text) } else { Pattern::regex(&query.text) }?;
    let (projects, mut errors) = find::projects(&claude_dirs(global));
    let (mut histories, unread) = find::histories(&projects, &());
    errors.extend(unread);
    histories.retain(|history| query.wants_session(&history.project, history.id.as_str()));
    histories.sort_by_key(|history| std::cmp::Reverse(history.main().modified));
    let (mut hits, mut lines) = (Vec::new(), 0);
    let found = parallel::each(&histories, "searching", global, |history| places(history, &pattern));
    for (history, (places, broken)) in histories.iter().zip(found) {
        lines += places.len();
        errors.extend(broken);
        for place in places.iter().rev() {
            if hits.len() < query.limit {
                hits.extend(hits_at(history, place, &pattern, query));
            }
        }
    }
    errors.iter().for_each(|error| warn(error));
    hits.truncate(query.limit);
    hits.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
    if hits.len() == query.limit && lines > hits.len() && !global.quiet && !global.json {
        warn(&format!("the latest of {lines} lines that match; --limit shows more"));
    }
    Ok(hits)
}

/// Each hit in two lines: where it is, and what is said there.
fn list(hits: &[Hit], output: &Output) -> Result<String> {
    let cyan = output.style(AnsiColor::Cyan.on_default());
    let dim = output.style(Style::new().dimmed());
    let mark = output.style(AnsiColor::Yellow.on_default().bold());
    let mut text = String::new();
    for hit in hits {
        let session = hit.session_id.get(..8).unwrap_or(&hit.session_id);
        let time = hit.timestamp.as_deref().map(local_time).unwrap_or_default();
        let who = hit.tool.as_ref().map_or(hit.role.to_owned(), |tool| format!("{} {tool}", hit.role));
        let place = format!("{time}  {}  {}:{}", clean(&who), clean(&hit.project), hit.line);
        writeln!(text, "{cyan}{session}{cyan:#}  {dim}{place}{dim:#}")?;
        let snippet = clean(&hit.snippet);
        let shown = if output.color {
            snippet.replace('«', &mark.to_string()).replace('»', &format!("{mark:#}"))
        } else {
            snippet.into_owned()
        };
        writeln!(text, "    {shown}")?;
    }
    Ok(text)
}
