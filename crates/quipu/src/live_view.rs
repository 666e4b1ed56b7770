//! Prints items as they arrive, for `follow` and `show -`.
//!
//! In a pipe each item is printed once, and a tool call again with its result. On a terminal the
//! rows below the last finished item are redrawn as they change: pending tool calls, partial
//! text, and a few rows of status.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::rc::Rc;

use anstyle::Style;
use anyhow::Result;
use quipu_conversation::{ItemKind, LiveConversation, LiveItem, LiveSubagent, ScreenItem, ToolStatus};
use quipu_render::{Terminal, TerminalRenderer, ThinkingDisplay, sanitize};
use quipu_transcript::{FileError, LineReader, RawLine};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::output::Output;
use crate::time::format_local_time;

/// Columns of the frame around the items of a subagent.
const SUBAGENT_FRAME_COLUMNS: usize = 4;

/// The session that items belong to.
#[derive(Debug, Default)]
pub(crate) struct SessionContext {
    /// Id of the session.
    pub(crate) session_id: Option<String>,
    /// Printed before items that follow those of another session; `None` if there is only one.
    pub(crate) heading: Option<String>,
    /// Paths under this folder are shown relative to it.
    pub(crate) base_folder: Option<String>,
}

/// Prints items as they arrive.
#[derive(Debug)]
pub(crate) struct LiveView<'o> {
    output: &'o Output,
    style: Terminal,
    json: bool,
    /// Number of rows that may be redrawn; `None` if stdout cannot be redrawn.
    redrawable_rows: Option<usize>,
    renderers: HashMap<ItemChannel, TerminalRenderer>,
    last_channel: Option<ItemChannel>,
    pending: Vec<(Rc<SessionContext>, LiveItem)>,
    partial: Vec<ScreenItem>,
    status: Vec<String>,
    drawn_rows: String,
}

/// Session id, and the subagent if the items are a subagent's.
type ItemChannel = (Option<String>, Option<String>);

impl<'o> LiveView<'o> {
    pub(crate) fn new(output: &'o Output, json: bool, full: bool) -> Self {
        let style = Terminal {
            width: output.width,
            color: output.color,
            thinking: if full { ThinkingDisplay::Full } else { ThinkingDisplay::Folded },
            show_full: full,
            format_time: format_local_time,
            ..Terminal::default()
        };
        let (renderers, waiting, partial, status) = (HashMap::new(), Vec::new(), Vec::new(), Vec::new());
        let rows = if json { None } else { redrawable_rows(output) };
        Self {
            output,
            style,
            json,
            redrawable_rows: rows,
            renderers,
            last_channel: None,
            pending: waiting,
            partial,
            status,
            drawn_rows: String::new(),
        }
    }

    /// Whether rows can be drawn again: only then is it worth saying what is being written.
    pub(crate) fn can_redraw(&self) -> bool {
        self.redrawable_rows.is_some()
    }

    /// Prints what is new of a session, and what is being written.
    pub(crate) fn show_items(
        &mut self,
        context: &Rc<SessionContext>,
        changes: Vec<LiveItem>,
        partial: Vec<ScreenItem>,
    ) -> Result<()> {
        let mut text = String::new();
        for change in changes {
            if self.json {
                text.push_str(&json_line(context, &change)?);
            } else if self.redrawable_rows.is_none() {
                self.print_item(context, &change, &mut text);
            } else {
                self.print_or_hold(context, change, &mut text);
            }
        }
        self.partial = partial;
        self.redraw(&text)
    }

    /// Sets the rows at the bottom of a terminal.
    pub(crate) fn set_status(&mut self, status: Vec<String>) -> Result<()> {
        self.status = status;
        self.redraw("")
    }

    /// Prints one line above the rows that may change.
    pub(crate) fn print_line(&mut self, line: &str) -> Result<()> {
        self.last_channel = None;
        self.redraw(&format!("{line}\n"))
    }

    /// Prints the items that were still changing, and removes the status rows.
    pub(crate) fn finish(mut self, context: &Rc<SessionContext>) -> Result<()> {
        let mut text = String::new();
        for (context, item) in std::mem::take(&mut self.pending) {
            self.print_item(&context, &item, &mut text);
        }
        for item in std::mem::take(&mut self.partial) {
            let item = LiveItem { item, agent: None, is_update: false };
            if self.json {
                text.push_str(&json_line(context, &item)?);
            } else {
                self.print_item(context, &item, &mut text);
            }
        }
        self.status.clear();
        self.redraw(&text)
    }

    /// Prints an item, or keeps a pending tool call until its result arrives.
    fn print_or_hold(&mut self, context: &Rc<SessionContext>, change: LiveItem, text: &mut String) {
        let tool = change.item.tool.as_ref();
        if let Some(tool) = tool {
            self.pending.retain(|(_, other)| other.item.tool.as_ref().is_none_or(|other| other.id != tool.id));
        }
        if tool.is_some_and(|tool| tool.status == ToolStatus::Pending) {
            self.pending.push((Rc::clone(context), change));
        } else {
            self.print_item(context, &change, text);
        }
    }

