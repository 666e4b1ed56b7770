//! Fresh ids and the time: the one place where the engine asks for either.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use quipu_message::{Stamp, Uuid};

/// Stamps lines with random ids and the present time, at least a millisecond after the
/// line before: some readers take lines of one kind and time for copies of each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock;

impl Stamp for Clock {
    fn uuid(&mut self) -> Uuid {
        Uuid::from(uuid::Uuid::new_v4().to_string())
    }

    fn now(&mut self) -> String {
        let millis = rising(&LAST, Timestamp::now().as_millisecond());
        format!("{:.3}", Timestamp::from_millisecond(millis).unwrap_or_else(|_| Timestamp::now()))
    }
}

/// The last time given out, in milliseconds since 1970.
static LAST: AtomicI64 = AtomicI64::new(i64::MIN);

/// `now`, or the millisecond after `last` if that is later; it becomes the last.
fn rising(last: &AtomicI64, now: i64) -> i64 {
    let next = |last: i64| now.max(last.saturating_add(1));
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(before.unwrap_or_else(|last| last))
}

/// A fresh id.
pub(crate) fn fresh() -> Uuid {
    Clock.uuid()
}

/// The present moment as text.
pub(crate) fn now() -> String {
    Clock.now()
}

/// Names a run of a task; later ones sort after earlier ones.
pub(crate) fn run_id() -> String {
    format!("{:011x}-{}", millis(), &fresh().as_str()[..8])
}

/// Milliseconds since 1970.
pub(crate) fn millis() -> i64 {
    Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rise_though_the_clock_stands_still_or_goes_back() {
        let last = AtomicI64::new(i64::MIN);
        let given: Vec<i64> = [5, 5, 3, 9, 9].into_iter().map(|now| rising(&last, now)).collect();
        assert_eq!(given, [5, 6, 7, 9, 10]);
    }

    #[test]
    fn a_time_has_milliseconds() {
        let (first, second) = (now(), now());
        assert!(first < second && first.len() == "2026-11-15T06:12:39.090Z".len(), "{first} {second}");
    }
}
