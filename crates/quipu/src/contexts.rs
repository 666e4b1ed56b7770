//! `quipu contexts`: what was attached to prompts, and how often.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::{Kind, ScreenItem};
use quipu_index::Listed;
use quipu_message::context::{self, ContextRef};
use quipu_render::{clean, context_label};
use quipu_transcript::{FileError, load};
use serde_json::{Value, json};

use crate::args::{ContextsArgs, Global};
use crate::error::{note, warn_all};
use crate::filter::Filter;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::time::now;
use crate::{catalogue, format, parallel};

/// What tells references apart: what they say and, of those to a file, which file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    label: String,
    path: Option<String>,
}

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
    let mut attached: BTreeMap<Target, Attached> = BTreeMap::new();
    let mut errors = Vec::new();
    for (row, found) in rows.iter().zip(parallel::each(&rows, "reading", global, |row| contexts(row, &filter))) {
        match found {
            Ok(found) => found.into_iter().for_each(|context| add(&mut attached, context, row)),
            Err(error) => errors.push(error),
        }
    }
    warn_all(&errors);
    let mut attached: Vec<(Target, Attached)> = attached.into_iter().collect();
    attached.sort_by_key(|(_, one)| std::cmp::Reverse(one.times));
    if global.json {
        let one = |(Target { label, path }, one): &(Target, Attached)| {
            let block = context::block(std::slice::from_ref(&one.context));
            json!({
                "label": label, "path": path, "context": one.context, "block": block,
                "times": one.times, "sessions": one.sessions,
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
        let mut labels: HashMap<&str, usize> = HashMap::new();
        attached.iter().for_each(|(target, _)| *labels.entry(&target.label).or_default() += 1);
        for (Target { label, path }, one) in &attached {
            // Two files that are shown alike are told apart by their full paths.
            let path = path.as_ref().filter(|_| labels[&**label] > 1).map(|path| format!(" ({})", clean(path)));
            let label = format!("{label}{}", path.unwrap_or_default());
            table.row([format::thousands(one.times as u64), format::thousands(one.sessions.len() as u64), label]);
        }
        output.text(&table.render(output))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn add(attached: &mut BTreeMap<Target, Attached>, context: ContextRef, row: &Listed) {
    let target = Target { label: context_label(&context.kind), path: full_path(&context, row.cwd.as_deref()) };
    let one = attached.entry(target).or_insert_with(|| Attached { context, times: 0, sessions: BTreeSet::new() });
    one.times += 1;
    one.sessions.insert(row.session_id.clone());
}

/// The file or folder that a reference is to: as the reference itself says, or else from the
/// session's folder. `None` for references to anything else.
fn full_path(context: &ContextRef, cwd: Option<&str>) -> Option<String> {
    if let Some(full) = context.extra.get("fullPath").and_then(Value::as_str) {
        return Some(full.to_owned());
    }
    let shown = match &context.kind {
        context::Kind::File { path } | context::Kind::Folder { path, .. } => path,
        context::Kind::Symbol { file, .. } => file,
        _ => return None,
    };
    Some(cwd.map_or_else(|| shown.clone(), |cwd| Path::new(cwd).join(shown).to_string_lossy().into_owned()))
}

/// What is attached to the prompts of a session that the filter selects.
fn contexts(row: &Listed, filter: &Filter) -> Result<Vec<ContextRef>, FileError> {
    let is_selected = |item: &ScreenItem| item.kind == Kind::User && filter.matches_time(item.timestamp.as_deref());
    Ok(load(&row.path)?.for_ui().into_iter().filter(is_selected).flat_map(|item| item.contexts).collect())
}
