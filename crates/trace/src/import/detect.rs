//! Recognises the format of a file by its first bytes.

use std::io::{self, Cursor, Read};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::CaptureFormat;

/// Bytes that are looked at. The first line of a capture may be longer; its first keys are
/// enough.
const HEAD_BYTES: u64 = 256 << 10;

const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Reads the first bytes of a file and recognises their format. `None` if it is unknown.
pub(super) fn read_head(input: &mut impl Read) -> io::Result<(Cursor<Vec<u8>>, Option<CaptureFormat>)> {
    let mut head = Vec::new();
    input.take(HEAD_BYTES).read_to_end(&mut head)?;
    let format = format_of(&head);
    Ok((Cursor::new(head), format))
}

fn format_of(head: &[u8]) -> Option<CaptureFormat> {
    if head.starts_with(SQLITE_MAGIC) {
        return Some(CaptureFormat::ClaudeTapDatabase);
    }
    if head.starts_with(crate::capture::import::MAGIC) {
        return Some(CaptureFormat::Capture);
    }
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    if is_tnetstring(head) {
        return Some(CaptureFormat::Mitmproxy);
    }
    // A document may be spread over lines, and a damaged line may come before a good one.
    format_of_object(head).or_else(|| head.split(|&byte| byte == b'\n').find_map(format_of_object))
}

/// Whether the text starts with a length, a colon and no JSON.
fn is_tnetstring(head: &[u8]) -> bool {
    let digits = head.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=12).contains(&digits) && head.get(digits) == Some(&b':')
}

fn format_of_object(text: &[u8]) -> Option<CaptureFormat> {
    let mut keys = Keys::default();
    // The text may be cut off; the keys before the cut are kept.
    let _ = (&mut keys).deserialize(&mut serde_json::Deserializer::from_slice(text));
    let has = |key: &str| keys.names.iter().any(|name| name == key);
    let has_all = |list: &[&str]| list.iter().all(|key| has(key));
    if has("log.entries") || has_all(&["log.version", "log.creator"]) {
        Some(CaptureFormat::Har)
    } else if has_all(&["n", "t", "method", "path"]) {
        Some(CaptureFormat::Recording)
    } else if has("request_id") && has("turn") && has("request") {
        Some(CaptureFormat::ClaudeTap)
    } else if has_all(&["request.timestamp", "request.method", "request.url"]) {
        Some(CaptureFormat::ClaudeTrace)
    } else if has_all(&["timestamp", "url", "method", "body"]) && !has("type") {
        Some(CaptureFormat::CcViewer)
    } else if has("type") {
        Some(CaptureFormat::Session)
    } else {
        None
    }
}

/// Names of the fields of an object, and of objects in it as `outer.inner`.
#[derive(Default)]
struct Keys {
    names: Vec<String>,
    outer: Option<String>,
}

impl<'de> DeserializeSeed<'de> for &mut Keys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Keys {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match &self.outer {
                Some(outer) => {
                    self.names.push(format!("{outer}.{key}"));
                    map.next_value::<IgnoredAny>()?;
                }
                None => {
                    self.names.push(key.clone());
                    self.outer = Some(key);
                    map.next_value_seed(&mut *self)?;
                    self.outer = None;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
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

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
