//! Prints items as they arrive, for `follow` and `show -`.

use std::io::{self, IsTerminal};
use std::rc::Rc;

use anyhow::Result;
use quipu_conversation::{ItemKind, LiveConversation, LiveItem, ScreenItem};
use quipu_render::{LiveScreen, ScreenSize, SessionContext, Terminal, ThinkingDisplay};
use quipu_transcript::{FileError, LineReader, RawLine};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::output::Output;
use crate::time::format_local_time;

/// Prints items as they arrive: as text, or as lines of JSON.
#[derive(Debug)]
pub(crate) struct LiveView<'o> {
    output: &'o Output,
    json: bool,
    screen: LiveScreen,
}

impl<'o> LiveView<'o> {
    pub(crate) fn new(output: &'o Output, json: bool, full: bool) -> Self {
        let size = if json { None } else { redrawable_size(output) };
        let screen = LiveScreen::new(terminal_style(output, full), size);
        Self { output, json, screen }
    }

    /// Whether rows can be redrawn: only then are partial items worth building.
    pub(crate) fn can_redraw(&self) -> bool {
        self.screen.can_redraw()
    }

    /// Prints new items of a session, and shows its partial items.
    pub(crate) fn show_items(
        &mut self,
        context: &Rc<SessionContext>,
        changes: Vec<LiveItem>,
        partial: Vec<ScreenItem>,
    ) -> Result<()> {
        let text = if self.json {
            changes.iter().map(|change| json_line(context, change)).collect::<Result<String>>()?
        } else {
            self.screen.show_items(context, changes, partial)
        };
        self.print(&text)
    }

    /// Sets the rows at the bottom of a terminal.
    pub(crate) fn set_status(&mut self, status: Vec<String>) -> Result<()> {
        let text = self.screen.set_bottom(status, None);
        self.print(&text)
    }

    /// Prints one line above the rows that may change.
    pub(crate) fn print_line(&mut self, line: &str) -> Result<()> {
        let text = self.screen.print_text(&format!("{line}\n"));
        self.print(&text)
    }

    /// Prints the items that were still changing, and removes the status rows.
    pub(crate) fn finish(self, context: &Rc<SessionContext>) -> Result<()> {
        let text = self.screen.finish(context);
        self.output.print_bytes(text.as_bytes())
    }

    fn print(&self, text: &str) -> Result<()> {
        if text.is_empty() { Ok(()) } else { self.output.print_bytes(text.as_bytes()) }
    }
}

/// How items look on this output.
pub(crate) fn terminal_style(output: &Output, full: bool) -> Terminal {
    Terminal {
        width: output.width,
        color: output.color,
        thinking: if full { ThinkingDisplay::Full } else { ThinkingDisplay::Folded },
        show_full: full,
        format_time: format_local_time,
        ..Terminal::default()
    }
}

/// Shows a conversation from standard input as it arrives.
pub(crate) fn show_stdin(args: &ShowArgs, output: &Output) -> Result<()> {
    let mut view = LiveView::new(output, false, args.full);
    let mut live = LiveConversation::default();
    let mut context = Rc::new(SessionContext::default());
    let mut lines = LineReader::new(io::stdin().lock());
    loop {
        let offset = lines.offset();
        let read = lines.next().map_err(|source| FileError::Read { path: "-".into(), offset, source })?;
        match read {
            None => break,
            Some(RawLine::Line { number, bytes, .. }) => live.push_line(number, &String::from_utf8_lossy(bytes)),
            Some(RawLine::TooLong { .. }) => {}
        }
        if lines.has_buffered_line() && live.retained_entries() < MAX_UNSHOWN_ENTRIES {
            continue;
        }
        if context.base_folder.is_none() && live.cwd().is_some() {
            context =
                Rc::new(SessionContext { base_folder: live.cwd().map(str::to_owned), ..SessionContext::default() });
        }
        let wanted = |item: &ScreenItem| {
            !(args.parts.no_thinking && item.kind == ItemKind::Thinking
                || args.parts.no_tools && item.kind == ItemKind::Tool)
        };
        let changes = live.changes().into_iter().filter(|change| wanted(&change.item)).collect();
        let partial = if view.can_redraw() { live.partial_items() } else { Vec::new() };
        view.show_items(&context, changes, partial.into_iter().filter(wanted).collect())?;
    }
    view.show_items(&context, Vec::new(), live.partial_items())?;
    view.finish(&context)
}

/// Entries that may be read without showing them while more input is available.
const MAX_UNSHOWN_ENTRIES: usize = 256;

/// Whether standard input is a regular file.
pub(crate) fn stdin_is_file() -> bool {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let file = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        file.and_then(|file| file.metadata()).is_ok_and(|meta| meta.is_file())
    }
    #[cfg(not(unix))]
    false
}

/// Size of the terminal; `None` if stdout cannot be redrawn.
fn redrawable_size(output: &Output) -> Option<ScreenSize> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    let size = ScreenSize { columns: width.0.into(), rows: height.0.into() };
    let able =
        output.is_terminal && io::stdout().is_terminal() && crate::environment::var("TERM").is_none_or(|t| t != "dumb");
    // Rows wider than the terminal take more than one of its rows.
    (able && size.columns >= output.width).then_some(size)
}

#[derive(Serialize)]
struct JsonLine<'a> {
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_use_id: Option<&'a str>,
    #[serde(flatten)]
    item: &'a ScreenItem,
}

fn json_line(context: &SessionContext, change: &LiveItem) -> Result<String> {
    let agent = change.agent.as_ref();
    let line = JsonLine {
        session_id: context.session_id.as_deref(),
        agent_id: agent.and_then(|agent| agent.agent_id.as_ref()).map(|id| id.as_str()),
        parent_tool_use_id: agent.and_then(|agent| agent.tool_use_id.as_ref()).map(|id| id.as_str()),
        item: &change.item,
    };
    Ok(serde_json::to_string(&line)? + "\n")
}
