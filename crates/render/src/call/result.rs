//! What a call gave, as parts.

use quipu_conversation::{Kind, Status, ToolCard};
use quipu_message::{Block, Content};

use super::{Call, Part, count};
use crate::clean::clean;

impl<'a> Call<'a> {
    /// Adds whatever the tool gave.
    pub(super) fn add_result(&mut self, card: &'a ToolCard) {
        if card.result_missing {
            return self.parts.push(Part::Failure(NO_RESULT.to_owned()));
        }
        match &card.result {
            Some(Content::Text(text)) => self.add_text(text, card.status),
            Some(Content::Blocks(blocks)) => blocks.iter().for_each(|block| self.add_block(block, card.status)),
            Some(Content::Other(json)) => self.parts.push(Part::Json(clean(json.text()).into_owned())),
            None => {
                let json = card.output.as_ref().filter(|json| !json.is_null());
                self.parts.extend(json.map(|json| Part::Json(clean(json.text()).into_owned())));
            }
        }
    }

    /// Adds what the tool gave only when it failed: on success the call itself
    /// says all.
    pub(super) fn add_failure(&mut self, card: &'a ToolCard) {
        if card.status == Status::Failed {
            self.add_result(card);
        }
    }

    /// Adds a file that was read, without the line numbers put in for the model.
    pub(super) fn add_file(&mut self, card: &'a ToolCard, path: &str) {
        let blocks = card.result.as_ref().map(Content::blocks).unwrap_or_default();
        if card.status != Status::Success || blocks.iter().any(|block| block.text().is_none()) {
            return self.add_result(card);
        }
        let text = card.result.as_ref().map(Content::to_text).unwrap_or_default();
        let text = unnumbered(&clean(&text));
        self.note = count(text.lines().count(), "line", "lines");
        self.parts.push(Part::Code { text, path: path.to_owned() });
    }

    /// Adds what a search found and how much it is.
    pub(super) fn add_found(&mut self, card: &'a ToolCard) {
        self.add_result(card);
        if let [Part::Output(text)] = self.parts.as_slice()
            && card.status == Status::Success
        {
            let is_heading = |line: &str| line.starts_with("Found ") || line.starts_with("No ");
            let found = text.lines().filter(|line| !line.trim().is_empty() && !is_heading(line)).count();
            self.note = if found == 0 { "nothing found".to_owned() } else { format!("{found} found") };
            if found == 0 {
                self.parts.clear();
            }
        }
    }

    /// Adds a subagent's task and report, unless its own conversation shows them.
    pub(super) fn add_report(&mut self, card: &'a ToolCard, prompt: &str) {
        let Some(subagent) = &card.subagent else {
            if self.subject != prompt.trim() {
                self.parts.push(Part::Output(clean(prompt.trim()).into_owned()));
            }
            return self.add_prose(card);
        };
        let said =
            subagent.items.iter().rev().find(|item| item.kind == Kind::Assistant).and_then(|i| i.text.as_deref());
        let reported = card.result.as_ref().map(Content::to_text).unwrap_or_default();
        if card.status == Status::Failed || said.is_none_or(|said| !reported.contains(said.trim())) {
            self.add_prose(card);
        }
    }

    fn add_prose(&mut self, card: &'a ToolCard) {
        let start = self.parts.len();
        self.add_result(card);
        for part in &mut self.parts[start..] {
            if let Part::Output(text) = part {
                *part = Part::Prose(std::mem::take(text));
            }
        }
    }

    fn add_block(&mut self, block: &'a Block, status: Status) {
        match block {
            Block::Text(text) => self.add_text(&text.text, status),
            Block::Image(image) => self.parts.push(Part::Picture(image)),
            Block::ToolReference(tool) => self.parts.push(Part::Output(clean(&tool.tool_name).into_owned())),
            Block::Document(document) => {
                let kind = document.source.media_type.text().unwrap_or(&document.source.kind);
                let title = document.title.text().unwrap_or("document");
                self.parts.push(Part::Output(clean(&format!("[{title}, {kind}]")).into_owned()));
            }
            Block::Unknown(unknown) => self.parts.push(Part::Json(clean(unknown.json().text()).into_owned())),
            other => self.parts.push(Part::Output(format!("[{}]", clean(other.tag())))),
        }
    }

    fn add_text(&mut self, text: &str, status: Status) {
        let text = clean(text);
        let text = text.trim_end().trim_start_matches('\n');
        if text.is_empty() {
            return;
        }
        self.parts.push(if status == Status::Failed {
            let inner = text.strip_prefix("<tool_use_error>").and_then(|t| t.strip_suffix("</tool_use_error>"));
            Part::Failure(inner.unwrap_or(text).to_owned())
        } else {
            Part::Output(text.to_owned())
        });
    }
}

/// What stands for a result that was lost.
const NO_RESULT: &str = "no result recorded";

/// A file's text without the numbers before its lines (`  12→text`).
pub(crate) fn unnumbered(text: &str) -> String {
    fn bare(line: &str) -> Option<&str> {
        let line = line.trim_start_matches(' ');
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == line.len() { None } else { rest.strip_prefix(['→', '\t']) }
    }
    if text.lines().next().is_none_or(|line| bare(line).is_none()) {
        return text.to_owned();
    }
    // What the program added for the model was not read from the file.
    let read = match text.trim_end().strip_suffix("</system-reminder>").and_then(|t| t.rfind("\n<system-reminder>")) {
        Some(end) => text[..end].trim_end(),
        None => text,
    };
    read.lines().map(|line| bare(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
