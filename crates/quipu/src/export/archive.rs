//! `quipu export --all`: writes many conversations to a folder, with an index.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use quipu_conversation::price::Prices;
use quipu_index::ListedSession;
use quipu_render::{ArchiveItem, archive_html, archive_markdown};
use quipu_transcript::{load_session, measure};
use serde_json::json;

use super::{ExportedSession, export, masked_note};
use crate::args::{ExportArgs, ExportFormat};
use crate::error::{Failure, print_note, print_warning};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::output_file::write_file;
use crate::session_table::short_id;
use crate::time::{format_local_time, now};
use crate::{catalogue, format, parallel, prices};

pub(super) fn run(args: &ExportArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let folder = args.to.as_path();
    if folder == Path::new("-") || folder.is_file() {
        let hint = "name a folder; it is created if it does not exist";
        return Err(Failure::usage("usage.export_folder", "--all writes many files", hint));
    }
    let filter = args.filters.resolve(&now(), global)?;
    let mut rows = catalogue::list_sessions(global)?;
    rows.retain(|row| filter.matches(row));
    if rows.is_empty() {
        return Err(Failure::error("session.none", "no session matches the filters", "`quipu ls` lists sessions"));
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (format, prices) = (args.format.unwrap_or(ExportFormat::Html), prices::load()?);
    let files = file_names(&rows, format);
    let sessions: Vec<(&ListedSession, &String)> = rows.iter().zip(&files).collect();
    let written = parallel::map_files(&sessions, "exporting", global, |(row, file)| {
        export_session(row, file, folder, args, format, &prices)
    });
    let (mut archived, mut exported, mut counts) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (row, written) in rows.iter().zip(written) {
        match written {
            Ok((one, document)) => {
                archived.push(one);
                exported.push(row);
                document.redactor.counts().iter().for_each(|(kind, n)| *counts.entry(*kind).or_default() += n);
            }
            Err(error) => print_warning(&format!("{}: {error:#}", row.path.display())),
        }
    }
    let list = folder.join(format!("index.{}", extension(format)));
    let title = format::count(archived.len(), "session");
    let text = match format {
        ExportFormat::Html => archive_html(&title, &archived),
        ExportFormat::Markdown => archive_markdown(&title, &archived),
        ExportFormat::Json => list_json(&archived, &exported)?,
    };
    write_file(&list, text.as_bytes())?;
    if global.json {
        output.print_json(&json!({ "path": list, "sessions": archived.len(), "masked": counts }))?;
    }
    print_note(global, &format!("{title} written; the list is {}", list.display()));
    if args.redact {
        print_note(global, &masked_note(&counts));
    }
    Ok(if archived.len() == rows.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn export_session(
    row: &ListedSession,
    file: &str,
    folder: &Path,
    args: &ExportArgs,
    format: ExportFormat,
    prices: &Prices,
) -> Result<(ArchiveItem, ExportedSession)> {
    let (conversation, metrics) = (load_session(&row.path)?, measure(&row.path)?.finish(prices));
    let mut document = export(&conversation, &metrics, args, format)?;
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    write_file(&path, std::mem::take(&mut document.text).as_bytes())?;
    let archived = ArchiveItem {
        file: file.to_owned(),
        title: document.details.title.clone().unwrap_or_else(|| short_id(row).to_owned()),
        project: mask_if_requested(&mut document, args, format::project(row.cwd.as_deref(), &row.project)),
        last_active: row.ended_at.as_deref().map(format_local_time).unwrap_or_default(),
        turns: format::thousands(row.turns),
        cost: format::cost(row.cost_usd, row.unpriced_models.len()),
    };
    Ok((archived, document))
}

/// A text for the index, masked with `--redact`.
fn mask_if_requested(document: &mut ExportedSession, args: &ExportArgs, text: &str) -> String {
    if args.redact { document.redactor.redact_text(text).into_owned() } else { text.to_owned() }
}

/// File name of each session, made unique: its project and its id.
fn file_names(rows: &[ListedSession], format: ExportFormat) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut name = |row: &ListedSession| {
        let [project, id] = [format::project(row.cwd.as_deref(), &row.project), &row.session_id].map(safe_file_name);
        (1..)
            .map(|n| if n == 1 { format!("{project}/{id}") } else { format!("{project}-{n}/{id}") })
            .find(|name| taken.insert(name.to_lowercase()))
            .map(|name| format!("{name}.{}", extension(format)))
            .unwrap_or_default()
    };
    rows.iter().map(&mut name).collect()
}

/// A name that is valid in every file system: letters, digits, `-`, `_` and inner dots.
fn safe_file_name(text: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = text.chars().map(|c| if is_kept(c) { c } else { '-' }).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}

fn extension(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Html => "html",
        ExportFormat::Markdown => "md",
        ExportFormat::Json => "json",
    }
}

/// The index as JSON.
fn list_json(archived: &[ArchiveItem], rows: &[&ListedSession]) -> Result<String> {
    let one = |(one, row): (&ArchiveItem, &&ListedSession)| {
        json!({
            "file": one.file, "session_id": row.session_id, "title": one.title, "project": one.project,
            "started_at": row.started_at, "ended_at": row.ended_at, "turns": row.turns, "cost_usd": row.cost_usd,
        })
    };
    Ok(serde_json::to_string_pretty(&archived.iter().zip(rows).map(one).collect::<Vec<_>>())? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_has_a_file_of_its_own_inside_the_folder() {
        let row = |cwd: &str, id: &str| {
            let mut row = ListedSession::default();
            (row.cwd, row.session_id) = (Some(cwd.to_owned()), id.to_owned());
            row
        };
        let rows = [row("/a/tide", "1"), row("/b/tide", "1"), row("/c/抽奖 (2)", "../../x"), row("/c/..", "..")];
        let expect = ["tide/1.md", "tide-2/1.md", "抽奖--2/x.md", "session/session.md"];
        assert_eq!(file_names(&rows, ExportFormat::Markdown), expect);
    }
}
