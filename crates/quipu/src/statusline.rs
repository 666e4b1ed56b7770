//! `quipu statusline`

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quipu_index::{By, Catalogue, Counter, Row, SessionStatus, Window};
use quipu_render::clean;
use serde::{Deserialize, Serialize};

use crate::args::Global;
use crate::catalogue;
use crate::error::Failure;
use crate::format::{self, money};
use crate::output::Output;
use crate::prices;
use crate::time::now;

/// What Claude Code sends; every field may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    transcript_path: Option<String>,
    model: Model,
    cost: Cost,
    context_window: ContextWindow,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Model {
    id: Option<String>,
    display_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cost {
    total_cost_usd: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContextWindow {
    context_window_size: Option<f64>,
    used_percentage: Option<f64>,
}

/// What is shown; what is not known is left out.
#[derive(Debug, Default, Serialize)]
struct Line {
    model: Option<String>,
    session_cost_usd: Option<f64>,
    today_cost_usd: Option<f64>,
    block_minutes_left: Option<f64>,
    block_cost_usd: Option<f64>,
    context_used_percentage: Option<f64>,
}

/// Blocks follow one another for as long as there are no five hours without a message;
/// further back than this is not looked.
const BLOCK_HISTORY_DAYS: i64 = 7;
/// The context window of a model, in tokens, when nobody says.
const CONTEXT_WINDOW: f64 = 200_000.0;

pub(crate) fn run(global: &Global, output: &Output) -> Result<ExitCode> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    let status: Status = serde_json::from_str(&text).map_err(|error| {
        let hint = "Claude Code sends it; `quipu statusline --help` shows how to set it up";
        Failure::error("statusline.input", format!("cannot read the status on standard input: {error}"), hint)
    })?;
    let line = line(&status, global)?;
    if global.json {
        output.json(&line)?;
    } else {
        output.bytes(format!("{}\n", line.text()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(status: &Status, global: &Global) -> Result<Line> {
    let (mut catalogue, _) = catalogue::open(global)?;
    let file = status.transcript_path.as_deref().and_then(|path| Path::new(path).canonicalize().ok());
    let session = file.map(|file| session(&mut catalogue, &file)).transpose()?.flatten();
    let now = now();
    let today = Window { since: Some(now.start_of_day()?.timestamp()), ..Window::default() };
    let since = now.timestamp() - jiff::SignedDuration::from_hours(24 * BLOCK_HISTORY_DAYS);
    let recent = Window { since: Some(since), until: Some(now.timestamp()), ..Window::default() };
    let mut days = Counter::new(By::Day, &today);
    let mut blocks = Counter::new(By::Block, &recent);
    let counted = catalogue.each_used(By::Block, &recent, |used| {
        days.add(used);
        blocks.add(used);
    });
    let blocks = blocks.report(now.timestamp()).rows;
    let block = blocks.iter().rev().find(|row| minutes_left(row).is_some());
    Ok(Line {
        model: model(status, session.as_ref()),
        session_cost_usd: session.as_ref().map(|status| status.session.cost_usd).or(status.cost.total_cost_usd),
        // A damaged index is for another command to set aside.
        today_cost_usd: counted.is_ok().then(|| days.report(now.timestamp()).totals.cost.as_f64()),
        block_minutes_left: block.and_then(minutes_left),
        block_cost_usd: block.map(|row| row.cost.as_f64()),
        context_used_percentage: status.context_window.used_percentage.or_else(|| context(status, session.as_ref()?)),
    })
}

/// Reads the session, through the index when it belongs there and can be used.
fn session(catalogue: &mut Catalogue, file: &Path) -> Result<Option<SessionStatus>> {
    if catalogue.covers(file)
        && let Ok(session) = catalogue.session(file)
    {
        return Ok(session);
    }
    Ok(Catalogue::in_memory(&[], prices::load()?)?.session(file)?)
}

fn minutes_left(row: &Row) -> Option<f64> {
    row.block?.minutes_left
}

fn model(status: &Status, session: Option<&SessionStatus>) -> Option<String> {
    let given = status.model.display_name.clone().or_else(|| status.model.id.clone());
    let last = || Some(session?.last_message.as_ref()?.served.model.clone());
    given.or_else(|| last().map(|model| format::model(&model).to_owned())).filter(|model| !model.is_empty())
}

/// How much of the context window the last prompt filled.
fn context(status: &Status, session: &SessionStatus) -> Option<f64> {
    let prompt = session.last_message.as_ref()?.tokens.prompt();
    let is_long = status.model.id.as_deref().is_some_and(|id| id.contains("[1m]"));
    let usual = if is_long { 5.0 * CONTEXT_WINDOW } else { CONTEXT_WINDOW };
    let size = status.context_window.context_window_size.filter(|size| *size > 0.0).unwrap_or(usual);
    Some((100.0 * prompt as f64 / size).min(100.0))
}

impl Line {
    fn text(&self) -> String {
        let parts = [
            self.model.as_deref().map(|model| clean(model).into_owned()),
            self.session_cost_usd.map(|usd| format!("session {}", money(usd))),
            self.today_cost_usd.map(|usd| format!("today {}", money(usd))),
            self.block_minutes_left.map(|minutes| format!("block {} left", format::hours(minutes))),
            self.context_used_percentage.map(|percent| format!("context {percent:.0}%")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}
