//! Renders items one after another: speaker names, empty rows between items, and each kind.

use std::fmt::{self, Write};

use quipu_conversation::{ItemKind, ScreenItem};

use super::palette::{self, BOLD, DIM, ERROR, PLAIN};
use super::row::{Row, Span, row_width, truncate_row, wrap, write_row};
use super::{Terminal, from_markdown};
use crate::sanitize::{sanitize, sanitize_line};
use crate::speaker::{Speaker, context_label, image_item_label};
use crate::thinking::ThinkingDisplay;
use crate::tool_call::pluralize;

/// Renders a conversation item by item.
///
/// It remembers the last speaker, so that a name is shown once for consecutive items. To follow
/// a live session, keep one renderer and pass it each new item.
#[derive(Debug, Clone)]
pub struct TerminalRenderer {
    pub(super) terminal: Terminal,
    width: usize,
    /// Whether the items belong to a subagent.
    is_subagent: bool,
    speaker: Option<Speaker>,
    day: String,
    /// The kind of the last item and how many rows it took.
    last_item: Option<(ItemKind, usize)>,
    /// How long the next tool call ran, in seconds.
    pub(super) call_seconds: Option<u64>,
}

/// Indent of the rows under a speaker's name.
const INDENT: &str = "  ";
/// Longer summaries are truncated.
const MAX_SUMMARY_ROWS: usize = 6;

impl TerminalRenderer {
    pub(super) fn new(terminal: Terminal) -> Self {
        let width = terminal.columns();
        let (speaker, day, last_item, call_seconds) = (None, String::new(), None, None);
        Self { terminal, width, is_subagent: false, speaker, day, last_item, call_seconds }
    }

    /// Sets how long the tool call of the next item has been running, in seconds; `None` if that
    /// is not known.
    pub fn set_call_seconds(&mut self, seconds: Option<u64>) {
        self.call_seconds = seconds;
    }

    /// A new renderer of this width for the items of a subagent.
    pub fn for_subagent(&self, width: usize) -> Self {
        Self { width: width.max(16), is_subagent: true, day: self.day.clone(), ..Self::new(self.terminal.clone()) }
    }

    /// Renders one item into `out`.
    pub fn render_item(&mut self, item: &ScreenItem, out: &mut dyn Write) -> fmt::Result {
        self.render_items(std::slice::from_ref(item), out)
    }

    /// Renders items into `out`. The items after one that names no model are searched for its model.
    pub fn render_items(&mut self, items: &[ScreenItem], out: &mut dyn Write) -> fmt::Result {
        for at in 0..items.len() {
            for row in self.item_rows(&items[at..]) {
                write_row(&row, self.terminal.color, out)?;
            }
        }
        Ok(())
    }

    /// Rows of the first of `items`; the others are only searched for the name of the model.
    pub(super) fn item_rows(&mut self, items: &[ScreenItem]) -> Vec<Row> {
        let Some(item) = items.first() else { return Vec::new() };
        let body = self.body_rows(item, self.width - INDENT.len());
        if body.is_empty() {
            return Vec::new();
        }
        let mut rows = Vec::new();
        let header = self.speaker_row(item, items);
        if self.last_item.is_some() && (header.is_some() || !self.is_adjacent(item.kind, body.len())) {
            rows.push(Row::new());
        }
        rows.extend(header);
        self.last_item = Some((item.kind, body.len()));
        for mut row in body {
            row.insert(0, Span::plain(INDENT));
            rows.push(row);
        }
        rows
    }

    /// Whether this item follows the one before without an empty row.
    fn is_adjacent(&self, kind: ItemKind, rows: usize) -> bool {
        let small = |kind| {
            matches!(kind, ItemKind::Tool | ItemKind::Hook | ItemKind::System | ItemKind::Attachment | ItemKind::Image)
        };
        self.last_item.is_some_and(|(last, before)| {
            kind == ItemKind::Hook || small(last) && small(kind) && rows == 1 && before == 1
        })
    }

    fn speaker_row(&mut self, item: &ScreenItem, items: &[ScreenItem]) -> Option<Row> {
        let speaker = Speaker::from_items(items, self.speaker.as_ref())?;
        // The user's name is repeated for a new prompt after something else happened.
        let is_new_prompt =
            item.kind == ItemKind::User && self.last_item.is_some_and(|(last, _)| !is_user_message_part(last));
        if self.speaker.as_ref() == Some(&speaker) && !is_new_prompt {
            return None;
        }
        let (style, name) = match &speaker {
            Speaker::User if self.is_subagent => (palette::USER, "task"),
            Speaker::User => (palette::USER, "you"),
            Speaker::Model(name) => (palette::MODEL, name.as_str()),
        };
        let mut row = vec![Span::new(style, &format!("▌ {name}"))];
        if let Some(timestamp) = &item.timestamp {
            let formatted = (self.terminal.format_time)(timestamp);
            let (day, time) = formatted.split_once(' ').unwrap_or(("", &formatted));
            let shown = if day == self.day { time } else { &formatted };
            row.push(Span::new(DIM, &format!("  {shown}")));
            day.clone_into(&mut self.day);
        }
        self.speaker = Some(speaker);
        Some(row)
    }

