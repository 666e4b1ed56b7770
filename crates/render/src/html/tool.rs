//! Writes tool calls: one line, with the details folded.

use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::ToolName;
use quipu_message::tool::TodoStatus;

use super::escape::{escape_text, image_data_url, push_escaped};
use super::from_markdown;
use super::item::{PageWriter, placeholder_tag};
use crate::diff::{DiffLine, DiffLineKind};
use crate::highlight::Language;
use crate::speaker::image_source_label;
use crate::tool_call::{ToolCallPart, ToolCallView};

impl PageWriter<'_> {
    pub(super) fn write_tool(&mut self, card: &ToolCard, id: &str) {
        let view = ToolCallView::from_card(card, self.html.details.base_folder());
        let (class, mark, word) = match card.status {
            ToolStatus::Success => ("ok", "✓", "done"),
            ToolStatus::Failed => ("failed", "✗", "failed"),
            ToolStatus::Pending => ("pending", "…", "pending"),
        };
        let subject = format!("<span class=\"subject\">{}</span>", escape_text(&view.subject));
        let mut notes = vec![view.note.as_str()];
        if card.status != ToolStatus::Success {
            notes.push(word);
        }
        notes.retain(|note| !note.is_empty());
        let line = format!(
            "<span class=\"mark\" title=\"{word}\">{mark}</span><b>{}</b>{subject}<small>{}</small>",
            escape_text(&view.name),
            escape_text(&notes.join(", "))
        );
        if view.parts.is_empty() && card.subagent.is_none() {
            self.out.push_str(&format!("<div class=\"tool {class}\"{id}><div class=\"line\">{line}</div></div>\n"));
            return;
        }
        // Failures, questions to the user, task lists and plans are open from the start.
        let decided =
            view.parts.iter().any(|part| matches!(part, ToolCallPart::Question { .. } | ToolCallPart::Tasks(_)));
        let open = if card.status == ToolStatus::Failed || decided || card.name == ToolName::ExitPlanMode {
            " open"
        } else {
            ""
        };
        self.out.push_str(&format!(
            "<details class=\"tool {class}\"{id}{open}><summary class=\"line\">{line}</summary><div class=\"body\">\n"
        ));
        for part in &view.parts {
            self.write_part(part);
        }
        if let Some(subagent) = &card.subagent {
            self.out.push_str("<div class=\"subagent\">\n");
            self.write_subagent(&subagent.items);
            self.out.push_str("</div>\n");
        }
        self.out.push_str("</div></details>\n");
    }

    fn write_part(&mut self, part: &ToolCallPart<'_>) {
        match part {
            ToolCallPart::Command(command) => {
                from_markdown::push_code(command, Language::from_name("sh"), self.out);
            }
            ToolCallPart::Code { text, path } => {
                from_markdown::push_code(text, Language::from_path(path), self.out);
            }
            ToolCallPart::Diff(lines) => {
                self.out.push_str("<pre class=\"diff\">");
                lines.iter().for_each(|line| self.write_diff_line(line));
                self.out.push_str("</pre>\n");
            }
            ToolCallPart::Tasks(tasks) => {
                self.out.push_str("<ul class=\"tasks\">");
                for (progress, task) in tasks {
                    let (class, mark) = match progress {
                        TodoStatus::InProgress => ("doing", "▸"),
                        TodoStatus::Completed => ("done", "☑"),
                        _ => ("open", "☐"),
                    };
                    self.out.push_str(&format!("<li class=\"{class}\"><span>{mark}</span>{}</li>", escape_text(task)));
                }
                self.out.push_str("</ul>\n");
            }
            ToolCallPart::Markdown(text) => {
                self.out.push_str("<div class=\"prose\">\n");
                from_markdown::push_markdown(text, self.out);
                self.out.push_str("</div>\n");
            }
            ToolCallPart::Output(text) => self.write_pre("output", text),
            ToolCallPart::Failure(text) => self.write_pre("output failure", text),
            ToolCallPart::Json(json) => self.write_pre("output json", json),
            ToolCallPart::Image(image) => {
                let label = image_source_label(&image.source);
                match image_data_url(&image.source) {
                    Some(data) => self.out.push_str(&format!("<img src=\"{data}\" alt=\"{}\">\n", escape_text(&label))),
                    None => self.out.push_str(&placeholder_tag("", &label)),
                }
            }
            ToolCallPart::Question { text: question, options, answer } => {
                self.out.push_str(&format!("<div class=\"question\"><b>{}</b>", escape_text(question)));
                match answer {
                    Some(answer) => self.out.push_str(&format!("<span>→ {}</span>", escape_text(answer))),
                    None => self.out.push_str(&format!("<small>{}</small>", escape_text(&options.join(" · ")))),
                }
                self.out.push_str("</div>\n");
            }
        }
    }

    fn write_pre(&mut self, class: &str, text: &str) {
        self.out.push_str(&format!("<pre class=\"{class}\">"));
        push_escaped(text, self.out);
        self.out.push_str("</pre>\n");
    }

    fn write_diff_line(&mut self, line: &DiffLine) {
        let tag = match line.kind {
            DiffLineKind::Added => "ins",
            DiffLineKind::Removed => "del",
            DiffLineKind::Unchanged | DiffLineKind::Gap => "span",
        };
        self.out.push_str(&format!("<{tag}>{} ", line.kind.mark()));
        for (is_changed, text) in &line.parts {
            if *is_changed {
                self.out.push_str("<b>");
                push_escaped(text, self.out);
                self.out.push_str("</b>");
            } else {
                push_escaped(text, self.out);
            }
        }
        self.out.push_str(&format!("</{tag}>"));
    }
}
