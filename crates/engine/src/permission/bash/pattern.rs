//! Patterns of rules about shell commands.

use crate::permission::shell::{self, Word};

/// How many words in code may be between `git` and its subcommand.
const MAX_WORDS_AFTER_GIT: usize = 8;

/// Pattern of a rule, compared with a command as [`shell::format_words`] formats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandPattern {
    /// Exactly this command.
    Exact(String),
    /// Commands that start with these words.
    Prefix(String),
    /// Commands that contain these pieces in order.
    Wildcard(Vec<String>),
}

impl CommandPattern {
    /// Parses `npm test`, `npm run:*`, `npm run *` or `npm * test`.
    pub(super) fn parse(content: &str) -> Self {
        let prefix = content.strip_suffix(":*").or_else(|| content.strip_suffix(" *"));
        match prefix {
            Some(prefix) if !prefix.contains('*') => Self::Prefix(canonicalise(prefix)),
            _ if content.contains('*') => Self::Wildcard(content.split('*').map(str::to_owned).collect()),
            _ => Self::Exact(canonicalise(content)),
        }
    }

    /// Whether the pattern matches a command.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => starts_with_words(text, prefix),
            Self::Wildcard(gaps) => matches_wildcards(gaps, text),
        }
    }

    /// Returns the text that every match starts with.
    fn literal_prefix(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Wildcard(gaps) => gaps.first().map_or("", String::as_str),
        }
    }

    /// Whether a command that starts with these words could match.
    pub(super) fn could_match(&self, known: &str) -> bool {
        let lead = self.literal_prefix();
        let goes_on = lead.strip_prefix(known).is_some_and(|rest| rest.starts_with(' '));
        match self {
            // The unknown words may expand to nothing.
            Self::Exact(exact) => goes_on || exact == known,
            Self::Prefix(_) => goes_on,
            Self::Wildcard(_) => goes_on || !lead.is_empty() && known.starts_with(lead),
        }
    }

    /// Whether the literal prefix occurs anywhere in a text that could not be parsed.
    pub(super) fn occurs_in(&self, command: &str) -> bool {
        let joined = command.replace("\\\n", "");
        let bare: String = joined.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let lead: Vec<&str> = self.literal_prefix().split_whitespace().collect();
        if lead.is_empty() || contains_words(&split_code(&bare, ""), &lead) {
            return true;
        }
        // In code of other languages quotes and other signs end words too.
        let decoded = decode_escapes(&joined);
        // `\LTOUCH`
        let lower = decoded.to_lowercase();
        let changes_case = joined.contains("\\L") || joined.contains("\\l");
        [with_plain_blanks(&joined), decoded].iter().any(|text| occurs_in_code(text, &lead))
            || changes_case && occurs_in_code(&lower, &lead)
    }
}

/// Whether words follow each other in code without escapes.
fn occurs_in_code(code: &str, lead: &[&str]) -> bool {
    contains_words(&split_code(code, "'\""), lead)
        || ["'\"#@+~^%", "'\"#@+~^%/"].iter().any(|signs| contains_command(&split_code(code, signs), lead))
        || lead.len() > 1 && contains_words(&split_code(code, "'\"#@+~^%/."), lead)
}

/// A word of code, and whether white space follows it.
type CodeWord<'a> = (&'a str, bool);

/// Splits code into words, at the signs of the shell and further ones.
fn split_code<'a>(code: &'a str, signs: &str) -> Vec<CodeWord<'a>> {
    let separates =
        |c: char| c.is_whitespace() || c.is_control() || ";&|()<>`${}[]=,!:".contains(c) || signs.contains(c);
    let words = code.split_inclusive(separates).map(|word| {
        let bare = word.trim_end_matches(separates);
        (bare, word[bare.len()..].starts_with(char::is_whitespace))
    });
    words.filter(|(word, _)| !word.is_empty()).collect()
}

