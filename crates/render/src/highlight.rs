//! Highlights source code: splits it into tokens of a few kinds, which a terminal maps to its
//! own sixteen colours and a page to its stylesheet, so that both work on light and dark.
//!
//! One small scanner knows comments, strings, numbers, keywords, calls and types of the common
//! languages. It reads each character once: code in transcripts is untrusted, and grammars made
//! of regular expressions can be made to hang on a few ordinary lines.

mod language;

#[cfg(test)]
mod tests;

pub(crate) use language::Language;
use language::{Grammar, SyntaxRules, list_contains};

/// Kind of a token, which decides its colour.
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

/// The tokens of a line, without its line break.
pub(crate) type HighlightedLine<'a> = Vec<(TokenKind, &'a str)>;

/// Splits `text` into lines of tokens. With `None` as language each line is one plain token.
pub(crate) fn highlight(text: &str, language: Option<Language>) -> Vec<HighlightedLine<'_>> {
    let Some(language) = language else { return text.lines().map(|line| vec![(TokenKind::Plain, line)]).collect() };
    let mut scanner = Highlighter { grammar: language.grammar(), open_span: None, in_tag: false };
    text.lines().map(|line| scanner.scan_line(line)).collect()
}

struct Highlighter {
    grammar: &'static Grammar,
    /// Comment or string that continues on the next line: its kind and its closing delimiter.
    open_span: Option<(TokenKind, &'static str)>,
    /// Whether the scanner is inside a tag of HTML or XML.
    in_tag: bool,
}

impl Highlighter {
    fn scan_line<'a>(&mut self, line: &'a str) -> HighlightedLine<'a> {
        if self.grammar.rules == SyntaxRules::Diff {
            return vec![(diff_line_kind(line), line)];
        }
        let mut tokens = HighlightedLine::new();
        let mut position = 0;
        while position < line.len() {
            let (kind, end) = self.scan_token(line, position);
            push_token(&mut tokens, line, position, end, kind);
            position = end;
        }
        tokens
    }

    /// Kind and end of the token that begins at `position`.
    fn scan_token(&mut self, line: &str, position: usize) -> (TokenKind, usize) {
        let rest = &line[position..];
        if let Some((kind, end)) = self.open_span {
            return match closing_len(rest, end, kind == TokenKind::StringLiteral) {
                Some(length) => {
                    self.open_span = None;
                    (kind, position + length)
                }
                None => (kind, line.len()),
            };
        }
        if let Some(delimiter) = self.grammar.line_comments.iter().find(|delimiter| rest.starts_with(**delimiter))
            && (*delimiter != "#" || line[..position].chars().next_back().is_none_or(char::is_whitespace))
        {
            return (TokenKind::Comment, line.len());
        }
        for &(kind, start, end) in self.grammar.multiline_spans {
            if rest.starts_with(start) {
                self.open_span = Some((kind, end));
                return (kind, position + start.len());
            }
        }
        let Some(first) = rest.chars().next() else { return (TokenKind::Plain, line.len()) };
        if self.grammar.rules == SyntaxRules::Markup {
            return self.scan_markup(line, position, first);
        }
        if self.grammar.quotes.contains(first) {
            return self.scan_quoted(line, position, first);
        }
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            return (TokenKind::Number, position + leading_run(rest, is_part).trim_end_matches('.').len().max(1));
        }
        if first.is_alphabetic() || first == '_' {
            let word =
                leading_run(rest, |c| c.is_alphanumeric() || c == '_' || (c == '-' && self.grammar.allows_dashes));
            return (self.word_kind(line, position, word), position + word.len());
        }
        (TokenKind::Plain, position + first.len_utf8())
    }

    /// Scans a string that ends on its line.
    fn scan_quoted(&self, line: &str, position: usize, first: char) -> (TokenKind, usize) {
        let rest = &line[position + 1..];
        let length = match first {
            '\'' if self.grammar.rules == SyntaxRules::Rust => rust_char_len(rest),
            '"' => Some(closing_len(rest, "\"", true).unwrap_or(rest.len())),
            '`' => Some(closing_len(rest, "`", true).unwrap_or(rest.len())),
            _ => Some(closing_len(rest, "'", true).unwrap_or(rest.len())),
        };
        let Some(length) = length else { return (TokenKind::Plain, position + 1) };
        let end = position + 1 + length;
        let is_key = self.grammar.rules == SyntaxRules::KeyValue && line[end..].trim_start().starts_with([':', '=']);
        (if is_key { TokenKind::Key } else { TokenKind::StringLiteral }, end)
    }

    fn word_kind(&self, line: &str, position: usize, word: &str) -> TokenKind {
        let after = &line[position + word.len()..];
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

    fn scan_markup(&mut self, line: &str, position: usize, first: char) -> (TokenKind, usize) {
        let rest = &line[position..];
        if !self.in_tag {
            let name = rest.strip_prefix("</").or(rest.strip_prefix('<')).unwrap_or_default();
            if !name.starts_with(|c: char| c.is_alphabetic() || c == '!' || c == '?') {
                let text = leading_run(&rest[first.len_utf8()..], |c| c != '<');
                return (TokenKind::Plain, position + first.len_utf8() + text.len());
            }
            self.in_tag = true;
            let length =
                rest.len() - name.len() + leading_run(name, |c| !c.is_whitespace() && c != '>' && c != '/').len();
            return (TokenKind::Keyword, position + length.max(1));
        }
        match first {
            '"' | '\'' => self.scan_quoted(line, position, first),
            '>' => {
                self.in_tag = false;
                (TokenKind::Keyword, position + 1)
            }
            _ => {
                let word = leading_run(rest, |c| c.is_alphanumeric() || "-_:@.".contains(c));
                if word.is_empty() {
                    (TokenKind::Plain, position + first.len_utf8())
                } else {
                    (TokenKind::Key, position + word.len())
                }
            }
        }
    }
}

/// Length of a character literal after its first quote; `None` for a lifetime.
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

/// Length up to the end of the closing delimiter; `None` if it is not on this line.
fn closing_len(text: &str, delimiter: &str, escapes: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut position = 0;
    while position < bytes.len() {
        if escapes && bytes[position] == b'\\' {
            position += 2;
        } else if bytes[position..].starts_with(delimiter.as_bytes()) {
            return Some(position + delimiter.len());
        } else {
            position += 1;
        }
    }
    None
}

/// The longest start of `text` whose characters all satisfy `fits`.
fn leading_run(text: &str, fits: impl Fn(char) -> bool) -> &str {
    text.split(|c| !fits(c)).next().unwrap_or_default()
}

/// Adds a token, or extends the last one if it has the same kind.
fn push_token<'a>(tokens: &mut HighlightedLine<'a>, line: &'a str, start: usize, end: usize, kind: TokenKind) {
    match tokens.last_mut() {
        Some((last, text)) if *last == kind => *text = &line[start - text.len()..end],
        _ => tokens.push((kind, &line[start..end])),
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
