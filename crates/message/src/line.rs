//! One JSONL line: the bytes are the truth, the types are a view of them.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Str;
use crate::{SessionId, Uuid};

/// One complete JSON value on one line, exactly as it was written.
///
/// ```
/// use quipu_message::Line;
/// let line = Line::parse(r#"{"n": 12345678901234567890123, "sessionId":"a"}"#)?;
/// let moved = line.with_field(&["sessionId"], &"b")?;
/// assert_eq!(moved.as_str(), r#"{"n": 12345678901234567890123, "sessionId":"b"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line(Box<str>);

/// Why a field could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    /// Something on the path is not an object.
    #[error("cannot set {path}: {at} is not an object")]
    NotAnObject {
        /// The complete path that was requested.
        path: String,
        /// The part of it that is not an object.
        at: String,
    },
    /// The new value cannot be written as JSON.
    #[error("cannot set {path}: the value is not JSON")]
    InvalidValue {
        /// The complete path that was requested.
        path: String,
        /// Error of the serializer.
        #[source]
        source: serde_json::Error,
    },
}

impl Line {
    /// Reads any complete JSON value without parsing its content.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<&RawValue>(text)?;
        Ok(Self(text.trim_end_matches(['\r', '\n']).into()))
    }

    /// Writes a value as one line.
    pub fn from_serialize<T: Serialize>(value: &T) -> serde_json::Result<Self> {
        // Most lines are shorter than this.
        let mut bytes = Vec::with_capacity(2048);
        serde_json::to_writer(&mut bytes, value)?;
        let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
        Ok(Self(text.into()))
    }

    /// The text, unchanged and without its line end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Sets the field at `path` and leaves every other byte alone. A missing
    /// last key is added at the end of its object; of duplicate keys the last,
    /// the one readers see, is set.
    pub fn with_field<T: Serialize + ?Sized>(&self, path: &[&str], value: &T) -> Result<Self, SpliceError> {
        let whole = || path.join(".");
        let value =
            serde_json::to_string(value).map_err(|source| SpliceError::InvalidValue { path: whole(), source })?;
        let (mut start, mut end) = (0, self.0.len());
        for (depth, key) in path.iter().enumerate() {
            let object = &self.0[start..end];
            let fields: ObjectFields = serde_json::from_str(object)
                .map_err(|_| SpliceError::NotAnObject { path: whole(), at: path[..depth].join(".") })?;
            match fields.0.iter().rev().find(|(name, _)| &**name == *key) {
                Some((_, raw)) => {
                    start = raw.get().as_ptr().addr() - self.0.as_ptr().addr();
                    end = start + raw.get().len();
                }
                None if depth + 1 == path.len() => return Ok(self.append_field(start, &fields, key, &value)),
                None => return Err(SpliceError::NotAnObject { path: whole(), at: path[..=depth].join(".") }),
            }
        }
        Ok(Self([&self.0[..start], &value, &self.0[end..]].concat().into()))
    }

    /// The line with another session id.
    pub fn with_session_id(&self, session: &SessionId) -> Result<Self, SpliceError> {
        self.with_field(&["sessionId"], session)
    }

    /// The line with another prompt id.
    pub fn with_prompt_id(&self, prompt: &str) -> Result<Self, SpliceError> {
        self.with_field(&["promptId"], prompt)
    }

    /// The line with another parent; `None` makes it a root.
    pub fn with_parent(&self, parent: Option<&Uuid>) -> Result<Self, SpliceError> {
        self.with_field(&["parentUuid"], &parent)
    }

    /// Adds a field after the last one of the object that starts at `start`.
    fn append_field(&self, start: usize, fields: &ObjectFields<'_>, key: &str, value: &str) -> Self {
        let key = serde_json::Value::from(key);
        let (at, comma) = match fields.0.last() {
            Some((_, raw)) => (raw.get().as_ptr().addr() - self.0.as_ptr().addr() + raw.get().len(), ","),
            None => (start + self.0[start..].find('{').map_or(0, |brace| brace + 1), ""),
        };
        Self(format!("{}{comma}{key}:{value}{}", &self.0[..at], &self.0[at..]).into())
    }
}

impl AsRef<str> for Line {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The fields of an object in order, values not parsed, duplicates kept.
struct ObjectFields<'a>(Vec<(Str<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for ObjectFields<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ObjectFieldsVisitor;
        impl<'de> Visitor<'de> for ObjectFieldsVisitor {
            type Value = ObjectFields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectFields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(ObjectFields(fields))
            }
        }
        d.deserialize_map(ObjectFieldsVisitor)
    }
}

/// The text of a line for [`Head`](crate::Head), [`View`](crate::View) and the other readers:
/// bytes that are not UTF-8 and [lone surrogates](replace_lone_surrogates) are replaced.
pub fn readable_text(bytes: &[u8]) -> Cow<'_, str> {
    // The strict check is many times faster than the lossy one, and almost every line passes it.
    match std::str::from_utf8(bytes) {
        Ok(text) => replace_lone_surrogates(text),
        Err(_) => Cow::Owned(replace_lone_surrogates(&String::from_utf8_lossy(bytes)).into_owned()),
    }
}

/// Makes a line readable where JavaScript wrote half of a surrogate pair, which
/// Rust strings cannot hold: each such escape reads as U+FFFD.
///
/// For reading only. The line itself keeps its bytes.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if memmem::find(bytes, br"\ud").is_none() && memmem::find(bytes, br"\uD").is_none() {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize| -> Option<u16> {
        let hex = text.get(at..at + 6)?.strip_prefix(r"\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(step) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += step;
        match unit(at) {
            None => at += 2,
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[kept..at]);
                out.push_str(r"\ufffd");
                at += 6;
                kept = at;
            }
            Some(_) => at += 6,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

mod copy;

#[cfg(test)]
mod tests;
