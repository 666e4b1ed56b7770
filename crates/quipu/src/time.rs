//! Moments as people say and read them.

use anyhow::Result;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use crate::error::Failure;

/// A timestamp on the clock of whoever reads; as it is when it cannot be read.
pub(crate) fn local_time(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

/// Reads `2026-11-15`, a full time, or how long ago: `7d`, `12h`, `30m`, `2w`.
pub(crate) fn moment(text: &str) -> Result<Timestamp> {
    moment_in(text, &TimeZone::system())
}

/// The same, with days that begin where `zone` says.
pub(crate) fn moment_in(text: &str, zone: &TimeZone) -> Result<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(time) = text.parse::<Date>().and_then(|day| day.to_zoned(zone.clone())) {
        return Ok(time.timestamp());
    }
    let unit = text.chars().last().unwrap_or_default();
    let number = text.get(..text.len().saturating_sub(unit.len_utf8())).and_then(|n| n.parse::<i64>().ok());
    let span = match (number, unit) {
        (Some(n), 'm') => Span::new().try_minutes(n),
        (Some(n), 'h') => Span::new().try_hours(n),
        (Some(n), 'd') => Span::new().try_days(n),
        (Some(n), 'w') => Span::new().try_weeks(n),
        _ => {
            let hint = "say it as 2026-11-15, 2026-11-15T09:00:00Z, or how long ago: 30m, 12h, 7d, 2w";
            return Err(Failure::error("usage.time", format!("cannot read {text} as a time"), hint));
        }
    };
    Ok(Zoned::now().checked_sub(span?)?.timestamp())
}
