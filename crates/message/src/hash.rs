//! The hash by which newer session files identify a message of an API call. If a message rebuilt from the
//! entries has a hash of the log, the rebuilt message equals the one that was sent.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Message;

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
    let mut value = serde_json::to_value(message).unwrap_or_default();
    if let Some(content) = value.get_mut("content")
        && let Value::String(text) = content
    {
        *content = serde_json::json!([{ "type": "text", "text": text }]);
    }
    json_hash(&value)
}

/// The hash of any value in canonical form.
pub fn json_hash(value: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(value, &mut text);
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(crate) fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().filter(|(key, _)| *key != "cache_control").collect();
            // JavaScript sorts by UTF-16 units.
            fields.sort_by(|(a, _), (b, _)| match a.is_ascii() && b.is_ascii() {
                true => a.cmp(b),
                false => a.encode_utf16().cmp(b.encode_utf16()),
            });
            out.push(b'{');
            for (i, (key, value)) in fields.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json(key, out);
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        // JavaScript has one kind of number and prints 1.0 as 1.
        Value::Number(n) if n.is_f64() && n.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 1e21) => {
            let _ = write!(out, "{:.0}", n.as_f64().unwrap_or_default());
        }
        other => write_json(other, out),
    }
}

fn write_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Writing strings and numbers to a vector does not fail.
    let _ = serde_json::to_writer(out, value);
}
