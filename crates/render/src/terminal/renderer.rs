//! Item after item: who speaks, where empty rows go, what each kind looks like.

use std::fmt::{self, Write};

use quipu_conversation::{ItemKind, ScreenItem};

use super::palette::{self, BOLD, DIM, ERROR, PLAIN};
use super::row::{Row, Span, truncate_row, width, wrap, write_row};
use super::{Terminal, from_markdown};
use crate::sanitize::{sanitize, sanitize_line};
use crate::speaker::{Speaker, context_label, image_item_label};
use crate::thinking::ThinkingDisplay;
use crate::tool_call::pluralize;

/// A conversation on its way to a terminal, item by item.
///
/// A `TerminalRenderer` knows who spoke last, so a speaker's name is shown once; following
/// a live session, keep one and give it each new item.
#[derive(Debug, Clone)]
pub struct TerminalRenderer {
    pub(super) terminal: Terminal,
    width: usize,
    /// Whether this is a subagent's conversation.
    is_subagent: bool,
    speaker: Option<Speaker>,
    day: String,
    /// The kind of the last item and how many rows it took.
    last_item: Option<(ItemKind, usize)>,
}

/// The indent of everything a speaker says.
const INDENT: &str = "  ";
/// Rows of a notice, a summary or an unknown thing before it is cut.
const MAX_NOTICE_ROWS: usize = 6;

impl TerminalRenderer {
    pub(super) fn new(terminal: Terminal) -> Self {
        let width = terminal.columns();
        Self { terminal, width, is_subagent: false, speaker: None, day: String::new(), last_item: None }
    }

    /// A flow for the items of a subagent, which begins anew in so many columns.
    pub fn for_subagent(&self, width: usize) -> Self {
        Self { width: width.max(16), is_subagent: true, day: self.day.clone(), ..Self::new(self.terminal.clone()) }
    }

    /// Renders one item.
    pub fn render_item(&mut self, item: &ScreenItem, out: &mut dyn Write) -> fmt::Result {
        self.render_items(std::slice::from_ref(item), out)
    }

    /// Renders some items.
    pub fn render_items(&mut self, items: &[ScreenItem], out: &mut dyn Write) -> fmt::Result {
        for at in 0..items.len() {
            for row in self.item_rows(&items[at..]) {
                write_row(&row, self.terminal.color, out)?;
            }
        }
        Ok(())
    }

    /// The rows of the first of some items; the others tell which model speaks.
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

