//! `quipu trace ls`

use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::Tokens;
use quipu_conversation::price::Prices;
use quipu_trace::{Call, CallEnd, Endpoint, Trace, call_cost};
use serde::Serialize;

use super::FileArgs;
use crate::error::print_note;
use crate::format;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::prices;
use crate::table::{Column, Table};
use crate::time::format_local_time;

pub(super) const EXAMPLES: &str = "\
Examples:
  quipu trace ls latest
  quipu trace ls capture.jsonl other-capture.jsonl
  quipu trace ls --json latest | jq 'map(.tokens.cache_read) | add'

Calls of older session files, which do not log their requests, are reconstructed from the \
responses and marked with `*`.";

const COLUMNS: [Column; 8] = [
    Column::text("id").flexible(8),
    Column::text("time").drop_rank(3),
    Column::text("model").flexible(8),
    Column::text("status").flexible(5),
    Column::number("tokens"),
    Column::number("cached").drop_rank(2),
    Column::number("cost").drop_rank(1),
    Column::text("session").drop_rank(4),
];

/// A call in JSON.
#[derive(Debug, Serialize)]
struct CallRow<'a> {
    id: &'a str,
    started_at: Option<String>,
    duration_ms: Option<u64>,
    path: &'a str,
    model: Option<&'a str>,
    status: Option<u16>,
    end: &'static str,
    error: Option<&'a str>,
    session_id: Option<&'a str>,
    agent_id: Option<&'a str>,
    messages: Option<usize>,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    is_reconstructed: bool,
    source: Option<String>,
    line: u64,
}

pub(super) fn run(args: &FileArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let trace = args.open(global)?;
    let prices = prices::load()?;
    if global.json {
        let rows: Vec<CallRow<'_>> = trace.calls.iter().map(|call| row(&trace, call, &prices)).collect();
        output.print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if trace.calls.is_empty() {
        print_note(global, &"no API calls");
        return Ok(ExitCode::SUCCESS);
    }
    output.print_text(&call_table(&trace, &prices).render(output))?;
    let reconstructed = trace.calls.iter().filter(|call| call.is_reconstructed).count();
    if reconstructed > 0 {
        let calls = format::count(reconstructed, "call");
        print_note(global, &format!("* {calls} reconstructed from the responses; the requests are not recorded"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row<'a>(trace: &Trace, call: &'a Call, prices: &Prices) -> CallRow<'a> {
    CallRow {
        id: &call.id,
        started_at: call.started_at.map(|time| time.to_string()),
        duration_ms: call.duration_ms,
        path: &call.path,
        model: call.model(),
        status: call.response.status,
        end: end_name(call.response.end),
        error: call.response.error.as_deref(),
        session_id: call.identity.session_id.as_deref(),
        agent_id: call.identity.agent_id.as_deref(),
        messages: call.request.as_ref().map(|request| request.messages.len()),
        tokens: call.response.tokens,
        cost_usd: call_cost(call, prices),
        is_reconstructed: call.is_reconstructed,
        source: trace.sources.get(call.source).map(|source| source.path.display().to_string()),
        line: call.line,
    }
}

fn end_name(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Completed => "completed",
        CallEnd::ClientAborted => "client_aborted",
        CallEnd::UpstreamClosed => "upstream_closed",
        CallEnd::Failed => "failed",
        _ => "unknown",
    }
}

fn call_table(trace: &Trace, prices: &Prices) -> Table {
    let mut table = Table::new(COLUMNS);
    let (mut total, mut cost, mut unpriced) = (Tokens::default(), 0.0, 0);
    for call in &trace.calls {
        let tokens = call.response.tokens;
        let cost_usd = call_cost(call, prices);
        total.add(tokens.unwrap_or_default());
        cost += cost_usd.unwrap_or_default();
        unpriced += usize::from(tokens.is_some() && cost_usd.is_none());
        table.push_row([
            call.id.clone(),
            call.started_at.map(|time| format_local_time(&time.to_string())).unwrap_or_default(),
            what_was_called(call),
            status(call),
            tokens.map(in_and_out).unwrap_or_default(),
            tokens.map(|tokens| format::tokens(tokens.cache_read)).unwrap_or_default(),
            match (tokens, cost_usd) {
                (None, _) => String::new(),
                (_, None) => "?".to_owned(),
                (_, Some(usd)) => format::money(usd),
            },
            call.identity.session_id.as_deref().map(|id| id.get(..8).unwrap_or(id).to_owned()).unwrap_or_default(),
        ]);
    }
    table.push_total([
        format::count(trace.calls.len(), "call"),
        String::new(),
        String::new(),
        String::new(),
        in_and_out(total),
        format::tokens(total.cache_read),
        format::cost(cost, unpriced),
        String::new(),
    ]);
    table
}

fn in_and_out(tokens: Tokens) -> String {
    format!("{} → {}", format::tokens(tokens.prompt()), format::tokens(tokens.output))
}

/// The model, or the path of a call that is not for a message.
fn what_was_called(call: &Call) -> String {
    match call.model() {
        Some(model) if call.endpoint == Endpoint::Messages => format::model(model).to_owned(),
        _ => call.path.clone(),
    }
}

fn status(call: &Call) -> String {
    let mut text = call.response.status.map_or("-".to_owned(), |status| status.to_string());
    let how = match (&call.response.error, call.response.end) {
        (Some(error), _) => error.as_str(),
        (None, CallEnd::ClientAborted) => "aborted",
        (None, CallEnd::UpstreamClosed) => "cut off",
        (None, CallEnd::Failed) => "no response",
        _ => "",
    };
    if !how.is_empty() {
        text = format!("{text} {how}");
    }
    if call.is_reconstructed { text + "*" } else { text }
}
