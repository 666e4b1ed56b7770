//! `quipu search`

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_index::{
    FileHits, Hit, Pattern, PatternError, Query, SearchHits, SearchRole, SearchTerms, SessionKey, matching_lines,
};
use quipu_render::sanitize;
use quipu_transcript::{SessionOverview, error_chain, find};

use crate::args::{self, SearchArgs};
use crate::catalogue::{self, progress_bar, update_progress};
use crate::claude_dirs::claude_dirs;
use crate::error::{Failure, print_note, print_warnings};
use crate::format;
use crate::format::truncate;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::parallel;
use crate::time::{format_local_time, now};

/// Hits per session in text output; `--session` shows the others.
const MAX_HITS_PER_SESSION: usize = 5;

pub(crate) fn run(args: &SearchArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let words: Vec<&str> = args.query.iter().map(|word| query_word(word)).collect::<Result<_>>()?;
    let text = words.join(" ");
    let filter = args.filters.resolve(&now(), global)?;
    let is_capped = !global.json && args.filters.session.is_none();
    let query = Query {
        sessions: filter.sessions(global)?,
        role: args.role.map(search_role),
        tool: args.tool.clone(),
        since: filter.since,
        until: filter.until,
        limit: args.limit,
        limit_per_session: if is_capped { MAX_HITS_PER_SESSION } else { usize::MAX },
    };
    let found = if args.exact {
        search_files(&Pattern::exact(&text).map_err(pattern_error)?, &query, global)
    } else if args.regex {
        search_files(&Pattern::regex(&text).map_err(pattern_error)?, &query, global)
    } else {
        search_index(SearchTerms::parse(&text).map_err(pattern_error)?, &query, global)?
    };
    if global.json {
        output.print_json(&found.hits)?;
    } else if found.hits.is_empty() {
        print_note(global, &format!("no match for '{}'", sanitize(&truncate(&text, 60))));
    } else {
        output.print_text(&render_hits(&found, output)?)?;
    }
    Ok(if found.hits.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Put before words of a query that begin with a dash and cannot be options, such as `->` and
/// `-harbour`: clap would refuse the first and read the second as `-h`. The character cannot be
/// typed on a keyboard.
const DASH_MARKER: char = '\u{2060}';

/// Adds [`DASH_MARKER`] to the arguments of `quipu search` that need it.
pub(crate) fn mark_dashed_words(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut is_search, mut is_past_options) = (false, false);
    let args = args.map(|arg| {
        is_search |= arg == "search" || arg == "find";
        is_past_options |= arg == "--";
        if is_search && !is_past_options && arg.to_str().is_some_and(is_dashed_word) {
            OsString::from(format!("{DASH_MARKER}{}", arg.to_string_lossy()))
        } else {
            arg
        }
    });
    args.collect()
}

/// Whether an argument begins with a dash and cannot be an option of `search`.
fn is_dashed_word(arg: &str) -> bool {
    let Some(rest) = arg.strip_prefix('-') else { return false };
    let mut after_flags = rest.trim_start_matches(['h', 'q', 'v', 'V']).chars();
    match (after_flags.next(), after_flags.next()) {
        (None | Some('-' | 'p'), _) => false,
        (Some('n'), value) => value.is_some_and(|value| !value.is_ascii_digit() && value != '='),
        // A single letter is a mistyped option; clap reports it.
        (Some(letter), _) => rest.len() > 1 || !letter.is_alphabetic(),
    }
}

/// The word without [`DASH_MARKER`]. Fails if it may be a mistyped option.
fn query_word(word: &str) -> Result<&str> {
    let Some(dashed) = word.strip_prefix(DASH_MARKER) else { return Ok(word) };
    if !dashed[1..].starts_with(char::is_alphanumeric) {
        return Ok(dashed);
    }
    let message = format!("`{}` is not an option", sanitize(&truncate(dashed, 60)));
    let hint = "to leave out a word, quote the query, as in `quipu search 'tide -harbour'`, or write `--` before it";
    Err(Failure::usage("usage.dashed_word", message, hint))
}

fn search_role(role: args::RoleArg) -> SearchRole {
    match role {
        args::RoleArg::User => SearchRole::User,
        args::RoleArg::Assistant => SearchRole::Assistant,
        args::RoleArg::Thinking => SearchRole::Thinking,
        args::RoleArg::Tool => SearchRole::Tool,
        args::RoleArg::System => SearchRole::System,
    }
}

fn pattern_error(error: PatternError) -> anyhow::Error {
    let message = error_chain(&error);
    let hint = match error {
        PatternError::Empty => "name at least one word, such as `quipu search tide`",
        PatternError::TooManyTerms { .. } => "--exact searches for a long text as it is",
        PatternError::Syntax { .. } => "--exact searches for a text as it is",
    };
    Failure::usage(error.code(), message, hint)
}

fn search_index(terms: SearchTerms, query: &Query, global: &GlobalArgs) -> Result<SearchHits> {
    if !terms.has_words() {
        return Ok(search_files(&Pattern::from_terms(terms), query, global));
    }
    let started = Instant::now();
    let (found, up_to_date) = catalogue::with_catalogue(global, |catalogue| {
        let bar = progress_bar("indexing (MB)", global);
        let errors = catalogue.index_text(&|done, all| update_progress(&bar, done, all));
        bar.finish_and_clear();
        print_warnings(&errors?);
        let up_to_date = Instant::now();
        Ok((catalogue.search(&terms, query)?, up_to_date))
    })?;
    if global.verbose {
        let (update, search) = (up_to_date - started, up_to_date.elapsed());
        print_note(
            global,
            &format!("index updated in {:.1} ms, searched in {:.1} ms", milliseconds(update), milliseconds(search)),
        );
    }
    // Where the index has many candidates and few have the signs, the files are quicker.
    Ok(if found.is_incomplete { search_files(&Pattern::from_terms(terms), query, global) } else { found })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Searches every file; the latest sessions come first.
fn search_files(pattern: &Pattern, query: &Query, global: &GlobalArgs) -> SearchHits {
    let (projects, mut errors) = find::list_project_folders(&claude_dirs(global));
    let (mut histories, unread) = find::list_session_files(&projects, &());
    errors.extend(unread);
    histories.retain(|history| query.includes_session(&history.project, history.id.as_str()));
    histories.sort_by_key(|history| std::cmp::Reverse(history.main_file().modified));
    let mut found = FileHits::new(pattern, query);
    let searched = parallel::map_files(&histories, "searching", global, |history| {
        (history.clone(), matching_lines(history, pattern))
    });
    for (history, (places, unread)) in searched {
        errors.extend(unread);
        found.add(&history, &places);
    }
    print_warnings(&errors);
    let (found, is_more) = found.finish();
    if is_more {
        print_note(global, &format!("the latest {}; --limit may show more", format::count(query.limit, "hit")));
    }
    found
}

/// Hits by session, each in two lines: its position and a snippet.
fn render_hits(found: &SearchHits, output: &Output) -> Result<String> {
    let cyan = output.style(AnsiColor::Cyan.on_default());
    let (bold, dim) = (output.style(Style::new().bold()), output.style(Style::new().dimmed()));
    let mark = output.style(AnsiColor::Yellow.on_default().bold());
    let mut sessions: Vec<SessionKey> = found.hits.iter().map(Hit::session).collect();
    let mut seen = HashSet::new();
    sessions.retain(|session| seen.insert(session.clone()));
    let mut text = String::new();
    for (n, session) in sessions.iter().enumerate() {
        let hits: Vec<&Hit> = found.hits.iter().filter(|hit| hit.session() == *session).collect();
        let is_twice = sessions.iter().filter(|other| other.id == session.id).count() > 1;
        let name = session_name(session, is_twice);
        let (title, project) = title_and_project(hits[0]);
        let gap = if n > 0 { "\n" } else { "" };
        writeln!(text, "{gap}{bold}{}{bold:#}  {dim}{}{dim:#}", sanitize(&title), sanitize(&project))?;
        for hit in hits {
            let place = format!("{}:{}", hit.agent.as_deref().unwrap_or(&name), hit.line);
            let time = hit.timestamp.as_deref().map(format_local_time).unwrap_or_default();
            let role = if hit.is_title { "title" } else { hit.role };
            let who = hit.tool.as_ref().map_or(role.to_owned(), |tool| format!("{role} {tool}"));
            let side = if hit.agent.is_some() { " (subagent)" } else { "" };
            writeln!(text, "  {cyan}{}{cyan:#}  {dim}{time}  {}{side}{dim:#}", sanitize(&place), sanitize(&who))?;
            let snippet = sanitize(&hit.snippet);
            let shown = if output.color {
                snippet.replace('«', &mark.to_string()).replace('»', &format!("{mark:#}"))
            } else {
                snippet.into_owned()
            };
            writeln!(text, "    {shown}")?;
        }
        if found.capped_sessions.contains(session) {
            writeln!(text, "  {dim}more in this session: --session {}{dim:#}", sanitize(&name))?;
        }
    }
    Ok(text)
}

/// Name of a session for `quipu show`; with its project if several sessions have the id.
fn session_name(SessionKey { project, id }: &SessionKey, is_twice: bool) -> String {
    let is_uuid = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let id = if is_uuid { &id[..8] } else { id };
    if is_twice { format!("{}/{id}", project.trim_start_matches('-')) } else { id.to_owned() }
}

/// Title and project of the session of a hit.
fn title_and_project(hit: &Hit) -> (String, String) {
    // The file of a subagent is next to the session file or in the folder of the session.
    let mut folders = hit.path.ancestors().skip(1);
    let own = folders.find(|folder| folder.file_name().is_some_and(|name| *name == *hit.session_id));
    let own = own.unwrap_or(&hit.path).with_file_name(format!("{}.jsonl", hit.session_id));
    let overview = SessionOverview::read_both_ends(&own).unwrap_or_default();
    let title = overview.headline().map(|title| truncate(title, 80));
    let project = format::project(overview.cwd.as_deref(), &hit.project).to_owned();
    (title.unwrap_or_else(|| hit.session_id.clone()), project)
}
