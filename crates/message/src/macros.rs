//! The two forms of wire types: a struct that keeps unknown fields, and an enum that accepts unknown tags.

use std::cell::Cell;

/// Declares a wire struct: named fields, each `req`uired or `opt`ional. `= "key"` gives the
/// key a field has in files where it is not the field's name, `| "key"` the other key it has
/// on the stream.
///
/// Unknown keys go to `extra` in arrival order. `tag` keys are written first and
/// skipped on reading, because the enum above has already matched them. `with`
/// embeds an all-optional [`embedded_fields!`], such as the envelope.
///
/// `Default` has required fields empty and optional ones absent, for struct update.
macro_rules! wire {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $([$($tag_key:literal = $tag:literal),+])? $(with $part:ident: $part_ty:ty)? {
            $( $(#[$fmeta:meta])* $field:ident: $need:ident $ty:ty $(= $key:literal)? $(| $alt:literal)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $crate::macros::field_kind!(type $need $ty), )*
            $(
                /// Fields shared with other types.
                pub $part: $part_ty,
            )?
            /// Fields that this version does not know.
            pub extra: $crate::Extra,
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct FieldsVisitor;
                impl<'de> serde::de::Visitor<'de> for FieldsVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object (", stringify!($name), ")"))
                    }
                    #[allow(unused_mut, unused_variables, unused_assignments, clippy::never_loop)]
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        #[allow(non_camel_case_types, dead_code)]
                        enum FieldIndex { $($field,)* End }
                        $( let mut $field: Option<$crate::macros::field_kind!(type $need $ty)> = None; )*
                        $( let mut $part = <$part_ty>::default(); )?
                        let mut extra = $crate::Extra::default();
                        while let Some(key) = map.next_key::<$crate::text::Str<'de>>()? {
                            match &*key {
                                $( $($tag_key)|+ => { map.next_value::<serde::de::IgnoredAny>()?; } )?
                                $(
                                    $crate::macros::key!($field $($key)?) if !extra.spelling.is_set(FieldIndex::$field as u32) => {
                                        $field = Some($crate::macros::name_field_in_error($crate::macros::key!($field $($key)?), map.next_value())?);
                                    }
                                    $( $alt if $field.is_none() => {
                                        $field = Some($crate::macros::name_field_in_error($alt, map.next_value())?);
                                        extra.spelling.set(FieldIndex::$field as u32);
                                    } )?
                                )*
                                other => {
                                    $( if $part.read_field(other, &mut map)? { continue; } )?
                                    extra.push(other, map.next_value()?);
                                }
                            }
                        }
                        Ok($name {
                            $( $field: $crate::macros::field_kind!(take $need $field ($crate::macros::key!($field $($key)?))), )*
                            $( $part, )?
                            extra,
                        })
                    }
                }
                d.deserialize_map(FieldsVisitor)
            }
        }

        impl serde::Serialize for $name {
            #[allow(unused_mut, unused_variables)]
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                #[allow(non_camel_case_types, dead_code)]
                enum FieldIndex { $($field,)* End }
                let mut map = s.serialize_map(None)?;
                $( $( map.serialize_entry($tag_key, $tag)?; )+ )?
                $(
                    let mut name = $crate::macros::key!($field $($key)?);
                    $( if self.extra.spelling.is_set(FieldIndex::$field as u32) { name = $alt; } )?
                    $crate::macros::field_kind!(emit $need map name self.$field);
                )*
                $( self.$part.write_fields(&mut map)?; )?
                self.extra.write_fields(&mut map)?;
                map.end()
            }
        }
    };
}

