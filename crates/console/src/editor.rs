//! The input of the user: text with a cursor, edited by keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use quipu_render::{Cursor, sanitize};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

#[cfg(test)]
mod tests;

/// Text with a cursor. It may have several lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// Byte offset of the cursor, between graphemes.
    cursor: usize,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    /// Text or cursor may have changed.
    Edited,
    /// The text is complete.
    Submitted,
    /// The cursor cannot move further up.
    AboveFirstLine,
    /// The cursor cannot move further down.
    BelowLastLine,
    /// The key has no meaning here.
    Ignored,
}

impl Editor {
    /// An editor with this text, without control characters, and the cursor at its end.
    pub(crate) fn with_text(text: &str) -> Self {
        let text = sanitize(text).into_owned();
        Self { cursor: text.len(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text before the cursor.
    pub(crate) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Returns the text and empties the editor.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Inserts text at the cursor. Line breaks are kept, control characters are removed.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = sanitize(text);
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Replaces the text from a byte offset to the cursor. Control characters are removed.
    pub(crate) fn replace_from(&mut self, start: usize, text: &str) {
        let text = sanitize(text);
        self.text.replace_range(start..self.cursor, &text);
        self.cursor = start + text.len();
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.insert("\n"),
            KeyCode::Enter if self.before_cursor().ends_with('\\') => self.replace_from(self.cursor - 1, "\n"),
            KeyCode::Enter => return KeyEffect::Submitted,
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('b') if control => self.cursor = self.previous_grapheme(),
            KeyCode::Char('f') if control => self.cursor = self.next_grapheme(),
            KeyCode::Char('b') if alt => self.cursor = self.word_start(),
            KeyCode::Char('f') if alt => self.cursor = self.word_end(),
            KeyCode::Char('h') if control => self.delete(self.previous_grapheme(), self.cursor),
            KeyCode::Char('d') if control => self.delete(self.cursor, self.next_grapheme()),
            KeyCode::Char('w') if control => self.delete(self.word_start(), self.cursor),
            KeyCode::Char('u') if control => self.delete(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.delete(self.cursor, self.line_end()),
            KeyCode::Char('p') if control => return self.move_vertically(true),
            KeyCode::Char('n') if control => return self.move_vertically(false),
            KeyCode::Char(c) if !control && !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.delete(self.word_start(), self.cursor),
            KeyCode::Backspace => self.delete(self.previous_grapheme(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.next_grapheme()),
            KeyCode::Left if alt || control => self.cursor = self.word_start(),
            KeyCode::Right if alt || control => self.cursor = self.word_end(),
            KeyCode::Left => self.cursor = self.previous_grapheme(),
            KeyCode::Right => self.cursor = self.next_grapheme(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => return self.move_vertically(true),
            KeyCode::Down => return self.move_vertically(false),
            _ => return KeyEffect::Ignored,
        }
        KeyEffect::Edited
    }

    fn delete(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn previous_grapheme(&self) -> usize {
        self.before_cursor().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next_grapheme(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Start of the word before the cursor.
    fn word_start(&self) -> usize {
        let mut words = self.before_cursor().split_word_bound_indices().rev();
        words.find(|(_, word)| !word.trim().is_empty()).map_or(0, |(at, _)| at)
    }

    /// End of the word after the cursor.
    fn word_end(&self) -> usize {
        let mut words = self.text[self.cursor..].split_word_bound_indices();
        let word = words.find(|(_, word)| !word.trim().is_empty());
        word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    /// Moves to the line above or below, to the same column if that line is long enough.
    fn move_vertically(&mut self, up: bool) -> KeyEffect {
        let column = self.text[self.line_start()..self.cursor].width();
        let (start, end) = if up {
            let Some(end) = self.line_start().checked_sub(1) else { return KeyEffect::AboveFirstLine };
            (self.text[..end].rfind('\n').map_or(0, |at| at + 1), end)
        } else {
            let start = self.line_end() + 1;
            if start > self.text.len() {
                return KeyEffect::BelowLastLine;
            }
            (start, self.text[start..].find('\n').map_or(self.text.len(), |at| start + at))
        };
        let mut width = 0;
        let mut graphemes = self.text[start..end].grapheme_indices(true);
        let reached = graphemes.find(|(_, grapheme)| {
            let is_reached = width >= column;
            width += grapheme.width();
            is_reached
        });
        self.cursor = reached.map_or(end, |(at, _)| start + at);
        KeyEffect::Edited
    }

    /// The rows of the text in so many columns, each of at least one column, and the position of
    /// the cursor. With more than `max_rows` rows, those around the cursor.
    pub(crate) fn layout(&self, columns: usize, max_rows: usize) -> (Vec<String>, Cursor) {
        // A wide character needs two columns.
        let columns = columns.max(2);
        let mut rows = vec![String::new()];
        let (mut used, mut cursor) = (0, Cursor { row: 0, column: 0 });
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = if grapheme == "\t" { "    " } else { grapheme };
            let width = shown.width();
            if grapheme != "\n" && used + width > columns {
                rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                cursor = Cursor { row: rows.len() - 1, column: used };
            }
            match rows.last_mut() {
                Some(_) if grapheme == "\n" => {
                    rows.push(String::new());
                    used = 0;
                }
                Some(row) => {
                    row.push_str(shown);
                    used += width;
                }
                None => {}
            }
        }
        if self.cursor == self.text.len() {
            if used >= columns {
                rows.push(String::new());
                used = 0;
            }
            cursor = Cursor { row: rows.len() - 1, column: used };
        }
        let max_rows = max_rows.max(1);
        let first = (cursor.row + 1).saturating_sub(max_rows).min(rows.len().saturating_sub(max_rows));
        let shown = rows.into_iter().skip(first).take(max_rows).collect();
        (shown, Cursor { row: cursor.row - first, ..cursor })
    }
}
