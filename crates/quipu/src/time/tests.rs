use super::*;

/// Sunday noon in Berlin.
fn noon() -> Zoned {
    "2026-11-15T12:00:00+01:00[Europe/Berlin]".parse().unwrap()
}

#[track_caller]
fn check(text: &str, start: &str, end: &str) {
    let period = text.parse::<TimeArg>().unwrap().period(&noon());
    let shown = |time: Timestamp| time.to_zoned(noon().time_zone().clone()).strftime("%Y-%m-%d %H:%M").to_string();
    assert_eq!((shown(period.start).as_str(), shown(period.end).as_str()), (start, end), "{text}");
}

#[test]
fn days_months_and_years_are_whole_periods() {
    check("today", "2026-11-15 00:00", "2026-11-16 00:00");
    check("Yesterday", "2026-11-14 00:00", "2026-11-15 00:00");
    check("2026-11-08", "2026-11-08 00:00", "2026-11-09 00:00");
    check("20261108", "2026-11-08 00:00", "2026-11-09 00:00");
    check("2026-11", "2026-11-01 00:00", "2026-12-01 00:00");
    check("2025-12", "2025-12-01 00:00", "2026-01-01 00:00");
    check("2026", "2026-01-01 00:00", "2027-01-01 00:00");
    check("this week", "2026-11-09 00:00", "2026-11-16 00:00");
    check("last week", "2026-11-02 00:00", "2026-11-09 00:00");
    check("last month", "2026-10-01 00:00", "2026-11-01 00:00");
    check("last year", "2025-01-01 00:00", "2026-01-01 00:00");
}

#[test]
fn a_weekday_is_the_most_recent_one_today_included() {
    check("monday", "2026-11-09 00:00", "2026-11-10 00:00");
    check("sat", "2026-11-14 00:00", "2026-11-15 00:00");
    check("sunday", "2026-11-15 00:00", "2026-11-16 00:00");
}

#[test]
fn spans_count_back_from_now() {
    for (text, then) in [
        ("7d", "2026-11-08 12:00"),
        ("12h ago", "2026-11-15 00:00"),
        ("30m", "2026-11-15 11:30"),
        ("2 weeks ago", "2026-11-01 12:00"),
        ("2w", "2026-11-01 12:00"),
        ("1mo", "2026-10-15 12:00"),
        ("1y", "2025-11-15 12:00"),
        ("1 year 2 months ago", "2025-09-15 12:00"),
        ("now", "2026-11-15 12:00"),
    ] {
        check(text, then, then);
    }
}

#[test]
fn times_are_instants_in_the_zone_that_counts() {
    for (text, then) in [
        ("09:30", "2026-11-15 09:30"),
        ("2026-11-08 09:30", "2026-11-08 09:30"),
        ("2026-11-08T09:30:00Z", "2026-11-08 10:30"),
        ("2026-11-08T09:30:00+09:00", "2026-11-08 01:30"),
    ] {
        check(text, then, then);
    }
}

#[test]
fn a_day_with_a_clock_change_has_its_own_length() {
    let period = "2026-10-25".parse::<TimeArg>().unwrap().period(&noon());
    assert_eq!(period.end.duration_since(period.start).as_hours(), 25);
}

#[test]
fn whatever_is_no_time_is_refused() {
    for text in ["", " ", "2 weekz", "someday", "99999999999d", "2026-13", "2026-02-30", "25:00", "7", "d", "20000y"] {
        assert!(text.parse::<TimeArg>().is_err(), "{text}");
    }
}

#[test]
fn time_zones_are_names_or_offsets() {
    for text in ["Europe/Berlin", "UTC", "+09:00", "-03"] {
        assert!(parse_time_zone(text).is_ok(), "{text}");
    }
    assert!(parse_time_zone("Middle/Earth").is_err());
}
