//! What is drawn: the conversation, and the rows at the bottom.

use std::io;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use quipu_conversation::LiveItem;
use quipu_message::ToolUseId;
use quipu_render::{Cursor, ScreenSize};
use quipu_sdk::control::response::InitializeResponse;

use super::{Chat, FRAME_TIME, Next, Notice, STATUS_TIME, text_width, write_text};

/// Rows of the input that are shown at once.
const MAX_INPUT_ROWS: usize = 10;

const DIM: Style = Style::new().dimmed();
const ACCENT: Style = AnsiColor::Cyan.on_default().bold();

impl Chat {
    /// Prints what is known of the agent, and the last items of a resumed session.
    pub(super) fn show_start(&mut self, agent: &InitializeResponse, recent: Vec<LiveItem>) {
        let version = agent.claude_code_version.text().unwrap_or("of unknown version");
        let mode = agent.current_permission_mode.get().map_or("default", |mode| mode.as_str()).to_owned();
        let folder = self.folder.display();
        let text = format!("agent {version} in {folder}, mode {mode}; /help lists commands and keys");
        let text = self.style.wrap(&text, DIM).join("\n") + "\n";
        let items = self.screen.show_items(&self.context, recent, Vec::new());
        // A terminal that cannot be written to is noticed at the first redraw.
        let _ = write_text(&(items + &self.screen.print_paragraph(&text)));
    }

    pub(super) fn show_notice(&mut self, notice: &Notice) -> io::Result<Next> {
        let style = if notice.is_error { AnsiColor::Red.on_default() } else { DIM };
        self.print_rows(&self.style.wrap(&notice.text, style))?;
        Ok(Next::Continue)
    }

    /// Prints rows above those that change.
    pub(super) fn print_rows(&mut self, rows: &[String]) -> io::Result<()> {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        write_text(&self.screen.print_paragraph(&text))
    }

    pub(super) fn draw_if_due(&mut self) -> io::Result<()> {
        let is_due = self.next_redraw().is_some_and(|time| time <= Instant::now());
        if is_due { self.draw() } else { Ok(()) }
    }

    /// Time of the next redraw; `None` if nothing changes by itself.
    pub(super) fn next_redraw(&self) -> Option<Instant> {
        next_redraw(self.last_draw, self.is_changed, self.status.is_running())
    }

    /// Prints new items and redraws the rows below them.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        (self.is_changed, self.last_draw) = (false, Instant::now());
        self.update_call_times();
        let (changes, partial) = (std::mem::take(&mut self.new_items), self.live.partial_items());
        let hidden = self.prompt.as_ref().and_then(|_| self.requests.front()?.call.tool_use_id.get().cloned());
        self.screen.hide_pending_call(hidden);
        let items = self.screen.show_items(&self.context, changes, partial);
        let (rows, cursor) = self.bottom_rows();
        write_text(&(items + &self.screen.set_bottom(rows, cursor)))
    }

    fn update_call_times(&mut self) {
        let now = Instant::now();
        let pending: Vec<ToolUseId> = self.screen.pending_calls().cloned().collect();
        self.call_starts.retain(|call, _| pending.contains(call));
        for call in &pending {
            let start = *self.call_starts.entry(call.clone()).or_insert(now);
            self.screen.set_call_seconds(call, now.saturating_duration_since(start).as_secs());
        }
    }

    /// The rows at the bottom: a prompt, or status, queue, input and completion.
    fn bottom_rows(&self) -> (Vec<String>, Option<Cursor>) {
        let mut rows = vec![String::new()];
        if let Some((prompt, _)) = &self.prompt {
            let (prompt_rows, cursor) = prompt.rows(&self.style);
            rows.extend(prompt_rows);
            rows.extend(self.exit_row());
            return (rows, cursor.map(|cursor| Cursor { row: cursor.row + 1, ..cursor }));
        }
        if let Some(line) = self.status.line(Instant::now()) {
            rows.push(self.style.truncate(&line, DIM));
        }
        for text in self.queue.texts() {
            rows.push(self.style.truncate(&format!("queued: {text}"), DIM));
        }
        let (input, cursor) = self.editor.layout(self.style.width.saturating_sub(3), MAX_INPUT_ROWS);
        let cursor = Cursor { row: rows.len() + cursor.row, column: cursor.column + 2 };
        let mark = if self.style.color { format!("{ACCENT}›{ACCENT:#}") } else { "›".to_owned() };
        let rows_of_input = input.iter().enumerate();
        rows.extend(rows_of_input.map(|(at, row)| format!("{} {row}", if at == 0 { mark.as_str() } else { " " })));
        if let Some(completion) = &self.completion {
            for (at, choice) in completion.choices.iter().enumerate() {
                let (mark, style) = if at == completion.selected { ("›", Style::new()) } else { (" ", DIM) };
                let gap = if choice.description.is_empty() { "" } else { "  " };
                rows.push(self.style.truncate(&format!("  {mark} {}{gap}{}", choice.name, choice.description), style));
            }
        }
        rows.extend(self.exit_row());
        (rows, Some(cursor))
    }

    fn exit_row(&self) -> Option<String> {
        self.exit_pending.then(|| self.style.truncate("Ctrl-C again ends the chat", DIM))
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) -> io::Result<()> {
        let size = ScreenSize { columns: columns.into(), rows: rows.into() };
        self.style.width = text_width(size);
        self.is_changed = true;
        write_text(&self.screen.resize(size, self.style.width))
    }
}

fn next_redraw(last_draw: Instant, is_changed: bool, is_running: bool) -> Option<Instant> {
    match (is_changed, is_running) {
        (true, _) => Some(last_draw + FRAME_TIME),
        (false, true) => Some(last_draw + STATUS_TIME),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_chat_is_not_redrawn() {
        let last_draw = Instant::now();
        assert_eq!(next_redraw(last_draw, false, false), None);
        assert_eq!(next_redraw(last_draw, false, true), Some(last_draw + STATUS_TIME));
        assert_eq!(next_redraw(last_draw, true, false), Some(last_draw + FRAME_TIME));
    }
}
