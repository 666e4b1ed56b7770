//! Whether a call may run: modes, rules, and the judge.

mod mode;

pub use mode::Mode;
