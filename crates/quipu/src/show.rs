//! `quipu show`

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_conversation::{Conversation, Kind, ScreenItem, messages_for_ui};
use quipu_message::Json;
use quipu_render::{About, Html, Markdown, Terminal, Thinking, clean};
use quipu_transcript::{FileError, Lines, Piece, load, load_reader};

use crate::args::{Form, Global, ShowArgs, View};
use crate::error::Failure;
use crate::live;
use crate::output::Output;
use crate::sessions;
use crate::time::local_time;

pub(crate) fn run(args: &ShowArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let form = args.form.unwrap_or(if global.json { Form::Json } else { Form::Text });
    let (session, line) = sessions::split_line(&args.session);
    if line.is_none() && args.around.is_some() {
        let hint = "name a line, such as `quipu show 05ef09b2:34 --around 5`";
        return Err(Failure::error("usage.around", "--around needs a line", hint));
    }
    let path = if session == "-" { PathBuf::from("-") } else { sessions::find(session, global)? };
    if args.view == View::Raw {
        raw(&path, form, output, near(line, args.around))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_whole = line.is_none() && args.turn.is_none() && args.tail.is_none() && args.view == View::Screen;
    if is_stdin(&path) && form == Form::Text && is_whole && !live::stdin_is_file() {
        live::show_stdin(args, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let talk = open(&path)?;
    let items = match args.view {
        View::Api => {
            let messages = talk.for_api();
            if form == Form::Json {
                output.json(&messages)?;
                return Ok(ExitCode::SUCCESS);
            }
            messages_for_ui(&messages)
        }
        _ => talk.for_ui(),
    };
    let mut items = chosen(items, args, &talk)?;
    if let Some(line) = line {
        must_exist(line, &path, &items)?;
    }
    let opened = line.filter(|_| args.view == View::Screen).and_then(|line| talk.item_at_line(&items, line));
    let opened = opened.map(|at| window(&mut items, at, args.around.unwrap_or_default()));
    match form {
        Form::Json => output.json(&items)?,
        Form::Markdown => output.bytes(
            Markdown { about: about(&talk), full: args.full, local: local_time, ..Markdown::default() }
                .render(&items)
                .as_bytes(),
        )?,
        Form::Html => output
            .bytes(Html { about: about(&talk), local: local_time, ..Html::default() }.render(&items).as_bytes())?,
        Form::Text => {
            let thinking = if args.full { Thinking::Full } else { Thinking::Folded };
            let terminal = Terminal {
                width: output.width,
                color: output.color,
                thinking,
                full: args.full,
                base: about(&talk).cwd,
                local: local_time,
                ..Terminal::default()
            };
            let text = match opened {
                // What was asked for is shown whole, what stands around it folded.
                Some(at) => {
                    let whole = Terminal { thinking: Thinking::Full, full: true, ..terminal.clone() };
                    let parts = [
                        terminal.render(&items[..at]),
                        whole.render(&items[at..=at]),
                        terminal.render(&items[at + 1..]),
                    ];
                    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
                }
                None => terminal.render(&items),
            };
            output.text(&text)?;
            notes(&talk, args, global, output);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn open(path: &Path) -> Result<Conversation> {
    if is_stdin(path) { Ok(load_reader(io::stdin().lock())) } else { Ok(load(path)?) }
}

/// Leaves out what was not asked for.
fn chosen(mut items: Vec<ScreenItem>, args: &ShowArgs, talk: &Conversation) -> Result<Vec<ScreenItem>> {
    if let Some(n) = args.turn {
        let turns = talk.turns();
        let Some(turn) = turns.get(n as usize - 1) else {
            let hint = format!("it has {} turns", turns.len());
            return Err(Failure::error("turn.none", format!("no turn {n} in {}", args.session), hint));
        };
        let lines: HashSet<u64> = turn.nodes.iter().map(|node| node.line).collect();
        items.retain(|item| lines.contains(&item.line));
    }
    items.retain(|item| !(args.no_thinking && item.kind == Kind::Thinking || args.no_tools && item.kind == Kind::Tool));
    if let Some(n) = args.tail {
        items.drain(..items.len().saturating_sub(n));
    }
    Ok(items)
}

/// Fails if a file has no such line; reads it only where the items leave that open.
fn must_exist(line: u64, path: &Path, items: &[ScreenItem]) -> Result<()> {
    if line > 0 && items.iter().any(|item| item.line >= line && item.line != u64::MAX) || is_stdin(path) {
        return Ok(());
    }
    let open = |source| FileError::Open { path: path.to_owned(), source };
    let mut lines = Lines::new(File::open(path).map_err(open)?);
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

/// Keeps the item at an index and so many on either side; returns its new index.
fn window(items: &mut Vec<ScreenItem>, at: usize, around: usize) -> usize {
    items.truncate(at.saturating_add(around).saturating_add(1));
    let first = at.saturating_sub(around);
    items.drain(..first);
    at - first
}

/// The numbers of a line and so many on either side; all lines if none is named.
fn near(line: Option<u64>, around: Option<usize>) -> RangeInclusive<u64> {
    let around = around.unwrap_or_default() as u64;
    line.map_or(0..=u64::MAX, |line| line.saturating_sub(around)..=line.saturating_add(around))
}

/// What stands at the top of a document.
pub(crate) fn about(talk: &Conversation) -> About {
    let path = talk.path();
    let envelope = path.iter().find_map(|node| node.entry.envelope().filter(|e| e.cwd.is_value()));
    let model = path.iter().rev().find_map(|node| node.assistant()?.message.model.text());
    About {
        title: talk.title().map(str::to_owned).or_else(|| talk.turns().first().map(|turn| first_line(&turn.prompt))),
        session_id: talk.session_id().map(ToString::to_string),
        cwd: envelope.and_then(|e| e.cwd.text()).map(str::to_owned),
        model: model.map(str::to_owned),
        started: path.iter().find_map(|node| node.timestamp()).map(str::to_owned),
        ..About::default()
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(80).collect()
}

/// Says on stderr what the text leaves out.
fn notes(talk: &Conversation, args: &ShowArgs, global: &Global, output: &Output) {
    if global.quiet || !output.is_terminal || args.view == View::Api {
        return;
    }
    let branches = talk.branches().len();
    if branches > 0 {
        let mut stderr = anstream::stderr().lock();
        let _ = writeln!(stderr, "note: {branches} branches left by a rewind are not shown; --view raw has every line");
    }
}

/// The lines as they are; on a terminal, without their control characters.
fn raw(path: &Path, form: Form, output: &Output, wanted: RangeInclusive<u64>) -> Result<()> {
    let input: Box<dyn Read> = if is_stdin(path) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?)
    };
    let mut lines = Lines::new(input);
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut kept = Vec::new();
    loop {
        let offset = lines.offset();
        let piece = lines.next().map_err(|source| FileError::Read { path: path.to_owned(), offset, source })?;
        match piece {
            None => break,
            Some(Piece::Line { number, .. } | Piece::TooLong { number, .. }) if !wanted.contains(&number) => {}
            Some(Piece::TooLong { number, len, .. }) => {
                let _ = writeln!(anstream::stderr().lock(), "warning: line {number} of {len} bytes is left out");
            }
            Some(Piece::Line { bytes, ending, .. }) if form == Form::Text && !output.is_terminal => {
                stdout.write_all(bytes)?;
                stdout.write_all(ending.bytes())?;
            }
            Some(Piece::Line { bytes, .. }) if form == Form::Text => {
                writeln!(stdout, "{}", clean(&String::from_utf8_lossy(bytes)))?;
            }
            Some(Piece::Line { bytes, .. }) => kept.push(String::from_utf8_lossy(bytes).into_owned()),
        }
    }
    stdout.flush()?;
    kept.retain(|line| !line.trim().is_empty());
    let about = About { title: Some(path.display().to_string()), ..About::default() };
    let kept = kept.iter().map(String::as_str);
    match form {
        Form::Text => Ok(()),
        Form::Markdown => output.bytes(Markdown { about, ..Markdown::default() }.lines(kept).as_bytes()),
        Form::Html => output.bytes(Html { about, ..Html::default() }.lines(kept).as_bytes()),
        Form::Json => {
            // The lines' own bytes; one that is no JSON becomes a string in an object.
            let line = |line| Json::parse(line).unwrap_or_else(|_| Json::of(&serde_json::json!({ "problem": line })));
            output.json(&kept.map(line).collect::<Vec<_>>())
        }
    }
}
