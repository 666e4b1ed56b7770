//! A message as it came: what it means, and the line it was read from.

use quipu_message::Entry;

/// One message of the agent with the line it was read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The line as typed, lossless fields.
    pub entry: Entry,
    /// The line byte for byte, without its line end: what to write to a log or to pass on.
    /// Lone surrogates, odd spacing and duplicate keys are still in it.
    pub line: String,
}
