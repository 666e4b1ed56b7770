//! A fast reader for lines of the usual form: counting usage reads gigabytes, and serde spends most of the
//! time on the strings of fields that are skipped.
//!
//! It returns either what serde would return or `None`, and then serde reads the line. So it handles only
//! what most lines have: keys and texts without escapes, and values of the expected type or `null`.
//! Everything else is skipped, but its syntax is checked.

#[cfg(test)]
mod tests;

use super::{Str, TimeStr};

/// A type that can be read without serde.
pub(crate) trait FastRead<'a>: Sized {
    /// Reads the next value, which is not `null`, into `out`; `None` if serde must read the line.
    ///
    /// It is filled in place, because moving a struct with many fields is slow.
    fn fast_read(cursor: &mut JsonCursor<'a>, out: &mut Option<Self>) -> Option<()>;
}

/// Reads a whole line; `None` if serde must read it.
pub(crate) fn fast_read_line<'a, T: FastRead<'a>>(line: &'a [u8]) -> Option<T> {
    // No string may contain control characters. Agents write none between values either.
    let (min, bits) = line.iter().fold((u8::MAX, 0), |(min, bits), byte| (min.min(*byte), bits | byte));
    if min < b' ' {
        return None;
    }
    let mut cursor = JsonCursor { bytes: line, at: 0, depth: 0, is_ascii: bits.is_ascii() };
    let mut value = None;
    T::fast_read(&mut cursor, &mut value)?;
    value.filter(|_| cursor.peek().is_none())
}

/// Declares a [`borrowed!`] struct that can also be read without serde.
macro_rules! fast_borrowed {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(<$lt:lifetime>)? {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ty $(= $key:literal)? $(| $alt:literal)* ),* $(,)?
        }
    ) => {
        $crate::view::borrowed! {
            $(#[$meta])*
            pub struct $name $(<$lt>)? {
                $( $(#[$fmeta])* $field: $ty $(= $key)? $(| $alt)* ),*
            }
        }

        impl<'de $(: $lt, $lt: 'de)?> $crate::view::fast_read::FastRead<'de> for $name $(<$lt>)? {
            fn fast_read(
                cursor: &mut $crate::view::fast_read::JsonCursor<'de>,
                out: &mut Option<Self>,
            ) -> Option<()> {
                let out = out.insert(Self::default());
                cursor.read_object(|cursor, key| {
                    let key = cursor.plain_key(key)?;
                    $( if key == $crate::macros::key!($field $($key)?).as_bytes() $(|| key == $alt.as_bytes())* {
                        return cursor.read_nullable(&mut out.$field);
                    } )*
                    cursor.skip_value()
                })
            }
        }
    };
}
pub(crate) use fast_borrowed;

impl<'a> FastRead<'a> for Str<'a> {
    fn fast_read(cursor: &mut JsonCursor<'a>, out: &mut Option<Self>) -> Option<()> {
        *out = Some(cursor.read_text()?);
        Some(())
    }
}

impl<'a> FastRead<'a> for TimeStr<'a> {
    fn fast_read(cursor: &mut JsonCursor<'a>, out: &mut Option<Self>) -> Option<()> {
        *out = Some(Self(cursor.read_text()?));
        Some(())
    }
}

impl FastRead<'_> for u64 {
    fn fast_read(cursor: &mut JsonCursor<'_>, out: &mut Option<Self>) -> Option<()> {
        let value = cursor.read_number()?.iter().try_fold(0_u64, |value, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            value.checked_mul(10)?.checked_add(digit)
        });
        *out = Some(value?);
        Some(())
    }
}

/// A place in a line.
pub(crate) struct JsonCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    is_ascii: bool,
}

/// Deeper values are left to serde, which does not recurse.
const MAX_DEPTH: u32 = 64;

/// A JSON string as written, without its quotes.
#[derive(Clone, Copy)]
pub(crate) struct RawString<'a> {
    bytes: &'a [u8],
    has_escapes: bool,
}

