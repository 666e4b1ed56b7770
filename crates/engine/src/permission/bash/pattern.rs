//! What a rule for shell commands matches.

use crate::permission::shell::{self, Word};

/// The pattern of a rule, over one command as [`shell::text`] writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandPattern {
    /// This command.
    Exact(String),
    /// Commands that begin with these words.
    Prefix(String),
    /// Commands with anything in the gaps.
    Wildcard(Vec<String>),
}

impl CommandPattern {
    /// Reads `npm test`, `npm run:*`, `npm run *` or `npm * test`.
    pub(super) fn parse(content: &str) -> Self {
        let prefix = content.strip_suffix(":*").or_else(|| content.strip_suffix(" *"));
        match prefix {
            Some(prefix) if !prefix.contains('*') => Self::Prefix(canonicalise(prefix)),
            _ if content.contains('*') => Self::Wildcard(content.split('*').map(str::to_owned).collect()),
            _ => Self::Exact(canonicalise(content)),
        }
    }

    /// Whether a command matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => starts_with_words(text, prefix),
            Self::Wildcard(gaps) => matches_wildcards(gaps, text),
        }
    }

    /// The words a command must begin with.
    fn literal_prefix(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Wildcard(gaps) => gaps.first().map_or("", String::as_str),
        }
    }

    /// Whether a command that begins with these words may match, whatever follows them.
    pub(super) fn could_match(&self, known: &str) -> bool {
        let lead = self.literal_prefix();
        let goes_on = lead.strip_prefix(known).is_some_and(|rest| rest.starts_with(' '));
        goes_on || matches!(self, Self::Wildcard(_)) && !lead.is_empty() && known.starts_with(lead)
    }

    /// Whether the words a command must begin with are anywhere in a text that was not understood.
    pub(super) fn occurs_in(&self, command: &str) -> bool {
        let joined = command.replace("\\\n", "");
        let bare: String = joined.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let separates = |c: char| c.is_whitespace() || c.is_control() || ";&|()<>`${}[]=,!:".contains(c);
        let words: Vec<&str> = bare.split(separates).filter(|word| !word.is_empty()).collect();
        let lead: Vec<&str> = self.literal_prefix().split_whitespace().collect();
        let same = |(word, lead): (&&str, &&str)| word == lead || word.rsplit('/').next() == Some(lead);
        lead.is_empty() || words.windows(lead.len()).any(|window| window.iter().zip(&lead).all(same))
    }
}

/// Whether a command is `prefix`, or that and more words.
fn starts_with_words(text: &str, prefix: &str) -> bool {
    prefix.is_empty() || text.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether the pieces stand in the text in order, the first at its start and the last at its end.
pub(in crate::permission) fn matches_wildcards(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// A rule's words written as [`shell::text`] writes them, when they are one plain command.
fn canonicalise(words: &str) -> String {
    let plain = |words: &[Word]| words.iter().all(|word| word.is_literal);
    match shell::parse(words).map(|script| script.commands) {
        Ok(parts) => match parts.as_slice() {
            [part] if part.assignments.is_empty() && part.redirects.is_empty() && plain(&part.words) => {
                shell::format_words(&part.words)
            }
            _ => words.to_owned(),
        },
        Err(_) => words.to_owned(),
    }
}
