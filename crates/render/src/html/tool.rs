//! Tool cards: one line until they are opened.

use quipu_conversation::{Status, ToolCard};

use super::escape::{picture, push_text, text};
use super::item::{Page, placeholder};
use super::prose;
use crate::call::{Call, Part, Progress};
use crate::code::Language;
use crate::diff::{DiffLine, Sign};
use crate::speaker::source_label;

impl Page<'_> {
    pub(super) fn tool(&mut self, card: &ToolCard, id: &str) {
        let call = Call::new(card, self.html.about.base());
        let (class, mark, word) = match card.status {
            Status::Success => ("ok", "✓", "done"),
            Status::Failed => ("failed", "✗", "failed"),
            Status::Pending => ("pending", "…", "pending"),
        };
        let subject = format!("<span class=\"subject\">{}</span>", text(&call.subject));
        let mut notes = vec![call.note.as_str()];
        if card.status != Status::Success {
            notes.push(word);
        }
        notes.retain(|note| !note.is_empty());
        let line = format!(
            "<span class=\"mark\" title=\"{word}\">{mark}</span><b>{}</b>{subject}<small>{}</small>",
            text(&call.name),
            text(&notes.join(", "))
        );
        if call.parts.is_empty() && card.subagent.is_none() {
            self.out.push_str(&format!("<div class=\"tool {class}\"{id}><div class=\"line\">{line}</div></div>\n"));
            return;
        }
        // What went wrong, and what the person decided on, is open at once.
        let decided = call.parts.iter().any(|part| matches!(part, Part::Question { .. } | Part::Tasks(_)));
        let open = if card.status == Status::Failed || decided || card.name == "ExitPlanMode" { " open" } else { "" };
        self.out.push_str(&format!(
            "<details class=\"tool {class}\"{id}{open}><summary class=\"line\">{line}</summary><div class=\"body\">\n"
        ));
        for part in &call.parts {
            self.part(part);
        }
        if let Some(subagent) = &card.subagent {
            self.out.push_str("<div class=\"subagent\">\n");
            self.inside(&subagent.items);
            self.out.push_str("</div>\n");
        }
        self.out.push_str("</div></details>\n");
    }

    fn part(&mut self, part: &Part<'_>) {
        match part {
            Part::Command(command) => {
                prose::push_code(command, Language::named("sh"), self.out);
            }
            Part::Code { text, path } => {
                prose::push_code(text, Language::of_path(path), self.out);
            }
            Part::Diff(lines) => {
                self.out.push_str("<pre class=\"diff\">");
                lines.iter().for_each(|line| self.diff_line(line));
                self.out.push_str("</pre>\n");
            }
            Part::Tasks(tasks) => {
                self.out.push_str("<ul class=\"tasks\">");
                for (progress, task) in tasks {
                    let (class, mark) = match progress {
                        Progress::Open => ("open", "☐"),
                        Progress::Doing => ("doing", "▸"),
                        Progress::Done => ("done", "☑"),
                    };
                    self.out.push_str(&format!("<li class=\"{class}\"><span>{mark}</span>{}</li>", text(task)));
                }
                self.out.push_str("</ul>\n");
            }
            Part::Prose(words) => {
                self.out.push_str("<div class=\"prose\">\n");
                prose::push(words, self.out);
                self.out.push_str("</div>\n");
            }
            Part::Output(words) => self.pre("output", words),
            Part::Failure(words) => self.pre("output failure", words),
            Part::Json(json) => self.pre("output json", json),
            Part::Picture(image) => {
                let label = source_label(&image.source);
                match picture(&image.source) {
                    Some(data) => self.out.push_str(&format!("<img src=\"{data}\" alt=\"{}\">\n", text(&label))),
                    None => self.out.push_str(&placeholder("", &label)),
                }
            }
            Part::Question { text: asked, options, answer } => {
                self.out.push_str(&format!("<div class=\"question\"><b>{}</b>", text(asked)));
                match answer {
                    Some(answer) => self.out.push_str(&format!("<span>→ {}</span>", text(answer))),
                    None => self.out.push_str(&format!("<small>{}</small>", text(&options.join(" · ")))),
                }
                self.out.push_str("</div>\n");
            }
        }
    }

    fn pre(&mut self, class: &str, words: &str) {
        self.out.push_str(&format!("<pre class=\"{class}\">"));
        push_text(words, self.out);
        self.out.push_str("</pre>\n");
    }

    fn diff_line(&mut self, line: &DiffLine) {
        let tag = match line.sign {
            Sign::New => "ins",
            Sign::Gone => "del",
            Sign::Same | Sign::Gap => "span",
        };
        self.out.push_str(&format!("<{tag}>{} ", line.sign.mark()));
        for (strong, words) in &line.parts {
            if *strong {
                self.out.push_str("<b>");
                push_text(words, self.out);
                self.out.push_str("</b>");
            } else {
                push_text(words, self.out);
            }
        }
        self.out.push_str(&format!("</{tag}>"));
    }
}