    /// Renders an item, with a heading if its session or subagent differs from the last item's.
    fn print_item(&mut self, context: &SessionContext, change: &LiveItem, text: &mut String) {
        let channel: ItemChannel = (context.session_id.clone(), change.agent.as_ref().map(agent_key));
        let moved = self.last_channel.as_ref() != Some(&channel);
        let mut item = String::new();
        let renderer = self.renderer_for(context, &channel);
        // Writing to a string cannot fail.
        let _ = renderer.render_item(&change.item, &mut item);
        if item.is_empty() {
            return;
        }
        let dim = self.output.style(Style::new().dimmed());
        if moved {
            let other_session = self.last_channel.as_ref().is_none_or(|(session, _)| *session != channel.0);
            if let Some(heading) = context.heading.as_ref().filter(|_| other_session) {
                let gap = if self.last_channel.is_some() { "\n" } else { "" };
                text.push_str(&format!("{gap}{dim}──{dim:#} {heading}\n"));
                item = item.trim_start_matches('\n').to_owned();
            }
        }
        match &change.agent {
            None => text.push_str(&item),
            Some(agent) => {
                if moved {
                    text.push_str(&format!("\n  {dim}┌ subagent{dim:#} {}\n", agent_name(agent)));
                    item = item.trim_start_matches('\n').to_owned();
                }
                item.lines().for_each(|line| text.push_str(&format!("  {dim}│{dim:#} {line}\n")));
            }
        }
        self.last_channel = Some(channel);
    }

    fn renderer_for(&mut self, context: &SessionContext, channel: &ItemChannel) -> &mut TerminalRenderer {
        let style = || Terminal { base_folder: context.base_folder.clone(), ..self.style.clone() };
        self.renderers.entry(channel.clone()).or_insert_with(|| match channel.1 {
            None => style().renderer(),
            Some(_) => style().renderer().for_subagent(style().width.saturating_sub(SUBAGENT_FRAME_COLUMNS)),
        })
    }

    /// Prints finished text above the rows that may change, and redraws these.
    fn redraw(&mut self, finished: &str) -> Result<()> {
        let Some(rows) = self.redrawable_rows else {
            return if finished.is_empty() { Ok(()) } else { self.output.print_bytes(finished.as_bytes()) };
        };
        let below = self.changing_rows(rows);
        if finished.is_empty() && below == self.drawn_rows {
            return Ok(());
        }
        let mut text = match self.drawn_rows.lines().count() {
            0 => String::new(),
            // Up to where the rows begin, and clear from there.
            n => format!("\x1b[{n}A\x1b[J"),
        };
        text.push_str(finished);
        text.push_str(&below);
        self.drawn_rows = below;
        self.output.print_bytes(text.as_bytes())
    }

    /// The rows that may change; only the last ones that fit the terminal.
    fn changing_rows(&mut self, rows: usize) -> String {
        let (renderers, last) = (self.renderers.clone(), self.last_channel.clone());
        let mut text = String::new();
        for (context, item) in std::mem::take(&mut self.pending) {
            self.print_item(&context, &item, &mut text);
            self.pending.push((context, item));
        }
        for item in self.partial.clone() {
            let context = SessionContext {
                session_id: last.as_ref().and_then(|(id, _)| id.clone()),
                ..SessionContext::default()
            };
            self.print_item(&context, &LiveItem { item, agent: None, is_update: false }, &mut text);
        }
        (self.renderers, self.last_channel) = (renderers, last);
        let lines: Vec<&str> = text.lines().chain(self.status.iter().map(String::as_str)).collect();
        lines[lines.len().saturating_sub(rows)..].iter().map(|line| format!("{line}\n")).collect()
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
    view.partial = live.partial_items();
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

/// Number of terminal rows that may be redrawn; `None` if stdout cannot be redrawn.
fn redrawable_rows(output: &Output) -> Option<usize> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    let able =
        output.is_terminal && io::stdout().is_terminal() && crate::environment::var("TERM").is_none_or(|t| t != "dumb");
    // Rows wider than the terminal take more than one of its rows.
    (able && usize::from(width.0) >= output.width).then(|| usize::from(height.0).saturating_sub(1).max(1))
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

fn agent_key(agent: &LiveSubagent) -> String {
    let id = agent.agent_id.as_ref().map(|id| id.as_str());
    id.or(agent.tool_use_id.as_ref().map(|id| id.as_str())).unwrap_or_default().to_owned()
}

fn agent_name(agent: &LiveSubagent) -> String {
    sanitize(&agent.task.clone().unwrap_or_else(|| agent_key(agent))).replace('\n', " ")
}
