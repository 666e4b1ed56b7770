//! The parameters `since` and `until`: a day or a time.

use axum::http::StatusCode;
use jiff::civil::Date;
use jiff::{Span, Timestamp, Zoned};
use quipu_index::TimeWindow;

use crate::error::ApiError;

/// The window from the start of `since` to the end of `until`, each a day such as `2026-11-16`, in
/// the time zone of `now`, or a time such as `2026-11-16T10:00:00Z`.
pub(crate) fn time_window(since: Option<&str>, until: Option<&str>, now: &Zoned) -> Result<TimeWindow, ApiError> {
    let zone = now.time_zone().clone();
    let parse = |text: &str, days: i64| -> Result<Timestamp, ApiError> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(time);
        }
        let day = text.parse::<Date>().ok().and_then(|day| day.checked_add(Span::new().days(days)).ok());
        let start = day.and_then(|day| day.to_zoned(zone.clone()).ok());
        start.map(|start| start.timestamp()).ok_or_else(|| {
            ApiError::new(StatusCode::BAD_REQUEST, "query.time", format!("'{text}' is neither a day nor a time"))
                .with_hint("use 2026-11-16 or 2026-11-16T10:00:00Z")
        })
    };
    let given = |text: Option<&'_ str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(TimeWindow {
        since: given(since).map(|text| parse(&text, 0)).transpose()?,
        until: given(until).map(|text| parse(&text, 1)).transpose()?,
        zone: zone.clone(),
    })
}
