//! Foreign text inside a Markdown document, kept from breaking out of its place.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag};

/// The Markdown that agents write.
pub(crate) const PARSER_OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Text as a fenced block, behind a fence longer than any in it.
pub(super) fn code_block(word: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{word}\n{text}{end}{fence}")
}

/// One line as a code span, behind more backticks than any in it.
pub(super) fn code_span(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_backtick_run(text) + 1);
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Words that are no Markdown, written so that they stay none.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&') {
            out.push('\\');
        }
        out.push(if c == '\n' { ' ' } else { c });
    }
    out
}

/// Every line behind a quote mark.
pub(super) fn block_quote(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Foreign Markdown with its raw HTML escaped and its last fence closed.
pub(super) fn neutralize_markdown(text: &str) -> String {
    let mut text = text.to_owned();
    // What HTML hid may be Markdown of its own once the HTML is escaped.
    for _ in 0..3 {
        if !has_html(&text) {
            break;
        }
        text = escape_html(&text);
    }
    if has_html(&text) {
        text = text.replace('<', "&lt;");
    }
    if let Some(fence) = unclosed_fence(&text) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&fence);
    }
    text
}

fn has_html(text: &str) -> bool {
    text.contains('<')
        && Parser::new_ext(text, PARSER_OPTIONS).any(|event| matches!(event, Event::Html(_) | Event::InlineHtml(_)))
}

/// Escapes every `<` but those in code and around addresses.
fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for (event, range) in Parser::new_ext(text, PARSER_OPTIONS).into_offset_iter() {
        let is_kept = match event {
            Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => true,
            Event::Start(Tag::Link { link_type, .. }) => matches!(link_type, LinkType::Autolink | LinkType::Email),
            _ => false,
        };
        if is_kept && range.start >= copied {
            out.push_str(&text[copied..range.start].replace('<', "&lt;"));
            out.push_str(&text[range.clone()]);
            copied = range.end;
        }
    }
    out + &text[copied..].replace('<', "&lt;")
}

/// The fence that closes the code the text ends in, if it leaves it open.
fn unclosed_fence(text: &str) -> Option<String> {
    let parser = Parser::new_ext(text, PARSER_OPTIONS).into_offset_iter();
    let fenced = |event: &Event<'_>| matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
    let (_, range) = parser.filter(|(event, _)| fenced(event)).last()?;
    missing_closing_fence(&text[range.clone()]).filter(|_| text[range.end..].trim().is_empty())
}

/// The fence that would close a fenced block, when nothing does.
fn missing_closing_fence(block: &str) -> Option<String> {
    let mut lines = block.lines();
    let first = lines.next()?.trim_start();
    let mark = first.chars().next()?;
    let length = first.chars().take_while(|&c| c == mark).count();
    let last = lines.next_back().unwrap_or_default().trim_start_matches(['>', ' ', '\t']).trim_end();
    let is_closed = last.chars().count() >= length && last.chars().all(|c| c == mark);
    (!is_closed).then(|| mark.to_string().repeat(length))
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
