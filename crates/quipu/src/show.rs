//! `quipu show`

use std::fs::File;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::{Conversation, ItemKind, ScreenItem, UiOptions, messages_for_ui};
use quipu_render::{Html, Markdown, SessionDetails, Terminal, ThinkingDisplay};
use quipu_transcript::{FileError, LineReader, load_reader, load_session, measure};

use crate::args::{BranchChoice, ShowArgs, ShowFormat, ShowView};
use crate::error::{Failure, print_note};
use crate::format;
use crate::global::GlobalArgs;
use crate::live_view;
use crate::output::Output;
use crate::prices;
use crate::raw_lines::{LineSelection, print_raw_lines};
use crate::session_details::{hidden_summary, session_details};
use crate::sessions;
use crate::time::format_local_time;

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
            Some(_) => args.parts.turn_lines(&load_session(&path)?)?,
        };
        print_raw_lines(&path, form, output, &LineSelection { lines, tail: args.parts.tail })?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_whole = line.is_none() && !args.parts.is_partial() && args.branch.is_none() && args.view == ShowView::Screen;
    if is_stdin(&path) && form == ShowFormat::Text && is_whole && !live_view::stdin_is_file() {
        live_view::show_stdin(args, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let conversation = load_conversation(&path)?;
    let (mut items, left_out) = match args.view {
        ShowView::Api => {
            let messages = conversation.for_api();
            if form == ShowFormat::Json {
                output.print_json(&messages)?;
                return Ok(ExitCode::SUCCESS);
            }
            (messages_for_ui(&messages), 0)
        }
        _ => screen_items(&conversation, args, line)?,
    };
    args.parts.select(&mut items, &conversation)?;
    if let Some(line) = line {
        require_line(line, &path, &items)?;
    }
    let opened = line.filter(|_| args.view == ShowView::Screen).map(|line| conversation.items_at_line(&items, line));
    let opened = opened.map(|shown| keep_around(&mut items, shown, args.around.unwrap_or_default()));
    if form == ShowFormat::Json {
        output.print_json(&items)?;
        return Ok(ExitCode::SUCCESS);
    }
    let metrics = if is_stdin(&path) { None } else { Some(measure(&path)?.finish(&prices::load()?)) };
    let is_part = args.parts.is_partial() || args.branch.is_some() || line.is_some();
    let hidden = hidden_summary(left_out).filter(|_| !is_part);
    let details = SessionDetails { not_shown: hidden, ..session_details(&conversation, metrics.as_ref()) };
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
            if !is_part && args.view == ShowView::Screen {
                print_left_out(&conversation, global, details.not_shown.as_deref());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Items of the conversation or of one left branch, and the number of hidden items left out. If
/// `line` is in a left branch or a hidden item, all branches and hidden items are included.
fn screen_items(conversation: &Conversation, args: &ShowArgs, line: Option<u64>) -> Result<(Vec<ScreenItem>, usize)> {
    let options = UiOptions { include_hidden: args.full, include_branches: args.branch == Some(BranchChoice::All) };
    let Some(BranchChoice::Number(n)) = args.branch else {
        let (items, left_out) = conversation.for_ui_and_left_out(options);
        let is_there = |items: &[ScreenItem]| items.iter().any(|i| Some(i.line) == line && i.kind != ItemKind::Branch);
        if line.is_none() || is_there(&items) {
            return Ok((items, left_out));
        }
        let all = conversation.for_ui_with(UiOptions { include_hidden: true, include_branches: true });
        return Ok(if is_there(&all) { (all, 0) } else { (items, left_out) });
    };
    conversation.branch_for_ui(n, options).map(|items| (items, 0)).ok_or_else(|| {
        let hint = format!("it has {}", format::count(conversation.branches().len(), "left branch"));
        Failure::error("branch.none", format!("no branch {n} in {}", args.session), hint)
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn load_conversation(path: &Path) -> Result<Conversation> {
    if is_stdin(path) { Ok(load_reader(io::stdin().lock())) } else { Ok(load_session(path)?) }
}

/// Fails if the file has no such line. Reads the file only if the items do not show it.
fn require_line(line: u64, path: &Path, items: &[ScreenItem]) -> Result<()> {
    if line > 0 && items.iter().any(|item| item.line >= line && item.line != u64::MAX) || is_stdin(path) {
        return Ok(());
    }
    let open = |source| FileError::Open { path: path.to_owned(), source };
    let mut lines = LineReader::new(File::open(path).map_err(open)?);
    let mut count = 0;
    while lines.next().map_err(open)?.is_some() {
        count += 1;
    }
    if (1..=count).contains(&line) {
        return Ok(());
    }
    let message = format!("no line {line} in {}", path.display());
    Err(Failure::error("line.none", message, format!("it has {count} lines")))
}

/// Keeps the items in `shown` and `around` items on either side. Returns the new range of the
/// items in `shown`.
fn keep_around(items: &mut Vec<ScreenItem>, shown: Range<usize>, around: usize) -> Range<usize> {
    items.truncate(shown.end.saturating_add(around));
    let first = shown.start.saturating_sub(around);
    items.drain(..first);
    shown.start - first..shown.end - first
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
fn print_left_out(conversation: &Conversation, global: &GlobalArgs, hidden: Option<&str>) {
    let branches = conversation.branches().len();
    if branches > 0 {
        let branches = format::count(branches, "left branch");
        print_note(global, &format!("not shown: {branches}; `--branch all` shows all"));
    }
    if let Some(hidden) = hidden {
        print_note(global, &format!("not shown: {hidden}; `--full` shows all"));
    }
}