impl<'a> JsonCursor<'a> {
    /// The key; `None` if it may be another one than its bytes, or is not UTF-8.
    #[inline]
    pub(crate) fn plain_key(&self, key: RawString<'a>) -> Option<&'a [u8]> {
        (!key.has_escapes && (self.is_ascii || key.bytes.is_ascii())).then_some(key.bytes)
    }

    /// The next byte after spaces; `None` at the end.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        while *self.bytes.get(self.at)? == b' ' {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Passes over an expected byte.
    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes over a list of things in brackets, separated by commas; `read_item` reads each.
    fn read_list(&mut self, brackets: [u8; 2], mut read_item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let [open, close] = brackets;
        self.expect(open)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        if self.peek()? != close {
            read_item(self)?;
            while self.peek()? == b',' {
                self.at += 1;
                read_item(self)?;
            }
        }
        self.depth -= 1;
        self.expect(close)
    }

    /// Reads an object; `read_value` is called at the value of each key and must pass over it.
    pub(crate) fn read_object(
        &mut self,
        mut read_value: impl FnMut(&mut Self, RawString<'a>) -> Option<()>,
    ) -> Option<()> {
        self.read_list(*b"{}", |cursor| {
            let key = cursor.read_string()?;
            cursor.expect(b':')?;
            read_value(cursor, key)
        })
    }

    /// Reads a value that may be `null`.
    pub(crate) fn read_nullable<T: FastRead<'a>>(&mut self, out: &mut Option<T>) -> Option<()> {
        if self.peek()? == b'n' {
            *out = None;
            return self.skip_literal(b"null");
        }
        T::fast_read(self, out)
    }

    /// Reads a string without escapes.
    fn read_text(&mut self) -> Option<Str<'a>> {
        let text = self.read_string()?;
        if text.has_escapes {
            return None;
        }
        std::str::from_utf8(text.bytes).ok().map(|text| Str(text.into()))
    }

    /// Reads any value as written.
    pub(crate) fn read_json_text(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        self.skip_value()?;
        std::str::from_utf8(self.bytes.get(start..self.at)?).ok()
    }

    /// Passes over any value and checks its syntax.
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.read_string().map(|_| ()),
            b'{' => self.read_object(|cursor, _| cursor.skip_value()),
            b'[' => self.read_list(*b"[]", Self::skip_value),
            b't' => self.skip_literal(b"true"),
            b'f' => self.skip_literal(b"false"),
            b'n' => self.skip_literal(b"null"),
            _ => self.read_number().map(|_| ()),
        }
    }

    fn skip_literal(&mut self, literal: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(literal).then(|| self.at += literal.len())
    }

    #[inline]
    fn read_string(&mut self) -> Option<RawString<'a>> {
        self.expect(b'"')?;
        let start = self.at;
        self.skip_plain();
        let mut has_escapes = false;
        while *self.bytes.get(self.at)? != b'"' {
            has_escapes = true;
            self.at += escape_len(&self.bytes[self.at..])?;
            self.skip_plain();
        }
        let bytes = self.bytes.get(start..self.at)?;
        self.at += 1;
        Some(RawString { bytes, has_escapes })
    }

    /// Passes over bytes before the next quote or backslash.
    ///
    /// Eight bytes are compared at a time, which is faster than `memchr2` for the short strings of a line.
    /// In `x - 1` of a byte that is zero the highest bit becomes set, in others only if it was set before or a
    /// lower byte borrowed, so the lowest bit that is found is right.
    #[inline]
    fn skip_plain(&mut self) {
        const fn repeat(byte: u8) -> u64 {
            u64::from_le_bytes([byte; 8])
        }
        let is_zero = |word: u64| word.wrapping_sub(repeat(1)) & !word;
        while let Some(word) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*word);
            let found = (is_zero(word ^ repeat(b'"')) | is_zero(word ^ repeat(b'\\'))) & repeat(0x80);
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while self.bytes.get(self.at).is_some_and(|byte| !matches!(byte, b'"' | b'\\')) {
            self.at += 1;
        }
    }

    /// Reads a number as written.
    #[inline]
    fn read_number(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.skip_byte(b"-");
        let begins_with_zero = self.bytes.get(self.at) == Some(&b'0');
        if self.skip_digits()? > 1 && begins_with_zero {
            return None;
        }
        if self.skip_byte(b".") {
            self.skip_digits()?;
        }
        if self.skip_byte(b"eE") {
            self.skip_byte(b"+-");
            self.skip_digits()?;
        }
        self.bytes.get(start..self.at)
    }

    /// Passes over one of some bytes, if it is next.
    #[inline]
    fn skip_byte(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.bytes.get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes over digits; returns their number, or `None` if there are none.
    #[inline]
    fn skip_digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

/// Length of the escape at the start of a text; `None` if it is not one.
fn escape_len(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}
