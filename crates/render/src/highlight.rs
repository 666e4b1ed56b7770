//! Source code in tones: a handful of names that a terminal maps to its own
//! sixteen colours and a page to its stylesheet, so both work on light and dark.
//!
//! One small scanner knows comments, strings, numbers, keywords, calls and types
//! of the common languages. It reads each character once: code in transcripts is
//! untrusted, and grammars made of regular expressions can be made to hang on a
//! few ordinary lines.

mod language;

#[cfg(test)]
mod tests;

pub(crate) use language::Language;
use language::{Grammar, SyntaxRules, list_contains};

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Plain,
    Comment,
    StringLiteral,
    Number,
    Keyword,
    Function,
    Type,
    Key,
    Added,
    Removed,
}

/// A line of code in pieces, without its line break.
pub(crate) type HighlightedLine<'a> = Vec<(TokenKind, &'a str)>;

/// The lines of `text` in tones; plain when the language is unknown.
pub(crate) fn highlight(text: &str, language: Option<Language>) -> Vec<HighlightedLine<'_>> {
    let Some(language) = language else { return text.lines().map(|line| vec![(TokenKind::Plain, line)]).collect() };
    let mut scanner = Highlighter { grammar: language.grammar(), open_span: None, in_tag: false };
    text.lines().map(|line| scanner.scan_line(line)).collect()
}

struct Highlighter {
    grammar: &'static Grammar,
    /// A comment or string that goes on over lines: its tone and its end.
    open_span: Option<(TokenKind, &'static str)>,
    /// Whether a tag of markup is open.
    in_tag: bool,
}

impl Highlighter {
    fn scan_line<'a>(&mut self, line: &'a str) -> HighlightedLine<'a> {
        if self.grammar.rules == SyntaxRules::Diff {
            return vec![(diff_line_kind(line), line)];
        }
        let mut pieces = HighlightedLine::new();
        let mut at = 0;
        while at < line.len() {
            let (tone, end) = self.scan_token(line, at);
            push_token(&mut pieces, line, at, end, tone);
            at = end;
        }
        pieces
    }

    /// The tone and the end of the piece that begins at `at`.
    fn scan_token(&mut self, line: &str, at: usize) -> (TokenKind, usize) {
        let rest = &line[at..];
        if let Some((tone, end)) = self.open_span {
            return match closing_len(rest, end, tone == TokenKind::StringLiteral) {
                Some(length) => {
                    self.open_span = None;
                    (tone, at + length)
                }
                None => (tone, line.len()),
            };
        }
        if let Some(mark) = self.grammar.line_comments.iter().find(|mark| rest.starts_with(**mark))
            && (*mark != "#" || line[..at].chars().next_back().is_none_or(char::is_whitespace))
        {
            return (TokenKind::Comment, line.len());
        }
        for &(tone, start, end) in self.grammar.multiline_spans {
            if rest.starts_with(start) {
                self.open_span = Some((tone, end));
                return (tone, at + start.len());
            }
        }
        let Some(first) = rest.chars().next() else { return (TokenKind::Plain, line.len()) };
        if self.grammar.rules == SyntaxRules::Markup {
            return self.scan_markup(line, at, first);
        }
        if self.grammar.quotes.contains(first) {
            return self.scan_quoted(line, at, first);
        }
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            return (TokenKind::Number, at + leading_run(rest, is_part).trim_end_matches('.').len().max(1));
        }
        if first.is_alphabetic() || first == '_' {
            let word =
                leading_run(rest, |c| c.is_alphanumeric() || c == '_' || (c == '-' && self.grammar.allows_dashes));
            return (self.word_kind(line, at, word), at + word.len());
        }
        (TokenKind::Plain, at + first.len_utf8())
    }

    /// A string that ends on its line.
    fn scan_quoted(&self, line: &str, at: usize, first: char) -> (TokenKind, usize) {
        let rest = &line[at + 1..];
        let length = match first {
            '\'' if self.grammar.rules == SyntaxRules::Rust => rust_char_len(rest),
            '"' => Some(closing_len(rest, "\"", true).unwrap_or(rest.len())),
            '`' => Some(closing_len(rest, "`", true).unwrap_or(rest.len())),
            _ => Some(closing_len(rest, "'", true).unwrap_or(rest.len())),
        };
        let Some(length) = length else { return (TokenKind::Plain, at + 1) };
        let end = at + 1 + length;
        let is_key = self.grammar.rules == SyntaxRules::KeyValue && line[end..].trim_start().starts_with([':', '=']);
        (if is_key { TokenKind::Key } else { TokenKind::StringLiteral }, end)
    }

    fn word_kind(&self, line: &str, at: usize, word: &str) -> TokenKind {
        let after = &line[at + word.len()..];
        if self.grammar.rules == SyntaxRules::KeyValue && after.trim_start_matches(' ').starts_with([':', '=']) {
            return TokenKind::Key;
        }
        let is_keyword = match self.grammar.rules {
            SyntaxRules::CaseInsensitive => list_contains(self.grammar.keywords, &word.to_ascii_lowercase()),
            _ => list_contains(self.grammar.keywords, word),
        };
        if is_keyword {
            return TokenKind::Keyword;
        }
        if list_contains("true false null None True False nil undefined", word) {
            return TokenKind::Number;
        }
        let is_macro = self.grammar.rules == SyntaxRules::Rust && after.starts_with("!");
        if self.grammar.has_calls_and_types && (after.starts_with('(') || is_macro) {
            return TokenKind::Function;
        }
        let mut letters = word.chars();
        let is_type = letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase);
        if self.grammar.has_calls_and_types && is_type { TokenKind::Type } else { TokenKind::Plain }
    }

    fn scan_markup(&mut self, line: &str, at: usize, first: char) -> (TokenKind, usize) {
        let rest = &line[at..];
        if !self.in_tag {
            let name = rest.strip_prefix("</").or(rest.strip_prefix('<')).unwrap_or_default();
            if !name.starts_with(|c: char| c.is_alphabetic() || c == '!' || c == '?') {
                let text = leading_run(&rest[first.len_utf8()..], |c| c != '<');
                return (TokenKind::Plain, at + first.len_utf8() + text.len());
            }
            self.in_tag = true;
            let length =
                rest.len() - name.len() + leading_run(name, |c| !c.is_whitespace() && c != '>' && c != '/').len();
            return (TokenKind::Keyword, at + length.max(1));
        }
        match first {
            '"' | '\'' => self.scan_quoted(line, at, first),
            '>' => {
                self.in_tag = false;
                (TokenKind::Keyword, at + 1)
            }
            _ => {
                let word = leading_run(rest, |c| c.is_alphanumeric() || "-_:@.".contains(c));
                if word.is_empty() {
                    (TokenKind::Plain, at + first.len_utf8())
                } else {
                    (TokenKind::Key, at + word.len())
                }
            }
        }
    }
}

