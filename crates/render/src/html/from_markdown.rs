//! Renders Markdown as HTML with the parser's own writer. Raw HTML, links and images are
//! replaced first, so that the page loads and runs nothing.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd, html};

use super::escape::{escape_text, push_escaped, safe_href};
use crate::highlight::{Language, TokenKind, highlight};
use crate::markdown::PARSER_OPTIONS;
use crate::sanitize::sanitize;

/// Adds Markdown to a page as HTML.
pub(super) fn push_markdown(markdown: &str, out: &mut String) {
    let markdown = sanitize(markdown);
    let mut events = Vec::new();
    let mut code: Option<(Option<Language>, String)> = None;
    // For each open link or image: its URL, and whether it became a link.
    let mut links: Vec<(String, bool)> = Vec::new();
    for event in Parser::new_ext(&markdown, PARSER_OPTIONS) {
        let event = match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(word) => Language::from_name(word),
                    CodeBlockKind::Indented => None,
                };
                code = Some((language, String::new()));
                continue;
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((language, text)) = code.take() else { continue };
                let mut block = String::new();
                push_code(&sanitize(&text), language, &mut block);
                Event::Html(block.into())
            }
            Event::Text(words) => match &mut code {
                Some((_, text)) => {
                    text.push_str(&words);
                    continue;
                }
                None => Event::Text(sanitize_event_text(&words)),
            },
            Event::Code(words) => Event::Code(sanitize_event_text(&words)),
            // Raw HTML is text like any other.
            Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(sanitize_event_text(&raw)),
            Event::Start(Tag::HtmlBlock) => Event::Html("<p class=\"raw\">".into()),
            Event::End(TagEnd::HtmlBlock) => Event::Html("</p>\n".into()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                // Links do not nest: an image inside a link becomes text.
                let href = safe_href(&dest_url).filter(|_| !links.iter().any(|(_, is_link)| *is_link));
                links.push((sanitize(&dest_url).into_owned(), href.is_some()));
                let Some(href) = href else { continue };
                Event::InlineHtml(format!("<a href=\"{href}\" rel=\"noopener noreferrer nofollow\">").into())
            }
            Event::End(TagEnd::Link | TagEnd::Image) => match links.pop() {
                Some((_, true)) => Event::InlineHtml("</a>".into()),
                Some((url, false)) if !url.is_empty() => {
                    Event::InlineHtml(format!(" <span class=\"url\">({})</span>", escape_text(&url)).into())
                }
                _ => continue,
            },
            other => other,
        };
        events.push(event);
    }
    html::push_html(out, events.into_iter());
}

/// Sanitizes again, because the parser decodes entities such as `&#27;`.
fn sanitize_event_text(words: &str) -> pulldown_cmark::CowStr<'static> {
    sanitize(words).into_owned().into()
}

/// Adds a highlighted code block. The text must be sanitized.
pub(super) fn push_code(code: &str, language: Option<Language>, out: &mut String) {
    out.push_str("<pre class=\"code\"><code>");
    for line in highlight(code, language) {
        for (tone, words) in line {
            match css_class(tone) {
                None => push_escaped(words, out),
                Some(class) => {
                    out.push_str(&format!("<span class=\"{class}\">"));
                    push_escaped(words, out);
                    out.push_str("</span>");
                }
            }
        }
        out.push('\n');
    }
    out.push_str("</code></pre>\n");
}

fn css_class(tone: TokenKind) -> Option<&'static str> {
    Some(match tone {
        TokenKind::Plain => return None,
        TokenKind::Comment => "c",
        TokenKind::StringLiteral => "s",
        TokenKind::Number => "n",
        TokenKind::Keyword => "k",
        TokenKind::Function => "f",
        TokenKind::Type => "t",
        TokenKind::Key => "a",
        TokenKind::Added => "add",
        TokenKind::Removed => "del",
    })
}
