//! HTML as plain text: what a reader would see, with headings, lists and links marked.

/// Elements whose content nobody reads.
const SILENT: [&str; 8] = ["script", "style", "noscript", "template", "svg", "head", "iframe", "object"];
/// Elements that stand on lines of their own.
const BLOCKS: [&str; 26] = [
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

/// The text of a page.
pub(super) fn text(html: &str) -> String {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.words(&rest[..at]);
        rest = &rest[at..];
        rest = match rest {
            comment if comment.starts_with("<!--") => after(comment, "-->"),
            tag => page.tag(tag),
        };
    }
    page.words(rest);
    page.finish()
}

#[derive(Default)]
struct Page {
    out: String,
    links: Vec<String>,
    verbatim: usize,
}

impl Page {
    /// Adds text between tags.
    fn words(&mut self, text: &str) {
        let text = decoded(text);
        if self.verbatim > 0 {
            self.out.push_str(&text);
            return;
        }
        for word in text.split_inclusive(char::is_whitespace) {
            let blank = word.ends_with(char::is_whitespace);
            self.out.push_str(word.trim());
            if blank && !self.out.ends_with([' ', '\n']) && !self.out.is_empty() {
                self.out.push(' ');
            }
        }
    }

    /// Takes a tag, and what belongs to it; gives what follows.
    fn tag<'a>(&mut self, text: &'a str) -> &'a str {
        let Some(end) = tag_end(text) else { return "" };
        let (inside, rest) = (&text[1..end], &text[end + 1..]);
        let closing = inside.starts_with('/');
        let body = inside.trim_start_matches('/');
        let name = body.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            name if !closing && SILENT.contains(&name) && !inside.ends_with('/') => return after_element(rest, name),
            "br" => self.out.push('\n'),
            "a" if !closing => self.links.push(attribute(body, "href").unwrap_or_default()),
            "a" => {
                let link = self.links.pop().unwrap_or_default();
                if link.starts_with("http") {
                    self.out.push_str(&format!(" ({link})"));
                }
            }
            "pre" => {
                self.line(2);
                self.verbatim = if closing { self.verbatim.saturating_sub(1) } else { self.verbatim + 1 };
            }
            "li" if !closing => {
                self.line(1);
                self.out.push_str("- ");
            }
            "td" | "th" if closing => self.out.push_str(" | "),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.line(2);
                if !closing {
                    let level = name[1..].parse().unwrap_or(1);
                    self.out.push_str(&"#".repeat(level));
                    self.out.push(' ');
                }
            }
            "p" => self.line(2),
            name if BLOCKS.contains(&name) => self.line(1),
            _ => {}
        }
        rest
    }

    /// Ends the line, so that at least `breaks` line ends stand there.
    fn line(&mut self, breaks: usize) {
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        let there = self.out.len() - self.out.trim_end_matches('\n').len();
        if !self.out.is_empty() {
            self.out.push_str(&"\n".repeat(breaks.saturating_sub(there)));
        }
    }

    fn finish(self) -> String {
        let mut text = String::new();
        let mut empty = 0;
        for line in self.out.lines().map(str::trim_end) {
            empty = if line.is_empty() { empty + 1 } else { 0 };
            if empty < 2 {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.trim().to_owned()
    }
}

/// The longest tag that is read with care.
const LONGEST_TAG: usize = 10_000;

/// Where a tag ends; a sign inside quotes does not end it.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(LONGEST_TAG) {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') if text[..at].ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    text.find('>')
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// What follows the end of an element whose content is left out.
fn after_element<'a>(text: &'a str, name: &str) -> &'a str {
    let is_end = |at: &usize| {
        text.as_bytes()
            .get(at + 2..at + 2 + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    };
    let end = text.match_indices("</").map(|(at, _)| at).find(is_end);
    end.map_or("", |at| after(&text[at..], ">"))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let at = tag.to_ascii_lowercase().find(&format!(" {name}="))?;
    let value = &tag[at + name.len() + 2..];
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split(|c: char| c.is_whitespace() || c == '>').next()?,
    };
    Some(decoded(value))
}

/// Text with its entities put in.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(';').filter(|end| *end <= 10);
        match end.and_then(|end| entity(&rest[1..end]).map(|c| (end, c))) {
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

fn entity(name: &str) -> Option<char> {
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
