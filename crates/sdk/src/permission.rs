//! Decisions on permission requests.

use quipu_message::control::{Allow, Deny, PermissionUpdate};
use quipu_message::{Json, Maybe};
use serde::Serialize;

/// Decision on a permission request: whether a tool call may run.
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
    /// The tool call runs.
    Allow {
        /// Input that replaces the model's; `None` keeps it.
        input: Option<Json>,
        /// Permission rules to add, so that the question is not asked again.
        updates: Vec<PermissionUpdate>,
    },
    /// The tool call does not run.
    Deny {
        /// Reason, which the model gets as the tool result.
        message: String,
        /// Whether the turn is interrupted, too.
        interrupt: bool,
    },
}

impl Decision {
    /// Allows the tool call as it is.
    pub fn allow() -> Self {
        Self::Allow { input: None, updates: Vec::new() }
    }

    /// Allows the tool call with another input. This is how `AskUserQuestion` gets its answers.
    pub fn allow_with(input: &impl Serialize) -> Self {
        Self::Allow { input: Some(Json::from_serialize(input)), updates: Vec::new() }
    }

    /// Allows the tool call and adds permission rules, for example the suggested ones.
    pub fn allow_and_remember(updates: Vec<PermissionUpdate>) -> Self {
        Self::Allow { input: None, updates }
    }

    /// Denies the tool call; the model gets the reason.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }

    /// Denies the tool call and interrupts the turn.
    pub fn interrupt(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: true }
    }

    /// The control response. Older agents need the input even if it is unchanged.
    pub(crate) fn into_response(self, original_input: &Json) -> Json {
        match self {
            Self::Allow { input, updates } => Json::from_serialize(&Allow {
                updated_input: Maybe::Value(input.unwrap_or_else(|| original_input.clone())),
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
