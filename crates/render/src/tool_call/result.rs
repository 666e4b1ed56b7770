//! Describes the results of tool calls.

use quipu_conversation::{ItemKind, ToolCard, ToolStatus};
use quipu_message::{Block, Content};

use super::{ToolCallPart, ToolCallView, pluralize};
use crate::sanitize::sanitize;

impl<'a> ToolCallView<'a> {
    /// Adds all parts of the result.
    pub(super) fn add_result(&mut self, card: &'a ToolCard) {
        if card.result_missing {
            return self.parts.push(ToolCallPart::Failure(MISSING_RESULT_TEXT.to_owned()));
        }
        match &card.result {
            Some(Content::Text(text)) => self.add_text(text, card.status),
            Some(Content::Blocks(blocks)) => blocks.iter().for_each(|block| self.add_block(block, card.status)),
            Some(Content::Other(json)) => self.parts.push(ToolCallPart::Json(sanitize(json.text()).into_owned())),
            None => {
                let json = card.output.as_ref().filter(|json| !json.is_null());
                self.parts.extend(json.map(|json| ToolCallPart::Json(sanitize(json.text()).into_owned())));
            }
        }
    }

    /// Adds the result if the tool failed. On success the arguments already show everything.
    pub(super) fn add_failure(&mut self, card: &'a ToolCard) {
        if card.status == ToolStatus::Failed {
            self.add_result(card);
        }
    }

    /// Adds the text of a file that was read, without the line numbers.
    pub(super) fn add_file(&mut self, card: &'a ToolCard, path: &str) {
        let blocks = card.result.as_ref().map(Content::blocks).unwrap_or_default();
        if card.status != ToolStatus::Success || blocks.iter().any(|block| block.text().is_none()) {
            return self.add_result(card);
        }
        let text = card.result.as_ref().map(Content::to_text).unwrap_or_default();
        let text = strip_line_numbers(&sanitize(&text));
        self.note = pluralize(text.lines().count(), "line", "lines");
        self.parts.push(ToolCallPart::Code { text, path: path.to_owned() });
    }

    /// Adds the result of a search and the number of hits.
    pub(super) fn add_search_results(&mut self, card: &'a ToolCard) {
        self.add_result(card);
        if let [ToolCallPart::Output(text)] = self.parts.as_slice()
            && card.status == ToolStatus::Success
        {
            let is_heading = |line: &str| line.starts_with("Found ") || line.starts_with("No ");
            let found = text.lines().filter(|line| !line.trim().is_empty() && !is_heading(line)).count();
            self.note = if found == 0 { "nothing found".to_owned() } else { format!("{found} found") };
            if found == 0 {
                self.parts.clear();
            }
        }
    }

    /// Adds the task and the report of a subagent, unless its conversation shows them.
    pub(super) fn add_subagent_report(&mut self, card: &'a ToolCard, prompt: &str) {
        let Some(subagent) = &card.subagent else {
            if self.subject != prompt.trim() {
                self.parts.push(ToolCallPart::Output(sanitize(prompt.trim()).into_owned()));
            }
            return self.add_markdown_result(card);
        };
        let report =
            subagent.items.iter().rev().find(|item| item.kind == ItemKind::Assistant).and_then(|i| i.text.as_deref());
        let reported = card.result.as_ref().map(Content::to_text).unwrap_or_default();
        if card.status == ToolStatus::Failed || report.is_none_or(|report| !reported.contains(report.trim())) {
            self.add_markdown_result(card);
        }
    }

    fn add_markdown_result(&mut self, card: &'a ToolCard) {
        let start = self.parts.len();
        self.add_result(card);
        for part in &mut self.parts[start..] {
            if let ToolCallPart::Output(text) = part {
                *part = ToolCallPart::Markdown(std::mem::take(text));
            }
        }
    }

    fn add_block(&mut self, block: &'a Block, status: ToolStatus) {
        match block {
            Block::Text(text) => self.add_text(&text.text, status),
            Block::Image(image) => self.parts.push(ToolCallPart::Image(image)),
            Block::ToolReference(tool) => {
                self.parts.push(ToolCallPart::Output(sanitize(tool.tool_name.as_str()).into_owned()))
            }
            Block::Document(document) => {
                let kind = document.source.media_type.text().unwrap_or(document.source.kind.as_str());
                let title = document.title.text().unwrap_or("document");
                self.parts.push(ToolCallPart::Output(sanitize(&format!("[{title}, {kind}]")).into_owned()));
            }
            Block::Unknown(unknown) => {
                self.parts.push(ToolCallPart::Json(sanitize(unknown.json().text()).into_owned()))
            }
            other => self.parts.push(ToolCallPart::Output(format!("[{}]", sanitize(other.tag())))),
        }
    }

    fn add_text(&mut self, text: &str, status: ToolStatus) {
        let text = sanitize(text);
        let text = text.trim_end().trim_start_matches('\n');
        if text.is_empty() {
            return;
        }
        self.parts.push(if status == ToolStatus::Failed {
            let inner = text.strip_prefix("<tool_use_error>").and_then(|t| t.strip_suffix("</tool_use_error>"));
            ToolCallPart::Failure(inner.unwrap_or(text).to_owned())
        } else {
            ToolCallPart::Output(text.to_owned())
        });
    }
}

/// Shown for a tool call whose result is missing.
const MISSING_RESULT_TEXT: &str = "no result recorded";

/// The text of a file without the line numbers of the `Read` tool (`  12→text`).
pub(crate) fn strip_line_numbers(text: &str) -> String {
    fn strip_line_number(line: &str) -> Option<&str> {
        let line = line.trim_start_matches(' ');
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == line.len() { None } else { rest.strip_prefix(['→', '\t']) }
    }
    if text.lines().next().is_none_or(|line| strip_line_number(line).is_none()) {
        return text.to_owned();
    }
    // A system reminder at the end is not part of the file.
    let read = match text.trim_end().strip_suffix("</system-reminder>").and_then(|t| t.rfind("\n<system-reminder>")) {
        Some(end) => text[..end].trim_end(),
        None => text,
    };
    read.lines().map(|line| strip_line_number(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
