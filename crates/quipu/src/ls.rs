//! `quipu ls`

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::{Metrics, Session, Tokens};
use quipu_message::View;
use quipu_message::line::mend;
use quipu_render::clean;
use quipu_transcript::find::{self, SessionFile};
use quipu_transcript::{Lines, Piece};
use serde::Serialize;

use crate::args::{Global, LsArgs, Sort};
use crate::error::Failure;
use crate::output::Output;
use crate::parallel;
use crate::prices;
use crate::sessions::claude_dirs;
use crate::time::{local_time, moment};

/// One session, in the shape of `quipu ls --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    session_id: String,
    project: String,
    cwd: Option<String>,
    path: PathBuf,
    title: Option<String>,
    first_prompt: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    turns: u64,
    messages: u64,
    models: Vec<String>,
    tokens: Tokens,
    cost_usd: f64,
    unpriced_models: Vec<String>,
    compacted: bool,
    forked_from: Option<String>,
    continues: Option<String>,
    subagents: usize,
    git_branch: Option<String>,
    version: Option<String>,
    #[serde(skip)]
    first_uuid: Option<String>,
    #[serde(skip)]
    last_uuid: Option<String>,
    #[serde(skip)]
    continues_leaf: Option<String>,
}

pub(crate) fn run(args: &LsArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let since = args.since.as_deref().map(moment).transpose()?;
    let until = args.until.as_deref().map(moment).transpose()?;
    let dirs = claude_dirs(global);
    let (files, errors) = find::sessions(&dirs);
    for error in errors {
        let _ = std::io::Write::write_fmt(&mut anstream::stderr().lock(), format_args!("warning: {error}\n"));
    }
    if files.is_empty() && !global.json {
        let looked = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        let hint = "say where sessions are with --claude-dir";
        return Err(Failure::error("session.none", format!("no sessions found under {looked}"), hint));
    }
    let mut rows = rows(&files, global)?;
    find_forks(&mut rows);
    find_continued(&mut rows);
    rows.retain(|row| wanted(row, args, since, until));
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

/// Some sessions, latest first.
pub(crate) fn latest(files: &[SessionFile], global: &Global) -> Result<Vec<Row>> {
    let mut rows = rows(files, global)?;
    sort(&mut rows, Sort::Time);
    Ok(rows)
}

fn rows(files: &[SessionFile], global: &Global) -> Result<Vec<Row>> {
    let prices = prices::load()?;
    let metrics = parallel::each(files, "reading", global, |file| metrics(&file.path, &prices));
    Ok(files.iter().zip(metrics).map(|(file, (metrics, subagents))| row(file, metrics, subagents)).collect())
}

/// The metrics of a session and its subagents; what cannot be read counts nothing.
fn metrics(path: &Path, prices: &Prices) -> (Metrics, usize) {
    let mut session = Session::default();
    count(path, &mut session);
    let subagents = find::subagents(path);
    subagents.iter().for_each(|subagent| count(&subagent.path, &mut session));
    (session.finish(prices), subagents.len())
}

fn count(path: &Path, session: &mut Session) {
    let Ok(file) = File::open(path) else { return };
    let mut lines = Lines::new(file);
    while let Ok(Some(piece)) = lines.next() {
        let Piece::Line { bytes, .. } = piece else { continue };
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        if let Ok(view) = View::read(&mend(text)) {
            session.push(&view);
        }
    }
}

fn row(file: &SessionFile, metrics: Metrics, subagents: usize) -> Row {
    let Metrics { started_at, ended_at, turns, messages, models, tokens, cost_usd, unpriced_models, facts, .. } =
        metrics;
    Row {
        session_id: file.id.to_string(),
        project: file.project.clone(),
        cwd: facts.cwd,
        path: file.path.clone(),
        title: facts.title,
        first_prompt: facts.first_prompt,
        started_at,
        ended_at,
        turns,
        messages,
        models,
        tokens,
        cost_usd,
        unpriced_models,
        compacted: facts.compacted,
        forked_from: None,
        continues: None,
        subagents,
        git_branch: facts.git_branch,
        version: facts.version,
        first_uuid: facts.first_uuid,
        last_uuid: facts.last_uuid,
        continues_leaf: facts.continues_leaf,
    }
}

/// A fork shares its first entry with an earlier session.
fn find_forks(rows: &mut [Row]) {
    let mut earliest: HashMap<String, (Option<String>, String)> = HashMap::new();
    for row in rows.iter() {
        let Some(uuid) = &row.first_uuid else { continue };
        let this = (row.ended_at.clone(), row.session_id.clone());
        let first = earliest.entry(uuid.clone()).or_insert_with(|| this.clone());
        if this < *first {
            *first = this;
        }
    }
    for row in rows {
        let first = row.first_uuid.as_ref().and_then(|uuid| earliest.get(uuid));
        row.forked_from = first.map(|(_, id)| id.clone()).filter(|id| *id != row.session_id);
    }
}

/// An old-style compaction began a new file and named the last line of the old one.
fn find_continued(rows: &mut [Row]) {
    let last = |row: &Row| Some((row.last_uuid.clone()?, row.session_id.clone()));
    let by_last: HashMap<String, String> = rows.iter().filter_map(last).collect();
    for row in rows {
        row.continues = row.continues_leaf.as_ref().and_then(|leaf| by_last.get(leaf)).cloned();
    }
}

fn wanted(row: &Row, args: &LsArgs, since: Option<Timestamp>, until: Option<Timestamp>) -> bool {
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
    let in_project = |part: &String| has(row.cwd.as_deref().unwrap_or_default(), part) || has(&row.project, part);
    args.project.as_ref().is_none_or(in_project)
        && args.model.as_ref().is_none_or(|part| row.models.iter().any(|model| has(model, part)))
        && since.is_none_or(|since| time(&row.ended_at).is_some_and(|end| end >= since))
        && until.is_none_or(|until| time(&row.started_at).is_some_and(|start| start < until))
}

fn sort(rows: &mut [Row], by: Sort) {
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

pub(crate) fn table(rows: &[Row], output: &Output) -> String {
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