    fn body_rows(&mut self, item: &ScreenItem, width: usize) -> Vec<Row> {
        let text = sanitize(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        match item.kind {
            ItemKind::User => {
                let mut rows = context_rows(item, width);
                rows.extend(plain_rows(text, PLAIN, width));
                rows
            }
            ItemKind::Assistant if item.is_error => plain_rows(text, ERROR, width),
            ItemKind::Assistant => from_markdown::markdown_rows(text, width, self.terminal.color),
            ItemKind::Thinking => self.thinking_rows(text, width),
            ItemKind::Tool if self.terminal.show_tools => {
                item.tool.as_ref().map(|card| self.tool_rows(card, width)).unwrap_or_default()
            }
            ItemKind::Hook if item.is_silent && !self.terminal.show_full => Vec::new(),
            ItemKind::Hook if self.terminal.show_tools => {
                let style = if item.is_error { ERROR } else { DIM };
                vec![truncate_row(&[Span::new(style, &format!("· hook {}", sanitize_line(text)))], width)]
            }
            ItemKind::Tool | ItemKind::Hook => Vec::new(),
            ItemKind::Image => {
                vec![truncate_row(&[Span::new(palette::TAG, &format!("[{}]", image_item_label(text)))], width)]
            }
            ItemKind::Attachment => {
                vec![truncate_row(&[Span::new(palette::TAG, &format!("[{}]", sanitize_line(text)))], width)]
            }
            ItemKind::System => {
                let style = if item.is_error { ERROR } else { DIM };
                self.truncate_rows(marked_rows("· ", text, style, width), self.terminal.max_notice_rows)
            }
            ItemKind::Summary => self.summary_rows(text, width),
            ItemKind::Branch => {
                let label = format!("── {} ", sanitize_line(text));
                let rule = "─".repeat(width.saturating_sub(label.chars().count()));
                vec![truncate_row(&[Span::new(palette::PENDING, &label), Span::new(DIM, &rule)], width)]
            }
            ItemKind::Unknown => {
                let row = [Span::new(palette::PENDING, "? unknown: "), Span::new(DIM, &sanitize_line(text))];
                if self.terminal.show_full { wrap(&row, width) } else { vec![truncate_row(&row, width)] }
            }
            ItemKind::Problem => marked_rows("! ", text, ERROR, width),
        }
    }

    fn thinking_rows(&self, text: &str, width: usize) -> Vec<Row> {
        let style = DIM.italic();
        match self.terminal.thinking {
            ThinkingDisplay::Hidden => Vec::new(),
            ThinkingDisplay::Full => marked_rows("∴ ", text, style, width),
            ThinkingDisplay::Folded => {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let first = lines.next().unwrap_or_default();
                let more = lines.count();
                let note = if more == 0 { String::new() } else { format!(" (+{})", pluralize(more, "line", "lines")) };
                let note = Span::new(DIM, &note);
                let left = width.saturating_sub(row_width(std::slice::from_ref(&note)));
                let mut row = truncate_row(&[Span::new(style, &format!("∴ {first}"))], left);
                row.push(note);
                vec![row]
            }
        }
    }

    fn summary_rows(&mut self, text: &str, width: usize) -> Vec<Row> {
        let label = "── summary of the conversation so far ";
        let rule = "─".repeat(width.saturating_sub(label.chars().count()));
        let mut rows = vec![vec![Span::new(BOLD, label), Span::new(DIM, &rule)]];
        let body = from_markdown::markdown_rows(text, width, self.terminal.color);
        rows.extend(self.truncate_rows(body, MAX_SUMMARY_ROWS));
        rows.push(vec![Span::new(DIM, &"─".repeat(width))]);
        rows
    }

    /// Keeps the first rows and adds the number of rows left out, unless `show_full` is set.
    pub(super) fn truncate_rows(&self, mut rows: Vec<Row>, max_rows: usize) -> Vec<Row> {
        // Replacing a single row by a row that says `+1 line` saves nothing.
        if !self.terminal.show_full && rows.len() > max_rows.saturating_add(1) {
            let more = pluralize(rows.len() - max_rows, "line", "lines");
            rows.truncate(max_rows);
            rows.push(vec![Span::new(DIM, &format!("… +{more}"))]);
        }
        rows
    }
}

/// Whether the kind is part of a user message.
fn is_user_message_part(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::User | ItemKind::Image | ItemKind::Attachment)
}

/// Labels of what is attached to a prompt.
fn context_rows(item: &ScreenItem, width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for context in &item.contexts {
        let tag = Span::new(palette::TAG, &format!("[{}]", context_label(&context.kind)));
        match rows.last_mut() {
            Some(row) if row_width(row) + 1 + row_width(std::slice::from_ref(&tag)) <= width => {
                row.extend([Span::plain(" "), tag]);
            }
            _ => rows.push(truncate_row(&[tag], width)),
        }
    }
    rows
}

/// Wraps each line of a text.
pub(super) fn plain_rows(text: &str, style: anstyle::Style, width: usize) -> Vec<Row> {
    text.lines().flat_map(|line| wrap(&[Span::new(style, line)], width)).collect()
}

/// Wraps a text after a mark, with a hanging indent.
fn marked_rows(mark: &str, text: &str, style: anstyle::Style, width: usize) -> Vec<Row> {
    let mut rows = plain_rows(text, style, width.saturating_sub(2));
    for (i, row) in rows.iter_mut().enumerate() {
        row.insert(0, if i == 0 { Span::new(style, mark) } else { Span::plain(INDENT) });
    }
    rows
}
