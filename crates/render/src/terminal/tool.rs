//! Tool cards: a line that says what was done, and what came of it.

use anstyle::Style;
use quipu_conversation::{Status, ToolCard};

use super::flow::{Flow, plain};
use super::paint::{self, BAD, BOLD, DIM, GOOD, PLAIN, WAITING};
use super::prose;
use super::row::{Row, Span, chop, cut, wrap};
use crate::call::{Call, Part, Progress};
use crate::code::{Language, highlight};
use crate::diff::{DiffLine, Sign};
use crate::speaker::source_label;

/// Rows of a result before it is cut.
const RESULT: usize = 8;
/// Rows of a change or a plan before it is cut: it says more per row.
const CHANGE: usize = 24;
/// Rows the line itself may take.
const TITLE: usize = 3;
/// The indent of what stands under the line.
const UNDER: &str = "  ";

impl Flow {
    pub(super) fn tool(&mut self, card: &ToolCard, room: usize) -> Vec<Row> {
        let base = self.terminal.base.clone().unwrap_or_default();
        let call = Call::new(card, &base);
        let mut rows = self.title(card, &call, room);
        let inner = room.saturating_sub(UNDER.len()).max(16);
        if !call.is_quiet || self.terminal.full {
            for (i, part) in call.parts.iter().enumerate() {
                if i > 0 && matches!(part, Part::Prose(_)) {
                    rows.push(Row::new());
                }
                rows.extend(self.part(part, inner).into_iter().map(|row| indented(Span::plain(UNDER), row)));
            }
        }
        if let Some(subagent) = &card.subagent {
            let mut flow = self.inside(inner.saturating_sub(2).max(16));
            for at in 0..subagent.items.len() {
                let framed = flow.rows(&subagent.items[at..]).into_iter();
                rows.extend(framed.map(|row| indented(Span::plain(UNDER), indented(Span::new(DIM, "│ "), row))));
            }
        }
        rows
    }

    fn title(&self, card: &ToolCard, call: &Call<'_>, room: usize) -> Vec<Row> {
        let (style, glyph, word) = match card.status {
            Status::Success => (GOOD, "✓", "ok"),
            Status::Failed => (BAD, "✗", "failed"),
            Status::Pending => (WAITING, "…", "pending"),
        };
        let mut row = vec![Span::new(style, glyph), Span::plain(" ")];
        if !self.terminal.color {
            row.push(Span::plain(&format!("{word} ")));
        }
        row.push(Span::new(BOLD, &call.name));
        if !call.subject.is_empty() {
            row.push(Span::plain(&format!(" {}", call.subject)));
        }
        if !call.note.is_empty() {
            row.push(Span::new(DIM, &format!(" ({})", call.note)));
        }
        let mut rows = wrap(&row, room.saturating_sub(2));
        if rows.len() > TITLE && !self.terminal.full {
            rows.truncate(TITLE);
            rows[TITLE - 1].push(Span::new(DIM, " …"));
        }
        for row in rows.iter_mut().skip(1) {
            row.insert(0, Span::plain(UNDER));
        }
        rows
    }

    fn part(&mut self, part: &Part<'_>, room: usize) -> Vec<Row> {
        match part {
            Part::Command(command) => {
                let mark = |i| if i == 0 { Span::new(DIM, "$ ") } else { Span::plain("  ") };
                let rows = self.lines(command, PLAIN, room.saturating_sub(2));
                self.limited(rows.into_iter().enumerate().map(|(i, row)| indented(mark(i), row)).collect(), RESULT)
            }
            Part::Code { text, path } => self.code(text, path, room),
            Part::Diff(lines) => {
                let rows = lines.iter().flat_map(|line| self.diff_line(line, room)).collect();
                self.limited(rows, CHANGE)
            }
            Part::Tasks(tasks) => tasks.iter().flat_map(|(progress, task)| task_rows(*progress, task, room)).collect(),
            Part::Prose(text) => {
                let rows = prose::rows(text, room, self.terminal.color);
                self.limited(rows, CHANGE)
            }
            Part::Output(text) => self.output(text, DIM, room),
            Part::Failure(text) => self.output(text, BAD, room),
            Part::Json(json) => {
                let row = [Span::new(DIM, json)];
                if self.terminal.full { wrap(&row, room) } else { vec![cut(&row, room)] }
            }
            Part::Picture(image) => {
                vec![cut(&[Span::new(paint::TAG, &format!("[{}]", source_label(&image.source)))], room)]
            }
            Part::Question { text, options, answer } => {
                let mut rows = wrap(&[Span::new(BOLD, text)], room);
                match answer {
                    Some(answer) => {
                        rows.extend(wrap(&[Span::new(GOOD, "→ "), Span::plain(answer)], room));
                    }
                    None => rows.extend(wrap(&[Span::new(DIM, &options.join(" · "))], room)),
                }
                rows
            }
        }
    }

