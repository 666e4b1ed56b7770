//! What clients are notified of.

use schemars::JsonSchema;
use serde::Serialize;

use crate::live_sessions::LiveState;

/// Something that changed, as one line of `/api/events`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The list of sessions changed, or anything may have.
    Sessions,
    /// Files of a session changed: load the end of it again.
    Session {
        /// Key of the session.
        key: String,
    },
    /// A session began or stopped to work or to wait for the user.
    Activity {
        /// Key of the session.
        key: String,
        /// What it is doing now.
        #[serde(flatten)]
        state: LiveState,
    },
    /// The index began or ended a refresh.
    Index {
        /// `updating` or `ready`.
        state: &'static str,
    },
    /// A chat was started or ended, began or stopped to work or to wait.
    Chats,
    /// The connection is open.
    Ping,
}
