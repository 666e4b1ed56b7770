//! Renders a conversation as a Markdown document.

use quipu_conversation::{ItemKind, ScreenItem, ToolCard, ToolStatus};
use quipu_message::tool::TodoStatus;

use crate::sanitize::{sanitize, sanitize_line};
use crate::session_details::SessionDetails;
use crate::speaker::{Speaker, context_label, image_item_label, image_source_label};
use crate::thinking::ThinkingDisplay;
use crate::tool_call::{ToolCallPart, ToolCallView, pluralize};

mod escape;

#[cfg(test)]
mod tests;

pub(crate) use escape::PARSER_OPTIONS;
pub(crate) use escape::escape_markdown;
use escape::{block_quote, code_block, code_span, neutralize_markdown};

/// Renders a conversation as Markdown.
///
/// Text of the model and the user is kept as Markdown, but raw HTML in it is escaped and an
/// unclosed code fence is closed.
#[derive(Debug, Clone)]
pub struct Markdown {
    /// Facts about the session for the start of the document.
    pub details: SessionDetails,
    /// How much of the model's thinking is shown.
    pub thinking: ThinkingDisplay,
    /// Whether tool calls and hooks are shown.
    pub show_tools: bool,
    /// Whether long tool results are shown in full.
    pub show_full: bool,
    /// Whether hooks that succeeded without output are shown.
    pub show_silent_hooks: bool,
    /// Formats a timestamp as `YYYY-MM-DD HH:MM` in the reader's time zone. The default keeps the
    /// zone of the timestamp.
    pub format_time: fn(&str) -> String,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            details: SessionDetails::default(),
            thinking: ThinkingDisplay::Full,
            show_tools: true,
            show_full: false,
            show_silent_hooks: false,
            format_time: crate::format_time_as_written,
        }
    }
}

/// Longer tool results are truncated.
const MAX_RESULT_LINES: usize = 40;

impl Markdown {
    /// Renders the lines of a file, each in a code block of its own.
    pub fn render_lines<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> String {
        let blocks: Vec<_> = lines.into_iter().map(|line| escape::code_block("json", &crate::sanitize(line))).collect();
        format!("# {}\n\n{}\n", escape_markdown(&self.details.heading()), blocks.join("\n\n"))
    }

    /// Renders the items as a complete document.
    pub fn render(&self, items: &[ScreenItem]) -> String {
        let mut blocks = vec![format!("# {}", escape_markdown(&self.details.heading()))];
        let facts = self.details.labelled_values();
        if !facts.is_empty() {
            let facts: Vec<_> =
                facts.iter().map(|(name, fact)| format!("- {name}: {}", escape_markdown(fact))).collect();
            blocks.push(facts.join("\n"));
        }
        self.push_items(items, false, &mut blocks);
        blocks.join("\n\n") + "\n"
    }

    fn push_items(&self, items: &[ScreenItem], inner: bool, blocks: &mut Vec<String>) {
        let mut speaker: Option<Speaker> = None;
        for (at, item) in items.iter().enumerate() {
            let start = blocks.len();
            self.push_item(item, blocks);
            if blocks.len() == start {
                continue;
            }
            let Some(current) = Speaker::from_items(&items[at..], speaker.as_ref()) else { continue };
            if speaker.as_ref() != Some(&current) {
                blocks.insert(start, self.speaker_heading(&current, item, inner));
                speaker = Some(current);
            }
        }
    }

    fn speaker_heading(&self, speaker: &Speaker, item: &ScreenItem, inner: bool) -> String {
        let name = match speaker {
            Speaker::User if inner => "task",
            Speaker::User => "you",
            Speaker::Model(name) => name,
        };
        let time = item.timestamp.as_deref().map(self.format_time).map(|time| format!(" · {}", escape_markdown(&time)));
        let level = if inner { "####" } else { "##" };
        format!("{level} {}{}", escape_markdown(name), time.unwrap_or_default())
    }

