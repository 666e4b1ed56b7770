//! `quipu contexts`: counts the files, pages and symbols that were attached to prompts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::{ItemKind, ScreenItem};
use quipu_index::ListedSession;
use quipu_message::context_ref::{self, ContextRef};
use quipu_render::{context_label, sanitize};
use quipu_transcript::{FileError, load_session};
use serde_json::{Value, json};

use crate::args::ContextsArgs;
use crate::error::{print_note, print_warnings};
use crate::filter::Filter;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::time::now;
use crate::{catalogue, format, parallel};

/// Identity of a reference: its label and, for files, the full path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    label: String,
    path: Option<String>,
}

/// A reference, how often it is attached and in which sessions.
struct AttachedContext {
    context: ContextRef,
    count: usize,
    sessions: BTreeSet<String>,
}

pub(crate) fn run(args: &ContextsArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let filter = args.filters.resolve(&now(), global)?;
    let mut rows = catalogue::list_sessions(global)?;
    rows.retain(|row| filter.matches(row));
    let mut attached: BTreeMap<Target, AttachedContext> = BTreeMap::new();
    let mut errors = Vec::new();
    for (row, found) in
        rows.iter().zip(parallel::map_files(&rows, "reading", global, |row| attached_contexts(row, &filter)))
    {
        match found {
            Ok(found) => found.into_iter().for_each(|context| add_context(&mut attached, context, row)),
            Err(error) => errors.push(error),
        }
    }
    print_warnings(&errors);
    let mut attached: Vec<(Target, AttachedContext)> = attached.into_iter().collect();
    attached.sort_by_key(|(_, one)| std::cmp::Reverse(one.count));
    if global.json {
        let one = |(Target { label, path }, one): &(Target, AttachedContext)| {
            let block = context_ref::write_block(std::slice::from_ref(&one.context));
            json!({
                "label": label, "path": path, "context": one.context, "block": block,
                "times": one.count, "sessions": one.sessions,
            })
        };
        output.print_json(&attached.iter().map(one).collect::<Vec<_>>())?;
    } else if attached.is_empty() {
        print_note(global, &format!("nothing is attached to the prompts of {}", format::count(rows.len(), "session")));
    } else {
        let mut table = Table::new([
            Column::number("times"),
            Column::number("sessions").drop_rank(1),
            Column::text("context").flexible(20),
        ]);
        let mut labels: HashMap<&str, usize> = HashMap::new();
        attached.iter().for_each(|(target, _)| *labels.entry(&target.label).or_default() += 1);
        for (Target { label, path }, one) in &attached {
            // Files with the same label are distinguished by their full paths.
            let path = path.as_ref().filter(|_| labels[&**label] > 1).map(|path| format!(" ({})", sanitize(path)));
            let label = format!("{label}{}", path.unwrap_or_default());
            table.push_row([format::thousands(one.count as u64), format::thousands(one.sessions.len() as u64), label]);
        }
        output.print_text(&table.render(output))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn add_context(attached: &mut BTreeMap<Target, AttachedContext>, context: ContextRef, row: &ListedSession) {
    let target = Target { label: context_label(&context.kind), path: full_path(&context, row.cwd.as_deref()) };
    let one =
        attached.entry(target).or_insert_with(|| AttachedContext { context, count: 0, sessions: BTreeSet::new() });
    one.count += 1;
    one.sessions.insert(row.session_id.clone());
}

/// Full path of the file or folder of a reference, resolved against the working directory of the
/// session. `None` for other references.
fn full_path(context: &ContextRef, cwd: Option<&str>) -> Option<String> {
    if let Some(full) = context.extra.get("fullPath").and_then(Value::as_str) {
        return Some(full.to_owned());
    }
    let shown = match &context.kind {
        context_ref::ContextKind::File { path } | context_ref::ContextKind::Folder { path, .. } => path,
        context_ref::ContextKind::Symbol { file, .. } => file,
        _ => return None,
    };
    Some(cwd.map_or_else(|| shown.clone(), |cwd| Path::new(cwd).join(shown).to_string_lossy().into_owned()))
}

/// References in the prompts of a session that the filter selects.
fn attached_contexts(row: &ListedSession, filter: &Filter) -> Result<Vec<ContextRef>, FileError> {
    let is_selected = |item: &ScreenItem| item.kind == ItemKind::User && filter.matches_time(item.timestamp.as_deref());
    Ok(load_session(&row.path)?.for_ui().into_iter().filter(is_selected).flat_map(|item| item.contexts).collect())
}
