//! Which items `show` prints: of the whole conversation, or of a window of a session of any length.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use quipu_conversation::{Conversation, ItemKind, Metrics, ScreenItem, UiOptions, messages_for_ui, parse_timestamp};
use quipu_index::{Catalogue, ListedSession};
use quipu_render::{SessionDetails, hidden_summary};
use quipu_transcript::{FileError, LineReader, load_reader, load_session, measure};

use super::is_stdin;
use crate::args::{BranchChoice, ShowArgs, ShowFormat, ShowView};
use crate::catalogue::cache_folder;
use crate::claude_dirs::claude_dirs;
use crate::error::Failure;
use crate::format;
use crate::global::GlobalArgs;
use crate::prices;
use crate::skeleton::open_skeleton;
use crate::time::local_time_with_zone;

/// Size of a session file that is counted for the header if the index does not know it.
const MAX_COUNTED_BYTES: u64 = 64 << 20;

/// The items to print.
pub(super) struct Selection {
    pub(super) items: Vec<ScreenItem>,
    /// Indices of the items that show the named line.
    pub(super) opened: Option<Range<usize>>,
    /// What the header shows; empty if JSON is printed.
    pub(super) details: SessionDetails,
    /// Number of left branches.
    pub(super) branches: usize,
}

/// Whether the options select a few entries that lie together, so that the others need not be read.
pub(super) fn is_window(args: &ShowArgs, line: Option<u64>) -> bool {
    let is_screen = args.view == ShowView::Screen && args.branch.is_none();
    let is_turn_or_tail = args.parts.turn.is_some() || args.parts.tail.is_some();
    is_screen && if line.is_some() { !is_turn_or_tail && !args.parts.leaves_out() } else { is_turn_or_tail }
}

/// The items of `--turn`, `--tail`, or around a line.
pub(super) fn select_window(path: &Path, args: &ShowArgs, line: Option<u64>, global: &GlobalArgs) -> Result<Selection> {
    let session = open_skeleton(path)?;
    let view = session.view();
    let options = UiOptions { include_hidden: args.full, ..UiOptions::default() };
    let (items, opened) = match line {
        None => (args.parts.select_window(view, options)?, None),
        Some(line) => {
            let around = args.around.unwrap_or_default();
            let (mut items, mut opened) = view.around(line, around, options);
            if !is_shown(&items, line) {
                let all = view.around(
                    line,
                    around,
                    UiOptions { include_hidden: true, include_branches: true, leave_out_subagents: false },
                );
                if is_shown(&all.0, line) {
                    (items, opened) = all;
                }
            }
            require_line(line, path, &items)?;
            (items, Some(opened))
        }
    };
    let mut details = SessionDetails::from_part(view, local_time_with_zone);
    if let Some(totals) = indexed_session(path, global).map(totals).or_else(|| count_totals(path)) {
        details.add_totals(&totals, local_time_with_zone);
    }
    Ok(Selection { items, opened, details, branches: 0 })
}

/// What the index knows of a session; `None` if it does not know all of its lines. An index that
/// cannot be used is no error here.
fn indexed_session(path: &Path, global: &GlobalArgs) -> Option<ListedSession> {
    let path = path.canonicalize().ok()?;
    let catalogue = Catalogue::open(&cache_folder()?, &claude_dirs(global), prices::load().ok()?).ok()?;
    catalogue.contains_path(&path).then(|| catalogue.indexed_session(&path).ok().flatten())?
}

/// What the index counted of a session. It counts neither tools nor errors.
fn totals(session: ListedSession) -> Metrics {
    let time = |text: &Option<String>| text.as_deref().and_then(parse_timestamp);
    let duration = || Some(time(&session.ended_at)?.duration_since(time(&session.started_at)?).as_secs_f64());
    Metrics {
        duration_secs: duration().unwrap_or_default(),
        models: session.models,
        started_at: session.started_at,
        ended_at: session.ended_at,
        turns: session.turns,
        tokens: session.tokens,
        cost_usd: session.cost_usd,
        unpriced_models: session.unpriced_models,
        ..Metrics::default()
    }
}

/// What [`totals`] has, counted from the files of a session that are soon read; `None` for others.
fn count_totals(path: &Path) -> Option<Metrics> {
    path.metadata().ok().filter(|file| file.len() <= MAX_COUNTED_BYTES)?;
    let counted = measure(path).ok()?.finish(&prices::load().ok()?);
    Some(Metrics { tools: BTreeMap::new(), errors: 0, ..counted })
}

/// The items of the whole conversation that the options select.
pub(super) fn select_items(path: &Path, args: &ShowArgs, line: Option<u64>, form: ShowFormat) -> Result<Selection> {
    let conversation = load_conversation(path)?;
    let (mut items, left_out) = match args.view {
        ShowView::Api => (messages_for_ui(&conversation.for_api()), 0),
        _ => screen_items(&conversation, args, line)?,
    };
    args.parts.select(&mut items, &conversation)?;
    if let Some(line) = line {
        require_line(line, path, &items)?;
    }
    let opened = line.filter(|_| args.view == ShowView::Screen).map(|line| conversation.items_at_line(&items, line));
    let opened = opened.map(|shown| keep_around(&mut items, shown, args.around.unwrap_or_default()));
    let branches = conversation.branches().len();
    if form == ShowFormat::Json {
        return Ok(Selection { items, opened, details: SessionDetails::default(), branches });
    }
    let metrics = if is_stdin(path) { None } else { Some(measure(path)?.finish(&prices::load()?)) };
    let is_part = args.parts.is_partial() || args.branch.is_some() || line.is_some();
    let hidden = hidden_summary(left_out).filter(|_| !is_part);
    let details = SessionDetails {
        not_shown: hidden,
        ..SessionDetails::new(&conversation, metrics.as_ref(), local_time_with_zone)
    };
    Ok(Selection { items, opened, details, branches })
}

/// Items of the conversation or of one left branch, and the number of hidden items left out. If
/// `line` is in a left branch or a hidden item, all branches and hidden items are included.
fn screen_items(conversation: &Conversation, args: &ShowArgs, line: Option<u64>) -> Result<(Vec<ScreenItem>, usize)> {
    let options = UiOptions {
        include_hidden: args.full,
        include_branches: args.branch == Some(BranchChoice::All),
        ..UiOptions::default()
    };
    let Some(BranchChoice::Number(n)) = args.branch else {
        let (items, left_out) = conversation.for_ui_and_left_out(options);
        let Some(line) = line.filter(|&line| !is_shown(&items, line)) else { return Ok((items, left_out)) };
        let all = conversation.for_ui_with(UiOptions {
            include_hidden: true,
            include_branches: true,
            leave_out_subagents: false,
        });
        return Ok(if is_shown(&all, line) { (all, 0) } else { (items, left_out) });
    };
    conversation.branch_for_ui(n, options).map(|items| (items, 0)).ok_or_else(|| {
        let hint = format!("it has {}", format::count(conversation.branches().len(), "left branch"));
        Failure::error("branch.none", format!("no branch {n} in {}", args.session), hint)
    })
}

/// Whether an item is that of a line, and does not only announce a branch.
fn is_shown(items: &[ScreenItem], line: u64) -> bool {
    items.iter().any(|item| item.line == line && item.kind != ItemKind::Branch)
}

pub(super) fn load_conversation(path: &Path) -> Result<Conversation> {
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
