//! `quipu trace cache`

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use quipu_conversation::price::Prices;
use quipu_trace::cache::{CacheAnalysis, CacheRow, CallVerdict, Cause, Miss, MissTotals, Policy, policy_rows};
use quipu_trace::{Structure, Trace};

use super::FileArgs;
use crate::error::print_note;
use crate::format;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::prices;
use crate::table::{Column, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu trace cache capture.jsonl                     each call: read, expected, why it missed
  quipu trace cache latest --what-if ttl-1h           what a longer lifetime would cost
  quipu trace cache *.jsonl --what-if all
  quipu trace cache capture.jsonl --json | jq '.[] | select(.miss)'

A call should read what the call before it had cached. MISSED is what it did not read, COST what \
that cost more than a read, AT the first difference between the two requests. Numbers with `~` are \
estimates. docs/cache.md explains the causes.";

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Show the tokens and the cost that the same calls would have under another policy;
    /// may be repeated
    #[arg(long, value_enum, value_name = "POLICY")]
    what_if: Vec<PolicyChoice>,
}

/// A policy, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyChoice {
    One(Policy),
    All,
}

/// All values of `--what-if`.
const POLICY_CHOICES: [PolicyChoice; Policy::ALL.len()] = {
    let mut choices = [PolicyChoice::All; Policy::ALL.len()];
    let mut index = 1;
    while index < choices.len() {
        choices[index - 1] = PolicyChoice::One(Policy::ALL[index]);
        index += 1;
    }
    choices
};

impl ValueEnum for PolicyChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &POLICY_CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::One(policy) => PossibleValue::new(policy.name()).help(policy.description()),
            Self::All => PossibleValue::new("all").help("every policy"),
        })
    }
}

