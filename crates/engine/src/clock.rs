//! Fresh ids and the time: the one place where the engine asks for either.

use jiff::Timestamp;
use quipu_message::{Stamp, Uuid};

/// Stamps lines with random ids and the present moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock;

impl Stamp for Clock {
    fn uuid(&mut self) -> Uuid {
        Uuid::from(uuid::Uuid::new_v4().to_string())
    }

    fn now(&mut self) -> String {
        format!("{:.3}", Timestamp::now())
    }
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
