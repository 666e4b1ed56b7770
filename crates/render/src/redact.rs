//! Masking what should not be shared: keys, tokens, private keys, e-mail addresses
//! and home folders. A table of rules, and a count of what each masked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_conversation::{ScreenItem, ToolCard};
use quipu_message::{Content, Json};
use regex::{Captures, Regex, RegexSet};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is masked, and the pattern that finds it. Where a pattern has a group, only
/// the group is masked. Earlier rules go first.
const RULES: [(&str, &str); 17] = [
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Stripe key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("PyPI token", r"\bpypi-[A-Za-z0-9_-]{40,}"),
    ("JSON web token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"),
    ("bearer token", r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{12,}=*)"),
    ("password in an address", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:([^\s/@]+)@"),
    (
        "secret",
        r#"(?i)\b[A-Za-z0-9_-]*(?:api[_-]?key|secret|token|passwd|password|private[_-]?key)["']?\s*[:=]\s*["']?([^\s"'`,;<>\[\]]{8,})"#,
    ),
    ("e-mail address", r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"),
    ("home folder", r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})([^\s/\\:'\x22<>|]+)"),
];

/// Words a secret's value may be without being one.
const HARMLESS: [&str; 6] = ["undefined", "required", "redacted", "password", "undefined;", "function"];

/// Masks text and counts what it masked.
///
/// ```
/// use quipu_render::Redactor;
/// let mut redactor = Redactor::default();
/// assert_eq!(redactor.text("mail sam@example.org"), "mail [e-mail address]");
/// assert_eq!(redactor.counts()["e-mail address"], 1);
/// ```
#[derive(Debug)]
pub struct Redactor {
    any: RegexSet,
    rules: Vec<(&'static str, Regex)>,
    counts: BTreeMap<&'static str, u64>,
}

impl Default for Redactor {
    fn default() -> Self {
        let patterns = RULES.map(|(_, pattern)| pattern);
        let rules = RULES.iter().filter_map(|(name, pattern)| Some((*name, Regex::new(pattern).ok()?)));
        let any = RegexSet::new(patterns).unwrap_or_else(|_| RegexSet::empty());
        Self { any, rules: rules.collect(), counts: BTreeMap::new() }
    }
}

impl Redactor {
    /// How much each rule masked.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// The text with its secrets masked.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let hit = self.any.matches(text);
        if !hit.matched_any() {
            return Cow::Borrowed(text);
        }
        let mut text = Cow::Borrowed(text);
        for at in hit.iter() {
            let (name, rule) = &self.rules[at];
            let mut masked = 0;
            let replaced = rule.replace_all(&text, |found: &Captures<'_>| mask(name, found, &mut masked));
            if masked > 0 {
                text = Cow::Owned(replaced.into_owned());
                *self.counts.entry(name).or_default() += masked;
            }
        }
        text
    }

    /// Masks everything an item shows, what a subagent said included.
    pub fn item(&mut self, item: &mut ScreenItem) {
        if let Some(text) = &mut item.text {
            *text = self.text(text).into_owned();
        }
        if !item.contexts.is_empty() {
            item.contexts = self.through(&item.contexts).unwrap_or_default();
        }
        if let Some(card) = &mut item.tool {
            self.card(card);
        }
    }

    fn card(&mut self, card: &mut ToolCard) {
        card.input = self.json(&card.input);
        card.output = card.output.as_ref().map(|output| self.json(output));
        card.result = card.result.as_ref().and_then(|result| self.through::<Content>(result));
        for item in card.subagent.iter_mut().flat_map(|subagent| &mut subagent.items) {
            self.item(item);
        }
    }

    /// Masks every string in a value. What cannot be walked is masked whole.
    fn json(&mut self, json: &Json) -> Json {
        match json.read::<Value>() {
            Ok(mut value) => {
                self.value(&mut value);
                Json::from(value)
            }
            Err(_) => Json::of("[not shown]"),
        }
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text).into_owned(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                for (key, value) in map {
                    // `{"password": "…"}` is a secret although neither half looks like one.
                    match value {
                        Value::String(text) => {
                            let together = format!("{key}={text}");
                            let masked = self.text(&together);
                            *text = masked.strip_prefix(&format!("{key}=")).unwrap_or(&masked).to_owned();
                        }
                        other => self.value(other),
                    }
                }
            }
            _ => {}
        }
    }

    /// Masks a typed value by way of its JSON.
    fn through<T: DeserializeOwned>(&mut self, value: &(impl Serialize + ?Sized)) -> Option<T> {
        self.json(&Json::of(value)).read().ok()
    }
}

/// The match with its secret part replaced by the rule's name.
fn mask(name: &str, found: &Captures<'_>, masked: &mut u64) -> String {
    let whole = &found[0];
    let Some(secret) = found.get(1) else {
        *masked += 1;
        return format!("[{name}]");
    };
    let harmless =
        secret.as_str().starts_with('[') || HARMLESS.iter().any(|word| secret.as_str().eq_ignore_ascii_case(word));
    if name == "secret" && harmless {
        return whole.to_owned();
    }
    *masked += 1;
    let start = found.get(0).map_or(0, |all| all.start());
    let (from, to) = (secret.start() - start, secret.end() - start);
    format!("{}[{name}]{}", &whole[..from], &whole[to..])
}

#[cfg(test)]
mod tests;
