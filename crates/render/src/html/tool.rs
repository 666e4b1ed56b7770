//! Tool cards: one line until they are opened.

use quipu_conversation::{ToolCard, ToolStatus};

use super::escape::{escape_text, image_data_url, push_escaped};
use super::from_markdown;
use super::item::{PageWriter, placeholder_tag};
use crate::diff::{DiffLine, DiffLineKind};
use crate::highlight::Language;
use crate::speaker::image_source_label;
use crate::tool_call::{TodoStatus, ToolCallPart, ToolCallView};

impl PageWriter<'_> {
    pub(super) fn write_tool(&mut self, card: &ToolCard, id: &str) {
        let call = ToolCallView::from_card(card, self.html.details.base_folder());
        let (class, mark, word) = match card.status {
            ToolStatus::Success => ("ok", "✓", "done"),
            ToolStatus::Failed => ("failed", "✗", "failed"),
            ToolStatus::Pending => ("pending", "…", "pending"),
        };
        let subject = format!("<span class=\"subject\">{}</span>", escape_text(&call.subject));
        let mut notes = vec![call.note.as_str()];
        if card.status != ToolStatus::Success {
            notes.push(word);
        }
        notes.retain(|note| !note.is_empty());
        let line = format!(
            "<span class=\"mark\" title=\"{word}\">{mark}</span><b>{}</b>{subject}<small>{}</small>",
            escape_text(&call.name),
            escape_text(&notes.join(", "))
        );
        if call.parts.is_empty() && card.subagent.is_none() {
            self.out.push_str(&format!("<div class=\"tool {class}\"{id}><div class=\"line\">{line}</div></div>\n"));
            return;
        }
        // What went wrong, and what the person decided on, is open at once.
        let decided =
            call.parts.iter().any(|part| matches!(part, ToolCallPart::Question { .. } | ToolCallPart::Tasks(_)));
        let open =
            if card.status == ToolStatus::Failed || decided || card.name == "ExitPlanMode" { " open" } else { "" };
        self.out.push_str(&format!(
            "<details class=\"tool {class}\"{id}{open}><summary class=\"line\">{line}</summary><div class=\"body\">\n"
        ));
        for part in &call.parts {
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
                        TodoStatus::Pending => ("open", "☐"),
                        TodoStatus::InProgress => ("doing", "▸"),
                        TodoStatus::Completed => ("done", "☑"),
                    };
                    self.out.push_str(&format!("<li class=\"{class}\"><span>{mark}</span>{}</li>", escape_text(task)));
                }
                self.out.push_str("</ul>\n");
            }
            ToolCallPart::Markdown(words) => {
                self.out.push_str("<div class=\"prose\">\n");
                from_markdown::push_markdown(words, self.out);
                self.out.push_str("</div>\n");
            }
            ToolCallPart::Output(words) => self.write_pre("output", words),
            ToolCallPart::Failure(words) => self.write_pre("output failure", words),
            ToolCallPart::Json(json) => self.write_pre("output json", json),
            ToolCallPart::Image(image) => {
                let label = image_source_label(&image.source);
                match image_data_url(&image.source) {
                    Some(data) => self.out.push_str(&format!("<img src=\"{data}\" alt=\"{}\">\n", escape_text(&label))),
                    None => self.out.push_str(&placeholder_tag("", &label)),
                }
            }
            ToolCallPart::Question { text: asked, options, answer } => {
                self.out.push_str(&format!("<div class=\"question\"><b>{}</b>", escape_text(asked)));
                match answer {
                    Some(answer) => self.out.push_str(&format!("<span>→ {}</span>", escape_text(answer))),
                    None => self.out.push_str(&format!("<small>{}</small>", escape_text(&options.join(" · ")))),
                }
                self.out.push_str("</div>\n");
            }
        }
    }

    fn write_pre(&mut self, class: &str, words: &str) {
        self.out.push_str(&format!("<pre class=\"{class}\">"));
        push_escaped(words, self.out);
        self.out.push_str("</pre>\n");
    }

    fn write_diff_line(&mut self, line: &DiffLine) {
        let tag = match line.kind {
            DiffLineKind::Added => "ins",
            DiffLineKind::Removed => "del",
            DiffLineKind::Unchanged | DiffLineKind::Gap => "span",
        };
        self.out.push_str(&format!("<{tag}>{} ", line.kind.mark()));
        for (strong, words) in &line.parts {
            if *strong {
                self.out.push_str("<b>");
                push_escaped(words, self.out);
                self.out.push_str("</b>");
            } else {
                push_escaped(words, self.out);
            }
        }
        self.out.push_str(&format!("</{tag}>"));
    }
}
