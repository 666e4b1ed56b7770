//! Finding credentials in text: one set of rules for `quipu secrets` and for redaction.
//!
//! Three ways to recognise one. [`rules`] knows how the tokens of well-known services
//! look. [`assigned`] looks at values that stand right of a name such as `DB_PASSWORD`,
//! and at long random values right of any name.
//!
//! A single pass of an Aho–Corasick automaton finds the keywords of all rules; only
//! where one occurs is the rule's expression tried, anchored there.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

mod assigned;
mod line;
mod rules;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use assigned::kind_under;
pub use line::secrets_in_line;

use rules::{RULES, Rule};

/// A credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// What it is, such as `GitHub token`.
    pub kind: &'static str,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

/// Finds the credentials in a text, in order and without overlaps.
///
/// ```
/// use quipu_render::find_secrets;
/// let text = "DB_PASSWORD=hunter2 make";
/// let found = find_secrets(text);
/// assert_eq!((found[0].kind, &text[found[0].range.clone()]), ("password", "hunter2"));
/// ```
pub fn find_secrets(text: &str) -> Vec<Secret> {
    if is_encoded(text) {
        return Vec::new();
    }
    let scanner = &*SCANNER;
    let mut found: Vec<(usize, Secret)> = Vec::new();
    let mut searched = [0; RULES.len()];
    for hit in scanner.keywords.find_overlapping_iter(text) {
        match scanner.rule_of[hit.pattern().as_usize()] {
            // Inside a match of the same rule there is no other, and searching there
            // again and again would take time in the square of the length.
            Some(at) if hit.start() < searched[at] => {}
            Some(at) => {
                let input = Input::new(text).range(hit.start()..).anchored(Anchored::Yes);
                if let Some(secret) = scanner.rules[at].search(at, input) {
                    searched[at] = secret.1.range.end;
                    found.push(secret);
                }
            }
            None => found.extend(assigned::secret(text, hit.range()).map(|secret| (RULES.len(), secret))),
        }
    }
    for &at in &scanner.without_keyword {
        let rule = &scanner.rules[at];
        let mut from = 0;
        while let Some(whole) = rule.regex.find(Input::new(text).range(from..)) {
            let input = Input::new(text).range(whole.start()..).anchored(Anchored::Yes);
            found.extend(rule.search(at, input));
            from = whole.end().max(from + 1);
        }
    }
    found.extend(assigned::random(text).into_iter().map(|secret| (RULES.len() + 1, secret)));
    merge(found)
}

/// One finding for all that overlap, of the kind whose rule comes first.
fn merge(mut found: Vec<(usize, Secret)>) -> Vec<Secret> {
    found.sort_by_key(|(rule, secret)| (secret.range.start, *rule));
    let mut merged: Vec<(usize, Secret)> = Vec::with_capacity(found.len());
    for (rule, secret) in found {
        match merged.last_mut() {
            Some((first, last)) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
                if rule < *first {
                    (*first, last.kind) = (rule, secret.kind);
                }
            }
            _ => merged.push((rule, secret)),
        }
    }
    merged.into_iter().map(|(_, secret)| secret).collect()
}

/// Texts from this length on are taken for encoded data when they have no spaces.
const ENCODED_MIN_BYTES: usize = 512;

/// Whether the whole text is base64: a picture or a signature, where a rule could match
/// only by accident.
fn is_encoded(text: &str) -> bool {
    text.len() >= ENCODED_MIN_BYTES && text.bytes().all(is_base64)
}

/// Whether the range lies in a long run of base64, such as a data URL.
fn is_in_encoded(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let before = bytes[..range.start].iter().rev().take(ENCODED_MIN_BYTES).take_while(|b| is_base64(**b)).count();
    let after = bytes[range.end..].iter().take(ENCODED_MIN_BYTES).take_while(|b| is_base64(**b)).count();
    before + after >= ENCODED_MIN_BYTES / 2
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// The rules, compiled once.
struct Scanner {
    keywords: AhoCorasick,
    /// The rule of each keyword; `None` for the names of [`assigned`].
    rule_of: Vec<Option<usize>>,
    rules: Vec<Compiled>,
    without_keyword: Vec<usize>,
}

impl Scanner {
    fn new() -> Self {
        let (mut words, mut rule_of) = (Vec::<&str>::new(), Vec::new());
        for (at, rule) in RULES.iter().enumerate() {
            words.extend(rule.keywords);
            rule_of.resize(words.len(), Some(at));
        }
        words.extend(assigned::KEYWORDS);
        rule_of.resize(words.len(), None);
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .unwrap_or_else(|error| unreachable!("the keywords are constants, built in a test: {error}"));
        let rules: Vec<_> = RULES.iter().map(Compiled::new).collect();
        let without_keyword = (0..RULES.len()).filter(|at| RULES[*at].keywords.is_empty()).collect();
        Self { keywords, rule_of, rules, without_keyword }
    }
}

struct Compiled {
    rule: &'static Rule,
    regex: LazyLock<Regex, Box<dyn FnOnce() -> Regex + Send>>,
}

impl Compiled {
    fn new(rule: &'static Rule) -> Self {
        Self { rule, regex: LazyLock::new(Box::new(|| compile(rule.pattern))) }
    }

    /// The secret that begins where the input does; a group in the pattern is the
    /// secret's own part of the match.
    fn search(&self, at: usize, input: Input<'_>) -> Option<(usize, Secret)> {
        let text = input.haystack();
        let mut captures: Captures = self.regex.create_captures();
        self.regex.search_captures(&input, &mut captures);
        let group = (1..captures.group_len()).find_map(|group| captures.get_group(group));
        let range = group.or_else(|| captures.get_group(0))?.range();
        let text = std::str::from_utf8(text).ok()?;
        let value = &text[range.clone()];
        let secret = Secret { kind: self.rule.kind, range };
        let is_secret = (self.rule.check)(value) && !value::is_blank(value) && !is_in_encoded(text, &secret.range);
        is_secret.then_some((at, secret))
    }
}

/// Compiles a constant pattern. A redactor must not fail open: that all of them compile
/// is a test, and one that did not would stop the program.
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern} is a constant, compiled in a test: {error}"))
}
