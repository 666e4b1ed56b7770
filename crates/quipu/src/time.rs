//! Parses and formats times.

use std::ops::Range;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit, Zoned};

#[cfg(test)]
mod tests;

/// The current time in the time zone of this machine.
///
/// `QUIPU_TEST_NOW` replaces the clock, so that tests can compare whole outputs.
#[expect(clippy::disallowed_methods, reason = "the clock of the command")]
pub(crate) fn now() -> Zoned {
    let fixed = crate::environment::text_var("QUIPU_TEST_NOW").and_then(|text| text.parse::<Timestamp>().ok());
    fixed.map_or_else(Zoned::now, |now| now.to_zoned(TimeZone::system()))
}

/// A timestamp in the local time zone, to the minute; unchanged if it cannot be parsed.
pub(crate) fn format_local_time(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

/// A timestamp in the local time zone with its abbreviation; unchanged if it cannot be parsed.
pub(crate) fn local_time_with_zone(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

/// Parses `Europe/Berlin`, `UTC` or an offset such as `+09:00`.
pub(crate) fn parse_time_zone(text: &str) -> Result<TimeZone, &'static str> {
    let parsed = DateTimeParser::new().parse_time_zone(text);
    parsed.map_err(|_| "expected a time zone such as 'Europe/Berlin', 'UTC' or '+09:00'")
}

/// The value of `--since` or `--until`.
///
/// Each value is a period: `yesterday` and `2026-11-14` are a day, `2026-11` is a month, `12h
/// ago` is an instant. `--since` uses its start and `--until` its end, so that both include the
/// period. Parsers of natural dates such as `interim` return instants only, so the few words are
/// matched here and the rest is left to jiff.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TimeArg {
    Instant(Timestamp),
    /// A time without a zone: in the local zone or that of `--timezone`.
    Local(DateTime),
    /// Today at this time.
    Clock(Time),
    /// This long before now.
    Ago(AgoSpan),
    Day(Date),
    /// The most recent such day, today included.
    Weekday(Weekday),
    /// This many days before today; 0 is today.
    DaysAgo(i64),
    /// The year, month or week this many before the current one.
    PeriodsAgo(Unit, i64),
    /// The month that begins on this day.
    Month(Date),
    /// The year that begins on this day.
    Year(Date),
}

/// A span that compares by its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgoSpan(Span);

impl PartialEq for AgoSpan {
    fn eq(&self, other: &Self) -> bool {
        self.0.fieldwise() == other.0.fieldwise()
    }
}

impl TimeArg {
    /// The period of this value, relative to `now` and in its time zone.
    pub(crate) fn period(&self, now: &Zoned) -> Range<Timestamp> {
        let zone = now.time_zone();
        let start_of = |date: Date| date.to_zoned(zone.clone()).map_or(Timestamp::MAX, |zoned| zoned.timestamp());
        let days = |first: Date, span: Span| start_of(first)..start_of(first.saturating_add(span));
        let at = |instant: Timestamp| instant..instant;
        let local = |time: DateTime| at(time.to_zoned(zone.clone()).map_or(Timestamp::MAX, |zoned| zoned.timestamp()));
        let today = now.date();
        match *self {
            Self::Instant(instant) => at(instant),
            Self::Local(time) => local(time),
            Self::Clock(time) => local(today.to_datetime(time)),
            Self::Ago(AgoSpan(span)) => at(now.saturating_sub(span).timestamp()),
            Self::Day(day) => days(day, Span::new().days(1)),
            Self::DaysAgo(n) => days(today.saturating_sub(Span::new().days(n)), Span::new().days(1)),
            Self::Weekday(weekday) => {
                let back = i64::from(weekday.until(today.weekday()));
                days(today.saturating_sub(Span::new().days(back)), Span::new().days(1))
            }
            Self::PeriodsAgo(Unit::Week, n) => {
                let monday = today.saturating_sub(Span::new().days(today.weekday().to_monday_zero_offset()));
                days(monday.saturating_sub(Span::new().weeks(n)), Span::new().weeks(1))
            }
            Self::PeriodsAgo(Unit::Month, n) => {
                days(today.first_of_month().saturating_sub(Span::new().months(n)), Span::new().months(1))
            }
            Self::PeriodsAgo(_, n) => {
                days(today.first_of_year().saturating_sub(Span::new().years(n)), Span::new().years(1))
            }
            Self::Month(first) => days(first, Span::new().months(1)),
            Self::Year(first) => days(first, Span::new().years(1)),
        }
    }
}

impl FromStr for TimeArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().to_lowercase();
        let read = parse_word(&text).or_else(|| parse_calendar(&text)).or_else(|| parse_span(&text));
        read.ok_or("expected a date, a time or a span such as '2 weeks ago'")
    }
}

fn parse_word(text: &str) -> Option<TimeArg> {
    Some(match text {
        "now" => TimeArg::Ago(AgoSpan(Span::new())),
        "today" => TimeArg::DaysAgo(0),
        "yesterday" => TimeArg::DaysAgo(1),
        "this week" => TimeArg::PeriodsAgo(Unit::Week, 0),
        "last week" => TimeArg::PeriodsAgo(Unit::Week, 1),
        "this month" => TimeArg::PeriodsAgo(Unit::Month, 0),
        "last month" => TimeArg::PeriodsAgo(Unit::Month, 1),
        "this year" => TimeArg::PeriodsAgo(Unit::Year, 0),
        "last year" => TimeArg::PeriodsAgo(Unit::Year, 1),
        "mon" | "monday" => TimeArg::Weekday(Weekday::Monday),
        "tue" | "tuesday" => TimeArg::Weekday(Weekday::Tuesday),
        "wed" | "wednesday" => TimeArg::Weekday(Weekday::Wednesday),
        "thu" | "thursday" => TimeArg::Weekday(Weekday::Thursday),
        "fri" | "friday" => TimeArg::Weekday(Weekday::Friday),
        "sat" | "saturday" => TimeArg::Weekday(Weekday::Saturday),
        "sun" | "sunday" => TimeArg::Weekday(Weekday::Sunday),
        _ => return None,
    })
}

/// Dates and times: from a full timestamp down to a year or a time of day.
fn parse_calendar(text: &str) -> Option<TimeArg> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| text.parse::<i16>().ok().filter(|_| digits(text));
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(TimeArg::Instant(instant));
    }
    match text.split_once('-') {
        None if text.len() == 4 => return Date::new(number(text)?, 1, 1).ok().map(TimeArg::Year),
        Some((year, month)) if year.len() == 4 && (1..=2).contains(&month.len()) => {
            let month = i8::try_from(number(month)?).ok()?;
            return Date::new(number(year)?, month, 1).ok().map(TimeArg::Month);
        }
        _ => {}
    }
    let has_time = text.contains(':');
    if let Some(time) = has_time.then(|| text.parse::<DateTime>().ok()).flatten() {
        return Some(TimeArg::Local(time));
    }
    if let Some(time) = has_time.then(|| text.parse::<Time>().ok()).flatten() {
        return Some(TimeArg::Clock(time));
    }
    text.parse::<Date>().ok().map(TimeArg::Day)
}

/// How long ago: `7d`, `12h ago`, `2 weeks`, `1mo`, `1 year 2 months ago`.
fn parse_span(text: &str) -> Option<TimeArg> {
    let span = text.parse::<Span>().ok()?.abs();
    now().checked_sub(span).ok()?;
    Some(TimeArg::Ago(AgoSpan(span)))
}
