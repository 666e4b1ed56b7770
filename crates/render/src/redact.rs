//! Masking what should not be shared: credentials, e-mail addresses and home folders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use quipu_conversation::{ScreenItem, ToolCard};
use quipu_message::{Content, Json};
use regex::Regex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::about::About;
use crate::secret::{find_secrets, kind_under};

#[cfg(test)]
mod tests;

/// Masks text and counts what it masked, by kind.
///
/// Credentials are those that [`find_secrets`] finds.
///
/// ```
/// use quipu_render::Redactor;
/// let mut redactor = Redactor::default();
/// assert_eq!(redactor.text("mail sam@example.org"), "mail [e-mail address]");
/// assert_eq!(redactor.counts()["e-mail address"], 1);
/// ```
#[derive(Debug, Default)]
pub struct Redactor {
    /// Finds the user's folder in names of project folders.
    own_home: Option<Regex>,
    counts: BTreeMap<&'static str, u64>,
}

const EMAIL: &str = "e-mail address";
const HOME: &str = "home folder";

static EMAILS: LazyLock<Regex> =
    LazyLock::new(|| compile(r"\b([A-Za-z0-9._%+-]+)@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"));

/// `/home/sam`, `/Users/sam` and `C:\Users\sam`. The group is what is masked.
static HOMES: LazyLock<Regex> = LazyLock::new(|| {
    compile(r#"(?:/home/|/Users/|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/))([^\s/\\:'"`<>|$*{}\[\],;)]+)"#)
});

/// The same as the agent writes it in the names of project folders: `-Users-sam-app`.
static PROJECTS: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?:^|[\s/\\"'`=(])(?:[A-Za-z]-)?-(?:Users|home)-([A-Za-z0-9]+)"#));

impl Redactor {
    /// A redactor for the session that `about` describes. Where its folder is known,
    /// the user's name is also masked where dashes stand for the signs in it.
    pub fn new(about: &About) -> Self {
        let user = HOMES.captures(about.base()).map(|found| project_name(&found[1]));
        let own_home = user.filter(|user| user.contains('-')).map(|user| {
            // Made of letters, digits and dashes: a pattern as it is.
            compile(&format!(r"(?:[A-Za-z]-)?-(?:Users|home)-({user})(?:-|\b)"))
        });
        Self { own_home, counts: BTreeMap::new() }
    }

    /// How much of each kind was masked.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// The text with what it hides replaced by its kind in brackets.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        let secrets = find_secrets(&text);
        if !secrets.is_empty() {
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
            // `git@host` is how anybody logs in there.
            text = self.mask(text, &EMAILS, EMAIL, |user| (user != "git").then_some(0));
        }
        if let Some(own_home) = self.own_home.clone() {
            text = self.mask(text, &own_home, HOME, |_| Some(1));
        }
        text = self.mask(text, &HOMES, HOME, |_| Some(1));
        self.mask(text, &PROJECTS, HOME, |_| Some(1))
    }

    /// Masks what a document says about its session.
    pub fn about(&mut self, about: &mut About) {
        for fact in about.texts_mut() {
            *fact = self.text(fact).into_owned();
        }
    }

    /// Masks everything an item shows, what a subagent said included.
    pub fn item(&mut self, item: &mut ScreenItem) {
        if let Some(text) = &mut item.text {
            *text = self.text(text).into_owned();
        }
        if !item.contexts.is_empty() {
            item.contexts = self.through(&item.contexts).unwrap_or_default();
        }
        if item.source.is_some() {
            item.source = item.source.as_ref().and_then(|source| self.through(source));
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
            Ok(value) => Json::from(self.value(value, None)),
            Err(_) => Json::of("[not shown]"),
        }
    }

    /// Masks the strings of a value; `key` is the one it stands under.
    fn value(&mut self, value: Value, key: Option<&str>) -> Value {
        match value {
            Value::String(text) => match key.and_then(|key| kind_under(key, &text)) {
                // `{"password": "…"}` is a secret although neither half looks like one.
                Some(kind) => {
                    let kind = find_secrets(&text).first().map_or(kind, |secret| secret.kind);
                    self.count(kind);
                    Value::String(format!("[{kind}]"))
                }
                None => match self.text(&text) {
                    Cow::Borrowed(_) => Value::String(text),
                    Cow::Owned(masked) => Value::String(masked),
                },
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item, key)).collect(),
            Value::Object(map) => {
                let mut masked = Map::new();
                for (key, value) in map {
                    let value = self.value(value, Some(&key));
                    masked.insert(self.text(&key).into_owned(), value);
                }
                Value::Object(masked)
            }
            other => other,
        }
    }

    /// Masks a typed value by way of its JSON.
    fn through<T: DeserializeOwned>(&mut self, value: &(impl Serialize + ?Sized)) -> Option<T> {
        self.json(&Json::of(value)).read().ok()
    }

    /// Masks the group of each match that `group` returns for the text of the first.
    fn mask<'t>(
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

/// A name as it stands in the names of project folders.
fn project_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Compiles a pattern that is constant, or made of a name without special signs. A
/// redactor must not fail open: one that did not compile would stop the program.
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern} is compiled in a test: {error}"))
}
