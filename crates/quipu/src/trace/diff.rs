//! `quipu trace diff`: what changed between API calls.

use std::process::ExitCode;

use anyhow::Result;
use quipu_render::sanitize;
use quipu_trace::{CallDiff, Change, Structure};

use super::{FileArgs, find_call};
use crate::error::print_note;
use crate::format::truncate;
use crate::global::GlobalArgs;
use crate::output::Output;

pub(super) const EXAMPLES: &str = "\
Examples:
  quipu trace diff latest                  what each call changed in the request before it
  quipu trace diff latest --call call-7    one call and the call before it, with texts
  quipu trace diff latest --call call-7 --from call-2

Messages that were appended are not listed without --call: a conversation grows with each call. \
Cache breakpoints are not compared.";

/// Characters of a text that are shown.
const MAX_TEXT_CHARS: usize = 400;

/// Arguments of `quipu trace diff`.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Compare only this call; `quipu trace ls` lists the ids
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Compare with this call instead of the one before it in its branch
    #[arg(long, value_name = "ID", requires = "call")]
    from: Option<String>,
}

pub(super) fn run(args: &DiffArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let trace = args.files.open(global)?;
    let structure = Structure::new(&trace);
    let mut diffs = Vec::new();
    match &args.call {
        Some(id) => {
            let call = find_call(&trace, id)?;
            let from = match &args.from {
                Some(from) => Some(find_call(&trace, from)?),
                None => structure.previous_call(call).map(|index| &trace.calls[index]),
            };
            diffs.extend(from.map(|from| CallDiff::new(&trace, from, call, true)));
        }
        None => {
            for call in &trace.calls {
                let previous = structure.previous_call(call).map(|index| &trace.calls[index]);
                diffs.extend(previous.map(|from| CallDiff::new(&trace, from, call, false)));
            }
            diffs.retain(|diff| !diff.differences.is_empty());
        }
    }
    if global.json {
        output.print_json(&diffs)?;
    } else if diffs.iter().all(|diff| diff.differences.is_empty()) {
        print_note(global, &"nothing changed except for appended messages");
    } else {
        let texts: Vec<String> = diffs.iter().map(|diff| diff_text(diff, args.call.is_some())).collect();
        output.print_text(&texts.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn diff_text(diff: &CallDiff<'_>, with_texts: bool) -> String {
    let mut text = format!("{} → {}\n", sanitize(diff.from), sanitize(diff.to));
    for difference in &diff.differences {
        let word = match difference.change {
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Moved => "moved",
            _ => "changed",
        };
        text.push_str(&format!("  {word:<8}{}\n", sanitize(&difference.at)));
        if with_texts {
            let sides = [("-", &difference.old), ("+", &difference.new)];
            for (sign, side) in sides.into_iter().filter_map(|(sign, side)| Some((sign, side.as_ref()?))) {
                text.push_str(&format!("    {sign} {}\n", truncate(&sanitize(side), MAX_TEXT_CHARS)));
            }
        }
    }
    text
}
