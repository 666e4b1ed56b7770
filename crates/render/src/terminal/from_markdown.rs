//! Renders Markdown as rows for a terminal.

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::palette::{self, BOLD, DIM, PLAIN};
use super::row::{Row, Span, hard_wrap, is_ideograph, row_width, wrap};
use super::table::Table;
use crate::highlight::{Language, highlight};
use crate::markdown::PARSER_OPTIONS;

/// Renders Markdown into rows of at most `width` columns. The text must be sanitized, because an
/// escape sequence may span several parts of the Markdown; `Span::new` only removes what entities
/// such as `&#27;` add.
pub(super) fn markdown_rows(text: &str, width: usize, color: bool) -> Vec<Row> {
    let mut layout = MarkdownLayout {
        width,
        color,
        rows: Vec::new(),
        lines: vec![Row::new()],
        styles: Vec::new(),
        prefixes: Vec::new(),
        lists: Vec::new(),
        links: Vec::new(),
        table: None,
        code: None,
        needs_gap: false,
    };
    for event in Parser::new_ext(text, PARSER_OPTIONS) {
        layout.handle_event(event);
    }
    layout.flush_paragraph();
    layout.rows
}

/// Deeper nesting than this is not indented further.
const MAX_INDENT_DEPTH: usize = 12;

struct MarkdownLayout {
    width: usize,
    color: bool,
    rows: Vec<Row>,
    /// The current paragraph, one row for each hard line break.
    lines: Vec<Row>,
    styles: Vec<Style>,
    prefixes: Vec<RowPrefix>,
    lists: Vec<Option<u64>>,
    /// Open links: the URL and the text so far.
    links: Vec<(String, String)>,
    table: Option<Table>,
    code: Option<(Option<Language>, String)>,
    /// Whether an empty row comes before the next block.
    needs_gap: bool,
}

/// Prefix of the rows of a quote or a list item.
struct RowPrefix {
    first: Option<Span>,
    rest: Span,
}

impl MarkdownLayout {
    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push_text(&text, PLAIN),
            },
            Event::Code(code) if self.color => self.push_text(&code, palette::CODE),
            Event::Code(code) => self.push_text(&format!("`{code}`"), PLAIN),
            Event::InlineHtml(html) => self.push_text(&html, DIM),
            Event::Html(html) => {
                self.flush_paragraph();
                html.lines().for_each(|line| self.push_wrapped(&[Span::new(DIM, line)]));
            }
            Event::SoftBreak => {
                let last = self.lines.last().and_then(|row| row.last()?.text().chars().last());
                if !last.is_some_and(is_ideograph) {
                    self.push_text(" ", PLAIN);
                }
            }
            Event::HardBreak => self.lines.push(Row::new()),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.remaining_width());
                self.push_row(vec![Span::new(DIM, &rule)]);
                self.needs_gap = true;
            }
            Event::TaskListMarker(done) => self.push_text(if done { "☑ " } else { "☐ " }, PLAIN),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push_text(&text, PLAIN);
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.styles.push(if level == HeadingLevel::H1 { BOLD.underline() } else { BOLD });
                if !self.color {
                    self.push_text(&format!("{} ", "#".repeat(level as usize)), PLAIN);
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.prefixes.push(RowPrefix { first: None, rest: Span::new(DIM, "▎ ") });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(word) => Language::from_name(&word),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush_paragraph();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush_paragraph();
                self.push_gap();
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
                self.prefixes.push(RowPrefix { first: Some(Span::new(DIM, &bullet)), rest });
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.styles.push(PLAIN.italic()),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(PLAIN.strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.styles.push(palette::LINK);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Image { dest_url, .. } => {
                self.styles.push(PLAIN);
                self.push_text("[image: ", DIM);
                self.links.push((dest_url.into_string(), String::new()));
            }
            _ => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.finish_block(),
            TagEnd::Heading(_) => {
                self.finish_block();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.finish_block();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => self.finish_code_block(),
            TagEnd::List(_) => {
                self.flush_paragraph();
                self.lists.pop();
                self.needs_gap |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush_paragraph();
                // An empty item still shows its bullet.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.push_row(Row::new());
                }
                self.prefixes.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::replace(&mut self.lines, vec![Row::new()]).concat();
                self.table.iter_mut().for_each(|table| table.push_cell(cell.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::Table => {
                let room = self.remaining_width();
                for row in self.table.take().map(|table| table.into_rows(room)).unwrap_or_default() {
                    self.push_row(row);
                }
                self.needs_gap = true;
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
                    self.push_text(&format!(" ({url})"), DIM);
                }
            }
            TagEnd::Image => {
                self.styles.pop();
                let url = self.links.pop().map(|(url, _)| url).unwrap_or_default();
                self.push_text(&format!("] ({url})"), DIM);
            }
            _ => {}
        }
    }

    /// Adds text to the paragraph, in the open styles.
    fn push_text(&mut self, text: &str, style: Style) {
        if let Some((_, link_text)) = self.links.last_mut() {
            link_text.push_str(text);
        }
        let style = self.styles.iter().fold(style, |style, open| merge_styles(style, *open));
        if let Some(row) = self.lines.last_mut() {
            row.push(Span::new(style, text));
        }
    }

    fn finish_code_block(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let room = self.remaining_width().saturating_sub(2).max(8);
        for line in highlight(&code, language.filter(|_| self.color)) {
            let row: Row = line.into_iter().map(|(kind, text)| Span::new(palette::token_style(kind), text)).collect();
            for mut row in hard_wrap(&row, room) {
                row.insert(0, Span::plain("  "));
                self.push_row(row);
            }
        }
        self.needs_gap = true;
    }

    /// Columns left after the prefixes.
    fn remaining_width(&self) -> usize {
        let used: usize =
            self.prefixes.iter().take(MAX_INDENT_DEPTH).map(|f| row_width(std::slice::from_ref(&f.rest))).sum();
        self.width.saturating_sub(used).max(12)
    }

    /// Ends the paragraph and adds an empty row if one is due.
    fn begin_block(&mut self) {
        self.flush_paragraph();
        self.push_gap();
    }

    fn push_gap(&mut self) {
        let is_first_row = self.prefixes.last().is_some_and(|prefix| prefix.first.is_some());
        if self.needs_gap && !is_first_row {
            let row = self.prefixes.iter().take(MAX_INDENT_DEPTH).map(|prefix| prefix.rest.clone()).collect();
            self.rows.push(row);
        }
        self.needs_gap = false;
    }

    fn finish_block(&mut self) {
        self.flush_paragraph();
        self.needs_gap = true;
    }

    /// Writes the current paragraph.
    fn flush_paragraph(&mut self) {
        for line in std::mem::replace(&mut self.lines, vec![Row::new()]) {
            if !line.is_empty() {
                self.push_wrapped(&line);
            }
        }
    }

    fn push_wrapped(&mut self, line: &[Span]) {
        for row in wrap(line, self.remaining_width()) {
            self.push_row(row);
        }
    }

    /// Writes one row after its prefixes. A bullet is written before the first row only.
    fn push_row(&mut self, row: Row) {
        let mut framed: Row = Vec::with_capacity(self.prefixes.len() + row.len());
        for prefix in self.prefixes.iter_mut().take(MAX_INDENT_DEPTH) {
            framed.push(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
        }
        framed.extend(row);
        self.rows.push(framed);
    }
}

/// Adds the effects of an open style to the style of a text.
fn merge_styles(text: Style, open: Style) -> Style {
    let color = text.get_fg_color().or(open.get_fg_color());
    text.effects(text.get_effects() | open.get_effects()).fg_color(color)
}