    /// Whether no empty row parts this item from the one before.
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
        // A person who speaks again after something else happened is named again.
        let again = item.kind == ItemKind::User && self.last_item.is_some_and(|(last, _)| !is_user_message_part(last));
        if self.speaker.as_ref() == Some(&speaker) && !again {
            return None;
        }
        let (style, name) = match &speaker {
            Speaker::User if self.is_subagent => (palette::USER, "task"),
            Speaker::User => (palette::USER, "you"),
            Speaker::Model(name) => (palette::MODEL, name.as_str()),
        };
        let mut row = vec![Span::new(style, &format!("▌ {name}"))];
        if let Some(stamp) = &item.timestamp {
            let when = (self.terminal.format_time)(stamp);
            let (day, time) = when.split_once(' ').unwrap_or(("", &when));
            let shown = if day == self.day { time } else { &when };
            row.push(Span::new(DIM, &format!("  {shown}")));
            day.clone_into(&mut self.day);
        }
        self.speaker = Some(speaker);
        Some(row)
    }

    fn body_rows(&mut self, item: &ScreenItem, room: usize) -> Vec<Row> {
        let text = sanitize(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        match item.kind {
            ItemKind::User => {
                let mut rows = context_rows(item, room);
                rows.extend(plain_rows(text, PLAIN, room));
                rows
            }
            ItemKind::Assistant if item.is_error => plain_rows(text, ERROR, room),
            ItemKind::Assistant => from_markdown::markdown_rows(text, room, self.terminal.color),
            ItemKind::Thinking => self.thinking_rows(text, room),
            ItemKind::Tool if self.terminal.show_tools => {
                item.tool.as_ref().map(|card| self.tool_rows(card, room)).unwrap_or_default()
            }
            ItemKind::Hook if item.is_silent && !self.terminal.show_full => Vec::new(),
            ItemKind::Hook if self.terminal.show_tools => {
                let style = if item.is_error { ERROR } else { DIM };
                vec![truncate_row(&[Span::new(style, &format!("· hook {}", sanitize_line(text)))], room)]
            }
            ItemKind::Tool | ItemKind::Hook => Vec::new(),
            ItemKind::Image => {
                vec![truncate_row(&[Span::new(palette::TAG, &format!("[{}]", image_item_label(text)))], room)]
            }
            ItemKind::Attachment => {
                vec![truncate_row(&[Span::new(palette::TAG, &format!("[{}]", sanitize_line(text)))], room)]
            }
            ItemKind::System => {
                let style = if item.is_error { ERROR } else { DIM };
                self.truncate_rows(marked_rows("· ", text, style, room), MAX_NOTICE_ROWS)
            }
            ItemKind::Summary => self.summary_rows(text, room),
            ItemKind::Branch => {
                let words = format!("── {} ", sanitize_line(text));
                let rule = "─".repeat(room.saturating_sub(words.chars().count()));
                vec![truncate_row(&[Span::new(palette::PENDING, &words), Span::new(DIM, &rule)], room)]
            }
            ItemKind::Unknown => {
                let row = [Span::new(palette::PENDING, "? unknown: "), Span::new(DIM, &sanitize_line(text))];
                if self.terminal.show_full { wrap(&row, room) } else { vec![truncate_row(&row, room)] }
            }
            ItemKind::Problem => marked_rows("! ", text, ERROR, room),
        }
    }

    fn thinking_rows(&self, text: &str, room: usize) -> Vec<Row> {
        let style = DIM.italic();
        match self.terminal.thinking {
            ThinkingDisplay::Hidden => Vec::new(),
            ThinkingDisplay::Full => marked_rows("∴ ", text, style, room),
            ThinkingDisplay::Folded => {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let first = lines.next().unwrap_or_default();
                let more = lines.count();
                let note = if more == 0 { String::new() } else { format!(" (+{})", pluralize(more, "line", "lines")) };
                let note = Span::new(DIM, &note);
                let left = room.saturating_sub(width(std::slice::from_ref(&note)));
                let mut row = truncate_row(&[Span::new(style, &format!("∴ {first}"))], left);
                row.push(note);
                vec![row]
            }
        }
    }

    fn summary_rows(&mut self, text: &str, room: usize) -> Vec<Row> {
        let words = "── summary of the conversation so far ";
        let rule = "─".repeat(room.saturating_sub(words.chars().count()));
        let mut rows = vec![vec![Span::new(BOLD, words), Span::new(DIM, &rule)]];
        let body = from_markdown::markdown_rows(text, room, self.terminal.color);
        rows.extend(self.truncate_rows(body, MAX_NOTICE_ROWS));
        rows.push(vec![Span::new(DIM, &"─".repeat(room))]);
        rows
    }

    /// The first rows, and how many more there are, unless all are wanted.
    pub(super) fn truncate_rows(&self, mut rows: Vec<Row>, most: usize) -> Vec<Row> {
        // One row more is not worth a row that says so.
        if !self.terminal.show_full && rows.len() > most + 1 {
            let more = pluralize(rows.len() - most, "line", "lines");
            rows.truncate(most);
            rows.push(vec![Span::new(DIM, &format!("… +{more}"))]);
        }
        rows
    }
}

/// Whether the kind is part of what a person says in one go.
fn is_user_message_part(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::User | ItemKind::Image | ItemKind::Attachment)
}

/// What the person attached, as tags.
fn context_rows(item: &ScreenItem, room: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for context in &item.contexts {
        let tag = Span::new(palette::TAG, &format!("[{}]", context_label(&context.kind)));
        match rows.last_mut() {
            Some(row) if width(row) + 1 + width(std::slice::from_ref(&tag)) <= room => {
                row.extend([Span::plain(" "), tag]);
            }
            _ => rows.push(truncate_row(&[tag], room)),
        }
    }
    rows
}

/// Text as it was written, wrapped.
pub(super) fn plain_rows(text: &str, style: anstyle::Style, room: usize) -> Vec<Row> {
    text.lines().flat_map(|line| wrap(&[Span::new(style, line)], room)).collect()
}

/// Text behind a mark, with a hanging indent.
fn marked_rows(mark: &str, text: &str, style: anstyle::Style, room: usize) -> Vec<Row> {
    let mut rows = plain_rows(text, style, room.saturating_sub(2));
    for (i, row) in rows.iter_mut().enumerate() {
        row.insert(0, if i == 0 { Span::new(style, mark) } else { Span::plain(INDENT) });
    }
    rows
}
