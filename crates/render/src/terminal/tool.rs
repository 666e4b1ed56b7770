//! Renders tool calls: a title line, then input, result and subagent.

use anstyle::Style;
use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::tool::TodoStatus;

use super::from_markdown;
use super::palette::{self, BOLD, DIM, ERROR, PENDING, PLAIN, SUCCESS};
use super::renderer::{TerminalRenderer, plain_rows};
use super::row::{Row, Span, hard_wrap, truncate_row, wrap};
use crate::diff::{DiffLine, DiffLineKind};
use crate::format;
use crate::highlight::{Language, highlight};
use crate::speaker::image_source_label;
use crate::tool_call::{ToolCallPart, ToolCallView};

/// Longer results are truncated.
const MAX_RESULT_ROWS: usize = 8;
/// Longer diffs and plans are truncated; they say more per row than a result.
const MAX_CHANGE_ROWS: usize = 24;
/// Rows that the title line may take.
const MAX_TITLE_ROWS: usize = 3;
/// Indent of the rows under the title line.
const PART_INDENT: &str = "  ";

impl TerminalRenderer {
    pub(super) fn tool_rows(&mut self, card: &ToolCard, room: usize) -> Vec<Row> {
        let base = self.terminal.base_folder.clone().unwrap_or_default();
        let view = ToolCallView::from_card(card, &base);
        let mut rows = self.title_rows(card, &view, room);
        let inner = room.saturating_sub(PART_INDENT.len()).max(16);
        if !view.is_collapsed || self.terminal.show_full {
            for (i, part) in view.parts.iter().enumerate() {
                if i > 0 && matches!(part, ToolCallPart::Markdown(_)) {
                    rows.push(Row::new());
                }
                rows.extend(
                    self.part_rows(part, inner).into_iter().map(|row| prepend_span(Span::plain(PART_INDENT), row)),
                );
            }
        }
        if let Some(subagent) = &card.subagent {
            let mut renderer = self.for_subagent(inner.saturating_sub(2).max(16));
            for at in 0..subagent.items.len() {
                let framed = renderer.item_rows(&subagent.items[at..]).into_iter();
                rows.extend(
                    framed.map(|row| prepend_span(Span::plain(PART_INDENT), prepend_span(Span::new(DIM, "│ "), row))),
                );
            }
        }
        rows
    }

    fn title_rows(&self, card: &ToolCard, view: &ToolCallView<'_>, room: usize) -> Vec<Row> {
        let (style, glyph, word) = match card.status {
            ToolStatus::Success => (SUCCESS, "✓", "ok"),
            ToolStatus::Failed => (ERROR, "✗", "failed"),
            ToolStatus::Pending => (PENDING, "…", "pending"),
        };
        let mut row = vec![Span::new(style, glyph), Span::plain(" ")];
        if !self.terminal.color {
            row.push(Span::plain(&format!("{word} ")));
        }
        row.push(Span::new(BOLD, &view.name));
        if !view.subject.is_empty() {
            row.push(Span::plain(&format!(" {}", view.subject)));
        }
        let time = self.call_seconds.filter(|seconds| *seconds > 0).map(|seconds| format::duration(seconds as f64));
        let notes: Vec<&str> =
            [&*view.note, time.as_deref().unwrap_or_default()].into_iter().filter(|note| !note.is_empty()).collect();
        if !notes.is_empty() {
            row.push(Span::new(DIM, &format!(" ({})", notes.join(", "))));
        }
        let mut rows = wrap(&row, room.saturating_sub(2));
        if rows.len() > MAX_TITLE_ROWS && !self.terminal.show_full {
            rows.truncate(MAX_TITLE_ROWS);
            rows[MAX_TITLE_ROWS - 1].push(Span::new(DIM, " …"));
        }
        for row in rows.iter_mut().skip(1) {
            row.insert(0, Span::plain(PART_INDENT));
        }
        rows
    }

