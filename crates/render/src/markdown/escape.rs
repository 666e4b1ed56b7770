//! Escapes text for a Markdown document, so that it cannot change the structure around it.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag};

/// Parser options for the Markdown that agents write.
pub(crate) const PARSER_OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// A fenced code block, with a fence longer than any in the text.
pub(super) fn code_block(word: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{word}\n{text}{end}{fence}")
}

/// A code span, with more backticks than any run in the text.
pub(super) fn code_span(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_backtick_run(text) + 1);
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Escapes plain text, so that none of it is read as Markdown; line breaks become spaces.
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

/// Puts `>` before every line.
pub(super) fn block_quote(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Escapes raw HTML in Markdown and closes an unclosed code fence at its end.
pub(super) fn neutralize_markdown(text: &str) -> String {
    let mut text = text.to_owned();
    // Text inside raw HTML may be Markdown with more HTML once the outer HTML is escaped.
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

/// Escapes every `<` except in code and in autolinks.
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

/// The fence that is missing at the end of the text; `None` if no code block is left open.
fn unclosed_fence(text: &str) -> Option<String> {
    let parser = Parser::new_ext(text, PARSER_OPTIONS).into_offset_iter();
    let fenced = |event: &Event<'_>| matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
    let (_, range) = parser.filter(|(event, _)| fenced(event)).last()?;
    missing_closing_fence(&text[range.clone()]).filter(|_| text[range.end..].trim().is_empty())
}

/// The closing fence of a fenced block; `None` if the block has one.
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
