//! Renders a conversation as one self-contained HTML page.

use quipu_conversation::{ItemKind, ScreenItem};

use crate::sanitize::sanitize_line;
use crate::session_details::SessionDetails;
use crate::thinking::ThinkingDisplay;

mod escape;
mod from_markdown;
mod item;
mod tool;

#[cfg(test)]
mod tests;

use escape::{encode_fragment, escape_attribute, escape_text};

/// Sanitizes text and escapes it for use between the tags of an HTML page.
pub fn escape_html(text: &str) -> String {
    escape_text(text)
}

/// Renders a conversation as an HTML page.
///
/// The page has no scripts and loads no external resources. Text from the items is always
/// escaped, links have the schemes `http`, `https` and `mailto` only, and images are embedded.
#[derive(Debug, Clone)]
pub struct Html {
    /// Facts about the session for the header of the page.
    pub details: SessionDetails,
    /// Whether the model's thinking is folded, open or left out.
    pub thinking: ThinkingDisplay,
    /// Whether tool calls and hooks are shown.
    pub show_tools: bool,
    /// Whether hooks that succeeded without output are shown.
    pub show_silent_hooks: bool,
    /// Formats a timestamp as `YYYY-MM-DD HH:MM` in the reader's time zone. The default keeps the
    /// zone of the timestamp.
    pub format_time: fn(&str) -> String,
}

impl Default for Html {
    fn default() -> Self {
        Self {
            details: SessionDetails::default(),
            thinking: ThinkingDisplay::Folded,
            show_tools: true,
            show_silent_hooks: false,
            format_time: crate::format_time_as_written,
        }
    }
}

/// Allows the styles and images in the page itself and nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

const STYLESHEET: &str = include_str!("html/style.css");

impl Html {
    /// Renders the items as a complete page.
    pub fn render(&self, items: &[ScreenItem]) -> String {
        let mut out = self.page_head();
        push_prompt_list(items, &mut out);
        out.push_str("<main>\n");
        item::PageWriter::new(self, &mut out).write_items(items);
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    /// Renders a page with a body that is HTML already.
    pub(crate) fn wrap_page(&self, body: &str) -> String {
        format!("{}<main>\n{body}</main>\n</body>\n</html>\n", self.page_head())
    }

    /// Text escaped for HTML, on one line.
    pub(crate) fn escape_line(text: &str) -> String {
        escape_text(&sanitize_line(text))
    }

    /// Renders the lines of a file as a complete page, each line as it is.
    pub fn render_lines<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> String {
        let lines = (1..).zip(lines).map(|(n, line)| format!("<pre id=\"L{n}\">{}</pre>\n", escape_text(line)));
        self.wrap_page(&lines.collect::<String>())
    }

    /// Everything before the `main` element.
    fn page_head(&self) -> String {
        let title = escape_text(&self.details.heading());
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLESHEET}</style>\n</head>\n<body>\n"
        );
        out.push_str(&format!("<header class=\"about\">\n<h1>{title}</h1>\n"));
        let facts = self.details.labelled_values();
        if !facts.is_empty() {
            out.push_str("<dl>");
            for (name, fact) in facts {
                out.push_str(&format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape_text(&fact)));
            }
            out.push_str("</dl>\n");
        }
        out.push_str("</header>\n");
        out
    }
}

/// Adds a list of links to the user prompts.
fn push_prompt_list(items: &[ScreenItem], out: &mut String) {
    let prompts: Vec<_> = items
        .iter()
        .filter(|item| item.kind == ItemKind::User)
        .filter_map(|item| Some((item.uuid.as_ref()?, item.text.as_deref().filter(|text| !text.trim().is_empty())?)))
        .collect();
    if prompts.len() < 2 {
        return;
    }
    out.push_str("<nav aria-label=\"requests\">\n<ol>\n");
    for (uuid, text) in prompts {
        let truncated = truncate(&sanitize_line(text), 90);
        out.push_str(&format!(
            "<li><a href=\"#{}\">{}</a></li>\n",
            encode_fragment(uuid.as_str()),
            escape_text(&truncated)
        ));
    }
    out.push_str("</ol>\n</nav>\n");
}

/// The first characters of a text, with `…` if it is longer.
fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The `id` attribute of an item with a space before it; empty if the item has no UUID.
fn id_attribute(item: &ScreenItem) -> String {
    item.uuid.as_ref().map(|uuid| format!(" id=\"{}\"", escape_attribute(uuid.as_str()))).unwrap_or_default()
}
