//! A message with the line it was read from.

use quipu_message::Entry;

/// One message of the agent with the line it was read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The parsed message.
    pub entry: Entry,
    /// The line byte for byte, without its line end, for logs and forwarding. It still has
    /// lone surrogates, unusual spacing and duplicate keys.
    pub line: String,
}
