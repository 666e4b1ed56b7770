//! A conversation as a Markdown document, to share.

use quipu_conversation::{Kind, ScreenItem, Status, ToolCard};

use crate::about::About;
use crate::call::{Call, Part, Progress, count};
use crate::clean::{clean, one_line};
use crate::speaker::{Speaker, context_label, picture_label, source_label};
use crate::terminal::Thinking;

mod text;

#[cfg(test)]
mod tests;

pub(crate) use text::OPTIONS;
pub(crate) use text::escaped;
use text::{code_span, fenced, quoted, tame};

/// How a conversation is written as Markdown.
///
/// The words of the model and the person stay the Markdown they are; raw HTML
/// in them is escaped, and a fence they leave open is closed.
#[derive(Debug, Clone)]
pub struct Markdown {
    /// What the head of the document says.
    pub about: About,
    /// How much of the model's reasoning is shown.
    pub thinking: Thinking,
    /// Whether tool calls and hooks are shown.
    pub tools: bool,
    /// Whether long results are shown to their end.
    pub full: bool,
    /// Whether hooks that succeeded without output are shown.
    pub silent_hooks: bool,
    /// Turns a timestamp into `YYYY-MM-DD HH:MM` where the reader is; by
    /// default the time as it is written.
    pub local: fn(&str) -> String,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            about: About::default(),
            thinking: Thinking::Full,
            tools: true,
            full: false,
            silent_hooks: false,
            local: crate::as_written,
        }
    }
}

/// Lines of a result before it is cut.
const RESULT: usize = 40;

impl Markdown {
    /// Writes lines as they are, each in a block of its own.
    pub fn lines<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> String {
        let blocks: Vec<_> = lines.into_iter().map(|line| text::fenced("json", &crate::clean(line))).collect();
        format!("# {}\n\n{}\n", escaped(&self.about.heading()), blocks.join("\n\n"))
    }

    /// Writes the document.
    pub fn render(&self, items: &[ScreenItem]) -> String {
        let mut blocks = vec![format!("# {}", escaped(&self.about.heading()))];
        let facts = self.about.facts();
        if !facts.is_empty() {
            let facts: Vec<_> = facts.iter().map(|(name, fact)| format!("- {name}: {}", escaped(fact))).collect();
            blocks.push(facts.join("\n"));
        }
        self.items(items, false, &mut blocks);
        blocks.join("\n\n") + "\n"
    }

    fn items(&self, items: &[ScreenItem], inner: bool, blocks: &mut Vec<String>) {
        let mut speaker: Option<Speaker> = None;
        for (at, item) in items.iter().enumerate() {
            let start = blocks.len();
            self.item(item, blocks);
            if blocks.len() == start {
                continue;
            }
            let Some(now) = Speaker::of(&items[at..], speaker.as_ref()) else { continue };
            if speaker.as_ref() != Some(&now) {
                blocks.insert(start, self.heading(&now, item, inner));
                speaker = Some(now);
            }
        }
    }

    fn heading(&self, speaker: &Speaker, item: &ScreenItem, inner: bool) -> String {
        let name = match speaker {
            Speaker::You if inner => "task",
            Speaker::You => "you",
            Speaker::Model(name) => name,
        };
        let when = item.timestamp.as_deref().map(self.local).map(|when| format!(" · {}", escaped(&when)));
        let level = if inner { "####" } else { "##" };
        format!("{level} {}{}", escaped(name), when.unwrap_or_default())
    }