    fn part_rows(&mut self, part: &ToolCallPart<'_>, room: usize) -> Vec<Row> {
        match part {
            ToolCallPart::Command(command) => {
                let mark = |i| if i == 0 { Span::new(DIM, "$ ") } else { Span::plain("  ") };
                let rows = self.line_rows(command, PLAIN, room.saturating_sub(2));
                self.truncate_rows(
                    rows.into_iter().enumerate().map(|(i, row)| prepend_span(mark(i), row)).collect(),
                    MAX_RESULT_ROWS,
                )
            }
            ToolCallPart::Code { text, path } => self.code_rows(text, path, room),
            ToolCallPart::Diff(lines) => {
                let rows = lines.iter().flat_map(|line| self.diff_line_rows(line, room)).collect();
                self.truncate_rows(rows, MAX_CHANGE_ROWS)
            }
            ToolCallPart::Tasks(tasks) => {
                tasks.iter().flat_map(|(progress, task)| task_rows(progress, task, room)).collect()
            }
            ToolCallPart::Markdown(text) => {
                let rows = from_markdown::markdown_rows(text, room, self.terminal.color);
                self.truncate_rows(rows, MAX_CHANGE_ROWS)
            }
            ToolCallPart::Output(text) => self.output_rows(text, DIM, room),
            ToolCallPart::Failure(text) => self.output_rows(text, ERROR, room),
            ToolCallPart::Json(json) => {
                let row = [Span::new(DIM, json)];
                if self.terminal.show_full { wrap(&row, room) } else { vec![truncate_row(&row, room)] }
            }
            ToolCallPart::Image(image) => {
                vec![truncate_row(
                    &[Span::new(palette::TAG, &format!("[{}]", image_source_label(&image.source)))],
                    room,
                )]
            }
            ToolCallPart::Question { text, options, answer } => {
                let mut rows = wrap(&[Span::new(BOLD, text)], room);
                match answer {
                    Some(answer) => {
                        rows.extend(wrap(&[Span::new(SUCCESS, "→ "), Span::plain(answer)], room));
                    }
                    None => rows.extend(wrap(&[Span::new(DIM, &options.join(" · "))], room)),
                }
                rows
            }
        }
    }

    fn output_rows(&self, text: &str, style: Style, room: usize) -> Vec<Row> {
        if self.terminal.show_full {
            return self.line_rows(text, style, room);
        }
        // Only the rows that are shown are measured, because results may be long.
        let total = text.lines().count();
        let shown = if total > MAX_RESULT_ROWS + 1 { MAX_RESULT_ROWS } else { total };
        let mut rows: Vec<Row> =
            text.lines().take(shown).map(|line| truncate_row(&[Span::new(style, line)], room)).collect();
        if total > shown {
            rows.push(vec![Span::new(DIM, &format!("… +{} lines", total - shown))]);
        }
        rows
    }

    fn code_rows(&mut self, text: &str, path: &str, room: usize) -> Vec<Row> {
        let total = text.lines().count();
        let shown = if self.terminal.show_full || total <= MAX_RESULT_ROWS + 1 { total } else { MAX_RESULT_ROWS };
        let end = text.split_inclusive('\n').take(shown).map(str::len).sum();
        let language = Language::from_path(path).filter(|_| self.terminal.color);
        let mut rows = Vec::new();
        for line in highlight(&text[..end], language) {
            let row: Row = line.into_iter().map(|(kind, text)| Span::new(palette::token_style(kind), text)).collect();
            if self.terminal.show_full {
                rows.extend(hard_wrap(&row, room))
            } else {
                rows.push(truncate_row(&row, room))
            }
        }
        if total > shown {
            rows.push(vec![Span::new(DIM, &format!("… +{} lines", total - shown))]);
        }
        rows
    }

    fn diff_line_rows(&self, line: &DiffLine, room: usize) -> Vec<Row> {
        let (style, strong) = match line.kind {
            DiffLineKind::Unchanged | DiffLineKind::Gap => (DIM, DIM),
            DiffLineKind::Removed => (ERROR, ERROR.bold().underline()),
            DiffLineKind::Added => (SUCCESS, SUCCESS.bold().underline()),
        };
        let mut row = vec![Span::new(style, &format!("{} ", line.kind.mark()))];
        let parts = line.parts.iter();
        row.extend(parts.map(|(emphasised, text)| Span::new(if *emphasised { strong } else { style }, text)));
        if self.terminal.show_full { hard_wrap(&row, room) } else { vec![truncate_row(&row, room)] }
    }

    /// The lines of a text, truncated, or wrapped anywhere with `show_full`.
    fn line_rows(&self, text: &str, style: Style, room: usize) -> Vec<Row> {
        let rows = text.lines().map(|line| [Span::new(style, line)]);
        if self.terminal.show_full {
            rows.flat_map(|row| hard_wrap(&row, room)).collect()
        } else {
            rows.map(|row| truncate_row(&row, room)).collect()
        }
    }
}

fn task_rows(progress: &TodoStatus, task: &str, room: usize) -> Vec<Row> {
    let (mark, style) = match progress {
        TodoStatus::InProgress => ("▸ ", BOLD),
        TodoStatus::Completed => ("☑ ", DIM),
        _ => ("☐ ", PLAIN),
    };
    let mut rows = plain_rows(task, style, room.saturating_sub(2));
    for (i, row) in rows.iter_mut().enumerate() {
        row.insert(0, if i == 0 { Span::new(style, mark) } else { Span::plain(PART_INDENT) });
    }
    rows
}

fn prepend_span(mark: Span, mut row: Row) -> Row {
    row.insert(0, mark);
    row
}
