//! A conversation for the terminal.

use std::fmt::{self, Write};

use quipu_conversation::ScreenItem;

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

/// How a conversation is shown on a terminal.
///
/// No text from the items reaches the output with a control character or an
/// escape sequence; with `color`, the only sequences are our own colours.
///
/// ```
/// use quipu_conversation::Conversation;
/// use quipu_render::Terminal;
/// let mut talk = Conversation::default();
/// talk.push_line(1, r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#);
/// assert_eq!(Terminal::default().render(&talk.for_ui()), "▌ you\n  hi\n");
/// ```
#[derive(Debug, Clone)]
pub struct Terminal {
    /// Columns; fewer than 24 count as 24.
    pub width: usize,
    /// Whether to use colours. Without them status is also told in words.
    pub color: bool,
    /// How much of the model's reasoning is shown.
    pub thinking: ThinkingDisplay,
    /// Whether tool calls and hooks are shown.
    pub show_tools: bool,
    /// Whether long results are shown to their end, and hooks that succeeded silently.
    pub show_full: bool,
    /// Paths under this folder are shown relative to it.
    pub base_folder: Option<String>,
    /// Turns a timestamp into `YYYY-MM-DD HH:MM` where the reader is; by
    /// default the time as it is written.
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
            base_folder: None,
            format_time: crate::format_time_as_written,
        }
    }
}

impl Terminal {
    /// Renders a conversation.
    pub fn render(&self, items: &[ScreenItem]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.render_to(items, &mut text);
        text
    }

    /// Renders a conversation into `out`.
    pub fn render_to(&self, items: &[ScreenItem], out: &mut dyn Write) -> fmt::Result {
        self.renderer().render_items(items, out)
    }

    /// Renders the head of a conversation: title, id, folder, time, usage, cost.
    pub fn render_header(&self, about: &SessionDetails) -> String {
        let mut text = String::new();
        let title = [Span::new(palette::BOLD, &about.heading())];
        let facts =
            about.summary_lines().into_iter().flat_map(|line| wrap(&[Span::new(palette::DIM, &line)], self.columns()));
        for row in wrap(&title, self.columns()).into_iter().chain(facts) {
            // Writing to a string cannot fail.
            let _ = write_row(&row, self.color, &mut text);
        }
        text
    }

    /// Starts a conversation that is shown piece by piece, as it happens.
    pub fn renderer(&self) -> TerminalRenderer {
        TerminalRenderer::new(self.clone())
    }

    fn columns(&self) -> usize {
        self.width.max(24)
    }
}
