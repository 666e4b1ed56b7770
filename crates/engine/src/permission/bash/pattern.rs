//! What a rule for shell commands matches.

use crate::permission::shell::{self, Word};

/// The pattern of a rule, over one command as [`shell::text`] writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// This command.
    Exact(String),
    /// Commands that begin with these words.
    Prefix(String),
    /// Commands with anything in the gaps.
    Wild(Vec<String>),
}

impl Pattern {
    /// Reads `npm test`, `npm run:*`, `npm run *` or `npm * test`.
    pub(super) fn read(content: &str) -> Self {
        let prefix = content.strip_suffix(":*").or_else(|| content.strip_suffix(" *"));
        match prefix {
            Some(prefix) if !prefix.contains('*') => Self::Prefix(canonical(prefix)),
            _ if content.contains('*') => Self::Wild(content.split('*').map(str::to_owned).collect()),
            _ => Self::Exact(canonical(content)),
        }
    }

    /// Whether a command matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => begins(text, prefix),
            Self::Wild(gaps) => wild(gaps, text),
        }
    }

    /// The words a command must begin with.
    fn lead(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Wild(gaps) => gaps.first().map_or("", String::as_str),
        }
    }

    /// Whether a command that begins with these words may match, whatever follows them.
    pub(super) fn may_be(&self, known: &str) -> bool {
        let lead = self.lead();
        let goes_on = lead.strip_prefix(known).is_some_and(|rest| rest.starts_with(' '));
        goes_on || matches!(self, Self::Wild(_)) && !lead.is_empty() && known.starts_with(lead)
    }

    /// Whether the words a command must begin with are anywhere in a text that was not understood.
    pub(super) fn is_somewhere_in(&self, command: &str) -> bool {
        let joined = command.replace("\\\n", "");
        let bare: String = joined.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let separates = |c: char| c.is_whitespace() || c.is_control() || ";&|()<>`${}[]=,!:".contains(c);
        let words: Vec<&str> = bare.split(separates).filter(|word| !word.is_empty()).collect();
        let lead: Vec<&str> = self.lead().split_whitespace().collect();
        let same = |(word, lead): (&&str, &&str)| word == lead || word.rsplit('/').next() == Some(lead);
        lead.is_empty() || words.windows(lead.len()).any(|window| window.iter().zip(&lead).all(same))
    }
}

/// Whether a command is `prefix`, or that and more words.
fn begins(text: &str, prefix: &str) -> bool {
    prefix.is_empty() || text.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether the pieces stand in the text in order, the first at its start and the last at its end.
pub(in crate::permission) fn wild(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// A rule's words written as [`shell::text`] writes them, when they are one plain command.
fn canonical(words: &str) -> String {
    let plain = |words: &[Word]| words.iter().all(|word| word.plain);
    match shell::parse(words).map(|script| script.parts) {
        Ok(parts) => match parts.as_slice() {
            [part] if part.assignments.is_empty() && part.redirects.is_empty() && plain(&part.words) => {
                shell::text(&part.words)
            }
            _ => words.to_owned(),
        },
        Err(_) => words.to_owned(),
    }
}
