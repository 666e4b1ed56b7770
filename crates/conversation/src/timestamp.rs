//! Timestamps as transcripts write them.

use std::borrow::Cow;

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
    if let Ok(number) = text.parse::<i64>() {
        let is_seconds = number < MIN_MILLISECONDS;
        return if is_seconds { Timestamp::from_second(number) } else { Timestamp::from_millisecond(number) }.ok();
    }
    let without_offset = || text.parse::<DateTime>().ok().and_then(|time| Offset::UTC.to_timestamp(time).ok());
    text.parse().ok().or_else(without_offset)
}

/// Converts a timestamp of digits to ISO 8601 text; returns anything else unchanged.
pub fn to_iso8601(text: &str) -> Cow<'_, str> {
    match parse_timestamp(text).filter(|_| text.parse::<i64>().is_ok()) {
        Some(time) => format!("{time:.3}").into(),
        None => text.into(),
    }
}
