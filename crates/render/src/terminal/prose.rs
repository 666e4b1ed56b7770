//! Markdown as rows for a terminal.

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::paint::{self, BOLD, DIM, PLAIN};
use super::row::{Row, Span, chop, is_ideograph, width, wrap};
use super::table::Table;
use crate::clean::clean;
use crate::code::{Language, highlight};
use crate::markdown::OPTIONS;

/// Renders Markdown into rows of at most `width` columns.
pub(super) fn rows(text: &str, width: usize, color: bool) -> Vec<Row> {
    let text = clean(text);
    let mut prose = Prose {
        width,
        color,
        rows: Vec::new(),
        lines: vec![Row::new()],
        styles: Vec::new(),
        frames: Vec::new(),
        lists: Vec::new(),
        links: Vec::new(),
        table: None,
        code: None,
        gap: false,
    };
    for event in Parser::new_ext(&text, OPTIONS) {
        prose.event(event);
    }
    prose.flush();
    prose.rows
}

/// Deeper nesting than this is not indented further.
const DEEPEST: usize = 12;

struct Prose {
    width: usize,
    color: bool,
    rows: Vec<Row>,
    /// The paragraph being gathered, one row for each hard line break.
    lines: Vec<Row>,
    styles: Vec<Style>,
    frames: Vec<Frame>,
    lists: Vec<Option<u64>>,
    /// Open links: the address, and the text so far.
    links: Vec<(String, String)>,
    table: Option<Table>,
    code: Option<(Option<Language>, String)>,
    /// Whether an empty row comes before the next block.
    gap: bool,
}

/// What stands before the rows of a quote or a list item.
struct Frame {
    first: Option<Span>,
    rest: Span,
}

impl Prose {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, PLAIN),
            },
            Event::Code(code) if self.color => self.text(&code, paint::CODE),
            Event::Code(code) => self.text(&format!("`{code}`"), PLAIN),
            Event::InlineHtml(html) => self.text(&html, DIM),
            Event::Html(html) => {
                self.flush();
                let html = clean(&html).into_owned();
                html.lines().for_each(|line| self.block_row(&[Span::new(DIM, line)]));
            }
            Event::SoftBreak => {
                let last = self.lines.last().and_then(|row| row.last()?.text().chars().last());
                if !last.is_some_and(is_ideograph) {
                    self.text(" ", PLAIN);
                }
            }
            Event::HardBreak => self.lines.push(Row::new()),
            Event::Rule => {
                self.block();
                let rule = "─".repeat(self.room());
                self.emit(vec![Span::new(DIM, &rule)]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }, PLAIN),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, PLAIN);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                self.styles.push(if level == HeadingLevel::H1 { BOLD.underline() } else { BOLD });
                if !self.color {
                    self.text(&format!("{} ", "#".repeat(level as usize)), PLAIN);
                }
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.frames.push(Frame { first: None, rest: Span::new(DIM, "▎ ") });
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match kind {
                    CodeBlockKind::Fenced(word) => Language::named(&word),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.space();
                let depth = self.lists.len();
                let bullet = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        let bullet = format!("{n}. ");
                        *n = n.saturating_add(1);
                        bullet
                    }
                    _ if depth % 2 == 1 => "• ".to_owned(),
                    _ => "◦ ".to_owned(),
                };
                let rest = Span::plain(&" ".repeat(bullet.chars().count()));
                self.frames.push(Frame { first: Some(Span::new(DIM, &bullet)), rest });
            }
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.styles.push(PLAIN.italic()),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(PLAIN.strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.styles.push(paint::LINK);
                self.links.push((clean(&dest_url).into_owned(), String::new()));
            }
            Tag::Image { dest_url, .. } => {
                self.styles.push(PLAIN);
                self.text("[image: ", DIM);
                self.links.push((clean(&dest_url).into_owned(), String::new()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.finish(),
            TagEnd::Heading(_) => {
                self.finish();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.finish();
                self.frames.pop();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An empty item still shows its bullet.
                if self.frames.last().is_some_and(|frame| frame.first.is_some()) {
                    self.emit(Row::new());
                }
                self.frames.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::replace(&mut self.lines, vec![Row::new()]).concat();
                self.table.iter_mut().for_each(|table| table.cell(cell.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::Table => {
                let room = self.room();
                for row in self.table.take().map(|table| table.rows(room)).unwrap_or_default() {
                    self.emit(row);
                }
                self.gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                if let Some((url, text)) = self.links.pop()
                    && !url.is_empty()
                    && url.strip_prefix("mailto:").unwrap_or(&url) != text
                {
                    self.text(&format!(" ({url})"), DIM);
                }
            }
            TagEnd::Image => {
                self.styles.pop();
                let url = self.links.pop().map(|(url, _)| url).unwrap_or_default();
                self.text(&format!("] ({url})"), DIM);
            }
            _ => {}
        }
    }

    /// Adds words to the paragraph, in the styles that are open.
    fn text(&mut self, text: &str, style: Style) {
        if let Some((_, said)) = self.links.last_mut() {
            said.push_str(text);
        }
        let style = self.styles.iter().fold(style, |style, open| blend(style, *open));
        if let Some(row) = self.lines.last_mut() {
            row.push(Span::new(style, text));
        }
    }

    fn code_block(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let code = clean(&code);
        let room = self.room().saturating_sub(2).max(8);
        for line in highlight(&code, language.filter(|_| self.color)) {
            let row: Row = line.into_iter().map(|(tone, text)| Span::new(paint::tone(tone), text)).collect();
            for mut row in chop(&row, room) {
                row.insert(0, Span::plain("  "));
                self.emit(row);
            }
        }
        self.gap = true;
    }

    /// Columns left beside the frames.
    fn room(&self) -> usize {
        let used: usize = self.frames.iter().take(DEEPEST).map(|f| width(std::slice::from_ref(&f.rest))).sum();
        self.width.saturating_sub(used).max(12)
    }

    /// Makes ready for a new block.
    fn block(&mut self) {
        self.flush();
        self.space();
    }

    fn space(&mut self) {
        let fresh = self.frames.last().is_some_and(|frame| frame.first.is_some());
        if self.gap && !fresh {
            let row = self.frames.iter().take(DEEPEST).map(|frame| frame.rest.clone()).collect();
            self.rows.push(row);
        }
        self.gap = false;
    }

    fn finish(&mut self) {
        self.flush();
        self.gap = true;
    }

    /// Writes the paragraph gathered so far.
    fn flush(&mut self) {
        for line in std::mem::replace(&mut self.lines, vec![Row::new()]) {
            if !line.is_empty() {
                self.block_row(&line);
            }
        }
    }

    fn block_row(&mut self, line: &[Span]) {
        for row in wrap(line, self.room()) {
            self.emit(row);
        }
    }

    /// Writes one row behind its frames; a bullet stands before the first only.
    fn emit(&mut self, row: Row) {
        let mut framed: Row = Vec::with_capacity(self.frames.len() + row.len());
        for frame in self.frames.iter_mut().take(DEEPEST) {
            framed.push(frame.first.take().unwrap_or_else(|| frame.rest.clone()));
        }
        framed.extend(row);
        self.rows.push(framed);
    }
}

/// Lays an open style over the style of a text.
fn blend(text: Style, open: Style) -> Style {
    let color = text.get_fg_color().or(open.get_fg_color());
    text.effects(text.get_effects() | open.get_effects()).fg_color(color)
}
