//! `quipu contexts`: what was attached to prompts, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::Kind;
use quipu_index::Listed;
use quipu_message::context::{self, ContextRef};
use quipu_render::context_label;
use quipu_transcript::{FileError, load};
use serde_json::json;

use crate::args::{ContextsArgs, Global};
use crate::error::{note, warn_all};
use crate::output::Output;
use crate::table::{Column, Table};
use crate::time::now;
use crate::{catalogue, format, parallel};

/// A reference, and where it is attached.
struct Attached {
    context: ContextRef,
    times: usize,
    sessions: BTreeSet<String>,
}

pub(crate) fn run(args: &ContextsArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let filter = args.filters.resolve(&now(), global)?;
    let mut rows = catalogue::sessions(global)?;
    rows.retain(|row| filter.matches(row));
    let mut attached: BTreeMap<String, Attached> = BTreeMap::new();
    let mut errors = Vec::new();
    for (row, found) in rows.iter().zip(parallel::each(&rows, "reading", global, contexts)) {
        match found {
            Ok(found) => found.into_iter().for_each(|context| add(&mut attached, context, row)),
            Err(error) => errors.push(error),
        }
    }
    warn_all(&errors);
    let mut attached: Vec<(String, Attached)> = attached.into_iter().collect();
    attached.sort_by_key(|(_, one)| std::cmp::Reverse(one.times));
    if global.json {
        let one = |(label, one): &(String, Attached)| {
            let block = context::block(std::slice::from_ref(&one.context));
            json!({
                "label": label, "context": one.context, "block": block, "times": one.times, "sessions": one.sessions,
            })
        };
        output.json(&attached.iter().map(one).collect::<Vec<_>>())?;
    } else if attached.is_empty() {
        note(global, &format!("nothing is attached to the prompts of {}", format::count(rows.len(), "session")));
    } else {
        let mut table = Table::new([
            Column::number("times"),
            Column::number("sessions").drop_rank(1),
            Column::text("context").flexible(20),
        ]);
        for (label, one) in attached {
            table.row([format::thousands(one.times as u64), format::thousands(one.sessions.len() as u64), label]);
        }
        output.text(&table.render(output))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn add(attached: &mut BTreeMap<String, Attached>, context: ContextRef, row: &Listed) {
    let label = context_label(&context.kind);
    let one = attached.entry(label).or_insert_with(|| Attached { context, times: 0, sessions: BTreeSet::new() });
    one.times += 1;
    one.sessions.insert(row.session_id.clone());
}

/// What is attached to the prompts of a session.
fn contexts(row: &Listed) -> Result<Vec<ContextRef>, FileError> {
    let items = load(&row.path)?.for_ui();
    Ok(items.into_iter().filter(|item| item.kind == Kind::User).flat_map(|item| item.contexts).collect())
}