/// Whether words follow each other in code. Programs may be named by their paths, and git may have options before its
/// subcommand.
fn contains_words(words: &[CodeWord<'_>], lead: &[&str]) -> bool {
    let begins = |words: &[CodeWord<'_>], lead: &[&str]| {
        words.len() >= lead.len() && words.iter().zip(lead).all(|((word, _), lead)| is_same(word, lead))
    };
    let between = if matches!(lead, ["git", _, ..]) { MAX_WORDS_AFTER_GIT } else { 0 };
    (0..words.len()).any(|at| {
        let mut rests = (at + 1..words.len()).take(between + 1).map(|next| &words[next..]);
        match lead {
            [program, rest @ ..] if between > 0 => {
                is_same(words[at].0, program) && rests.any(|words| begins(words, rest))
            }
            _ => begins(&words[at..], lead),
        }
    })
}

/// As [`contains_words`], but a single word must have arguments or be quoted as in Perl, because it may be an
/// ordinary word between signs: `s/rm/x/`.
fn contains_command(words: &[CodeWord<'_>], lead: &[&str]) -> bool {
    let [name] = lead else { return contains_words(words, lead) };
    let has_arguments = words.iter().any(|(word, has_blank)| *has_blank && is_same(word, name));
    let is_quote = |word: &str| ["q", "qq", "qw", "qx"].contains(&word);
    has_arguments || words.windows(2).any(|pair| is_quote(pair[0].0) && is_same(pair[1].0, name))
}

fn is_same(word: &str, lead: &str) -> bool {
    word == lead || word.rsplit('/').next() == Some(lead)
}

/// Replaces escapes for white space, and other backslashes, by spaces; so is `% ` of git's `ext::`.
pub(super) fn with_plain_blanks(code: &str) -> String {
    let mut text = code.to_owned();
    for escape in ["\\x20", "\\040", "\\n", "\\t", "\\r", "\\v", "\\f", "\\_", "\\", "% "] {
        text = text.replace(escape, " ");
    }
    text
}

/// Replaces escapes by the characters that they mean in the usual languages, and others (`\L`, `\1`) by characters that
/// separate words.
pub(super) fn decode_escapes(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((before, escape)) = rest.split_once('\\') {
        let (meant, length) = decode_escape(escape);
        text.push_str(before);
        text.push(meant);
        rest = &escape[length..];
    }
    text + rest
}

/// Decodes an escape, given without its backslash. Returns the character it means and its length.
fn decode_escape(escape: &str) -> (char, usize) {
    let mut characters = escape.chars();
    let Some(first) = characters.next() else { return (' ', 0) };
    let (start, radix, most) = match first {
        '0'..='7' => (0, 8, 3),
        'o' => (1, 8, 3),
        'd' => (1, 10, 3),
        'x' => (1, 16, 2),
        'u' => (1, 16, 4),
        'U' => (1, 16, 8),
        'c' => {
            let key = characters.next().filter(char::is_ascii);
            return key.map_or((' ', 1), |key| (char::from(key as u8 & 0x1f), 2));
        }
        other => return (' ', other.len_utf8()),
    };
    // `\x{a}`
    let is_braced = escape[start..].starts_with('{');
    let (start, most) = if is_braced { (start + 1, 8) } else { (start, most) };
    let digits = escape[start..].chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let end = start + digits;
    match u32::from_str_radix(&escape[start..end], radix).ok().and_then(char::from_u32) {
        Some(meant) if is_braced => (meant, end + usize::from(escape[end..].starts_with('}'))),
        Some(meant) => (meant, end),
        None => (' ', first.len_utf8()),
    }
}

/// Whether a command is `prefix` or starts with `prefix` and a space.
fn starts_with_words(text: &str, prefix: &str) -> bool {
    prefix.is_empty() || text.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether the text contains the pieces in order, the first at its start and the last at its end.
pub(in crate::permission) fn matches_wildcards(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// Formats the words of a rule as [`shell::format_words`] does, if they are nothing but the words of one command.
/// Otherwise the text stays as it is, which matches no command.
fn canonicalise(words: &str) -> String {
    let plain = |words: &[Word]| words.iter().all(|word| word.is_literal);
    // A redirection, a comment or a loop is no part of the words.
    let is_bare = !words.contains(['<', '>', '#', ';', '&', '|', '\n']);
    match shell::parse(words) {
        Ok(script) if is_bare && !script.has_loop => match script.commands.as_slice() {
            [part] if part.assignments.is_empty() && plain(&part.words) => shell::format_words(&part.words),
            _ => words.to_owned(),
        },
        _ => words.to_owned(),
    }
}
