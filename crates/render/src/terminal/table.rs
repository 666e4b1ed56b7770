//! Renders Markdown tables with box-drawing characters.

use pulldown_cmark::Alignment;

use super::palette::{BOLD, DIM};
use super::row::{Row, Span, row_width, wrap};

/// Collects the cells of a table.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Row>>,
    current: Vec<Row>,
}

/// Columns are not made narrower than this.
const MIN_COLUMN_WIDTH: usize = 6;

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), current: Vec::new() }
    }

    pub(super) fn push_cell(&mut self, cell: Row) {
        self.current.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.current));
    }

    /// Draws the table in at most `room` columns, if its columns can be that narrow.
    pub(super) fn into_rows(self, room: usize) -> Vec<Row> {
        let widths = self.column_widths(room);
        let rule = |left: &str, middle: &str, right: &str| {
            let bars: Vec<String> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
            vec![Span::new(DIM, &format!("{left}{}{right}", bars.join(middle)))]
        };
        let mut rendered = vec![rule("┌", "┬", "┐")];
        for (i, row) in self.rows.iter().enumerate() {
            if i == 1 {
                rendered.push(rule("├", "┼", "┤"));
            }
            let empty = Row::new();
            let cells: Vec<Vec<Row>> =
                widths.iter().enumerate().map(|(c, w)| wrap(row.get(c).unwrap_or(&empty), *w)).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut out = vec![Span::new(DIM, "│")];
                for (c, w) in widths.iter().enumerate() {
                    let cell = cells[c].get(line).unwrap_or(&empty);
                    let alignment = self.alignments.get(c).copied().unwrap_or(Alignment::None);
                    out.extend(pad_cell(cell, *w, alignment, i == 0));
                    out.push(Span::new(DIM, "│"));
                }
                rendered.push(out);
            }
        }
        rendered.push(rule("└", "┴", "┘"));
        rendered
    }

    /// Narrows the widest column until the table fits.
    fn column_widths(&self, room: usize) -> Vec<usize> {
        let columns = self.alignments.len();
        let room = room.saturating_sub(3 * columns + 1);
        let widest = |c: usize| self.rows.iter().filter_map(|row| row.get(c)).map(|cell| row_width(cell)).max();
        let mut widths: Vec<usize> = (0..columns).map(|c| widest(c).unwrap_or(0).clamp(1, room.max(1))).collect();
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn pad_cell(cell: &[Span], columns: usize, alignment: Alignment, is_head: bool) -> Row {
    let spare = columns.saturating_sub(row_width(cell));
    let left = match alignment {
        Alignment::Right => spare,
        Alignment::Center => spare / 2,
        Alignment::None | Alignment::Left => 0,
    };
    let mut row = vec![Span::plain(&" ".repeat(left + 1))];
    if is_head {
        row.extend(cell.iter().map(|span| Span::new(BOLD, span.text())));
    } else {
        row.extend_from_slice(cell);
    }
    row.push(Span::plain(&" ".repeat(spare - left + 1)));
    row
}
