//! Search terms: words, phrases and punctuation, as an FTS5 expression and as a test of a text.
//!
//! The index holds words only. It finds candidates; each is read again and tested, which also
//! gives the positions of the matches. Terms are separated by spaces and must all match:
//!
//! - `tide` is this word, or this part of an identifier, in any case
//! - `user_id`, `userId` and `userid` are the same identifier
//! - `C++`, `#104`, `src/tide.rs` have punctuation, which must match too
//! - `har*` is every word with this prefix
//! - `"the tide turns"` is this sequence of words
//! - `tide OR ebb` is either word; texts with `-harbour` are excluded

use std::collections::HashSet;
use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::tokenizer::{
    CharClass, MAX_WORD_BYTES, WHOLE_MARK, append_pairs, for_each_part, for_each_run, is_word_boundary,
};

#[cfg(test)]
mod tests;

/// Why a query cannot be searched for.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The query has no terms.
    #[error("the query is empty")]
    Empty,
    /// The query has too many terms.
    #[error("the query has more than {max} different words")]
    TooManyTerms {
        /// Largest number of terms.
        max: usize,
    },
    /// The regular expression cannot be parsed, or is too large.
    #[error("cannot parse the pattern '{}'", abbreviate(pattern))]
    Syntax {
        /// The pattern as the user typed it.
        pattern: String,
        /// What the regex parser reported.
        #[source]
        source: regex::Error,
    },
}

impl PatternError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "search.empty",
            Self::TooManyTerms { .. } => "search.too_long",
            Self::Syntax { .. } => "search.bad_pattern",
        }
    }
}

/// Truncates a long text.
fn abbreviate(text: &str) -> String {
    let mut brief: String = text.chars().take(60).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

/// Queries with more terms are rejected.
const MAX_TERMS: usize = 100;

/// A parsed query.
#[derive(Debug)]
pub struct SearchTerms {
    /// At least one term of each group must match.
    groups: Vec<Vec<SearchTerm>>,
    /// None of these may match.
    excluded: Vec<SearchTerm>,
}

/// A match: index of the group in the query, and byte range in the text.
pub(crate) type TermMatch = (usize, Range<usize>);

/// Largest number of matches of a term marked in one text.
const MAX_MATCHES_PER_TERM: usize = 64;

impl SearchTerms {
    /// Parses a query. Fails if it has no terms or too many.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let mut terms = Self { groups: Vec::new(), excluded: Vec::new() };
        let mut seen = HashSet::new();
        let pieces = split_query(text);
        let mut is_or = false;
        for (at, piece) in pieces.iter().enumerate() {
            let stands_between = !terms.groups.is_empty() && at + 1 < pieces.len();
            if piece.text == "OR" && !piece.is_quoted && stands_between {
                is_or = true;
                continue;
            }
            // The same word twice asks for nothing more, but `a b a OR c` does.
            let is_alternative = is_or || pieces.get(at + 1).is_some_and(|next| next.text == "OR" && !next.is_quoted);
            if !seen.insert(piece) && !is_alternative {
                continue;
            }
            if seen.len() > MAX_TERMS {
                return Err(PatternError::TooManyTerms { max: MAX_TERMS });
            }
            let term = SearchTerm::new(piece)?;
            match terms.groups.last_mut() {
                _ if piece.is_negative => terms.excluded.push(term),
                Some(group) if is_or => group.push(term),
                _ => terms.groups.push(vec![term]),
            }
            is_or = false;
        }
        if terms.groups.is_empty() { Err(PatternError::Empty) } else { Ok(terms) }
    }

    /// Whether the index can be searched: a query of punctuation only has no words.
    pub fn has_words(&self) -> bool {
        self.candidate_expression().is_some()
    }

    /// Whether any term has punctuation, which is not in the index.
    pub fn has_punctuation(&self) -> bool {
        self.groups.iter().flatten().any(|term| term.has_punctuation)
    }

    /// The FTS5 expression that finds every text that may match; `None` without words.
    pub(crate) fn candidate_expression(&self) -> Option<String> {
        let all = |group: &Vec<SearchTerm>| {
            let each: Option<Vec<String>> = group.iter().map(SearchTerm::fts_expression).collect();
            each.map(|each| format!("({})", each.join(" OR ")))
        };
        let groups: Vec<String> = self.groups.iter().filter_map(all).collect();
        (!groups.is_empty()).then(|| self.exclude_negatives(groups.join(" AND ")))
    }

    /// The FTS5 expression that finds all words of the query next to each other, in order.
    /// `None` if it is not narrower than
    /// [`candidate_expression`](Self::candidate_expression).
    pub(crate) fn adjacent_expression(&self) -> Option<String> {
        let single: Option<Vec<&SearchTerm>> =
            self.groups.iter().map(|group| if let [term] = &group[..] { Some(term) } else { None }).collect();
        let single = single?;
        let words: Vec<&str> = single.iter().flat_map(|term| &term.words).map(String::as_str).collect();
        let is_narrower = words.len() > 1 && (single.len() > 1 || single.iter().any(|term| term.has_punctuation));
        let star = if single.last().is_some_and(|term| term.is_prefix) { "*" } else { "" };
        is_narrower.then(|| self.exclude_negatives(format!("\"{}\"{star}", words.join(" "))))
    }

    fn exclude_negatives(&self, expression: String) -> String {
        // Terms with punctuation are excluded when the text is tested.
        let not: Vec<String> =
            self.excluded.iter().filter(|term| !term.has_punctuation).filter_map(SearchTerm::fts_expression).collect();
        if not.is_empty() { expression } else { format!("({expression}) NOT ({})", not.join(" OR ")) }
    }

    /// Matches of the terms in a text, in order; `None` if the text does not match.
    pub(crate) fn find_matches(&self, text: &str) -> Option<Vec<TermMatch>> {
        if self.excluded.iter().any(|term| term.is_match(text)) {
            return None;
        }
        let mut matches = Vec::new();
        for (n, group) in self.groups.iter().enumerate() {
            let before = matches.len();
            matches.extend(
                group.iter().flat_map(|term| term.find_iter(text).take(MAX_MATCHES_PER_TERM)).map(|found| (n, found)),
            );
            if matches.len() == before {
                return None;
            }
        }
        matches.sort_by_key(|(_, found)| found.start);
        Some(matches)
    }

    /// The longest text that every match contains, ignoring case; `None` if there is none.
    pub(crate) fn longest_required_text(&self) -> Option<&str> {
        let single = self.groups.iter().filter(|group| group.len() == 1).flatten();
        single.filter(|term| term.has_punctuation).map(|term| term.text.as_str()).max_by_key(|text| text.len())
    }
}

