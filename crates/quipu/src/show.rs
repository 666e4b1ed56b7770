//! `quipu show`

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_render::{Html, Markdown, SessionDetails, Terminal, ThinkingDisplay};

use crate::args::{ShowArgs, ShowFormat, ShowView};
use crate::error::{Failure, print_note};
use crate::format;
use crate::global::GlobalArgs;
use crate::live_view;
use crate::output::Output;
use crate::raw_lines::{LineSelection, print_raw_lines};
use crate::sessions;
use crate::skeleton::open_skeleton;
use crate::time::format_local_time;

mod selection;

use selection::{Selection, is_window, load_conversation, select_items, select_window};

pub(crate) fn run(args: &ShowArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let form = args.form.unwrap_or(if global.json { ShowFormat::Json } else { ShowFormat::Text });
    let (session, line) = sessions::split_line(&args.session);
    if line.is_none() && args.around.is_some() {
        let hint = "name a line, such as `quipu show 05ef09b2:34 --around 5`";
        return Err(Failure::usage("usage.around", "--around needs a line", hint));
    }
    if args.branch.is_some() && args.view != ShowView::Screen {
        let hint = "leave out --view to see branches as they were shown";
        return Err(Failure::usage("usage.branch", "--branch is for the view `screen`", hint));
    }
    if args.view == ShowView::Raw && args.parts.leaves_out() {
        let message = "--only-prompts, --no-thinking and --no-tools are not for the view `raw`";
        return Err(Failure::usage("usage.parts", message, "leave out --view to choose what is shown"));
    }
    let path = if session == "-" { PathBuf::from("-") } else { sessions::resolve_session(session, global)? };
    if args.view == ShowView::Raw {
        let lines = match args.parts.turn {
            None => line_range(line, args.around),
            Some(_) if is_stdin(&path) => {
                let hint = "save the stream to a file first";
                return Err(Failure::usage("usage.turn", "--view raw --turn needs a file", hint));
            }
            Some(_) => args.parts.turn_lines(open_skeleton(&path)?.view())?,
        };
        print_raw_lines(&path, form, output, &LineSelection { lines, tail: args.parts.tail })?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_whole = line.is_none() && !args.parts.is_partial() && args.branch.is_none() && args.view == ShowView::Screen;
    if is_stdin(&path) && form == ShowFormat::Text && is_whole && !live_view::stdin_is_file() {
        live_view::show_stdin(args, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.view == ShowView::Api && form == ShowFormat::Json {
        output.print_json(&load_conversation(&path)?.for_api())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Selection { items, opened, details, branches } = if is_window(args, line) && !is_stdin(&path) {
        select_window(&path, args, line, global)?
    } else {
        select_items(&path, args, line, form)?
    };
    if form == ShowFormat::Json {
        output.print_json(&items)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (full, local) = (args.full, format_local_time);
    match form {
        ShowFormat::Markdown => output.print_bytes(
            Markdown { details, show_full: full, show_silent_hooks: full, format_time: local, ..Markdown::default() }
                .render(&items)
                .as_bytes(),
        )?,
        ShowFormat::Html => {
            output.print_bytes(
                Html { details, show_silent_hooks: full, format_time: local, ..Html::default() }
                    .render(&items)
                    .as_bytes(),
            )?;
        }
        ShowFormat::Text | ShowFormat::Json => {
            let thinking = if args.full { ThinkingDisplay::Full } else { ThinkingDisplay::Folded };
            let terminal = Terminal {
                width: output.width,
                color: output.color,
                thinking,
                show_full: full,
                base_folder: details.cwd.clone(),
                format_time: local,
                ..Terminal::default()
            };
            let text = match opened {
                // Items of the named line are shown in full, the items around them folded.
                Some(Range { start, end }) => {
                    let whole = Terminal { thinking: ThinkingDisplay::Full, show_full: true, ..terminal.clone() };
                    let [before, after] = [&items[..start], &items[end..]].map(|items| terminal.render(items));
                    let parts = [before, whole.render(&items[start..end]), after];
                    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
                }
                None if args.view == ShowView::Screen && !is_stdin(&path) && details != SessionDetails::default() => {
                    format!("{}\n{}", terminal.render_header(&details), terminal.render(&items))
                }
                None => terminal.render(&items),
            };
            output.print_text(&text)?;
            if items.is_empty() {
                print_note(global, &empty_note(&path, args));
            }
            let is_part = args.parts.is_partial() || args.branch.is_some() || line.is_some();
            if !is_part && args.view == ShowView::Screen {
                print_left_out(branches, global, details.not_shown.as_deref());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Numbers of a line and of `around` lines on either side; all lines if none is named.
fn line_range(line: Option<u64>, around: Option<usize>) -> RangeInclusive<u64> {
    let around = around.unwrap_or_default() as u64;
    line.map_or(0..=u64::MAX, |line| line.saturating_sub(around)..=line.saturating_add(around))
}

/// Explains why there is nothing to show.
fn empty_note(path: &Path, args: &ShowArgs) -> String {
    let is_empty = !is_stdin(path) && path.metadata().is_ok_and(|meta| meta.len() == 0);
    if is_empty {
        format!("the file of '{}' is empty", args.session)
    } else {
        "there are no messages to show".to_owned()
    }
}

/// Prints on stderr what the text leaves out.
fn print_left_out(branches: usize, global: &GlobalArgs, hidden: Option<&str>) {
    if branches > 0 {
        let branches = format::count(branches, "left branch");
        print_note(global, &format!("not shown: {branches}; `--branch all` shows all"));
    }
    if let Some(hidden) = hidden {
        print_note(global, &format!("not shown: {hidden}; `--full` shows all"));
    }
}