    fn output(&self, text: &str, style: Style, room: usize) -> Vec<Row> {
        if self.terminal.full {
            return self.lines(text, style, room);
        }
        // Only what is shown is measured.
        let total = text.lines().count();
        let shown = if total > RESULT + 1 { RESULT } else { total };
        let mut rows: Vec<Row> = text.lines().take(shown).map(|line| cut(&[Span::new(style, line)], room)).collect();
        if total > shown {
            rows.push(vec![Span::new(DIM, &format!("… +{} lines", total - shown))]);
        }
        rows
    }

    fn code(&mut self, text: &str, path: &str, room: usize) -> Vec<Row> {
        let total = text.lines().count();
        let shown = if self.terminal.full || total <= RESULT + 1 { total } else { RESULT };
        let end = text.split_inclusive('\n').take(shown).map(str::len).sum();
        let language = Language::of_path(path).filter(|_| self.terminal.color);
        let mut rows = Vec::new();
        for line in highlight(&text[..end], language) {
            let row: Row = line.into_iter().map(|(tone, text)| Span::new(paint::tone(tone), text)).collect();
            if self.terminal.full { rows.extend(chop(&row, room)) } else { rows.push(cut(&row, room)) }
        }
        if total > shown {
            rows.push(vec![Span::new(DIM, &format!("… +{} lines", total - shown))]);
        }
        rows
    }

    fn diff_line(&self, line: &DiffLine, room: usize) -> Vec<Row> {
        let (style, strong) = match line.sign {
            Sign::Same | Sign::Gap => (DIM, DIM),
            Sign::Gone => (BAD, BAD.bold().underline()),
            Sign::New => (GOOD, GOOD.bold().underline()),
        };
        let mut row = vec![Span::new(style, &format!("{} ", line.sign.mark()))];
        let parts = line.parts.iter();
        row.extend(parts.map(|(emphasised, text)| Span::new(if *emphasised { strong } else { style }, text)));
        if self.terminal.full { chop(&row, room) } else { vec![cut(&row, room)] }
    }

    /// Text as it was written: cut at the edge, or chopped when all is wanted.
    fn lines(&self, text: &str, style: Style, room: usize) -> Vec<Row> {
        let rows = text.lines().map(|line| [Span::new(style, line)]);
        if self.terminal.full {
            rows.flat_map(|row| chop(&row, room)).collect()
        } else {
            rows.map(|row| cut(&row, room)).collect()
        }
    }
}

fn task_rows(progress: Progress, task: &str, room: usize) -> Vec<Row> {
    let (mark, style) = match progress {
        Progress::Open => ("☐ ", PLAIN),
        Progress::Doing => ("▸ ", BOLD),
        Progress::Done => ("☑ ", DIM),
    };
    let mut rows = plain(task, style, room.saturating_sub(2));
    for (i, row) in rows.iter_mut().enumerate() {
        row.insert(0, if i == 0 { Span::new(style, mark) } else { Span::plain(UNDER) });
    }
    rows
}

fn indented(mark: Span, mut row: Row) -> Row {
    row.insert(0, mark);
    row
}
