//! `quipu diff`

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_render::{ChangeStatus, FileChange, SessionDetails, file_changes, sanitize};
use quipu_transcript::{FileBackups, load_session};

use crate::args::DiffArgs;
use crate::error::{print_note, print_warning};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::time::local_time_with_zone;
use crate::{format, sessions};

pub(crate) fn run(args: &DiffArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let path = sessions::resolve_session(&args.session, global)?;
    let conversation = load_session(&path)?;
    let cwd = SessionDetails::new(&conversation, None, local_time_with_zone).cwd;
    let backups = FileBackups::read(&path);
    let backup = |file: &str| backups.original_content(file, cwd.as_deref().unwrap_or_default());
    let changes = file_changes(&conversation.for_ui(), cwd.as_deref(), &backup);
    if global.json {
        output.print_json(&changes)?;
        return Ok(ExitCode::SUCCESS);
    }
    if changes.is_empty() {
        print_note(global, &"no files changed by Write, Edit or NotebookEdit");
        return Ok(ExitCode::SUCCESS);
    }
    let text = if args.stat { render_stat(&changes, cwd.as_deref(), output) } else { render_diffs(&changes, output) };
    output.print_text(&text)?;
    for change in changes.iter().filter(|change| change.missing > 0) {
        let missing = format::count(change.missing, "change");
        print_warning(&format!("{missing} of {} cannot be reconstructed from the session", sanitize(&change.path)));
    }
    Ok(ExitCode::SUCCESS)
}

/// All diffs: unchanged in a pipe, so that they can be applied; coloured and sanitized on a
/// terminal.
fn render_diffs(changes: &[FileChange], output: &Output) -> String {
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
        format!("{style}{}{style:#}\n", sanitize(line))
    };
    plain.lines().map(line).collect()
}

fn render_stat(changes: &[FileChange], cwd: Option<&str>, output: &Output) -> String {
    let columns = [Column::text("file"), Column::text("status").drop_rank(1)];
    let mut table = Table::new([columns, ["added", "removed"].map(Column::number)].concat());
    let short = |path: &str| cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/')).unwrap_or(path).to_owned();
    for change in changes {
        let status = match change.status {
            ChangeStatus::Created => "created",
            ChangeStatus::Modified => "modified",
            ChangeStatus::Deleted => "deleted",
        };
        table.push_row([short(&change.path), status.to_owned(), change.added.to_string(), change.removed.to_string()]);
    }
    if changes.len() > 1 {
        let sum = |of: fn(&FileChange) -> usize| changes.iter().map(of).sum::<usize>().to_string();
        let files = format::count(changes.len(), "file");
        table.push_total([files, String::new(), sum(|change| change.added), sum(|change| change.removed)]);
    }
    table.render(output)
}
