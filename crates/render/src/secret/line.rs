//! Finds the credentials in the strings of a transcript line.

use std::fmt;

use quipu_message::line::replace_lone_surrogates;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::assignment::secret_kind_for_key;
use super::{find_secrets, is_base64_data};

/// Calls `on_secret` with the kind and the value of each credential in a line.
///
/// In a line of JSON, searches each string with its escapes resolved, and considers its key. Any
/// other line is searched as it is.
pub fn find_secrets_in_line(line: &str, found: &mut dyn FnMut(&'static str, &str)) {
    let readable = replace_lone_surrogates(line);
    let mut json = serde_json::Deserializer::from_str(&readable);
    let mut kept = Vec::new();
    let mut keep = |kind: &'static str, value: &str| kept.push((kind, value.to_owned()));
    let parsed = StringVisitor { key: None, found: &mut keep }.deserialize(&mut json).and_then(|()| json.end());
    match parsed {
        Ok(()) => kept.iter().for_each(|(kind, value)| found(kind, value)),
        Err(_) => find_secrets(line).into_iter().for_each(|secret| found(secret.kind, &line[secret.range])),
    }
}

/// Searches the strings of a JSON value; `key` is its key in the object around it.
struct StringVisitor<'f> {
    key: Option<&'f str>,
    found: &'f mut dyn FnMut(&'static str, &str),
}

impl<'de> DeserializeSeed<'de> for StringVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StringVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if is_base64_data(text) {
            return Ok(());
        }
        let secrets = find_secrets(text);
        let is_whole = secrets.first().is_some_and(|secret| secret.range == (0..text.len()));
        if !is_whole && let Some(kind) = self.key.and_then(|key| secret_kind_for_key(key, text)) {
            (self.found)(kind, text);
            return Ok(());
        }
        for secret in secrets {
            (self.found)(secret.kind, &text[secret.range]);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(StringVisitor { key: self.key, found: &mut *self.found })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            map.next_value_seed(StringVisitor { key: Some(&key), found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
