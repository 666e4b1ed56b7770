//! Masks credentials, e-mail addresses and home folders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use quipu_conversation::{ScreenItem, ToolCard};
use quipu_message::{Content, Json};
use regex::Regex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::secret::{find_secrets, secret_kind_for_key};
use crate::session_details::SessionDetails;

#[cfg(test)]
mod tests;

/// Masks text and counts what it masked, by kind.
///
/// Credentials are those that [`find_secrets`] finds.
///
/// ```
/// use quipu_render::Redactor;
/// let mut redactor = Redactor::default();
/// assert_eq!(redactor.redact_text("mail sam@example.org"), "mail [e-mail address]");
/// assert_eq!(redactor.counts()["e-mail address"], 1);
/// ```
#[derive(Debug, Default)]
pub struct Redactor {
    /// Matches the user's home folder in names of project folders.
    user_home_regex: Option<Regex>,
    counts: BTreeMap<&'static str, u64>,
}

const EMAIL_KIND: &str = "e-mail address";
const HOME_KIND: &str = "home folder";

static EMAIL_REGEX: LazyLock<Regex> =
    LazyLock::new(|| compile(r"\b([A-Za-z0-9._%+-]+)@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"));

/// `/home/sam`, `/Users/sam` and `C:\Users\sam`. The group is the part to mask.
static HOME_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    compile(r#"(?:/home/|/Users/|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/))([^\s/\\:'"`<>|$*{}\[\],;)]+)"#)
});

/// Home folders in the names of project folders: `-Users-sam-app`.
static PROJECT_HOME_REGEX: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?:^|[\s/\\"'`=(])(?:[A-Za-z]-)?-(?:Users|home)-([A-Za-z0-9]+)"#));

/// Searches of one text. The second finds nothing in almost all texts.
const MAX_PASSES: usize = 8;

impl Redactor {
    /// Creates a redactor for a session. If its working directory is in a home folder, the user's
    /// name is also masked in names of project folders, where dashes replace its punctuation.
    pub fn new(details: &SessionDetails) -> Self {
        let user = HOME_REGEX.captures(details.base_folder()).map(|found| dashed_name(&found[1]));
        let own_home = user.filter(|user| user.contains('-')).map(|user| {
            // The name has only letters, digits and dashes, so it needs no escaping.
            compile(&format!(r"(?:[A-Za-z]-)?-(?:Users|home)-({user})(?:-|\b)"))
        });
        Self { user_home_regex: own_home, counts: BTreeMap::new() }
    }

    /// Number of masked values by kind.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Replaces each credential, address and home folder by its kind in brackets.
    pub fn redact_text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        // A mask may be the name of what follows it, as in `[password] : value`.
        for _ in 0..MAX_PASSES {
            let secrets = find_secrets(&text);
            if secrets.is_empty() {
                break;
            }
            let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
            for secret in secrets {
                self.count(secret.kind);
                masked.push_str(&text[end..secret.range.start]);
                masked.push_str(&format!("[{}]", secret.kind));
                end = secret.range.end;
            }
            masked.push_str(&text[end..]);
            text = Cow::Owned(masked);
        }
        if text.contains('@') {
            // `git@host` is the login of a git server, not a user's address.
            text = self.mask_matches(text, &EMAIL_REGEX, EMAIL_KIND, |user| (user != "git").then_some(0));
        }
        if let Some(own_home) = self.user_home_regex.clone() {
            text = self.mask_matches(text, &own_home, HOME_KIND, |_| Some(1));
        }
        text = self.mask_matches(text, &HOME_REGEX, HOME_KIND, |_| Some(1));
        self.mask_matches(text, &PROJECT_HOME_REGEX, HOME_KIND, |_| Some(1))
    }

    /// Masks the facts about a session.
    pub fn redact_details(&mut self, details: &mut SessionDetails) {
        for fact in details.texts_mut() {
            *fact = self.redact_text(fact).into_owned();
        }
    }

    /// Masks all text of an item, including the items of a subagent.
    pub fn redact_item(&mut self, item: &mut ScreenItem) {
        if let Some(text) = &mut item.text {
            *text = self.redact_text(text).into_owned();
        }
        if !item.contexts.is_empty() {
            item.contexts = self.redact_via_json(&item.contexts).unwrap_or_default();
        }
        if item.source.is_some() {
            item.source = item.source.as_ref().and_then(|source| self.redact_via_json(source));
        }
        if let Some(card) = &mut item.tool {
            self.redact_card(card);
        }
    }

    fn redact_card(&mut self, card: &mut ToolCard) {
        card.input = self.redact_json(&card.input);
        card.output = card.output.as_ref().map(|output| self.redact_json(output));
        card.result = card.result.as_ref().and_then(|result| self.redact_via_json::<Content>(result));
        for item in card.subagent.iter_mut().flat_map(|subagent| &mut subagent.items) {
            self.redact_item(item);
        }
    }

    /// Masks every string in a JSON value. A value that cannot be parsed is masked whole.
    fn redact_json(&mut self, json: &Json) -> Json {
        match json.read::<Value>() {
            Ok(value) => Json::from(self.redact_value(value, None)),
            Err(_) => Json::from_serialize("[not shown]"),
        }
    }

    /// Masks the strings of a value; `key` is its key in the object around it.
    fn redact_value(&mut self, value: Value, key: Option<&str>) -> Value {
        match value {
            Value::String(text) => match key.and_then(|key| secret_kind_for_key(key, &text)) {
                // `{"password": "…"}` is a secret although neither half looks like one.
                Some(kind) => {
                    let kind = find_secrets(&text).first().map_or(kind, |secret| secret.kind);
                    self.count(kind);
                    Value::String(format!("[{kind}]"))
                }
                None => match self.redact_text(&text) {
                    Cow::Borrowed(_) => Value::String(text),
                    Cow::Owned(masked) => Value::String(masked),
                },
            },
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item, key)).collect(),
            Value::Object(map) => {
                let mut masked = Map::new();
                for (key, value) in map {
                    let value = self.redact_value(value, Some(&key));
                    masked.insert(self.redact_text(&key).into_owned(), value);
                }
                Value::Object(masked)
            }
            other => other,
        }
    }

    /// Masks a typed value by serialising and parsing it. `None` if the result cannot be parsed.
    fn redact_via_json<T: DeserializeOwned>(&mut self, value: &(impl Serialize + ?Sized)) -> Option<T> {
        self.redact_json(&Json::from_serialize(value)).read().ok()
    }

    /// Masks one capture group of each match. `group` gets the text of the first group and returns
    /// the number of the group to mask, or `None` to leave the match.
    fn mask_matches<'t>(
        &mut self,
        text: Cow<'t, str>,
        regex: &Regex,
        kind: &'static str,
        group: impl Fn(&str) -> Option<usize>,
    ) -> Cow<'t, str> {
        let (mut masked, mut end) = (String::new(), 0);
        for found in regex.captures_iter(&text) {
            let Some(range) = group(&found[1]).and_then(|group| found.get(group)).map(|part| part.range()) else {
                continue;
            };
            self.count(kind);
            masked.push_str(&text[end..range.start]);
            masked.push_str(&format!("[{kind}]"));
            end = range.end;
        }
        if end == 0 {
            return text;
        }
        masked.push_str(&text[end..]);
        Cow::Owned(masked)
    }

    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }
}

/// A user name as in the names of project folders.
fn dashed_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Compiles a pattern. All patterns are constants or contain only letters, digits and dashes, so
/// failing is a bug; a panic is safer than a redactor that masks nothing.
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern} is compiled in a test: {error}"))
}
