//! What a host says when an agent asks whether a tool may run.

use quipu_message::control::{Allow, Deny, PermissionUpdate};
use quipu_message::{Json, Maybe};
use serde::Serialize;

/// Whether a tool may run.
///
/// ```
/// use quipu_sdk::Decision;
/// let no = Decision::deny("Not on a Sunday.");
/// let yes = Decision::allow_with(&serde_json::json!({ "command": "ls" }));
/// # let _ = (no, yes);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Decision {
    /// It may.
    Allow {
        /// What to run it with instead of what the model asked for.
        input: Option<Json>,
        /// Rules to keep, so that nobody need be asked again.
        updates: Vec<PermissionUpdate>,
    },
    /// It may not.
    Deny {
        /// What the model is told.
        message: String,
        /// Whether the turn ends too.
        interrupt: bool,
    },
}

impl Decision {
    /// It may run as it is.
    pub fn allow() -> Self {
        Self::Allow { input: None, updates: Vec::new() }
    }

    /// It may run with another input. The answers to `AskUserQuestion` are given so.
    pub fn allow_with(input: &impl Serialize) -> Self {
        Self::Allow { input: Some(Json::from_serialize(input)), updates: Vec::new() }
    }

    /// It may run, and these rules are kept: often the request's own suggestions.
    pub fn allow_and_remember(updates: Vec<PermissionUpdate>) -> Self {
        Self::Allow { input: None, updates }
    }

    /// It may not run, and the model is told why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }

    /// It may not run, and the turn ends.
    pub fn interrupt(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: true }
    }

    /// The answer on the wire. Older agents want the input even when it is unchanged.
    pub(crate) fn into_response(self, asked: &Json) -> Json {
        match self {
            Self::Allow { input, updates } => Json::from_serialize(&Allow {
                updated_input: Maybe::Value(input.unwrap_or_else(|| asked.clone())),
                updated_permissions: (!updates.is_empty()).then(|| Json::from_serialize(&updates)).into(),
                ..Allow::default()
            }),
            Self::Deny { message, interrupt } => Json::from_serialize(&Deny {
                message: Maybe::Value(message),
                interrupt: interrupt.then_some(true).into(),
                ..Deny::default()
            }),
        }
    }
}
