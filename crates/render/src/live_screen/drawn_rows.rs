//! The rows that were drawn last, and how to replace them.

use unicode_width::UnicodeWidthStr;

use crate::sanitize::sanitize;

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    /// Number of columns.
    pub columns: usize,
    /// Number of rows.
    pub rows: usize,
}

/// Position of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Row, counted from 0 at the first of the rows that it belongs to.
    pub row: usize,
    /// Column, counted from 0.
    pub column: usize,
}

/// The rows that were drawn last. The cursor is among them or on the row below.
#[derive(Debug, Default)]
pub(super) struct DrawnRows {
    rows: Vec<String>,
    cursor: Option<Cursor>,
}

impl DrawnRows {
    /// The text that prints `finished` above the rows and draws `rows` instead of them. Rows at
    /// the top that stay the same are not drawn again.
    pub(super) fn replace(
        &mut self,
        finished: &str,
        rows: Vec<String>,
        cursor: Option<Cursor>,
        size: ScreenSize,
    ) -> String {
        if finished.is_empty() && rows == self.rows && cursor == self.cursor {
            return String::new();
        }
        let is_same = |(old, new): &(&String, &String)| finished.is_empty() && old == new;
        let kept = self.rows.iter().zip(&rows).take_while(is_same).count();
        let mut text = self.move_to(kept, size);
        if kept < self.rows.len() {
            text.push_str("\x1b[J");
        }
        text.push_str(finished);
        rows[kept..].iter().for_each(|row| {
            text.push_str(row);
            text.push('\n');
        });
        (self.rows, self.cursor) = (rows, cursor);
        if let Some(cursor) = cursor {
            let up: usize = self.rows[cursor.row.min(self.rows.len())..].iter().map(|row| height(row, size)).sum();
            text.push_str(&up_and_right(up, cursor.column));
        }
        text
    }

    /// The text that removes the rows from a terminal of this size. A narrower terminal has
    /// wrapped the rows that no longer fit.
    pub(super) fn erase(&mut self, size: ScreenSize) -> String {
        let text = self.move_to(0, size) + "\x1b[J";
        *self = Self::default();
        text
    }

    /// Moves the cursor to the start of a row.
    fn move_to(&self, row: usize, size: ScreenSize) -> String {
        let offset = |row: usize| self.rows[..row].iter().map(|row| height(row, size)).sum::<usize>();
        let from = match self.cursor {
            Some(cursor) => offset(cursor.row.min(self.rows.len())) + cursor.column / size.columns.max(1),
            None => offset(self.rows.len()),
        };
        let to = offset(row);
        match to.checked_sub(from) {
            Some(0) if self.cursor.is_none() => String::new(),
            Some(0) => "\r".to_owned(),
            Some(down) => format!("\r\x1b[{down}B"),
            None => up_and_right(from - to, 0),
        }
    }
}

fn up_and_right(up: usize, right: usize) -> String {
    let up = if up == 0 { String::new() } else { format!("\x1b[{up}A") };
    let right = if right == 0 { String::new() } else { format!("\x1b[{right}C") };
    format!("\r{up}{right}")
}

/// Rows of the terminal that a row takes.
fn height(row: &str, size: ScreenSize) -> usize {
    sanitize(row).width().div_ceil(size.columns.max(1)).max(1)
}
