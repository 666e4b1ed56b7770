//! Renders items as they arrive: finished ones scroll away, the rows below them are redrawn.

use std::collections::HashMap;
use std::rc::Rc;

use quipu_conversation::{LiveItem, LiveSubagent, ScreenItem, ToolStatus};
use quipu_message::ToolUseId;

use crate::sanitize::sanitize_line;
use crate::terminal::{Terminal, TerminalRenderer, dimmed};

mod drawn_rows;

#[cfg(test)]
mod tests;

pub use drawn_rows::{Cursor, ScreenSize};

use drawn_rows::DrawnRows;

/// Columns of the frame around the items of a subagent.
const SUBAGENT_FRAME_COLUMNS: usize = 4;

/// The session that items belong to.
#[derive(Debug, Default)]
pub struct SessionContext {
    /// Id of the session.
    pub session_id: Option<String>,
    /// Printed before items that follow those of another session; `None` if there is only one.
    pub heading: Option<String>,
    /// Paths under this folder are shown relative to it.
    pub base_folder: Option<String>,
}

/// Renders items as they arrive. Each method returns the text to print.
///
/// In a pipe each item is printed once, and a tool call again with its result. On a terminal the
/// rows below the last finished item are redrawn as they change: pending tool calls, partial
/// text, and the rows that [`set_bottom`](Self::set_bottom) sets. Nothing that has scrolled away
/// is changed.
///
/// ```
/// use std::rc::Rc;
/// use quipu_conversation::LiveConversation;
/// use quipu_render::{LiveScreen, SessionContext, Terminal};
/// let mut live = LiveConversation::default();
/// live.push_line(1, r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#);
/// let mut screen = LiveScreen::new(Terminal::default(), None);
/// let text = screen.show_items(&Rc::new(SessionContext::default()), live.changes(), Vec::new());
/// assert_eq!(text, "▌ you\n  hi\n");
/// ```
#[derive(Debug)]
pub struct LiveScreen {
    style: Terminal,
    /// Size of the terminal; `None` if rows cannot be redrawn.
    size: Option<ScreenSize>,
    renderers: HashMap<ItemChannel, TerminalRenderer>,
    last_channel: Option<ItemChannel>,
    /// Whether an empty row must precede the next item.
    needs_gap: bool,
    pending: Vec<(Rc<SessionContext>, LiveItem)>,
    partial: Vec<ScreenItem>,
    /// Pending tool call that is not shown, because the bottom rows show it.
    hidden_call: Option<ToolUseId>,
    /// Running time of tool calls in seconds.
    call_seconds: HashMap<ToolUseId, u64>,
    bottom: Vec<String>,
    cursor: Option<Cursor>,
    drawn: DrawnRows,
}

/// Session id, and the subagent if the items are a subagent's.
type ItemChannel = (Option<String>, Option<String>);

impl LiveScreen {
    /// An empty screen. Without a size, nothing is redrawn.
    pub fn new(style: Terminal, size: Option<ScreenSize>) -> Self {
        Self {
            style,
            size,
            renderers: HashMap::new(),
            last_channel: None,
            needs_gap: false,
            pending: Vec::new(),
            partial: Vec::new(),
            hidden_call: None,
            call_seconds: HashMap::new(),
            bottom: Vec::new(),
            cursor: None,
            drawn: DrawnRows::default(),
        }
    }

    /// Whether rows can be redrawn: only then are partial items and bottom rows shown.
    pub fn can_redraw(&self) -> bool {
        self.size.is_some()
    }

    /// Prints new items of a session above the changing rows, and shows its partial items.
    pub fn show_items(
        &mut self,
        context: &Rc<SessionContext>,
        changes: Vec<LiveItem>,
        partial: Vec<ScreenItem>,
    ) -> String {
        let mut text = String::new();
        for change in changes {
            if self.size.is_none() {
                self.print_item(context, &change, &mut text);
            } else {
                self.print_or_hold(context, change, &mut text);
            }
        }
        self.partial = partial;
        self.redraw(&text)
    }

    /// Sets the rows at the bottom of the terminal, and where among them the cursor is. Without a
    /// cursor it is below them.
    pub fn set_bottom(&mut self, rows: Vec<String>, cursor: Option<Cursor>) -> String {
        (self.bottom, self.cursor) = (rows, cursor);
        self.redraw("")
    }

    /// Prints text above the changing rows; it ends with a line break.
    pub fn print_text(&mut self, text: &str) -> String {
        self.last_channel = None;
        self.redraw(text)
    }

    /// Like [`print_text`](Self::print_text), with empty rows between the text and the items
    /// before and after it.
    pub fn print_paragraph(&mut self, text: &str) -> String {
        let gap = if self.last_channel.is_some() { "\n" } else { "" };
        self.needs_gap = true;
        self.print_text(&format!("{gap}{text}"))
    }

    /// Hides a pending tool call until the next call of this method; `None` shows all.
    pub fn hide_pending_call(&mut self, call: Option<ToolUseId>) {
        self.hidden_call = call;
    }

    /// Sets how long a tool call has been running, in seconds. It is shown after its title.
    pub fn set_call_seconds(&mut self, call: &ToolUseId, seconds: u64) {
        self.call_seconds.insert(call.clone(), seconds);
    }