    fn push_item(&self, item: &ScreenItem, blocks: &mut Vec<String>) {
        let text = sanitize(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        match item.kind {
            ItemKind::User | ItemKind::Assistant => {
                if !item.contexts.is_empty() {
                    let tags: Vec<_> = item.contexts.iter().map(|c| code_span(&context_label(&c.kind))).collect();
                    blocks.push(tags.join(" "));
                }
                if !text.trim().is_empty() {
                    blocks.push(neutralize_markdown(text));
                }
            }
            ItemKind::Thinking => match self.thinking {
                ThinkingDisplay::Hidden => {}
                ThinkingDisplay::Full => {
                    blocks.push(block_quote(&format!("*thinking*\n\n{}", neutralize_markdown(text))))
                }
                ThinkingDisplay::Folded => {
                    let first = text.lines().next().unwrap_or_default();
                    let more = text.lines().count().saturating_sub(1);
                    blocks.push(block_quote(&format!(
                        "*thinking* {} (+{})",
                        escape_markdown(first),
                        pluralize(more, "line", "lines")
                    )));
                }
            },
            ItemKind::Tool if self.show_tools => {
                if let Some(card) = &item.tool {
                    self.push_tool(card, blocks);
                }
            }
            ItemKind::Hook if item.is_silent && !self.show_silent_hooks => {}
            ItemKind::Hook if self.show_tools => {
                blocks.push(format!("· hook {}", escape_markdown(&sanitize_line(text))))
            }
            ItemKind::Tool | ItemKind::Hook => {}
            ItemKind::Image => blocks.push(format!("\\[{}\\]", escape_markdown(&image_item_label(text)))),
            ItemKind::Attachment => blocks.push(format!("\\[{}\\]", escape_markdown(&sanitize_line(text)))),
            ItemKind::System if text.contains('\n') => blocks.push(code_block("", text)),
            ItemKind::System => {
                blocks.push(format!("· {}{}", if item.is_error { "⚠ " } else { "" }, escape_markdown(text)))
            }
            ItemKind::Summary => {
                blocks.push("---".to_owned());
                blocks.push(block_quote(&format!(
                    "**Summary of the conversation so far**\n\n{}",
                    neutralize_markdown(text)
                )));
            }
            ItemKind::Branch => {
                blocks.push("---".to_owned());
                blocks.push(format!("*{}*", escape_markdown(&sanitize_line(text))));
            }
            ItemKind::Unknown => {
                blocks.push(format!("? unknown: {}", code_span(&self.truncate_line(&sanitize_line(text)))))
            }
            ItemKind::Problem => blocks.push(format!("⚠ {}", escape_markdown(&sanitize_line(text)))),
        }
    }

    fn push_tool(&self, card: &ToolCard, blocks: &mut Vec<String>) {
        let view = ToolCallView::from_card(card, self.details.base_folder());
        let mut title = format!("**{}** ", escape_markdown(&view.name));
        title.push_str(match card.status {
            ToolStatus::Success => "✓",
            ToolStatus::Failed => "✗ failed",
            ToolStatus::Pending => "… pending",
        });
        if !view.subject.is_empty() {
            title.push(' ');
            title.push_str(&code_span(&self.truncate_line(&view.subject)));
        }
        if !view.note.is_empty() {
            title.push_str(&format!(" ({})", escape_markdown(&view.note)));
        }
        blocks.push(title);
        if !view.is_collapsed || self.show_full {
            blocks.extend(view.parts.iter().map(|part| self.render_part(part)));
        }
        if let Some(subagent) = &card.subagent {
            let mut inner = Vec::new();
            self.push_items(&subagent.items, true, &mut inner);
            blocks.push(block_quote(&inner.join("\n\n")));
        }
    }

    fn render_part(&self, part: &ToolCallPart<'_>) -> String {
        match part {
            ToolCallPart::Command(command) => code_block("sh", command),
            ToolCallPart::Code { text, path } => {
                let extension = path.rsplit_once('.').map(|(_, end)| end).filter(|end| is_fence_language(end));
                code_block(extension.unwrap_or_default(), &self.truncate_lines(text))
            }
            ToolCallPart::Diff(lines) => {
                let line = |line: &crate::DiffLine| {
                    line.parts.iter().fold(line.kind.mark().to_string(), |text, (_, part)| text + part)
                };
                code_block("diff", &lines.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            ToolCallPart::Tasks(tasks) => {
                let task = |(progress, text): &(TodoStatus, String)| match progress {
                    TodoStatus::Completed => format!("- [x] {}", escape_markdown(text)),
                    TodoStatus::InProgress => format!("- [ ] **{}**", escape_markdown(text)),
                    _ => format!("- [ ] {}", escape_markdown(text)),
                };
                tasks.iter().map(task).collect::<Vec<_>>().join("\n")
            }
            ToolCallPart::Markdown(text) => block_quote(&neutralize_markdown(text)),
            ToolCallPart::Output(text) | ToolCallPart::Failure(text) => code_block("", &self.truncate_lines(text)),
            ToolCallPart::Json(json) => code_block("json", &self.truncate_line(json)),
            ToolCallPart::Image(image) => format!("\\[{}\\]", escape_markdown(&image_source_label(&image.source))),
            ToolCallPart::Question { text, options, answer } => {
                let answer = answer.as_ref().map_or_else(|| options.join(" · "), |answer| format!("→ {answer}"));
                format!("- {}\n  {}", escape_markdown(&sanitize_line(text)), escape_markdown(&sanitize_line(&answer)))
            }
        }
    }

    fn truncate_lines(&self, text: &str) -> String {
        let total = text.lines().count();
        if self.show_full || total <= MAX_RESULT_LINES + 1 {
            return text.to_owned();
        }
        let shown: Vec<&str> = text.lines().take(MAX_RESULT_LINES).collect();
        format!("{}\n… +{} lines", shown.join("\n"), total - MAX_RESULT_LINES)
    }

    fn truncate_line(&self, text: &str) -> String {
        const MAX_LINE_CHARS: usize = 400;
        match text.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) if !self.show_full => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        }
    }
}

fn is_fence_language(text: &str) -> bool {
    !text.is_empty() && text.len() <= 12 && text.chars().all(|c| c.is_ascii_alphanumeric())
}