/// The length of a character after its first quote; none for a lifetime.
fn rust_char_len(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices();
    let (_, first) = chars.next()?;
    let mut is_end = |&(_, c): &(usize, char)| c == '\'';
    let (end, _) = if first == '\\' {
        // Past the escaped character, and no further than `\u{10ffff}`.
        chars.skip(1).take(9).find(is_end)?
    } else {
        chars.next().filter(&mut is_end)?
    };
    Some(end + 1)
}

/// The length up to and with the closing mark; none when it is not on this line.
fn closing_len(text: &str, mark: &str, escapes: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if escapes && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at..].starts_with(mark.as_bytes()) {
            return Some(at + mark.len());
        } else {
            at += 1;
        }
    }
    None
}

/// The start of `text` whose characters all fit.
fn leading_run(text: &str, fits: impl Fn(char) -> bool) -> &str {
    text.split(|c| !fits(c)).next().unwrap_or_default()
}

/// Adds a piece, joined to the one before when the tone is the same.
fn push_token<'a>(pieces: &mut HighlightedLine<'a>, line: &'a str, start: usize, end: usize, tone: TokenKind) {
    match pieces.last_mut() {
        Some((last, text)) if *last == tone => *text = &line[start - text.len()..end],
        _ => pieces.push((tone, &line[start..end])),
    }
}

fn diff_line_kind(line: &str) -> TokenKind {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => TokenKind::Keyword,
        [b'+', ..] => TokenKind::Added,
        [b'-', ..] => TokenKind::Removed,
        [b'@', b'@', ..] => TokenKind::Function,
        _ => TokenKind::Plain,
    }
}