    /// Ids of the tool calls without a result.
    pub fn pending_calls(&self) -> impl Iterator<Item = &ToolUseId> {
        self.pending.iter().filter_map(|(_, item)| Some(&item.item.tool.as_ref()?.id))
    }

    /// Adapts to another size of the terminal, and to the width that text may take.
    pub fn resize(&mut self, size: ScreenSize, width: usize) -> String {
        self.style.width = width;
        // The renderers know their width.
        self.renderers.clear();
        self.size = Some(size);
        let text = self.drawn.erase(size);
        text + &self.redraw("")
    }

    /// Prints the items that were still changing, and removes the bottom rows.
    pub fn finish(mut self, context: &SessionContext) -> String {
        let mut text = String::new();
        for (context, item) in std::mem::take(&mut self.pending) {
            self.print_item(&context, &item, &mut text);
        }
        for item in std::mem::take(&mut self.partial) {
            self.print_item(context, &LiveItem { item, agent: None, is_update: false }, &mut text);
        }
        (self.bottom, self.cursor) = (Vec::new(), None);
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
            if let Some(tool) = &change.item.tool {
                self.call_seconds.remove(&tool.id);
            }
        }
    }

    /// Renders an item, with a heading if its session or subagent differs from the last item's.
    fn print_item(&mut self, context: &SessionContext, change: &LiveItem, text: &mut String) {
        let channel: ItemChannel = (context.session_id.clone(), change.agent.as_ref().map(agent_key));
        let moved = self.last_channel.as_ref() != Some(&channel);
        let seconds = change.item.tool.as_ref().and_then(|tool| self.call_seconds.get(&tool.id).copied());
        let mut item = String::new();
        let renderer = self.renderer_for(context, &channel);
        renderer.set_call_seconds(seconds);
        // Writing to a string cannot fail.
        let _ = renderer.render_item(&change.item, &mut item);
        if item.is_empty() {
            return;
        }
        if std::mem::take(&mut self.needs_gap) && !item.starts_with('\n') {
            text.push('\n');
        }
        let color = self.style.color;
        if moved {
            let other_session = self.last_channel.as_ref().is_none_or(|(session, _)| *session != channel.0);
            if let Some(heading) = context.heading.as_ref().filter(|_| other_session) {
                let gap = if self.last_channel.is_some() { "\n" } else { "" };
                text.push_str(&format!("{gap}{} {heading}\n", dimmed("──", color)));
                item = item.trim_start_matches('\n').to_owned();
            }
        }
        match &change.agent {
            None => text.push_str(&item),
            Some(agent) => {
                if moved {
                    text.push_str(&format!("\n  {} {}\n", dimmed("┌ subagent", color), agent_name(agent)));
                    item = item.trim_start_matches('\n').to_owned();
                }
                item.lines().for_each(|line| text.push_str(&format!("  {} {line}\n", dimmed("│", color))));
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
    fn redraw(&mut self, finished: &str) -> String {
        let Some(size) = self.size else { return finished.to_owned() };
        let (rows, cursor) = self.changing_rows(size);
        self.drawn.replace(finished, rows, cursor, size)
    }

    /// The rows that may change; only the last ones that fit the terminal.
    fn changing_rows(&mut self, size: ScreenSize) -> (Vec<String>, Option<Cursor>) {
        let (renderers, last, needs_gap) = (self.renderers.clone(), self.last_channel.clone(), self.needs_gap);
        let mut text = String::new();
        for (context, item) in std::mem::take(&mut self.pending) {
            if item.item.tool.as_ref().map(|tool| &tool.id) != self.hidden_call.as_ref() {
                self.print_item(&context, &item, &mut text);
            }
            self.pending.push((context, item));
        }
        for item in self.partial.clone() {
            let context = SessionContext {
                session_id: last.as_ref().and_then(|(id, _)| id.clone()),
                ..SessionContext::default()
            };
            self.print_item(&context, &LiveItem { item, agent: None, is_update: false }, &mut text);
        }
        (self.renderers, self.last_channel, self.needs_gap) = (renderers, last, needs_gap);
        // The row of the cursor is below them. The first row of the terminal stays free, too: tmux keeps
        // what is cleared from there on among the rows that have scrolled away.
        let max_rows = size.rows.saturating_sub(2).max(1);
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        let skipped = (rows.len() + self.bottom.len()).saturating_sub(max_rows);
        let above = rows.len();
        rows.extend(self.bottom.iter().cloned());
        let cursor = self.cursor.map(|cursor| Cursor { row: (above + cursor.row).saturating_sub(skipped), ..cursor });
        (rows.split_off(skipped), cursor)
    }
}

fn agent_key(agent: &LiveSubagent) -> String {
    let id = agent.agent_id.as_ref().map(|id| id.as_str());
    id.or(agent.tool_use_id.as_ref().map(|id| id.as_str())).unwrap_or_default().to_owned()
}

fn agent_name(agent: &LiveSubagent) -> String {
    sanitize_line(&agent.task.clone().unwrap_or_else(|| agent_key(agent)))
}