/// A term as typed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct QueryPiece<'q> {
    text: &'q str,
    is_quoted: bool,
    is_negative: bool,
}

fn split_query(query: &str) -> Vec<QueryPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let after = rest.strip_prefix('-').filter(|after| after.starts_with(|c: char| c == '"' || c.is_alphanumeric()));
        let is_negative = after.is_some();
        let body = after.unwrap_or(rest);
        let (text, is_quoted, next) = match body.strip_prefix('"') {
            Some(quoted) => {
                let (text, next) = quoted.split_once('"').unwrap_or((quoted, ""));
                (text.trim(), true, next)
            }
            None => {
                let (text, next) = body.split_at(body.find(char::is_whitespace).unwrap_or(body.len()));
                (text, false, next)
            }
        };
        if !text.is_empty() {
            pieces.push(QueryPiece { text, is_quoted, is_negative });
        }
        rest = next.trim_start();
    }
    pieces
}

#[derive(Debug)]
struct SearchTerm {
    /// As typed, without quotes and the star.
    text: String,
    /// Words of the index that it consists of, in order.
    words: Vec<String>,
    is_phrase: bool,
    is_prefix: bool,
    has_punctuation: bool,
    matcher: Regex,
}

impl SearchTerm {
    fn new(piece: &QueryPiece<'_>) -> Result<Self, PatternError> {
        let mut text = piece.text;
        let is_prefix =
            !piece.is_quoted && text.strip_suffix('*').is_some_and(|word| word.ends_with(char::is_alphanumeric));
        if is_prefix {
            text = text.trim_end_matches('*');
        } else if !piece.is_quoted {
            // Punctuation at the end of a sentence or clause is not part of the word.
            let bare = text.strip_suffix([',', '.', ';', '\u{ff0c}', '。', '\u{ff1b}']);
            text = bare.filter(|bare| bare.ends_with(char::is_alphanumeric)).unwrap_or(text);
        }
        let is_word = |c: char| c == '_' || c.is_whitespace() || CharClass::from_char(c) != CharClass::Separator;
        let is_data =
            text.split(|c| CharClass::from_char(c) == CharClass::Separator).any(|run| run.len() > MAX_WORD_BYTES);
        let has_word = text.chars().any(|c| CharClass::from_char(c) != CharClass::Separator);
        let has_punctuation = is_data || !has_word || !text.chars().all(is_word);
        let pattern = if has_punctuation { literal_pattern(text) } else { spelling_pattern(text) };
        let matcher = RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .size_limit(64 << 20)
            .build()
            .map_err(|source| PatternError::Syntax { pattern: text.to_owned(), source })?;
        let words = split_identifiers(text).concat();
        let is_phrase = piece.is_quoted && !has_punctuation;
        Ok(Self { text: text.to_owned(), words, is_phrase, is_prefix, has_punctuation, matcher })
    }

