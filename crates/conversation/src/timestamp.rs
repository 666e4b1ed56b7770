//! Timestamps as transcripts write them.

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Numbers below this are seconds since 1970, larger ones milliseconds.
const MIN_MILLISECONDS: i64 = 100_000_000_000;

/// Parses a timestamp of a transcript; `None` if it is not one.
///
/// A time without an offset is taken as UTC. Digits alone are milliseconds since 1970,
/// or seconds if the number is small.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if let Some(time) = parse_usual_form(text.as_bytes()) {
        return Some(time);
    }
    if let Ok(number) = text.parse::<i64>() {
        let is_seconds = number < MIN_MILLISECONDS;
        return if is_seconds { Timestamp::from_second(number) } else { Timestamp::from_millisecond(number) }.ok();
    }
    let without_offset = || text.parse::<DateTime>().ok().and_then(|time| Offset::UTC.to_timestamp(time).ok());
    text.parse().ok().or_else(without_offset)
}

/// Parses the form that agents write, `2026-11-16T10:00:00.000Z`, faster than a general parser. `None` if it
/// has another form, or no such time exists.
fn parse_usual_form(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if punctuation.iter().any(|(at, byte)| text[*at] != *byte) {
        return None;
    }
    let number = |digits: Range<usize>| {
        text[digits]
            .iter()
            .try_fold(0_i16, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i16::from(byte - b'0')))
    };
    let small = |digits| number(digits).and_then(|number| i8::try_from(number).ok());
    let nanoseconds = i32::from(number(20..23)?) * 1_000_000;
    let time = DateTime::new(
        number(0..4)?,
        small(5..7)?,
        small(8..10)?,
        small(11..13)?,
        small(14..16)?,
        small(17..19)?,
        nanoseconds,
    );
    Offset::UTC.to_timestamp(time.ok()?).ok()
}

/// Converts a timestamp of digits to ISO 8601 text; returns anything else unchanged.
pub fn to_iso8601(text: &str) -> Cow<'_, str> {
    match parse_timestamp(text).filter(|_| text.parse::<i64>().is_ok()) {
        Some(time) => format!("{time:.3}").into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_form_is_read_as_the_general_parser_reads_it() {
        for text in ["2026-11-16T10:00:00.000Z", "1970-01-01T00:00:00.001Z", "2028-02-29T23:59:59.999Z"] {
            assert_eq!(parse_usual_form(text.as_bytes()), Some(text.parse().unwrap()), "{text}");
        }
        let others = [
            "2026-02-29T10:00:00.000Z",
            "2026-13-01T10:00:00.000Z",
            "2026-11-16T24:00:00.000Z",
            "2026-11-16T10:00:60.000Z",
            "2026-11-16t10:00:00.000z",
            "2026-11-16T10:00:00,000Z",
            "2026-11-16T10:00:00.0000",
            "2026-11-16T+1:00:00.000Z",
            "-026-11-16T10:00:00.000Z",
            "2026-11-16T10:00:00Z",
        ];
        for text in others {
            assert_eq!(parse_usual_form(text.as_bytes()), None, "{text}");
        }
    }
}
