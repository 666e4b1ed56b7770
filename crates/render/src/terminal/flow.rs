//! Item after item: who speaks, where empty rows go, what each kind looks like.

use std::fmt::{self, Write};

use quipu_conversation::{Kind, ScreenItem};

use super::paint::{self, BAD, BOLD, DIM, PLAIN};
use super::row::{Row, Span, cut, width, wrap, write};
use super::{Terminal, Thinking, prose};
use crate::call::count;
use crate::clean::{clean, one_line};
use crate::speaker::{Speaker, context_label, picture_label};

/// A conversation on its way to a terminal, item by item.
///
/// A `Flow` knows who spoke last, so a speaker's name is shown once; following
/// a live session, keep one and give it each new item.
#[derive(Debug, Clone)]
pub struct Flow {
    pub(super) terminal: Terminal,
    width: usize,
    /// Whether this is a subagent's conversation.
    inner: bool,
    speaker: Option<Speaker>,
    day: String,
    /// The kind of the last item and how many rows it took.
    last: Option<(Kind, usize)>,
}

/// The indent of everything a speaker says.
const INDENT: &str = "  ";
/// Rows of a notice, a summary or an unknown thing before it is cut.
const NOTICE: usize = 6;

impl Flow {
    pub(super) fn new(terminal: Terminal) -> Self {
        let width = terminal.columns();
        Self { terminal, width, inner: false, speaker: None, day: String::new(), last: None }
    }

    /// A flow for the items of a subagent, which begins anew in so many columns.
    pub fn inside(&self, width: usize) -> Self {
        Self { width: width.max(16), inner: true, day: self.day.clone(), ..Self::new(self.terminal.clone()) }
    }

    /// Renders one item.
    pub fn item(&mut self, item: &ScreenItem, out: &mut dyn Write) -> fmt::Result {
        self.items(std::slice::from_ref(item), out)
    }

    /// Renders some items.
    pub fn items(&mut self, items: &[ScreenItem], out: &mut dyn Write) -> fmt::Result {
        for at in 0..items.len() {
            for row in self.rows(&items[at..]) {
                write(&row, self.terminal.color, out)?;
            }
        }
        Ok(())
    }

    /// The rows of the first of some items; the others tell which model speaks.
    pub(super) fn rows(&mut self, items: &[ScreenItem]) -> Vec<Row> {
        let Some(item) = items.first() else { return Vec::new() };
        let body = self.body(item, self.width - INDENT.len());
        if body.is_empty() {
            return Vec::new();
        }
        let mut rows = Vec::new();
        let header = self.header(item, items);
        if self.last.is_some() && (header.is_some() || !self.is_close(item.kind, body.len())) {
            rows.push(Row::new());
        }
        rows.extend(header);
        self.last = Some((item.kind, body.len()));
        for mut row in body {
            row.insert(0, Span::plain(INDENT));
            rows.push(row);
        }
        rows
    }

    /// Whether no empty row parts this item from the one before.
    fn is_close(&self, kind: Kind, rows: usize) -> bool {
        let small = |kind| matches!(kind, Kind::Tool | Kind::Hook | Kind::System | Kind::Attachment | Kind::Image);
        self.last
            .is_some_and(|(last, before)| kind == Kind::Hook || small(last) && small(kind) && rows == 1 && before == 1)
    }

    fn header(&mut self, item: &ScreenItem, items: &[ScreenItem]) -> Option<Row> {
        let speaker = Speaker::of(items, self.speaker.as_ref())?;
        // A person who speaks again after something else happened is named again.
        let again = item.kind == Kind::User && self.last.is_some_and(|(last, _)| !is_said(last));
        if self.speaker.as_ref() == Some(&speaker) && !again {
            return None;
        }
        let (style, name) = match &speaker {
            Speaker::You if self.inner => (paint::YOU, "task"),
            Speaker::You => (paint::YOU, "you"),
            Speaker::Model(name) => (paint::MODEL, name.as_str()),
        };
        let mut row = vec![Span::new(style, &format!("▌ {name}"))];
        if let Some(stamp) = &item.timestamp {
            let when = (self.terminal.local)(stamp);
            let (day, time) = when.split_once(' ').unwrap_or(("", &when));
            let shown = if day == self.day { time } else { &when };
            row.push(Span::new(DIM, &format!("  {shown}")));
            day.clone_into(&mut self.day);
        }
        self.speaker = Some(speaker);
        Some(row)
    }

