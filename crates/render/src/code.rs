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
use language::{Grammar, Rules, has};

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
    Function,
    Type,
    Name,
    Added,
    Removed,
}

/// A line of code in pieces, without its line break.
pub(crate) type CodeLine<'a> = Vec<(Tone, &'a str)>;

/// The lines of `text` in tones; plain when the language is unknown.
pub(crate) fn highlight(text: &str, language: Option<Language>) -> Vec<CodeLine<'_>> {
    let Some(language) = language else { return text.lines().map(|line| vec![(Tone::Plain, line)]).collect() };
    let mut scanner = Scanner { grammar: language.grammar(), inside: None, in_tag: false };
    text.lines().map(|line| scanner.line(line)).collect()
}

struct Scanner {
    grammar: &'static Grammar,
    /// A comment or string that goes on over lines: its tone and its end.
    inside: Option<(Tone, &'static str)>,
    /// Whether a tag of markup is open.
    in_tag: bool,
}

impl Scanner {
    fn line<'a>(&mut self, line: &'a str) -> CodeLine<'a> {
        if self.grammar.rules == Rules::Diff {
            return vec![(diff_tone(line), line)];
        }
        let mut pieces = CodeLine::new();
        let mut at = 0;
        while at < line.len() {
            let (tone, end) = self.piece(line, at);
            push(&mut pieces, line, at, end, tone);
            at = end;
        }
        pieces
    }

    /// The tone and the end of the piece that begins at `at`.
    fn piece(&mut self, line: &str, at: usize) -> (Tone, usize) {
        let rest = &line[at..];
        if let Some((tone, end)) = self.inside {
            return match closing(rest, end, tone == Tone::Text) {
                Some(length) => {
                    self.inside = None;
                    (tone, at + length)
                }
                None => (tone, line.len()),
            };
        }
        if let Some(mark) = self.grammar.comments.iter().find(|mark| rest.starts_with(**mark))
            && (*mark != "#" || line[..at].chars().next_back().is_none_or(char::is_whitespace))
        {
            return (Tone::Comment, line.len());
        }
        for &(tone, start, end) in self.grammar.spans {
            if rest.starts_with(start) {
                self.inside = Some((tone, end));
                return (tone, at + start.len());
            }
        }
        let Some(first) = rest.chars().next() else { return (Tone::Plain, line.len()) };
        if self.grammar.rules == Rules::Markup {
            return self.markup(line, at, first);
        }
        if self.grammar.quotes.contains(first) {
            return self.quote(line, at, first);
        }
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            return (Tone::Number, at + run(rest, is_part).trim_end_matches('.').len().max(1));
        }
        if first.is_alphabetic() || first == '_' {
            let word = run(rest, |c| c.is_alphanumeric() || c == '_' || (c == '-' && self.grammar.dashes));
            return (self.word(line, at, word), at + word.len());
        }
        (Tone::Plain, at + first.len_utf8())
    }

    /// A string that ends on its line.
    fn quote(&self, line: &str, at: usize, first: char) -> (Tone, usize) {
        let rest = &line[at + 1..];
        let length = match first {
            '\'' if self.grammar.rules == Rules::Rust => rust_char(rest),
            '"' => Some(closing(rest, "\"", true).unwrap_or(rest.len())),
            '`' => Some(closing(rest, "`", true).unwrap_or(rest.len())),
            _ => Some(closing(rest, "'", true).unwrap_or(rest.len())),
        };
        let Some(length) = length else { return (Tone::Plain, at + 1) };
        let end = at + 1 + length;
        let is_key = self.grammar.rules == Rules::Keys && line[end..].trim_start().starts_with([':', '=']);
        (if is_key { Tone::Name } else { Tone::Text }, end)
    }

    fn word(&self, line: &str, at: usize, word: &str) -> Tone {
        let after = &line[at + word.len()..];
        if self.grammar.rules == Rules::Keys && after.trim_start_matches(' ').starts_with([':', '=']) {
            return Tone::Name;
        }
        let is_keyword = match self.grammar.rules {
            Rules::AnyCase => has(self.grammar.keywords, &word.to_ascii_lowercase()),
            _ => has(self.grammar.keywords, word),
        };
        if is_keyword {
            return Tone::Keyword;
        }
        if has("true false null None True False nil undefined", word) {
            return Tone::Number;
        }
        let is_macro = self.grammar.rules == Rules::Rust && after.starts_with("!");
        if self.grammar.calls && (after.starts_with('(') || is_macro) {
            return Tone::Function;
        }
        let mut letters = word.chars();
        let is_type = letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase);
        if self.grammar.calls && is_type { Tone::Type } else { Tone::Plain }
    }

    fn markup(&mut self, line: &str, at: usize, first: char) -> (Tone, usize) {
        let rest = &line[at..];
        if !self.in_tag {
            let name = rest.strip_prefix("</").or(rest.strip_prefix('<')).unwrap_or_default();
            if !name.starts_with(|c: char| c.is_alphabetic() || c == '!' || c == '?') {
                let text = run(&rest[first.len_utf8()..], |c| c != '<');
                return (Tone::Plain, at + first.len_utf8() + text.len());
            }
            self.in_tag = true;
            let length = rest.len() - name.len() + run(name, |c| !c.is_whitespace() && c != '>' && c != '/').len();
            return (Tone::Keyword, at + length.max(1));
        }
        match first {
            '"' | '\'' => self.quote(line, at, first),
            '>' => {
                self.in_tag = false;
                (Tone::Keyword, at + 1)
            }
            _ => {
                let word = run(rest, |c| c.is_alphanumeric() || "-_:@.".contains(c));
                if word.is_empty() { (Tone::Plain, at + first.len_utf8()) } else { (Tone::Name, at + word.len()) }
            }
        }
    }
}

/// The length of a character after its first quote; none for a lifetime.
fn rust_char(rest: &str) -> Option<usize> {
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
fn closing(text: &str, mark: &str, escapes: bool) -> Option<usize> {
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
fn run(text: &str, fits: impl Fn(char) -> bool) -> &str {
    text.split(|c| !fits(c)).next().unwrap_or_default()
}

/// Adds a piece, joined to the one before when the tone is the same.
fn push<'a>(pieces: &mut CodeLine<'a>, line: &'a str, start: usize, end: usize, tone: Tone) {
    match pieces.last_mut() {
        Some((last, text)) if *last == tone => *text = &line[start - text.len()..end],
        _ => pieces.push((tone, &line[start..end])),
    }
}

fn diff_tone(line: &str) -> Tone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Keyword,
        [b'+', ..] => Tone::Added,
        [b'-', ..] => Tone::Removed,
        [b'@', b'@', ..] => Tone::Function,
        _ => Tone::Plain,
    }
}
