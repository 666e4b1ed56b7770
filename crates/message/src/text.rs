//! Strings borrowed from a line where its bytes allow it, and characters that are not shown.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A decoded JSON string: borrowed if it has no escapes, owned otherwise.
///
/// `Option<Cow<str>>` never borrows through serde; `Option<Str>` does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Str<'a>(pub Cow<'a, str>);

impl Deref for Str<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Str<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Str<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Borrowed(s)))
            }
            fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(s.to_owned())))
            }
        }
        d.deserialize_str(StrVisitor)
    }
}

/// A time as a line has it: ISO 8601 text, or the digits of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TimeStr<'a>(pub Str<'a>);

impl Deref for TimeStr<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// One string field of an object, without reading the others.
///
/// `Ok(None)` if the object has no such field or it is not a string; the last
/// of duplicate keys wins.
pub(crate) fn find_string_field<'a>(object: &'a str, key: &'static str) -> serde_json::Result<Option<Str<'a>>> {
    struct FieldVisitor(&'static str);
    impl<'de> Visitor<'de> for FieldVisitor {
        type Value = Option<Str<'de>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<Str<'de>>()? {
                if &*key == self.0 {
                    found = match map.next_value()? {
                        Scalar::Text(text) => Some(text),
                        _ => None,
                    };
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    let mut d = serde_json::Deserializer::from_str(object);
    serde::Deserializer::deserialize_map(&mut d, FieldVisitor(key))
}

/// A plain value, or anything else skipped.
pub(crate) enum Scalar<'a> {
    Text(Str<'a>),
    Bool(bool),
    Unsigned(u64),
    Float(f64),
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl<'de> Visitor<'de> for ScalarVisitor {
            type Value = Scalar<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Str(Cow::Borrowed(s))))
            }
            fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Str(Cow::Owned(s.to_owned()))))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Scalar::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Float(value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Scalar::Unsigned(value))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Scalar::Float(value))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Scalar::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }
        d.deserialize_any(ScalarVisitor)
    }
}

/// Whether a character is shown as nothing or changes the order of others: format characters,
/// fillers and tags. Control characters, white space and [joiners](is_joiner) are not included.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character joins or separates its neighbours invisibly. Persian text and emoji need them.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}
