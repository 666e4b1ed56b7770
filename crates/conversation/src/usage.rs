//! Counting the usage of API messages: the parts that [`Metrics`](crate::Metrics) and the
//! index share.
//!
//! A transcript repeats the usage of an API message on every line that holds one of its
//! blocks, and forks and resumed sessions copy whole messages. [`UsageTally`] counts each
//! message of a session once; [`MessageUsage::merge_copies`] joins copies in several
//! sessions. `attribution` finds out which turn and which subagent a message belongs to.

mod attribution;
mod message;
mod tally;

pub(crate) use attribution::Attribution;
pub use attribution::SubagentAttribution;
pub use message::{LineTimes, MessageKey, MessageUsage, ServingInfo};
pub use tally::{UsageSample, UsageTally};

pub use crate::hash::stable_hash;
