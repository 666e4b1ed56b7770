//! Renders tables that fit the terminal.
//!
//! A row is always one line. If the terminal is too narrow, the cells of flexible columns are cut
//! with `…` down to their minimum, the last column first; then whole columns are dropped, by
//! rank. In a pipe nothing is cut or dropped.

use anstyle::{AnsiColor, Style};
use quipu_render::sanitize;
use unicode_width::UnicodeWidthStr;

use crate::format::truncate;
use crate::output::Output;

#[cfg(test)]
mod tests;

/// Spaces between two columns.
const COLUMN_GAP: usize = 2;

/// Heading, alignment and behaviour of a column on a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    is_number: bool,
    /// Columns with a higher rank are dropped first; 0 is never dropped.
    drop_rank: u8,
    /// Width down to which cells may be cut; `None` if they may not be cut.
    min_width: Option<usize>,
}

impl Column {
    /// A column of text, aligned to the left.
    pub(crate) const fn text(head: &'static str) -> Self {
        Self { heading: head, is_number: false, drop_rank: 0, min_width: None }
    }

    /// A column of numbers, aligned to the right.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self { heading: head, is_number: true, drop_rank: 0, min_width: None }
    }

    /// Allows to drop the column; the highest rank is dropped first.
    pub(crate) const fn drop_rank(self, rank: u8) -> Self {
        Self { drop_rank: rank, ..self }
    }

    /// Allows to cut the cells, but not below this width.
    pub(crate) const fn flexible(self, min_width: usize) -> Self {
        Self { min_width: Some(min_width), ..self }
    }
}

/// Rows of cells under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    has_total: bool,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), has_total: false }
    }

    /// Adds a row; cells are sanitized and put on one line.
    pub(crate) fn push_row(&mut self, cells: impl IntoIterator<Item = String>) {
        let line = |cell: String| sanitize(&cell).split_whitespace().collect::<Vec<_>>().join(" ");
        self.rows.push(cells.into_iter().map(line).collect());
    }

    /// Adds the row with the totals, which must be the last.
    pub(crate) fn push_total(&mut self, cells: impl IntoIterator<Item = String>) {
        self.push_row(cells);
        self.has_total = true;
    }

    /// The table as text, each row on a line of its own.
    pub(crate) fn render(&self, output: &Output) -> String {
        let widths = self.column_widths(output.columns);
        let bold = output.style(Style::new().bold());
        let cyan = output.style(AnsiColor::Cyan.on_default());
        let heads: Vec<String> = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let mut text = format!("{bold}{}{bold:#}\n", self.render_row(&heads, &widths, Style::new()));
        for (n, row) in self.rows.iter().enumerate() {
            if self.has_total && n + 1 == self.rows.len() {
                text.push_str(&format!("{bold}{}{bold:#}\n", self.render_row(row, &widths, Style::new())));
            } else {
                text.push_str(&self.render_row(row, &widths, cyan));
                text.push('\n');
            }
        }
        text
    }

    fn render_row(&self, cells: &[String], widths: &[Option<usize>], first: Style) -> String {
        let mut line = String::new();
        let last = widths.iter().rposition(Option::is_some);
        for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let Some(width) = *width else { continue };
            if !line.is_empty() {
                line.push_str(&" ".repeat(COLUMN_GAP));
            }
            let cell = truncate(cell, width);
            let padding = " ".repeat(width - cell.width().min(width));
            match (self.columns[n].is_number, n == 0) {
                (true, _) => line.extend([padding.as_str(), &cell]),
                (false, true) => line.push_str(&format!("{first}{cell}{first:#}{padding}")),
                (false, false) if Some(n) == last => line.push_str(&cell),
                (false, false) => line.extend([cell.as_str(), &padding]),
            }
        }
        line.trim_end().to_owned()
    }

    /// Width of each column; `None` if it is dropped.
    fn column_widths(&self, limit: Option<usize>) -> Vec<Option<usize>> {
        let natural = |n: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(n)).map(|cell| cell.width());
            cells.max().unwrap_or_default().max(column.heading.width())
        };
        let natural: Vec<usize> = self.columns.iter().enumerate().map(|(n, column)| natural(n, column)).collect();
        let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
        let Some(limit) = limit else { return widths };
        loop {
            let shown = widths.iter().flatten().count();
            let total = widths.iter().flatten().sum::<usize>() + COLUMN_GAP * shown.saturating_sub(1);
            let mut excess = total.saturating_sub(limit);
            let mut cut = widths.clone();
            for (width, column) in cut.iter_mut().zip(&self.columns).rev() {
                if let (Some(width), Some(min)) = (width, column.min_width) {
                    let spare = (*width).saturating_sub(min).min(excess);
                    *width -= spare;
                    excess -= spare;
                }
            }
            let droppable = |n: &usize| widths[*n].is_some() && self.columns[*n].drop_rank > 0;
            let next = (0..widths.len()).filter(droppable).max_by_key(|n| self.columns[*n].drop_rank);
            match next {
                Some(n) if excess > 0 => widths[n] = None,
                _ => return cut,
            }
        }
    }
}
