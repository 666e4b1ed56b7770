//! Finds credentials in text, for `quipu secrets` and for redaction.
//!
//! There are three ways to recognise one: patterns for the tokens of well-known services
//! ([`rules`]), values assigned to a name such as `DB_PASSWORD`, and long random values assigned
//! to any name (both in [`assignment`]).
//!
//! One pass of an Aho–Corasick automaton finds the keywords of all rules; the regular expression
//! of a rule is only tried where its keyword occurs, anchored there.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

mod assignment;
mod line;
mod rules;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use assignment::secret_kind_for_key;
pub use line::find_secrets_in_line;

use rules::{RULES, SecretRule};

/// A credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Kind of credential, such as `GitHub token`.
    pub kind: &'static str,
    /// Byte range of the credential in the text.
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
pub fn find_secrets(text: &str) -> Vec<FoundSecret> {
    if is_base64_data(text) {
        return Vec::new();
    }
    let scanner = &*SCANNER;
    let mut found: Vec<(usize, FoundSecret)> = Vec::new();
    let mut searched = [0; RULES.len()];
    for hit in scanner.keywords.find_overlapping_iter(text) {
        match scanner.rule_by_keyword[hit.pattern().as_usize()] {
            // A match contains no other match of the same rule; searching inside it again would
            // take time quadratic in its length.
            Some(at) if hit.start() < searched[at] => {}
            Some(at) => {
                let input = Input::new(text).range(hit.start()..).anchored(Anchored::Yes);
                if let Some(secret) = scanner.rules[at].match_at(at, input) {
                    searched[at] = secret.1.range.end;
                    found.push(secret);
                }
            }
            None => {
                found.extend(assignment::find_assigned_secret(text, hit.range()).map(|secret| (RULES.len(), secret)))
            }
        }
    }
    for &at in &scanner.rules_without_keyword {
        let rule = &scanner.rules[at];
        let mut from = 0;
        while let Some(whole) = rule.regex.find(Input::new(text).range(from..)) {
            let input = Input::new(text).range(whole.start()..).anchored(Anchored::Yes);
            found.extend(rule.match_at(at, input));
            from = whole.end().max(from + 1);
        }
    }
    found.extend(assignment::find_random_values(text).into_iter().map(|secret| (RULES.len() + 1, secret)));
    merge_overlaps(found)
}

/// One finding for all that overlap, of the kind whose rule comes first.
fn merge_overlaps(mut found: Vec<(usize, FoundSecret)>) -> Vec<FoundSecret> {
    found.sort_by_key(|(rule, secret)| (secret.range.start, *rule));
    let mut merged: Vec<(usize, FoundSecret)> = Vec::with_capacity(found.len());
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

/// Texts of at least this length in the alphabet of base64 are taken for encoded data.
const BASE64_MIN_BYTES: usize = 512;

/// Whether the whole text is base64, such as an image or a signature, where a rule could match
/// only by accident.
fn is_base64_data(text: &str) -> bool {
    text.len() >= BASE64_MIN_BYTES && text.bytes().all(is_base64_byte)
}

/// Whether the range lies in a long run of base64, such as a data URL.
fn is_inside_base64(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let before = bytes[..range.start].iter().rev().take(BASE64_MIN_BYTES).take_while(|b| is_base64_byte(**b)).count();
    let after = bytes[range.end..].iter().take(BASE64_MIN_BYTES).take_while(|b| is_base64_byte(**b)).count();
    before + after >= BASE64_MIN_BYTES / 2
}

fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

static SCANNER: LazyLock<SecretScanner> = LazyLock::new(SecretScanner::new);

/// The rules, compiled once.
struct SecretScanner {
    keywords: AhoCorasick,
    /// Index of the rule of each keyword; `None` for the names of [`assignment`].
    rule_by_keyword: Vec<Option<usize>>,
    rules: Vec<CompiledRule>,
    rules_without_keyword: Vec<usize>,
}

impl SecretScanner {
    fn new() -> Self {
        let (mut words, mut rule_of) = (Vec::<&str>::new(), Vec::new());
        for (at, rule) in RULES.iter().enumerate() {
            words.extend(rule.keywords);
            rule_of.resize(words.len(), Some(at));
        }
        words.extend(assignment::NAME_KEYWORDS);
        rule_of.resize(words.len(), None);
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .unwrap_or_else(|error| unreachable!("the keywords are constants, built in a test: {error}"));
        let rules: Vec<_> = RULES.iter().map(CompiledRule::new).collect();
        let without_keyword = (0..RULES.len()).filter(|at| RULES[*at].keywords.is_empty()).collect();
        Self { keywords, rule_by_keyword: rule_of, rules, rules_without_keyword: without_keyword }
    }
}

struct CompiledRule {
    rule: &'static SecretRule,
    regex: LazyLock<Regex, Box<dyn FnOnce() -> Regex + Send>>,
}

impl CompiledRule {
    fn new(rule: &'static SecretRule) -> Self {
        Self { rule, regex: LazyLock::new(Box::new(|| compile(rule.pattern))) }
    }

    /// The secret that begins at the start of the input, with the index of its rule. If the pattern
    /// has a group, only the group is the secret.
    fn match_at(&self, at: usize, input: Input<'_>) -> Option<(usize, FoundSecret)> {
        let text = input.haystack();
        let mut captures: Captures = self.regex.create_captures();
        self.regex.search_captures(&input, &mut captures);
        let group = (1..captures.group_len()).find_map(|group| captures.get_group(group));
        let range = group.or_else(|| captures.get_group(0))?.range();
        let text = std::str::from_utf8(text).ok()?;
        let value = &text[range.clone()];
        let secret = FoundSecret { kind: self.rule.kind, range };
        let is_secret =
            (self.rule.check)(value) && !value::is_placeholder(value) && !is_inside_base64(text, &secret.range);
        is_secret.then_some((at, secret))
    }
}

/// Compiles a constant pattern. A test compiles all of them, so failing is a bug; a panic is
/// safer than a redactor that masks nothing.
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern} is a constant, compiled in a test: {error}"))
}