    fn item(&self, item: &ScreenItem, blocks: &mut Vec<String>) {
        let text = clean(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        match item.kind {
            Kind::User | Kind::Assistant => {
                if !item.contexts.is_empty() {
                    let tags: Vec<_> = item.contexts.iter().map(|c| code_span(&context_label(&c.kind))).collect();
                    blocks.push(tags.join(" "));
                }
                if !text.trim().is_empty() {
                    blocks.push(tame(text));
                }
            }
            Kind::Thinking => match self.thinking {
                Thinking::Hidden => {}
                Thinking::Full => blocks.push(quoted(&format!("*thinking*\n\n{}", tame(text)))),
                Thinking::Folded => {
                    let first = text.lines().next().unwrap_or_default();
                    let more = text.lines().count().saturating_sub(1);
                    blocks.push(quoted(&format!("*thinking* {} (+{})", escaped(first), count(more, "line", "lines"))));
                }
            },
            Kind::Tool if self.tools => {
                if let Some(card) = &item.tool {
                    self.tool(card, blocks);
                }
            }
            Kind::Hook if item.is_silent && !self.silent_hooks => {}
            Kind::Hook if self.tools => blocks.push(format!("· hook {}", escaped(&one_line(text)))),
            Kind::Tool | Kind::Hook => {}
            Kind::Image => blocks.push(format!("\\[{}\\]", escaped(&picture_label(text)))),
            Kind::Attachment => blocks.push(format!("\\[{}\\]", escaped(&one_line(text)))),
            Kind::System if text.contains('\n') => blocks.push(fenced("", text)),
            Kind::System => blocks.push(format!("· {}{}", if item.is_error { "⚠ " } else { "" }, escaped(text))),
            Kind::Summary => {
                blocks.push("---".to_owned());
                blocks.push(quoted(&format!("**Summary of the conversation so far**\n\n{}", tame(text))));
            }
            Kind::Branch => {
                blocks.push("---".to_owned());
                blocks.push(format!("*{}*", escaped(&one_line(text))));
            }
            Kind::Unknown => blocks.push(format!("? unknown: {}", code_span(&self.cut_line(&one_line(text))))),
            Kind::Problem => blocks.push(format!("⚠ {}", escaped(&one_line(text)))),
        }
    }

    fn tool(&self, card: &ToolCard, blocks: &mut Vec<String>) {
        let call = Call::new(card, self.about.base());
        let mut title = format!("**{}** ", escaped(&call.name));
        title.push_str(match card.status {
            Status::Success => "✓",
            Status::Failed => "✗ failed",
            Status::Pending => "… pending",
        });
        if !call.subject.is_empty() {
            title.push(' ');
            title.push_str(&code_span(&self.cut_line(&call.subject)));
        }
        if !call.note.is_empty() {
            title.push_str(&format!(" ({})", escaped(&call.note)));
        }
        blocks.push(title);
        if !call.is_quiet || self.full {
            blocks.extend(call.parts.iter().map(|part| self.part(part)));
        }
        if let Some(subagent) = &card.subagent {
            let mut inner = Vec::new();
            self.items(&subagent.items, true, &mut inner);
            blocks.push(quoted(&inner.join("\n\n")));
        }
    }

    fn part(&self, part: &Part<'_>) -> String {
        match part {
            Part::Command(command) => fenced("sh", command),
            Part::Code { text, path } => {
                let extension = path.rsplit_once('.').map(|(_, end)| end).filter(|end| is_word(end));
                fenced(extension.unwrap_or_default(), &self.cut(text))
            }
            Part::Diff(lines) => {
                let line = |line: &crate::DiffLine| {
                    line.parts.iter().fold(line.sign.mark().to_string(), |text, (_, part)| text + part)
                };
                fenced("diff", &lines.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            Part::Tasks(tasks) => {
                let task = |(progress, text): &(Progress, String)| match progress {
                    Progress::Done => format!("- [x] {}", escaped(text)),
                    Progress::Doing => format!("- [ ] **{}**", escaped(text)),
                    Progress::Open => format!("- [ ] {}", escaped(text)),
                };
                tasks.iter().map(task).collect::<Vec<_>>().join("\n")
            }
            Part::Prose(text) => quoted(&tame(text)),
            Part::Output(text) | Part::Failure(text) => fenced("", &self.cut(text)),
            Part::Json(json) => fenced("json", &self.cut_line(json)),
            Part::Picture(image) => format!("\\[{}\\]", escaped(&source_label(&image.source))),
            Part::Question { text, options, answer } => {
                let answer = answer.as_ref().map_or_else(|| options.join(" · "), |answer| format!("→ {answer}"));
                format!("- {}\n  {}", escaped(&one_line(text)), escaped(&one_line(&answer)))
            }
        }
    }

    fn cut(&self, text: &str) -> String {
        let total = text.lines().count();
        if self.full || total <= RESULT + 1 {
            return text.to_owned();
        }
        let shown: Vec<&str> = text.lines().take(RESULT).collect();
        format!("{}\n… +{} lines", shown.join("\n"), total - RESULT)
    }

    fn cut_line(&self, text: &str) -> String {
        const LONGEST: usize = 400;
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) if !self.full => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= 12 && text.chars().all(|c| c.is_ascii_alphanumeric())
}