/// The key of a field: its name, unless another is given.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// The places in which required and optional fields differ.
macro_rules! field_kind {
    (type req $ty:ty) => { $ty };
    (type opt $ty:ty) => { $crate::Maybe<$ty> };
    (take req $field:ident ($key:expr)) => {
        match $field {
            Some(value) => value,
            None => return Err(serde::de::Error::missing_field($key)),
        }
    };
    (take opt $field:ident ($key:expr)) => { $field.unwrap_or_default() };
    (emit req $map:ident $name:ident $value:expr) => { $map.serialize_entry($name, &$value)? };
    (emit opt $map:ident $name:ident $value:expr) => {
        if !$value.is_absent() { $map.serialize_entry($name, &$value)? }
    };
}

/// Declares a group of optional fields that several wire structs embed.
macro_rules! embedded_fields {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ident $(or $number:ident)? $(= $key:literal)? $(| $alt:literal)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $crate::Maybe<$ty>, )*
            /// Which of two keys each field had.
            pub spelling: $crate::Spelling,
        }

        impl $name {
            /// Reads the value if `key` is one of these fields; returns `false` otherwise.
            pub(crate) fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
                #[allow(non_camel_case_types, dead_code)]
                enum FieldIndex { $($field),* }
                match key {
                    $(
                        $crate::macros::key!($field $($key)?) if !self.spelling.is_set(FieldIndex::$field as u32) => {
                            self.$field = $crate::macros::embedded_field!(read self map ($crate::macros::key!($field $($key)?)) $ty $($number)?);
                        }
                        $( $alt if self.$field.is_absent() => {
                            self.$field = $crate::macros::name_field_in_error($alt, map.next_value())?;
                            self.spelling.set(FieldIndex::$field as u32);
                        } )?
                    )*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            pub(crate) fn write_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                #[allow(non_camel_case_types, dead_code)]
                enum FieldIndex { $($field),* }
                $(
                    if !self.$field.is_absent() {
                        #[allow(unused_mut)]
                        let mut name = $crate::macros::key!($field $($key)?);
                        $( if self.spelling.is_set(FieldIndex::$field as u32) { name = $alt; } )?
                        $crate::macros::embedded_field!(emit self map name (&self.$field) $($number)?);
                    }
                )*
                Ok(())
            }
        }
    };
}

/// How a field of [`embedded_fields!`] is read and written. `or number` fields also accept a number, keep its
/// digits as text, and write a number again.
macro_rules! embedded_field {
    (read $self:ident $map:ident ($key:expr) $ty:ident) => {
        $crate::macros::name_field_in_error($key, $map.next_value())?
    };
    (read $self:ident $map:ident ($key:expr) $ty:ident $number:ident) => {{
        let raw: $crate::Json = $map.next_value()?;
        if raw.text().starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            $self.spelling.set($crate::Spelling::NUMBER_BIT);
            $crate::Maybe::Value(raw.text().to_owned())
        } else {
            $crate::macros::name_field_in_error($key, raw.read()).map_err(serde::de::Error::custom)?
        }
    }};
    (emit $self:ident $map:ident $name:ident ($value:expr)) => {
        $map.serialize_entry($name, $value)?
    };
    (emit $self:ident $map:ident $name:ident ($value:expr) $number:ident) => {
        // The bit is also set in envelopes made for the stream, whose times are text.
        let digits = $value.text().filter(|_| $self.spelling.is_set($crate::Spelling::NUMBER_BIT));
        match digits.and_then(|text| text.parse::<serde_json::Number>().ok()) {
            Some(number) => $map.serialize_entry($name, &number)?,
            None => $map.serialize_entry($name, $value)?,
        }
    };
}

