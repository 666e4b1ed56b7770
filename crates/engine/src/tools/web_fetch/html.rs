//! Converts HTML to plain text with Markdown headings, lists and link targets.
//!
//! A single pass over the tags, without a tree: time and memory are linear in the size of the
//! page, however deep its elements are nested.

/// Elements whose content is not shown.
const SKIPPED_ELEMENTS: [&str; 8] = ["script", "style", "noscript", "template", "svg", "head", "iframe", "object"];
/// Elements that start a new line.
const BLOCK_ELEMENTS: [&str; 26] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
    "figcaption",
    "details",
];

/// Converts a page to text.
pub(super) fn html_to_text(html: &str) -> String {
    let mut page = TextBuilder::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.push_text(&rest[..at]);
        rest = &rest[at..];
        rest = match rest {
            comment if comment.starts_with("<!--") => text_after(comment, "-->"),
            tag => page.read_tag(tag),
        };
    }
    page.push_text(rest);
    page.finish()
}

#[derive(Default)]
struct TextBuilder {
    text: String,
    links: Vec<String>,
    verbatim_depth: usize,
}

impl TextBuilder {
    /// Adds text between tags, with whitespace collapsed outside `pre`.
    fn push_text(&mut self, text: &str) {
        let text = decode_entities(text);
        if self.verbatim_depth > 0 {
            self.text.push_str(&text);
            return;
        }
        for word in text.split_inclusive(char::is_whitespace) {
            let blank = word.ends_with(char::is_whitespace);
            self.text.push_str(word.trim());
            if blank && !self.text.ends_with([' ', '\n']) && !self.text.is_empty() {
                self.text.push(' ');
            }
        }
    }

    /// Handles the tag at the start of `text`; returns the rest after it.
    fn read_tag<'a>(&mut self, text: &'a str) -> &'a str {
        let Some(end) = tag_end(text) else { return "" };
        let (inside, rest) = (&text[1..end], &text[end + 1..]);
        let closing = inside.starts_with('/');
        let body = inside.trim_start_matches('/');
        let name = body.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            name if !closing && SKIPPED_ELEMENTS.contains(&name) && !inside.ends_with('/') => {
                return skip_element(rest, name);
            }
            "br" => self.text.push('\n'),
            "a" if !closing => self.links.push(attribute_value(body, "href").unwrap_or_default()),
            "a" => {
                let link = self.links.pop().unwrap_or_default();
                if link.starts_with("http") {
                    self.text.push_str(&format!(" ({link})"));
                }
            }
            "pre" => {
                self.break_line(2);
                self.verbatim_depth =
                    if closing { self.verbatim_depth.saturating_sub(1) } else { self.verbatim_depth + 1 };
            }
            "li" if !closing => {
                self.break_line(1);
                self.text.push_str("- ");
            }
            "td" | "th" if closing => self.text.push_str(" | "),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.break_line(2);
                if !closing {
                    let level = name[1..].parse().unwrap_or(1);
                    self.text.push_str(&"#".repeat(level));
                    self.text.push(' ');
                }
            }
            "p" => self.break_line(2),
            name if BLOCK_ELEMENTS.contains(&name) => self.break_line(1),
            _ => {}
        }
        rest
    }

    /// Makes sure that the text ends in at least `breaks` newlines.
    fn break_line(&mut self, breaks: usize) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        let there = self.text.bytes().rev().take(breaks).take_while(|byte| *byte == b'\n').count();
        if !self.text.is_empty() {
            self.text.push_str(&"\n".repeat(breaks - there));
        }
    }

    fn finish(self) -> String {
        let mut text = String::new();
        let mut empty = 0;
        for line in self.text.lines().map(str::trim_end) {
            empty = if line.is_empty() { empty + 1 } else { 0 };
            if empty < 2 {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.trim().to_owned()
    }
}

/// Maximum length of a tag in which quotes are considered.
const MAX_TAG_BYTES: usize = 10_000;

/// Returns the position of the `>` that ends a tag, ignoring those in quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(MAX_TAG_BYTES) {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') if text[..at].ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    text.find('>')
}

fn text_after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// Returns the text after the end of an element whose content is skipped.
fn skip_element<'a>(text: &'a str, name: &str) -> &'a str {
    let is_end = |at: &usize| {
        text.as_bytes()
            .get(at + 2..at + 2 + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    };
    let end = text.match_indices("</").map(|(at, _)| at).find(is_end);
    end.map_or("", |at| text_after(&text[at..], ">"))
}

fn attribute_value(tag: &str, name: &str) -> Option<String> {
    let at = tag.to_ascii_lowercase().find(&format!(" {name}="))?;
    let value = &tag[at + name.len() + 2..];
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split(|c: char| c.is_whitespace() || c == '>').next()?,
    };
    Some(decode_entities(value))
}

/// Maximum length of a character reference such as `&hellip;`.
const MAX_ENTITY_BYTES: usize = 11;

/// Decodes the character references of a text.
fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_ENTITY_BYTES).position(|byte| byte == b';');
        match end.and_then(|end| decode_entity(&rest[1..end]).map(|c| (end, c))) {
            Some((end, c)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn decode_entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']).map(|hex| u32::from_str_radix(hex, 16));
        return char::from_u32(hex.unwrap_or_else(|| number.parse()).ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "copy" => '©',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "rarr" => '→',
        _ => return None,
    })
}
