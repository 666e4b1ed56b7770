//! JSON kept as text, the three states of a field, and unknown fields.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value kept as the text it arrived in.
///
/// ```
/// use quipu_message::Json;
/// let input: Json = serde_json::from_str(r#"{"n": 1e5}"#)?;
/// assert_eq!(input.text(), r#"{"n": 1e5}"#);
/// assert_eq!(input.to_value()["n"], 100000.0);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Keeps `text` if it is one complete JSON value.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Writes a value as JSON; a value that cannot be written becomes `null`.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Self {
        let null = || RawValue::NULL.to_owned();
        Self(serde_json::value::to_raw_value(value).unwrap_or_else(|_| null()))
    }

    /// The text itself.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text())
    }

    /// The value as a tree; a value that nests too deeply becomes `null`.
    pub fn to_value(&self) -> Value {
        self.read().unwrap_or_default()
    }

    /// The decoded string; `None` if the value is not a string.
    pub fn decode_string(&self) -> Option<String> {
        self.text().starts_with('"').then(|| self.read().ok()).flatten()
    }

    /// The text in a value that is a string, a list of texts, or an object that contains one; errors and hook
    /// outputs have all these forms.
    pub fn extract_text(&self) -> String {
        fn find(value: &Value) -> Option<String> {
            match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(n) => Some(n.to_string()),
                Value::Array(items) => {
                    let found: Vec<_> = items.iter().filter_map(find).collect();
                    (!found.is_empty()).then(|| found.join("\n"))
                }
                Value::Object(map) => {
                    let keys = ["message", "blockingError", "error", "text", "status", "type"];
                    keys.iter().find_map(|key| map.get(*key).and_then(find))
                }
                _ => None,
            }
        }
        find(&self.to_value()).unwrap_or_else(|| self.text().to_owned())
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

impl Default for Json {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from_serialize(&value)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(d).map(Self)
    }
}

/// An optional field: absent, `null` and a value are three things on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Maybe<T> {
    /// The key is missing.
    #[default]
    Absent,
    /// The value is `null`.
    Null,
    /// The key has a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// The value; `None` if absent or `null`.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The value; `None` if absent or `null`.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there is a value.
    pub fn is_value(&self) -> bool {
        self.get().is_some()
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl Maybe<bool> {
    /// Whether the value is `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Value(true))
    }
}

impl<T: AsRef<str>> Maybe<T> {
    /// The value as text; `None` if absent or `null`.
    pub fn text(&self) -> Option<&str> {
        self.get().map(AsRef::as_ref)
    }
}

impl<T> From<T> for Maybe<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for Maybe<String> {
    fn from(text: &str) -> Self {
        Self::Value(text.to_owned())
    }
}

impl<T> From<Option<T>> for Maybe<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(s),
            Self::Absent | Self::Null => s.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(d)?.map_or(Self::Null, Self::Value))
    }
}

/// The unknown fields of a struct in order, and which of two keys (file or stream) its known fields had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    fields: Vec<(Box<str>, Json)>,
    pub(crate) spelling: Spelling,
}

impl Extra {
    /// Makes an empty list of fields with the given spelling.
    pub fn with_spelling(spelling: Spelling) -> Self {
        Self { fields: Vec::new(), spelling }
    }

    /// The unknown fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.fields.iter().map(|(key, value)| (&**key, value))
    }

    /// An unknown field by name; of duplicates the last, as in JavaScript.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.fields.iter().rev().find(|(k, _)| &**k == key).map(|(_, v)| v)
    }

    /// Adds a field at the end.
    pub fn push(&mut self, key: &str, value: Json) {
        self.fields.push((key.into(), value));
    }

    pub(crate) fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        Ok(())
    }
}

/// Which of two keys each field of a struct uses; one bit per field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spelling(u64);

impl Spelling {
    /// The names that session files use (`sessionId`).
    pub const FILE: Self = Self(0);
    /// The names that the live stream uses (`session_id`).
    pub const STREAM: Self = Self(u64::MAX);
    /// The bit for a text field that was written as a number.
    pub(crate) const NUMBER_BIT: u32 = 63;

    pub(crate) fn set(&mut self, field: u32) {
        self.0 |= 1 << field;
    }

    pub(crate) fn is_set(self, field: u32) -> bool {
        self.0 >> field & 1 == 1
    }
}

/// Whether two JSON texts have the same value, whatever their key order, spacing and escapes.
///
/// `None` if one of them is not JSON or nests too deeply.
pub fn is_same_json(a: &str, b: &str) -> Option<bool> {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    Some(read(a)? == read(b)?)
}
