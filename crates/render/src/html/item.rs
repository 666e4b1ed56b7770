//! The items of a page, one after another.

use quipu_conversation::{Kind, ScreenItem};

use super::escape::{fragment, picture, push_text, text};
use super::{Html, cut, id, prose};
use crate::call::count;
use crate::clean::{clean, one_line};
use crate::speaker::{Speaker, context_label, picture_label, source_label};
use crate::terminal::Thinking;

/// A page, or a subagent's part of one, being written.
pub(super) struct Page<'p> {
    pub(super) html: &'p Html,
    pub(super) out: &'p mut String,
    /// Whether this is a subagent's conversation.
    inner: bool,
    speaker: Option<Speaker>,
    day: String,
}

impl<'p> Page<'p> {
    pub(super) fn new(html: &'p Html, out: &'p mut String) -> Self {
        Self { html, out, inner: false, speaker: None, day: String::new() }
    }

    /// A subagent's part of the page.
    pub(super) fn inside(&mut self, items: &[ScreenItem]) {
        let (html, day) = (self.html, self.day.clone());
        let mut page = Page { html, out: self.out, inner: true, speaker: None, day };
        page.items(items);
    }

    pub(super) fn items(&mut self, items: &[ScreenItem]) {
        for at in 0..items.len() {
            if self.is_shown(&items[at]) {
                self.header(&items[at..]);
                self.item(&items[at]);
            }
        }
    }

    fn is_shown(&self, item: &ScreenItem) -> bool {
        match item.kind {
            Kind::Hook if item.is_silent => self.html.tools && self.html.silent_hooks,
            Kind::Tool | Kind::Hook => self.html.tools,
            Kind::Thinking => self.html.thinking != Thinking::Hidden,
            _ => true,
        }
    }

    fn header(&mut self, items: &[ScreenItem]) {
        let Some(speaker) = Speaker::of(items, self.speaker.as_ref()) else { return };
        let Some(item) = items.first().filter(|_| self.speaker.as_ref() != Some(&speaker)) else { return };
        let (class, name) = match &speaker {
            Speaker::You if self.inner => ("you", "task"),
            Speaker::You => ("you", "you"),
            Speaker::Model(name) => ("model", name.as_str()),
        };
        self.out.push_str(&format!("<div class=\"who {class}\"><b>{}</b>", text(name)));
        if let Some(stamp) = &item.timestamp {
            let when = (self.html.local)(stamp);
            let (day, time) = when.split_once(' ').unwrap_or(("", &when));
            let shown = text(if day == self.day { time } else { &when });
            let exact = text(&one_line(stamp));
            match &item.uuid {
                Some(uuid) => {
                    let href = fragment(uuid.as_str());
                    self.out.push_str(&format!("<a href=\"#{href}\" title=\"{exact}\">{shown}</a>"));
                }
                None => self.out.push_str(&format!("<span title=\"{exact}\">{shown}</span>")),
            }
            day.clone_into(&mut self.day);
        }
        self.out.push_str("</div>\n");
        self.speaker = Some(speaker);
    }

    fn item(&mut self, item: &ScreenItem) {
        let words = clean(item.text.as_deref().unwrap_or_default());
        let words = words.trim_end().trim_start_matches('\n');
        let id = id(item);
        match item.kind {
            Kind::User => {
                self.out.push_str(&format!("<article class=\"said\"{id}>"));
                if !item.contexts.is_empty() {
                    self.out.push_str("<div class=\"tags\">");
                    for context in &item.contexts {
                        self.out.push_str(&format!("<span>{}</span>", text(&context_label(&context.kind))));
                    }
                    self.out.push_str("</div>");
                }
                push_text(words, self.out);
                self.out.push_str("</article>\n");
            }
            Kind::Assistant if item.is_error => self.notice("error", &id, words),
            Kind::Assistant => {
                self.out.push_str(&format!("<article class=\"prose\"{id}>\n"));
                prose::push(words, self.out);
                self.out.push_str("</article>\n");
            }
            Kind::Thinking => {
                let open = if self.html.thinking == Thinking::Full { " open" } else { "" };
                let mut lines = words.lines().filter(|line| !line.trim().is_empty());
                let first = cut(lines.next().unwrap_or_default(), 160);
                let size = count(words.lines().count(), "line", "lines");
                self.out.push_str(&format!(
                    "<details class=\"thinking\"{id}{open}><summary><b>thought</b><small>{size}</small><span>{}</span>\
                     </summary><div>",
                    text(&first)
                ));
                push_text(words, self.out);
                self.out.push_str("</div></details>\n");
            }
            Kind::Tool => {
                if let Some(card) = &item.tool {
                    self.tool(card, &id);
                }
            }
            Kind::Hook => {
                let class = if item.is_error { "hook error" } else { "hook" };
                self.notice(class, &id, &format!("hook {words}"));
            }
            Kind::Image => match item.source.as_ref().and_then(|source| Some((picture(source)?, source_label(source))))
            {
                Some((address, label)) => {
                    self.out.push_str(&format!("<p{id}><img src=\"{address}\" alt=\"{}\"></p>\n", text(&label)));
                }
                None => self.out.push_str(&placeholder(&id, &picture_label(words))),
            },
            Kind::Attachment => self.out.push_str(&placeholder(&id, &one_line(words))),
            Kind::System if item.is_error => self.notice("system error", &id, words),
            Kind::System => self.notice("system", &id, words),
            Kind::Summary => {
                self.out.push_str(&format!(
                    "<details class=\"summary\"{id}><summary>summary of the conversation so far</summary>\
                     <div class=\"prose\">\n"
                ));
                prose::push(words, self.out);
                self.out.push_str("</div></details>\n");
            }
            Kind::Branch => self.notice("branch", &id, words),
            Kind::Unknown => {
                self.out.push_str(&format!(
                    "<details class=\"unknown\"{id}><summary>? unknown: {}</summary><pre>",
                    text(&cut(&one_line(words), 100))
                ));
                push_text(words, self.out);
                self.out.push_str("</pre></details>\n");
            }
            Kind::Problem => self.notice("problem error", &id, words),
        }
    }

    fn notice(&mut self, class: &str, id: &str, words: &str) {
        self.out.push_str(&format!("<div class=\"notice {class}\"{id}>"));
        push_text(words, self.out);
        self.out.push_str("</div>\n");
    }
}

/// What stands where a picture or a file cannot be shown.
pub(super) fn placeholder(id: &str, label: &str) -> String {
    format!("<div class=\"tags\"{id}><span>{}</span></div>\n", text(label))
}