    /// The FTS5 expression that finds every text that may contain it; `None` without words.
    fn fts_expression(&self) -> Option<String> {
        let star = if self.is_prefix { "*" } else { "" };
        let identifiers = split_identifiers(&self.text);
        if self.has_punctuation
            && let Some(expression) = side_by_side(&identifiers, star)
        {
            return Some(expression);
        }
        if self.is_phrase && identifiers.len() > 1 {
            let joined: Vec<String> = identifiers.iter().map(|parts| parts.concat()).collect();
            let is_plain = joined == self.words || self.words.iter().any(|word| has_ideograph(word));
            let phrase = format!("\"{}\"", self.words.join(" "));
            return Some(if is_plain { phrase } else { format!("({phrase} OR \"{}\")", joined.join(" ")) });
        }
        let last = identifiers.len().checked_sub(1)?;
        let each = identifiers.iter().enumerate().map(|(n, parts)| anywhere(parts, if n == last { star } else { "" }));
        Some(format!("({})", each.collect::<Vec<_>>().join(" AND ")))
    }

    fn is_match(&self, text: &str) -> bool {
        self.find_iter(text).next().is_some()
    }

    /// Matches in a text; only whole words if it starts and ends with letters or digits.
    fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let is_letter = |c: Option<char>| c.is_some_and(|c| CharClass::from_char(c) == CharClass::Word);
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let found = self.matcher.find_at(text, from)?;
                let (start, mut end) = (found.start(), found.end());
                let step = text[start..].chars().next().map_or(1, char::len_utf8);
                if self.is_prefix {
                    let word = |c: char| CharClass::from_char(c) != CharClass::Word;
                    end = text[end..].find(word).map_or(text.len(), |at| end + at);
                }
                let begins = !is_letter(text[start..].chars().next()) || is_word_boundary(text, start);
                let ends = !is_letter(text[..end].chars().next_back()) || is_word_boundary(text, end);
                if begins && ends && end > start {
                    from = end;
                    return Some(start..end);
                }
                from = start + step;
                if from > text.len() {
                    return None;
                }
            }
        })
    }
}

fn has_ideograph(word: &str) -> bool {
    word.chars().any(|c| CharClass::from_char(c) == CharClass::Ideograph)
}

/// The FTS5 expression that finds an identifier by its parts or as a whole.
fn anywhere(parts: &[String], star: &str) -> String {
    let quoted = |text: String| format!("\"{text}\"{star}");
    let whole = whole(parts, star);
    match parts {
        // It may be the first of a pair.
        [word] if word.chars().count() == 1 && has_ideograph(word) => format!("\"{word}\"*"),
        _ if parts.iter().any(|part| has_ideograph(part)) => quoted(parts.join(" ")),
        [word] => format!("(\"{word}\"{star} OR {whole})"),
        _ => format!("({} OR {} OR {whole})", quoted(parts.join(" ")), quoted(parts.concat())),
    }
}

/// The FTS5 expression that finds an identifier of several parts as a whole.
fn whole(parts: &[String], star: &str) -> String {
    format!("\"{WHOLE_MARK}{}\"{star}", parts.concat())
}

/// Limits of [`side_by_side`]: identifiers in a term, and those of them with several parts. The
/// expression grows exponentially with them.
const MAX_SIDE_BY_SIDE: (usize, usize) = (6, 3);

