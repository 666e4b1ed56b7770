//! `quipu diff`

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_render::{ChangeStatus, FileChange, clean, file_changes};
use quipu_transcript::{FileBackups, load};

use crate::about::about;
use crate::args::{DiffArgs, Global};
use crate::error::{note, warn};
use crate::output::Output;
use crate::table::{Column, Table};
use crate::{format, sessions};

pub(crate) fn run(args: &DiffArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let path = sessions::find(&args.session, global)?;
    let conversation = load(&path)?;
    let cwd = about(&conversation, None).cwd;
    let backups = FileBackups::new(&path);
    let backup = |file: &str| backups.first(file, cwd.as_deref().unwrap_or_default());
    let changes = file_changes(&conversation.for_ui(), cwd.as_deref(), &backup);
    if global.json {
        output.json(&changes)?;
        return Ok(ExitCode::SUCCESS);
    }
    if changes.is_empty() {
        note(global, &"no files changed by Write, Edit or NotebookEdit");
        return Ok(ExitCode::SUCCESS);
    }
    let text = if args.stat { stat(&changes, cwd.as_deref(), output) } else { diffs(&changes, output) };
    output.text(&text)?;
    for change in changes.iter().filter(|change| change.missing > 0) {
        let missing = format::count(change.missing, "change");
        warn(&format!("{missing} of {} cannot be reconstructed from the session", clean(&change.path)));
    }
    Ok(ExitCode::SUCCESS)
}

/// All diffs. In a pipe they are as they are, to be applied; on a terminal they have
/// colours and no control characters.
fn diffs(changes: &[FileChange], output: &Output) -> String {
    let plain: String = changes.iter().map(|change| change.diff.as_str()).collect();
    if !output.is_terminal && !output.color {
        return plain;
    }
    let line = |line: &str| {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => Style::new().bold(),
            [b'@', b'@', ..] => AnsiColor::Cyan.on_default(),
            [b'-', ..] => AnsiColor::Red.on_default(),
            [b'+', ..] => AnsiColor::Green.on_default(),
            _ => Style::new(),
        };
        let style = output.style(style);
        format!("{style}{}{style:#}\n", clean(line))
    };
    plain.lines().map(line).collect()
}

fn stat(changes: &[FileChange], cwd: Option<&str>, output: &Output) -> String {
    let columns = [Column::text("file"), Column::text("status").drop_rank(1)];
    let mut table = Table::new([columns, ["added", "removed"].map(Column::number)].concat());
    let short = |path: &str| cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/')).unwrap_or(path).to_owned();
    for change in changes {
        let status = match change.status {
            ChangeStatus::Created => "created",
            ChangeStatus::Modified => "modified",
            ChangeStatus::Deleted => "deleted",
        };
        table.row([short(&change.path), status.to_owned(), change.added.to_string(), change.removed.to_string()]);
    }
    if changes.len() > 1 {
        let sum = |of: fn(&FileChange) -> usize| changes.iter().map(of).sum::<usize>().to_string();
        let files = format::count(changes.len(), "file");
        table.total([files, String::new(), sum(|change| change.added), sum(|change| change.removed)]);
    }
    table.render(output)
}
