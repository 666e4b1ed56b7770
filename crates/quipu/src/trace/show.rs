//! `quipu trace show`: sessions, branches, turns and the parts of requests.

use std::process::ExitCode;

use anstyle::Style;
use anyhow::Result;
use quipu_conversation::price::Prices;
use quipu_render::sanitize;
use quipu_trace::{AnatomyPart, SessionCalls, Structure, Trace, TraceRows, anatomy, call_cost};

use super::{FileArgs, find_call};
use crate::format::truncate;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::{format, prices};

pub(super) const EXAMPLES: &str = "\
Examples:
  quipu trace show latest                  branches and turns of the latest session
  quipu trace show latest --call call-3    one request in its parts
  quipu trace show --json latest | jq '.calls[].anatomy'

A branch is a chain of API calls that continue each other: the main conversation, a subagent, a \
side task such as a title, a retry, a rewind, or the conversation after a compaction. Token counts \
of parts are estimates: their share of the bytes, scaled to the recorded size of the prompt.";

/// Arguments of `quipu trace show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Show the parts of one request; `quipu trace ls` lists the ids
    #[arg(long, value_name = "ID")]
    call: Option<String>,
}

pub(super) fn run(args: &ShowArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let trace = args.files.open(global)?;
    let prices = prices::load()?;
    let structure = Structure::new(&trace);
    if let Some(id) = &args.call {
        let call = find_call(&trace, id)?;
        let parts = anatomy(&trace, call, structure.previous_call(call).map(|index| &trace.calls[index]));
        if global.json {
            output.print_json(&parts)?;
        } else {
            output.print_text(&anatomy_table(&parts).render(output))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if global.json {
        output.print_json(&TraceRows::new(&trace, &structure, &prices))?;
    } else {
        let sessions =
            structure.sessions.iter().map(|session| session_text(&trace, &structure, session, &prices, output));
        output.print_text(&sessions.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn session_text(
    trace: &Trace,
    structure: &Structure,
    session: &SessionCalls,
    prices: &Prices,
    output: &Output,
) -> String {
    let bold = output.style(Style::new().bold());
    let id = session.session_id.as_deref().unwrap_or("calls without a session id");
    let mut text = format!("{bold}{}{bold:#}\n", sanitize(id));
    let columns = [
        Column::text("branch"),
        Column::number("calls"),
        Column::text("from").drop_rank(2),
        Column::number("cost").drop_rank(1),
        Column::text("reason").flexible(16).drop_rank(3),
    ];
    let mut branches = Table::new(columns);
    for branch in session.branches.iter().map(|index| &structure.branches[*index]) {
        let cost: f64 = branch.calls.iter().filter_map(|call| call_cost(&trace.calls[*call], prices)).sum();
        let from = match (branch.parent, branch.forked_at) {
            (Some(_), Some(call)) => trace.calls[call].id.clone(),
            (Some(parent), None) => structure.branches[parent].id.clone(),
            (None, _) => String::new(),
        };
        branches.push_row([
            branch.id.clone(),
            branch.calls.len().to_string(),
            from,
            format::money(cost),
            sanitize(&branch.reason.to_string()).into_owned(),
        ]);
    }
    text.push_str(&branches.render(output));
    text.push('\n');
    let columns = [
        Column::number("turn"),
        Column::text("prompt").flexible(16),
        Column::number("calls"),
        Column::number("tools").drop_rank(2),
        Column::number("tokens").drop_rank(3),
        Column::number("cost").drop_rank(1),
    ];
    let mut turns = Table::new(columns);
    for (number, turn) in session.turns.iter().enumerate() {
        let cost: f64 = turn.calls.iter().filter_map(|call| call_cost(&trace.calls[*call], prices)).sum();
        let prompt = sanitize(turn.prompt.lines().next().unwrap_or_default()).into_owned();
        turns.push_row([
            (number + 1).to_string(),
            truncate(&prompt, 80),
            turn.calls.len().to_string(),
            turn.tools.len().to_string(),
            format::tokens(turn.tokens.total()),
            format::money(cost),
        ]);
    }
    text.push_str(&turns.render(output));
    text
}

fn anatomy_table(parts: &[AnatomyPart]) -> Table {
    let columns = [
        Column::text("part").flexible(16),
        Column::number("tokens (estimated)"),
        Column::number("bytes").drop_rank(1),
        Column::text("since the previous call").drop_rank(2),
    ];
    let mut table = Table::new(columns);
    for part in parts {
        table.push_row([
            sanitize(&part.part).into_owned(),
            format::tokens(part.tokens),
            format::thousands(part.bytes),
            if part.changed { "changed" } else { "" }.to_owned(),
        ]);
    }
    table
}