/// Declares an enum over a tag: known tags have a struct, any other tag is kept whole as `Unknown`, and a
/// known tag with an invalid body is an error that names the tag. Values that nest too deeply are kept whole
/// too.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $key:literal {
            $( $(#[$vmeta:meta])* $tag:literal => $variant:ident($ty:ty) ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant(Box<$ty>), )+
            /// A tag that this version does not know, kept whole.
            Unknown($crate::Unknown),
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Unknown($crate::Unknown::default())
            }
        }

        impl $name {
            /// Every tag that this version knows.
            pub const TAGS: &'static [&'static str] = &[$($tag),+];

            /// The tag on the wire, known or not.
            pub fn tag(&self) -> &str {
                match self {
                    $( Self::$variant(_) => $tag, )+
                    Self::Unknown(unknown) => unknown.tag(),
                }
            }

            /// Whether this version knows the tag.
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Unknown(_))
            }

            /// Reads an object with the given tag.
            pub(crate) fn from_tag(tag: Option<&str>, object: &str) -> serde_json::Result<Self> {
                // An object without the tag reads as the variant of the empty tag, if there is one.
                let level = $crate::macros::NestingGuard::enter();
                match level.is_some().then_some(tag.unwrap_or_default()) {
                    $( Some($tag) => serde_json::from_str(object).map(Self::$variant), )+
                    _ => Ok(Self::Unknown($crate::Unknown::new(tag, serde_json::from_str(object)?))),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let raw = <&serde_json::value::RawValue>::deserialize(d)?;
                // A value that is not an object has no tag.
                let tag = match raw.get().starts_with('{') {
                    true => $crate::text::find_string_field(raw.get(), $key).map_err(D::Error::custom)?,
                    false => return Ok(Self::Unknown($crate::Unknown::new(None, raw))),
                };
                let read = Self::from_tag(tag.as_deref(), raw.get());
                read.map_err(|e| D::Error::custom(format_args!("{}: {e}", tag.as_deref().unwrap_or_default())))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(value) => value.serialize(s), )+
                    Self::Unknown(unknown) => unknown.json().serialize(s),
                }
            }
        }
    };
}

/// Declares an enum of strings that accepts unknown strings.
macro_rules! open_str_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $word:literal => $variant:ident ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// A string that this version does not know, kept as it is.
            Other(Box<str>),
        }

        impl $name {
            /// Every string that this version knows.
            pub const KNOWN: &'static [&'static str] = &[$($word),+];

            /// The string on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Other(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other("".into())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $word => Self::$variant, )+
                    other => Self::Other(other.into()),
                }
            }
        }

        impl From<&str> for $crate::Maybe<$name> {
            fn from(word: &str) -> Self {
                Self::Value(word.into())
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        // Compared, ordered and hashed as their strings, which lets maps be searched by `&str`.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Ok(Self::from(&*$crate::text::Str::deserialize(d)?))
            }
        }
    };
}

/// Declares id types. They hold text, because ids of other programs need not be UUIDs.
macro_rules! ids {
    ($( $(#[$meta:meta])* $name:ident ),+ $(,)?) => { $(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl Default for $name {
            fn default() -> Self {
                Self("".into())
            }
        }

        impl $name {
            /// The id as it is on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Ok(Self::from(&*$crate::text::Str::deserialize(d)?))
            }
        }
    )+ };
}

pub(crate) use {embedded_field, embedded_fields, field_kind, ids, key, open_enum, open_str_enum, wire};

/// Adds the name of the field to an error.
pub(crate) fn name_field_in_error<T, E: serde::de::Error>(key: &str, read: Result<T, E>) -> Result<T, E> {
    read.map_err(|e| E::custom(format_args!("{key}: {e}")))
}

/// How many open enums may be nested. Real lines need five.
const MAX_NESTING: usize = 16;

thread_local! {
    static NESTING_DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts nested open enums. Each is read by a parser of its own, so the parser's own limit on nesting does
/// not count them all.
pub(crate) struct NestingGuard(());

impl NestingGuard {
    /// Enters one more level; `None` if that is too deep.
    pub(crate) fn enter() -> Option<Self> {
        let depth = NESTING_DEPTH.get();
        (depth < MAX_NESTING).then(|| {
            NESTING_DEPTH.set(depth + 1);
            Self(())
        })
    }
}

impl Drop for NestingGuard {
    fn drop(&mut self) {
        NESTING_DEPTH.set(NESTING_DEPTH.get() - 1);
    }
}