pub(crate) fn run(args: &CacheArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let trace = args.files.open(global)?;
    let structure = Structure::new(&trace);
    let analysis = CacheAnalysis::new(&trace, &structure);
    let prices = prices::load()?;
    if args.what_if.is_empty() {
        let verdicts = analysis.verdicts(&prices);
        print_verdicts(&trace, &structure, &verdicts, global, output)?;
    } else {
        print_what_if(&analysis, &chosen_policies(&args.what_if), &prices, global, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_verdicts(
    trace: &Trace,
    structure: &Structure,
    verdicts: &[CallVerdict],
    global: &GlobalArgs,
    output: &Output,
) -> Result<()> {
    let rows: Vec<CacheRow<'_>> = verdicts.iter().map(|verdict| CacheRow::new(trace, structure, verdict)).collect();
    if global.json {
        return output.print_json(&rows);
    }
    if rows.is_empty() {
        print_note(global, &"no API call with a message was found");
        return Ok(());
    }
    let mut text = call_table(&rows, verdicts).render(output);
    let causes = MissTotals::by_cause(verdicts);
    if !causes.is_empty() {
        text.push('\n');
        text.push_str(&cause_table(&causes).render(output));
    }
    let sessions = session_totals(trace, verdicts);
    if sessions.len() > 1 {
        text.push('\n');
        text.push_str(&session_table(&sessions).render(output));
    }
    output.print_text(&text)?;
    print_note(global, &summary(verdicts.len(), &causes));
    Ok(())
}

fn call_table(rows: &[CacheRow<'_>], verdicts: &[CallVerdict]) -> Table {
    let has_diagnosis = rows.iter().any(|row| row.server_diagnosis.is_some());
    let mut columns = vec![
        Column::text("CALL"),
        Column::text("BRANCH").drop_rank(2),
        Column::number("READ"),
        Column::number("WRITTEN").drop_rank(1),
        Column::number("EXPECTED"),
        Column::number("MISSED"),
        Column::number("COST"),
        Column::text("CAUSE"),
        Column::text("AT").flexible(12),
    ];
    if has_diagnosis {
        columns.push(Column::text("SERVER").drop_rank(3));
    }
    let mut table = Table::new(columns);
    for (row, verdict) in rows.iter().zip(verdicts) {
        let tokens = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), format::tokens);
        let estimate = if row.is_estimate && row.expected_read > 0 { "~" } else { "" };
        let miss = verdict.miss.as_ref();
        let mut cells = vec![
            row.call.to_owned(),
            row.branch.to_owned(),
            tokens(row.read),
            tokens(row.written),
            format!("{estimate}{}", format::tokens(row.expected_read)),
            miss.map_or_else(String::new, |miss| format!("{estimate}{}", format::tokens(miss.tokens))),
            miss.map_or_else(String::new, cost_of),
            miss.map_or_else(String::new, |miss| miss.cause.to_string()),
            miss.and_then(|miss| miss.at.clone()).unwrap_or_default(),
        ];
        if has_diagnosis {
            let kind = row.server_diagnosis.as_ref().and_then(|diagnosis| diagnosis.kind);
            cells.push(kind.unwrap_or_default().to_owned());
        }
        table.push_row(cells);
    }
    table
}

fn cost_of(miss: &Miss) -> String {
    miss.cost.map_or_else(|| "?".to_owned(), |cost| format::money(cost.as_f64()))
}

fn cause_table(causes: &BTreeMap<Cause, MissTotals>) -> Table {
    let mut table = Table::new([
        Column::text("CAUSE"),
        Column::number("MISSES"),
        Column::number("TOKENS"),
        Column::number("COST"),
        Column::text("ADVICE").flexible(20),
    ]);
    for (cause, totals) in causes {
        let advice = cause.advice().to_owned();
        table.push_row([cause.to_string()].into_iter().chain(total_cells(totals)).chain([advice]));
    }
    table
}

fn session_table(sessions: &BTreeMap<String, MissTotals>) -> Table {
    let mut table = Table::new([
        Column::text("SESSION").flexible(12),
        Column::number("MISSES"),
        Column::number("TOKENS"),
        Column::number("COST"),
    ]);
    for (session, totals) in sessions {
        table.push_row([session.clone()].into_iter().chain(total_cells(totals)));
    }
    table
}

fn total_cells(totals: &MissTotals) -> [String; 3] {
    let cost = format::cost(totals.cost.as_f64(), totals.unpriced);
    [totals.misses.to_string(), format::tokens(totals.tokens), cost]
}

fn session_totals(trace: &Trace, verdicts: &[CallVerdict]) -> BTreeMap<String, MissTotals> {
    let mut sessions: BTreeMap<String, MissTotals> = BTreeMap::new();
    for verdict in verdicts {
        let id = trace.calls[verdict.call].identity.session_id.as_deref().unwrap_or("(none)");
        let totals = sessions.entry(id.to_owned()).or_default();
        verdict.miss.iter().for_each(|miss| totals.add(miss));
    }
    sessions
}

fn summary(calls: usize, causes: &BTreeMap<Cause, MissTotals>) -> String {
    let calls = format::count(calls, "call");
    if causes.is_empty() {
        return format!("{calls}, none of which missed the cache");
    }
    let misses: usize = causes.values().map(|totals| totals.misses).sum();
    let tokens: u64 = causes.values().map(|totals| totals.tokens).sum();
    let cost: f64 = causes.values().map(|totals| totals.cost.as_f64()).sum();
    let unpriced: usize = causes.values().map(|totals| totals.unpriced).sum();
    let (misses, tokens) = (format::count(misses, "miss"), format::tokens(tokens));
    format!("{calls}, {misses}: {tokens} tokens, {} more than if they had been read", format::cost(cost, unpriced))
}

/// The policies to show, in their order and each once.
fn chosen_policies(choices: &[PolicyChoice]) -> Vec<Policy> {
    let is_chosen =
        |policy: &Policy| choices.contains(&PolicyChoice::All) || choices.contains(&PolicyChoice::One(*policy));
    Policy::ALL.into_iter().filter(|policy| *policy != Policy::Recorded && is_chosen(policy)).collect()
}

fn print_what_if(
    analysis: &CacheAnalysis<'_>,
    policies: &[Policy],
    prices: &Prices,
    global: &GlobalArgs,
    output: &Output,
) -> Result<()> {
    let rows = policy_rows(analysis, policies, prices);
    if global.json {
        return output.print_json(&rows);
    }
    let mut table = Table::new([
        Column::text("POLICY"),
        Column::number("CALLS").drop_rank(1),
        Column::number("READ"),
        Column::number("WRITTEN 5M").drop_rank(2),
        Column::number("WRITTEN 1H").drop_rank(3),
        Column::number("UNCACHED").drop_rank(4),
        Column::number("COST"),
        Column::number("SAVES"),
    ]);
    for (number, row) in rows.iter().enumerate() {
        let saves = if number < 2 { String::new() } else { format::money(row.saves_usd) };
        table.push_row([
            row.policy.to_owned(),
            row.calls.to_string(),
            format::tokens(row.cache_read_tokens),
            format::tokens(row.cache_write_5m_tokens),
            format::tokens(row.cache_write_1h_tokens),
            format::tokens(row.input_tokens),
            format::cost(row.cost_usd, row.unpriced_models.len()),
            saves,
        ]);
    }
    output.print_text(&table.render(output))?;
    let note = "`counted` is what the server counted; the other rows follow from the documented rules";
    print_note(global, &note);
    Ok(())
}
