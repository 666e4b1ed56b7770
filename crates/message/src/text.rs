//! Strings borrowed from a line where its bytes allow it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A decoded JSON string: borrowed when it held no escapes, owned otherwise.
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
        struct Text;
        impl<'de> Visitor<'de> for Text {
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
        d.deserialize_str(Text)
    }
}

/// One string field of an object, without reading the others.
///
/// `Ok(None)` when the object has no such field or it is not a string; the last
/// of duplicate keys wins.
pub(crate) fn field<'a>(object: &'a str, key: &'static str) -> serde_json::Result<Option<Str<'a>>> {
    struct Find(&'static str);
    impl<'de> Visitor<'de> for Find {
        type Value = Option<Str<'de>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<Str<'de>>()? {
                if &*key == self.0 {
                    found = map.next_value::<StringOrOther<'de>>()?.0;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    let mut d = serde_json::Deserializer::from_str(object);
    serde::Deserializer::deserialize_map(&mut d, Find(key))
}

/// A string, or anything else skipped.
pub(crate) struct StringOrOther<'a>(pub(crate) Option<Str<'a>>);

impl<'de> Deserialize<'de> for StringOrOther<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = StringOrOther<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                Ok(StringOrOther(Some(Str(Cow::Borrowed(s)))))
            }
            fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                Ok(StringOrOther(Some(Str(Cow::Owned(s.to_owned())))))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(StringOrOther(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(StringOrOther(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(StringOrOther(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(StringOrOther(None))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(StringOrOther(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(StringOrOther(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(StringOrOther(None))
            }
        }
        d.deserialize_any(Any)
    }
}
