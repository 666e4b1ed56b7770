//! `quipu statusline`

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quipu_index::{Catalogue, GroupBy, SessionStatus, TimeWindow, UsageCounter, UsageRow};
use quipu_render::sanitize;
use serde::{Deserialize, Serialize};

use crate::catalogue;
use crate::error::Failure;
use crate::format::{self, money};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::prices;
use crate::time::now;

/// The JSON that Claude Code sends; every field may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusInput {
    transcript_path: Option<String>,
    model: ModelInput,
    cost: CostInput,
    context_window: ContextWindowInput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelInput {
    id: Option<String>,
    display_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CostInput {
    total_cost_usd: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContextWindowInput {
    context_window_size: Option<f64>,
    used_percentage: Option<f64>,
}

/// Values of the status line; `None` if not known.
#[derive(Debug, Default, Serialize)]
struct StatusLine {
    model: Option<String>,
    session_cost_usd: Option<f64>,
    today_cost_usd: Option<f64>,
    block_minutes_left: Option<f64>,
    block_cost_usd: Option<f64>,
    context_used_percentage: Option<f64>,
}

/// How far to look back for the start of the active block. Blocks follow each other until there
/// are five hours without a message.
const BLOCK_HISTORY_DAYS: i64 = 7;
/// Context window in tokens if Claude Code does not send it.
const DEFAULT_CONTEXT_TOKENS: f64 = 200_000.0;

pub(crate) fn run(global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    let status: StatusInput = serde_json::from_str(&text).map_err(|error| {
        let hint = "Claude Code sends it; `quipu statusline --help` shows how to set it up";
        Failure::error("statusline.input", format!("cannot read the status on standard input: {error}"), hint)
    })?;
    let line = status_line(&status, global)?;
    if global.json {
        output.print_json(&line)?;
    } else {
        output.print_bytes(format!("{}\n", line.render()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status_line(status: &StatusInput, global: &GlobalArgs) -> Result<StatusLine> {
    let (mut catalogue, _) = catalogue::open(global)?;
    let file = status.transcript_path.as_deref().and_then(|path| Path::new(path).canonicalize().ok());
    let session = file.map(|file| session_status(&mut catalogue, &file)).transpose()?.flatten();
    let now = now();
    let today = TimeWindow { since: Some(now.start_of_day()?.timestamp()), ..TimeWindow::default() };
    let since = now.timestamp() - jiff::SignedDuration::from_hours(24 * BLOCK_HISTORY_DAYS);
    let recent = TimeWindow { since: Some(since), until: Some(now.timestamp()), ..TimeWindow::default() };
    let mut days = UsageCounter::new(GroupBy::Day, &today);
    let mut blocks = UsageCounter::new(GroupBy::Block, &recent);
    let counted = catalogue.for_each_usage(GroupBy::Block, &recent, |usage| {
        days.add(usage);
        blocks.add(usage);
    });
    let blocks = blocks.report(now.timestamp()).rows;
    let block = blocks.iter().rev().find(|row| minutes_left(row).is_some());
    Ok(StatusLine {
        model: model_name(status, session.as_ref()),
        session_cost_usd: session.as_ref().map(|status| status.session.cost_usd).or(status.cost.total_cost_usd),
        // A damaged index is repaired by the next other command.
        today_cost_usd: counted.is_ok().then(|| days.report(now.timestamp()).totals.cost.as_f64()),
        block_minutes_left: block.and_then(minutes_left),
        block_cost_usd: block.map(|row| row.cost.as_f64()),
        context_used_percentage: status
            .context_window
            .used_percentage
            .or_else(|| context_percentage(status, session.as_ref()?)),
    })
}

/// Reads a session through the index, or directly if it is not in the index or the index fails.
fn session_status(catalogue: &mut Catalogue, file: &Path) -> Result<Option<SessionStatus>> {
    if catalogue.contains_path(file)
        && let Ok(session) = catalogue.session_status(file)
    {
        return Ok(session);
    }
    Ok(Catalogue::in_memory(&[], prices::load()?)?.session_status(file)?)
}

fn minutes_left(row: &UsageRow) -> Option<f64> {
    row.block?.minutes_left
}

fn model_name(status: &StatusInput, session: Option<&SessionStatus>) -> Option<String> {
    let given = status.model.display_name.clone().or_else(|| status.model.id.clone());
    let last = || Some(session?.last_message.as_ref()?.serving.model.clone());
    given.or_else(|| last().map(|model| format::model(&model).to_owned())).filter(|model| !model.is_empty())
}

/// Percentage of the context window that the last prompt filled.
fn context_percentage(status: &StatusInput, session: &SessionStatus) -> Option<f64> {
    let prompt = session.last_message.as_ref()?.tokens.prompt();
    let is_long = status.model.id.as_deref().is_some_and(|id| id.contains("[1m]"));
    let usual = if is_long { 5.0 * DEFAULT_CONTEXT_TOKENS } else { DEFAULT_CONTEXT_TOKENS };
    let size = status.context_window.context_window_size.filter(|size| *size > 0.0).unwrap_or(usual);
    Some((100.0 * prompt as f64 / size).min(100.0))
}

impl StatusLine {
    fn render(&self) -> String {
        let parts = [
            self.model.as_deref().map(|model| sanitize(model).into_owned()),
            self.session_cost_usd.map(|usd| format!("session {}", money(usd))),
            self.today_cost_usd.map(|usd| format!("today {}", money(usd))),
            self.block_minutes_left.map(|minutes| format!("block {} left", format::hours(minutes))),
            self.context_used_percentage.map(|percent| format!("context {percent:.0}%")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}
