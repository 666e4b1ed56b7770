//! What clients are notified of.

use serde::Serialize;

/// Something that changed.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The list of sessions changed, or anything may have.
    Sessions,
    /// The connection is open.
    Ping,
}
