//! New ids and the current time: the only place where the engine gets either.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use quipu_message::{StampSource, Uuid};

/// Gives entries random ids and the current time, at least a millisecond after the entry before:
/// some readers take entries of one type and time for copies of each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock;

impl StampSource for Clock {
    fn new_uuid(&mut self) -> Uuid {
        Uuid::from(uuid::Uuid::new_v4().to_string())
    }

    fn now(&mut self) -> String {
        let millis = next_timestamp(&LAST_TIMESTAMP_MILLIS, now_millis());
        format!("{:.3}", Timestamp::from_millisecond(millis).unwrap_or_default())
    }
}

/// The last time given to an entry, in milliseconds since 1970.
static LAST_TIMESTAMP_MILLIS: AtomicI64 = AtomicI64::new(i64::MIN);

/// Returns `now`, or the millisecond after `last` if that is later, and stores it in `last`.
fn next_timestamp(last: &AtomicI64, now: i64) -> i64 {
    let next = |last: i64| now.max(last.saturating_add(1));
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(before.unwrap_or_else(|last| last))
}

/// A new random UUID.
pub(crate) fn new_id() -> Uuid {
    Clock.new_uuid()
}

/// The current time as RFC 3339 text in UTC.
pub(crate) fn now() -> String {
    Clock.now()
}

/// A new id for a run of a task. Later ids sort after earlier ones.
pub(crate) fn new_run_id() -> String {
    format!("{:011x}-{}", now_millis(), &new_id().as_str()[..8])
}

/// `prefix` and eight random digits or lowercase letters. They come from the system's
/// random numbers, because folders in a shared temporary folder are named with them.
pub(crate) fn random_id(prefix: &str) -> String {
    let bits = uuid::Uuid::new_v4().as_u128();
    let digits = (0..8).filter_map(|place| char::from_digit((bits / 36_u128.pow(place) % 36) as u32, 36));
    prefix.chars().chain(digits).collect()
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one clock of the engine")]
pub(crate) fn now_millis() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Nanoseconds since 1970; 0 before.
#[expect(clippy::disallowed_methods, reason = "the one clock of the engine")]
pub(crate) fn now_nanos() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_increase_even_if_the_clock_stops_or_goes_back() {
        let last = AtomicI64::new(i64::MIN);
        let given: Vec<i64> = [5, 5, 3, 9, 9].into_iter().map(|now| next_timestamp(&last, now)).collect();
        assert_eq!(given, [5, 6, 7, 9, 10]);
    }

    #[test]
    fn a_time_has_milliseconds() {
        let (first, second) = (now(), now());
        assert!(first < second && first.len() == "2026-11-15T06:12:39.090Z".len(), "{first} {second}");
    }
}
