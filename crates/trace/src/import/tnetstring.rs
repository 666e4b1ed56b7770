//! Typed netstrings, in which mitmproxy writes its flows: `LENGTH:BYTES` and a type character.

use std::io::{self, BufRead, Read};

/// A value of a tnetstring, borrowed from its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// Bytes, text, or a number as text: what mitmproxy reads as a scalar.
    Scalar(&'a [u8]),
    Null,
    List(Vec<Value<'a>>),
    /// Keys and values in order.
    Dict(Vec<(Value<'a>, Value<'a>)>),
}

/// Values may be nested this deep; flows are nested less.
const MAX_DEPTH: usize = 16;

/// Digits of a length; 999,999,999 bytes are more than any flow.
const MAX_LENGTH_DIGITS: usize = 9;

impl<'a> Value<'a> {
    /// Reads one value at the start of the bytes, and returns what follows it. `None` if the
    /// bytes are malformed.
    pub(super) fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Self::read_nested(bytes, MAX_DEPTH)
    }

    fn read_nested(bytes: &'a [u8], depth: usize) -> Option<(Self, &'a [u8])> {
        let colon = bytes.iter().take(MAX_LENGTH_DIGITS + 1).position(|&byte| byte == b':')?;
        let length: usize = std::str::from_utf8(&bytes[..colon]).ok()?.parse().ok()?;
        let rest = &bytes[colon + 1..];
        let (payload, rest) = rest.split_at_checked(length)?;
        let (&kind, rest) = rest.split_first()?;
        let value = match kind {
            b',' | b';' | b'#' | b'^' | b'!' => Self::Scalar(payload),
            b'~' => Self::Null,
            b']' => Self::List(read_all(payload, depth.checked_sub(1)?)?),
            b'}' => {
                let mut items = read_all(payload, depth.checked_sub(1)?)?.into_iter();
                let mut fields = Vec::with_capacity(items.len() / 2);
                while let Some(key) = items.next() {
                    fields.push((key, items.next()?));
                }
                Self::Dict(fields)
            }
            _ => return None,
        };
        Some((value, rest))
    }

    /// A field of a dict; `None` if it is absent or `null`.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Self::Dict(fields) = self else { return None };
        let found = fields.iter().find(|(key, _)| key.bytes() == Some(name.as_bytes()));
        found.map(|(_, value)| value).filter(|value| **value != Self::Null)
    }

    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        if let Self::Scalar(bytes) = self { Some(bytes) } else { None }
    }

    /// A scalar as text; bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self) -> Option<std::borrow::Cow<'a, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    pub(super) fn number(&self) -> Option<f64> {
        self.text()?.parse().ok()
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }
}

fn read_all(mut bytes: &[u8], depth: usize) -> Option<Vec<Value<'_>>> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let (item, rest) = Value::read_nested(bytes, depth)?;
        items.push(item);
        bytes = rest;
    }
    Some(items)
}

/// Reads the bytes of the next tnetstring of a file into `buffer`. Returns false at the end of
/// the file. Memory follows the bytes that are there, not the length that the file gives.
pub(super) fn read_bytes(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    input.take(MAX_LENGTH_DIGITS as u64 + 1).read_until(b':', buffer)?;
    if buffer.is_empty() {
        return Ok(false);
    }
    let length = std::str::from_utf8(buffer).ok().and_then(|text| text.strip_suffix(':')?.parse::<u64>().ok());
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "not a tnetstring");
    let length = length.ok_or_else(malformed)?;
    input.take(length + 1).read_to_end(buffer)?;
    Ok(true)
}
