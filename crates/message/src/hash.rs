//! The hash by which newer session files identify a message of an API call. If a message rebuilt from the
//! entries has a hash of the log, the rebuilt message equals the one that was sent.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::Write as _;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use sha2::{Digest, Sha256};

use crate::text::Str;
use crate::{Json, Message};

/// The hash of a message: SHA-256 of compact JSON with sorted keys, without `cache_control`, and with a
/// string `content` as one text block.
///
/// ```
/// use quipu_message::hash::message_hash;
/// use quipu_message::{Block, Message, Role};
/// let text = Message::new(Role::User, "hi");
/// let block = Message::new(Role::User, vec![Block::new_text("hi")]);
/// assert_eq!(message_hash(&text), message_hash(&block));
/// ```
pub fn message_hash(message: &Message) -> String {
    let json = Json::from_serialize(message);
    let mut tree = Tree::read(json.text());
    if let Tree::Object(fields) = &mut tree
        && let Some((_, content)) = fields.iter_mut().find(|(key, _)| &**key == "content")
        && let Tree::Text(text) = content
    {
        let field = |key: &'static str, text| (Str(Cow::Borrowed(key)), Tree::Text(text));
        let block = vec![field("type", Str(Cow::Borrowed("text"))), field("text", std::mem::take(text))];
        *content = Tree::Array(vec![Tree::Object(block)]);
    }
    tree.hash()
}

/// The hash of any value in canonical form; `None` if the value nests too deeply or contains half a surrogate pair.
pub fn json_hash(json: &Json) -> Option<String> {
    serde_json::from_str(json.text()).ok().map(Tree::hash)
}

/// JSON with sorted keys and without `cache_control`; `null` if the text nests too deeply or contains half a surrogate
/// pair.
pub(crate) fn canonical_json(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    Tree::read(text).write(&mut out);
    out
}

/// A JSON value whose strings are borrowed from its text.
enum Tree<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Str<'a>),
    Array(Vec<Tree<'a>>),
    Object(Vec<(Str<'a>, Tree<'a>)>),
}

impl<'a> Tree<'a> {
    fn read(text: &'a str) -> Self {
        serde_json::from_str(text).unwrap_or(Self::Null)
    }

    fn hash(self) -> String {
        let mut text = Vec::new();
        self.write(&mut text);
        Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => write_json(&value, out),
            Self::Unsigned(number) => write_json(&number, out),
            Self::Signed(number) => write_json(&number, out),
            // JavaScript has one kind of number and prints 1.0 as 1.
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e21 => {
                let _ = write!(out, "{number:.0}");
            }
            Self::Float(number) => write_json(&number, out),
            Self::Text(text) => write_json(&*text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (i, item) in items.into_iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(mut fields) => {
                fields.retain(|(key, _)| &**key != "cache_control");
                // JavaScript sorts by UTF-16 units.
                fields.sort_by(|(a, _), (b, _)| match a.is_ascii() && b.is_ascii() {
                    true => (**a).cmp(&**b),
                    false => a.encode_utf16().cmp(b.encode_utf16()),
                });
                out.push(b'{');
                let mut is_first = true;
                let mut fields = fields.into_iter().peekable();
                while let Some((key, value)) = fields.next() {
                    // The last of equal keys counts.
                    if fields.peek().is_some_and(|(next, _)| *next == key) {
                        continue;
                    }
                    if !std::mem::take(&mut is_first) {
                        out.push(b',');
                    }
                    write_json(&*key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct TreeVisitor;
        impl<'de> Visitor<'de> for TreeVisitor {
            type Value = Tree<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Tree::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Tree::Bool(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Tree::Unsigned(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Tree::Signed(value))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Tree::Float(value))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Tree::Text(Str(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Tree::Text(Str(Cow::Owned(text.to_owned()))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Tree::Array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Tree::Object(fields))
            }
        }
        d.deserialize_any(TreeVisitor)
    }
}

fn write_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Writing strings and numbers to a vector does not fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_has_sorted_keys_and_no_breakpoints() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8(canonical_json(text)).unwrap(), expected, "{text}");
        };
        check(
            r#" { "b" : [ 1 , 2.0 , -3 , 1e3 , 0.5, -0, 18446744073709551615, 18446744073709551616 ] , "a" : null } "#,
            r#"{"a":null,"b":[1,2,-3,1000,0.5,-0,18446744073709551615,18446744073709551616]}"#,
        );
        check(r#"{"x":{"cache_control":{"type":"ephemeral"},"t":true},"cache_control":1}"#, r#"{"x":{"t":true}}"#);
        // The last of equal keys counts.
        check(r#"{"a":1,"b":2,"a":3,"\u0061":4}"#, r#"{"a":4,"b":2}"#);
        check(r#"["\u0041\/\n\u007f\u00e9","\ud83d\ude00"]"#, "[\"A/\\n\u{7f}é\",\"😀\"]");
        // U+FF5E is after U+1F600 by code unit, and before it by code point.
        check(r#"{"～":1,"😀":2,"z":3}"#, r#"{"z":3,"😀":2,"～":1}"#);
        check(r#"["\ud800"]"#, "null");
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        check(&nested(127), &nested(127));
        check(&nested(128), "null");
    }

    #[test]
    fn a_text_is_hashed_as_a_block() {
        let hash = |text: &str| message_hash(&serde_json::from_str::<Message>(text).unwrap());
        let text = hash(r#"{"role":"user","content":"a\nb"}"#);
        assert_eq!(text, hash(r#"{"content":[{"text":"a\nb","type":"text"}],"role":"user"}"#));
        let json = Json::parse(r#"{"role":"user","content":[{"type":"text","text":"a\nb"}]}"#).unwrap();
        assert_eq!(Some(text), json_hash(&json));
        assert_eq!(json_hash(&Json::parse(r#""\ud800""#).unwrap()), None);
    }
}
