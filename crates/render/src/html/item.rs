//! Writes the items of a page.

use quipu_conversation::{ItemKind, ScreenItem};

use super::escape::{encode_fragment, escape_text, image_data_url, push_escaped};
use super::{Html, from_markdown, id_attribute, truncate};
use crate::sanitize::{sanitize, sanitize_line};
use crate::speaker::{Speaker, context_label, image_item_label, image_source_label};
use crate::thinking::ThinkingDisplay;
use crate::tool_call::pluralize;

/// Writes items to a page, or to a subagent's part of one.
pub(super) struct PageWriter<'p> {
    pub(super) html: &'p Html,
    pub(super) out: &'p mut String,
    /// Whether the items belong to a subagent.
    is_subagent: bool,
    speaker: Option<Speaker>,
    day: String,
}

impl<'p> PageWriter<'p> {
    pub(super) fn new(html: &'p Html, out: &'p mut String) -> Self {
        Self { html, out, is_subagent: false, speaker: None, day: String::new() }
    }

    /// Writes the conversation of a subagent.
    pub(super) fn write_subagent(&mut self, items: &[ScreenItem]) {
        let (html, day) = (self.html, self.day.clone());
        let mut page = PageWriter { html, out: self.out, is_subagent: true, speaker: None, day };
        page.write_items(items);
    }

    pub(super) fn write_items(&mut self, items: &[ScreenItem]) {
        for at in 0..items.len() {
            if self.is_shown(&items[at]) {
                self.write_speaker(&items[at..]);
                self.write_item(&items[at]);
            }
        }
    }

    fn is_shown(&self, item: &ScreenItem) -> bool {
        match item.kind {
            ItemKind::Hook if item.is_silent => self.html.show_tools && self.html.show_silent_hooks,
            ItemKind::Tool | ItemKind::Hook => self.html.show_tools,
            ItemKind::Thinking => self.html.thinking != ThinkingDisplay::Hidden,
            _ => true,
        }
    }

    fn write_speaker(&mut self, items: &[ScreenItem]) {
        let Some(speaker) = Speaker::from_items(items, self.speaker.as_ref()) else { return };
        let Some(item) = items.first().filter(|_| self.speaker.as_ref() != Some(&speaker)) else { return };
        let (class, name) = match &speaker {
            Speaker::User if self.is_subagent => ("you", "task"),
            Speaker::User => ("you", "you"),
            Speaker::Model(name) => ("model", name.as_str()),
        };
        self.out.push_str(&format!("<div class=\"who {class}\"><b>{}</b>", escape_text(name)));
        if let Some(timestamp) = &item.timestamp {
            let formatted = (self.html.format_time)(timestamp);
            let (day, time) = formatted.split_once(' ').unwrap_or(("", &formatted));
            let shown = escape_text(if day == self.day { time } else { &formatted });
            let exact = escape_text(&sanitize_line(timestamp));
            match &item.uuid {
                Some(uuid) => {
                    let href = encode_fragment(uuid.as_str());
                    self.out.push_str(&format!("<a href=\"#{href}\" title=\"{exact}\">{shown}</a>"));
                }
                None => self.out.push_str(&format!("<span title=\"{exact}\">{shown}</span>")),
            }
            day.clone_into(&mut self.day);
        }
        self.out.push_str("</div>\n");
        self.speaker = Some(speaker);
    }

    fn write_item(&mut self, item: &ScreenItem) {
        let text = sanitize(item.text.as_deref().unwrap_or_default());
        let text = text.trim_end().trim_start_matches('\n');
        let id = id_attribute(item);
        match item.kind {
            ItemKind::User => {
                self.out.push_str(&format!("<article class=\"said\"{id}>"));
                if !item.contexts.is_empty() {
                    self.out.push_str("<div class=\"tags\">");
                    for context in &item.contexts {
                        self.out.push_str(&format!("<span>{}</span>", escape_text(&context_label(&context.kind))));
                    }
                    self.out.push_str("</div>");
                }
                push_escaped(text, self.out);
                self.out.push_str("</article>\n");
            }
            ItemKind::Assistant if item.is_error => self.write_notice("error", &id, text),
            ItemKind::Assistant => {
                self.out.push_str(&format!("<article class=\"prose\"{id}>\n"));
                from_markdown::push_markdown(text, self.out);
                self.out.push_str("</article>\n");
            }
            ItemKind::Thinking => {
                let open = if self.html.thinking == ThinkingDisplay::Full { " open" } else { "" };
                let mut lines = text.lines().filter(|line| !line.trim().is_empty());
                let first = truncate(lines.next().unwrap_or_default(), 160);
                let size = pluralize(text.lines().count(), "line", "lines");
                self.out.push_str(&format!(
                    "<details class=\"thinking\"{id}{open}><summary><b>thought</b><small>{size}</small><span>{}</span>\
                     </summary><div>",
                    escape_text(&first)
                ));
                push_escaped(text, self.out);
                self.out.push_str("</div></details>\n");
            }
            ItemKind::Tool => {
                if let Some(card) = &item.tool {
                    self.write_tool(card, &id);
                }
            }
            ItemKind::Hook => {
                let class = if item.is_error { "hook error" } else { "hook" };
                self.write_notice(class, &id, &format!("hook {text}"));
            }
            ItemKind::Image => match item
                .source
                .as_ref()
                .and_then(|source| Some((image_data_url(source)?, image_source_label(source))))
            {
                Some((address, label)) => {
                    self.out.push_str(&format!("<p{id}><img src=\"{address}\" alt=\"{}\"></p>\n", escape_text(&label)));
                }
                None => self.out.push_str(&placeholder_tag(&id, &image_item_label(text))),
            },
            ItemKind::Attachment => self.out.push_str(&placeholder_tag(&id, &sanitize_line(text))),
            ItemKind::System if item.is_error => self.write_notice("system error", &id, text),
            ItemKind::System => self.write_notice("system", &id, text),
            ItemKind::Summary => {
                self.out.push_str(&format!(
                    "<details class=\"summary\"{id}><summary>summary of the conversation so far</summary>\
                     <div class=\"prose\">\n"
                ));
                from_markdown::push_markdown(text, self.out);
                self.out.push_str("</div></details>\n");
            }
            ItemKind::Branch => self.write_notice("branch", &id, text),
            ItemKind::Unknown => {
                self.out.push_str(&format!(
                    "<details class=\"unknown\"{id}><summary>? unknown: {}</summary><pre>",
                    escape_text(&truncate(&sanitize_line(text), 100))
                ));
                push_escaped(text, self.out);
                self.out.push_str("</pre></details>\n");
            }
            ItemKind::Problem => self.write_notice("problem error", &id, text),
        }
    }

    fn write_notice(&mut self, class: &str, id: &str, text: &str) {
        self.out.push_str(&format!("<div class=\"notice {class}\"{id}>"));
        push_escaped(text, self.out);
        self.out.push_str("</div>\n");
    }
}

/// A label in place of an image or a file that cannot be shown.
pub(super) fn placeholder_tag(id: &str, label: &str) -> String {
    format!("<div class=\"tags\"{id}><span>{}</span></div>\n", escape_text(label))
}