/// The FTS5 expression that finds adjacent identifiers, such as those of a path, whose single
/// words occur everywhere. `None` for one identifier, for many, and with ideographs, whose words
/// overlap.
///
/// With other capitals than in the query an identifier may have other parts: `tiDe` is indexed
/// as *ti de*. Its neighbours are then not adjacent to the word of the query, but the whole
/// identifier is indexed too. So a text matches if all identifiers are adjacent, or if, for some
/// first and last identifier found as wholes, those before the first and those after the last
/// are adjacent.
fn side_by_side(identifiers: &[Vec<String>], star: &str) -> Option<String> {
    let count = identifiers.len();
    let of_parts = identifiers.iter().filter(|parts| parts.len() > 1).count();
    let (max_count, max_of_parts) = MAX_SIDE_BY_SIDE;
    let is_ideographic = identifiers.iter().flatten().any(|word| has_ideograph(word));
    if count < 2 || count > max_count || of_parts > max_of_parts || is_ideographic {
        return None;
    }
    let star_at = |at: usize| if at + 1 == count { star } else { "" };
    // In a row; each by its parts or as one word.
    let row = |range: Range<usize>| {
        let mut ways = vec![String::new()];
        for parts in &identifiers[range.clone()] {
            let mut spelled = vec![parts.join(" ")];
            spelled.extend((parts.len() > 1).then(|| parts.concat()));
            let add = |way: &String| spelled.iter().map(|one| format!("{way} {one}")).collect::<Vec<_>>();
            ways = ways.iter().flat_map(add).collect();
        }
        let quoted: Vec<String> =
            ways.iter().map(|way| format!("\"{}\"{}", way.trim_start(), star_at(range.end - 1))).collect();
        if quoted.len() > 1 { format!("({})", quoted.join(" OR ")) } else { quoted.concat() }
    };
    let whole = |at: usize| whole(&identifiers[at], star_at(at));
    let mut ways = vec![row(0..count)];
    for first in 0..count {
        for last in first..count {
            let mut all = Vec::new();
            all.extend((first > 0).then(|| row(0..first)));
            all.push(whole(first));
            all.extend((first + 1..last).map(|at| anywhere(&identifiers[at], "")));
            all.extend((last > first).then(|| whole(last)));
            all.extend((last + 1 < count).then(|| row(last + 1..count)));
            ways.push(format!("({})", all.join(" AND ")));
        }
    }
    Some(format!("({})", ways.join(" OR ")))
}

/// Splits a text into identifiers, each as a list of index words.
fn split_identifiers(text: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut is_open = false;
    for_each_run(text, |kind, run| match kind {
        CharClass::Word => {
            if !is_open {
                found.push(Vec::new());
            }
            is_open = true;
            let last = found.len() - 1;
            for_each_part(run, |part| {
                if part.len() <= MAX_WORD_BYTES {
                    found[last].push(part.chars().flat_map(char::to_lowercase).collect());
                }
            });
        }
        CharClass::Separator if run.bytes().all(|byte| byte == b'_') => {}
        CharClass::Separator => is_open = false,
        CharClass::Ideograph => {
            is_open = false;
            let mut out = String::new();
            append_pairs(run, &mut out);
            let mut words: Vec<String> = out.split_whitespace().map(str::to_owned).collect();
            // The last character is a word only at the end of a run, which may be longer in a text.
            if words.len() > 1 {
                words.pop();
            }
            found.push(words);
        }
    });
    found.retain(|words| !words.is_empty());
    found
}

/// A regex that matches a text literally; white space matches any white space.
fn literal_pattern(text: &str) -> String {
    text.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"\s+")
}

/// A regex that matches every spelling with the same index words: with punctuation between
/// words, and identifiers with and without underscores.
fn spelling_pattern(text: &str) -> String {
    const NON_ALPHANUMERIC: &str = r"[^\p{L}\p{N}]*";
    let text = text.trim_matches('_');
    let mut pattern = String::new();
    for_each_run(text, |kind, run| match kind {
        CharClass::Separator => pattern.push_str(NON_ALPHANUMERIC),
        CharClass::Ideograph => pattern.push_str(run),
        CharClass::Word => {
            let mut is_first = true;
            for_each_part(run, |part| {
                if !std::mem::take(&mut is_first) {
                    pattern.push_str(NON_ALPHANUMERIC);
                }
                let letters: Vec<String> = part.chars().map(|c| regex::escape(c.encode_utf8(&mut [0; 4]))).collect();
                pattern.push_str(&letters.join("_*"));
            });
        }
    });
    pattern
}