    fn body(&mut self, item: &ScreenItem, room: usize) -> Vec<Row> {
        let text = clean(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        match item.kind {
            Kind::User => {
                let mut rows = tags(item, room);
                rows.extend(plain(text, PLAIN, room));
                rows
            }
            Kind::Assistant if item.is_error => plain(text, BAD, room),
            Kind::Assistant => prose::rows(text, room, self.terminal.color),
            Kind::Thinking => self.thinking(text, room),
            Kind::Tool if self.terminal.tools => {
                item.tool.as_ref().map(|card| self.tool(card, room)).unwrap_or_default()
            }
            Kind::Hook if item.is_silent && !self.terminal.full => Vec::new(),
            Kind::Hook if self.terminal.tools => {
                let style = if item.is_error { BAD } else { DIM };
                vec![cut(&[Span::new(style, &format!("· hook {}", one_line(text)))], room)]
            }
            Kind::Tool | Kind::Hook => Vec::new(),
            Kind::Image => vec![cut(&[Span::new(paint::TAG, &format!("[{}]", picture_label(text)))], room)],
            Kind::Attachment => vec![cut(&[Span::new(paint::TAG, &format!("[{}]", one_line(text)))], room)],
            Kind::System => {
                let style = if item.is_error { BAD } else { DIM };
                self.limited(marked("· ", text, style, room), NOTICE)
            }
            Kind::Summary => self.summary(text, room),
            Kind::Branch => {
                let words = format!("── {} ", one_line(text));
                let rule = "─".repeat(room.saturating_sub(words.chars().count()));
                vec![cut(&[Span::new(paint::WAITING, &words), Span::new(DIM, &rule)], room)]
            }
            Kind::Unknown => {
                let row = [Span::new(paint::WAITING, "? unknown: "), Span::new(DIM, &one_line(text))];
                if self.terminal.full { wrap(&row, room) } else { vec![cut(&row, room)] }
            }
            Kind::Problem => marked("! ", text, BAD, room),
        }
    }

    fn thinking(&self, text: &str, room: usize) -> Vec<Row> {
        let style = DIM.italic();
        match self.terminal.thinking {
            Thinking::Hidden => Vec::new(),
            Thinking::Full => marked("∴ ", text, style, room),
            Thinking::Folded => {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let first = lines.next().unwrap_or_default();
                let more = lines.count();
                let note = if more == 0 { String::new() } else { format!(" (+{})", count(more, "line", "lines")) };
                let note = Span::new(DIM, &note);
                let left = room.saturating_sub(width(std::slice::from_ref(&note)));
                let mut row = cut(&[Span::new(style, &format!("∴ {first}"))], left);
                row.push(note);
                vec![row]
            }
        }
    }

    fn summary(&mut self, text: &str, room: usize) -> Vec<Row> {
        let words = "── summary of the conversation so far ";
        let rule = "─".repeat(room.saturating_sub(words.chars().count()));
        let mut rows = vec![vec![Span::new(BOLD, words), Span::new(DIM, &rule)]];
        let body = prose::rows(text, room, self.terminal.color);
        rows.extend(self.limited(body, NOTICE));
        rows.push(vec![Span::new(DIM, &"─".repeat(room))]);
        rows
    }

    /// The first rows, and how many more there are, unless all are wanted.
    pub(super) fn limited(&self, mut rows: Vec<Row>, most: usize) -> Vec<Row> {
        // One row more is not worth a row that says so.
        if !self.terminal.full && rows.len() > most + 1 {
            let more = count(rows.len() - most, "line", "lines");
            rows.truncate(most);
            rows.push(vec![Span::new(DIM, &format!("… +{more}"))]);
        }
        rows
    }
}

/// Whether the kind is part of what a person says in one go.
fn is_said(kind: Kind) -> bool {
    matches!(kind, Kind::User | Kind::Image | Kind::Attachment)
}

/// What the person attached, as tags.
fn tags(item: &ScreenItem, room: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for context in &item.contexts {
        let tag = Span::new(paint::TAG, &format!("[{}]", context_label(&context.kind)));
        match rows.last_mut() {
            Some(row) if width(row) + 1 + width(std::slice::from_ref(&tag)) <= room => {
                row.extend([Span::plain(" "), tag]);
            }
            _ => rows.push(cut(&[tag], room)),
        }
    }
    rows
}

/// Text as it was written, wrapped.
pub(super) fn plain(text: &str, style: anstyle::Style, room: usize) -> Vec<Row> {
    text.lines().flat_map(|line| wrap(&[Span::new(style, line)], room)).collect()
}

/// Text behind a mark, with a hanging indent.
fn marked(mark: &str, text: &str, style: anstyle::Style, room: usize) -> Vec<Row> {
    let mut rows = plain(text, style, room.saturating_sub(2));
    for (i, row) in rows.iter_mut().enumerate() {
        row.insert(0, if i == 0 { Span::new(style, mark) } else { Span::plain(INDENT) });
    }
    rows
}
