//! Renders a conversation for a terminal.

use std::fmt::{self, Write};

use anstyle::Style;
use quipu_conversation::{ScreenItem, ToolCard};

use crate::sanitize::sanitize;
use crate::session_details::SessionDetails;
use crate::thinking::ThinkingDisplay;

mod from_markdown;
mod palette;
mod renderer;
mod row;
mod table;
mod tool;

#[cfg(test)]
mod tests;

pub use renderer::TerminalRenderer;
use row::{Span, wrap, write_row};

/// Renders a conversation for a terminal.
///
/// Text from the items is sanitized: the output has no control characters except line breaks
/// and, with `color`, the colour sequences of the renderer.
///
/// ```
/// use quipu_conversation::Conversation;
/// use quipu_render::Terminal;
/// let mut conversation = Conversation::default();
/// conversation.push_line(1, r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#);
/// assert_eq!(Terminal::default().render(&conversation.for_ui()), "▌ you\n  hi\n");
/// ```
#[derive(Debug, Clone)]
pub struct Terminal {
    /// Width in columns, at least 24.
    pub width: usize,
    /// Whether to use colours. Without them the status of a tool call is also a word.
    pub color: bool,
    /// How much of the model's thinking is shown.
    pub thinking: ThinkingDisplay,
    /// Whether tool calls and hooks are shown.
    pub show_tools: bool,
    /// Whether long tool results are shown in full, and hooks that succeeded without output.
    pub show_full: bool,
    /// Rows of a notice at most, unless `show_full` is set.
    pub max_notice_rows: usize,
    /// Paths under this folder are shown relative to it.
    pub base_folder: Option<String>,
    /// Formats a timestamp as `YYYY-MM-DD HH:MM` in the reader's time zone. The default keeps the
    /// zone of the timestamp.
    pub format_time: fn(&str) -> String,
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            width: 80,
            color: false,
            thinking: ThinkingDisplay::Folded,
            show_tools: true,
            show_full: false,
            max_notice_rows: 6,
            base_folder: None,
            format_time: crate::format_time_as_written,
        }
    }
}

impl Terminal {
    /// Renders items as text, one line per row.
    pub fn render(&self, items: &[ScreenItem]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.render_to(items, &mut text);
        text
    }

    /// Renders items into `out`.
    pub fn render_to(&self, items: &[ScreenItem], out: &mut dyn Write) -> fmt::Result {
        self.renderer().render_items(items, out)
    }

    /// Renders the header of a conversation: title, id, folder, times, usage and cost.
    pub fn render_header(&self, details: &SessionDetails) -> String {
        let mut text = String::new();
        let title = [Span::new(palette::BOLD, &details.heading())];
        let facts = details
            .summary_lines()
            .into_iter()
            .flat_map(|line| wrap(&[Span::new(palette::DIM, &line)], self.columns()));
        for row in wrap(&title, self.columns()).into_iter().chain(facts) {
            // Writing to a string cannot fail.
            let _ = write_row(&row, self.color, &mut text);
        }
        text
    }

    /// Wraps a text in one style to the width, each line on rows of its own.
    pub fn wrap(&self, text: &str, style: Style) -> Vec<String> {
        let rows = renderer::plain_rows(&sanitize(text), style, self.columns());
        rows.iter().map(|row| self.row_text(row)).collect()
    }

    /// Rows of a tool call alone, without the name of the speaker.
    pub fn tool_call_rows(&self, card: &ToolCard) -> Vec<String> {
        let rows = self.renderer().tool_rows(card, self.columns());
        rows.iter().map(|row| self.row_text(row)).collect()
    }

    /// One row in one style, truncated to the width.
    pub fn truncate(&self, text: &str, style: Style) -> String {
        self.row_text(&row::truncate_row(&[Span::new(style, text)], self.columns()))
    }

    fn row_text(&self, row: &[Span]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_row(row, self.color, &mut text);
        text.truncate(text.trim_end_matches('\n').len());
        text
    }

    /// Creates a renderer for items that arrive one at a time.
    pub fn renderer(&self) -> TerminalRenderer {
        TerminalRenderer::new(self.clone())
    }

    fn columns(&self) -> usize {
        self.width.max(24)
    }
}

/// Text in the style of secondary text.
pub(crate) fn dimmed(text: &str, color: bool) -> String {
    let style = if color { palette::DIM } else { palette::PLAIN };
    format!("{style}{text}{style:#}")
}
