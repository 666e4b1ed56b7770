//! Output fields that only hooks of one event may set: `hookSpecificOutput`.

use serde::{Serialize, Serializer};

use crate::control::{Allow, Deny};
use crate::macros::{open_enum, open_str_enum, wire};
use crate::values::ElicitationAction;
use crate::{Json, Maybe};

/// For events without output fields of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSpecific {}

impl Serialize for NoSpecific {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

/// Implemented by outputs that can add context for the model.
pub trait HasAdditionalContext: Default {
    /// Sets the context.
    fn set_additional_context(&mut self, context: String);
}

/// Implemented by outputs that can allow or deny an operation.
pub trait CanDecide: Sized {
    /// Allows the operation.
    fn allow() -> Self;
    /// Denies the operation with a reason.
    fn deny(reason: String) -> Self;
}

/// Implemented by outputs that can leave the decision to the user.
pub trait CanAsk: CanDecide {
    /// Asks the user; the user sees the reason.
    fn ask(reason: String) -> Self;
}

open_str_enum! {
    /// Decision of a hook on an operation.
    pub enum PermissionDecision {
        /// Allowed without asking the user.
        "allow" => Allow,
        /// Denied.
        "deny" => Deny,
        /// The user is asked.
        "ask" => Ask,
        /// The turn ends, and the host decides later.
        "defer" => Defer,
    }
}

wire! {
    /// For hooks of `PreToolUse`.
    pub struct PreToolUseSpecific ["hookEventName" = "PreToolUse"] {
        /// Decision on the tool call.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Reason for the decision, shown to the user or the model.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// New input for the tool call.
        updated_input: opt Json = "updatedInput",
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
    }
}

wire! {
    /// For hooks of `PostToolUse`.
    pub struct PostToolUseSpecific ["hookEventName" = "PostToolUse"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// Additional context for the decision on later calls.
        classifier_context: opt String = "classifierContext",
        /// New output of the tool for the model.
        updated_tool_output: opt Json = "updatedToolOutput",
        /// The same, for tools of MCP servers only.
        updated_mcp_tool_output: opt Json = "updatedMCPToolOutput",
    }
}

wire! {
    /// For hooks of `UserPromptSubmit`.
    pub struct UserPromptSubmitSpecific ["hookEventName" = "UserPromptSubmit"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// New title of the session.
        session_title: opt String = "sessionTitle",
        /// Whether the text of a blocked prompt is hidden.
        suppress_original_prompt: opt bool = "suppressOriginalPrompt",
    }
}

wire! {
    /// For hooks of `UserPromptExpansion`.
    pub struct UserPromptExpansionSpecific ["hookEventName" = "UserPromptExpansion"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// Whether the text of a blocked prompt is hidden.
        suppress_original_prompt: opt bool = "suppressOriginalPrompt",
    }
}

wire! {
    /// For hooks of `SessionStart`.
    pub struct SessionStartSpecific ["hookEventName" = "SessionStart"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// First prompt of the session.
        initial_user_message: opt String = "initialUserMessage",
        /// Title of the session.
        session_title: opt String = "sessionTitle",
        /// Files to watch.
        watch_paths: opt Vec<String> = "watchPaths",
        /// Whether skills and commands are read again.
        reload_skills: opt bool = "reloadSkills",
    }
}

wire! {
    /// For hooks of `PreModelSwitch`.
    pub struct PreModelSwitchSpecific ["hookEventName" = "PreModelSwitch"] {
        /// Decision on the change of the model.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Reason for the decision, shown to the user or the model.
        permission_decision_reason: opt String = "permissionDecisionReason",
    }
}

wire! {
    /// For hooks of `PermissionRequest`.
    pub struct PermissionRequestSpecific ["hookEventName" = "PermissionRequest"] {
        /// Decision in place of the user's.
        decision: req PermissionRequestDecision,
    }
}

open_enum! {
    /// Decision of a hook in place of the user's.
    pub enum PermissionRequestDecision by "behavior" {
        /// The tool call is allowed.
        "allow" => Allow(Allow),
        /// The tool call is denied.
        "deny" => Deny(Deny),
    }
}

wire! {
    /// For hooks of `PermissionDenied`.
    pub struct PermissionDeniedSpecific ["hookEventName" = "PermissionDenied"] {
        /// Whether the model may try again.
        retry: opt bool,
    }
}

wire! {
    /// For hooks of `WorktreeCreate`.
    pub struct WorktreeCreateSpecific ["hookEventName" = "WorktreeCreate"] {
        /// Path of the new worktree.
        worktree_path: req String = "worktreePath",
    }
}

wire! {
    /// For hooks of `MessageDisplay`.
    pub struct MessageDisplaySpecific ["hookEventName" = "MessageDisplay"] {
        /// Text to show instead of the part.
        display_content: opt String = "displayContent",
    }
}

macro_rules! watch_path_outputs {
    ($( $(#[$meta:meta])* $specific:ident = $name:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $specific ["hookEventName" = $name] {
                /// Files to watch.
                watch_paths: opt Vec<String> = "watchPaths",
            }
        }
    )+ };
}

watch_path_outputs! {
    /// For hooks of `CwdChanged`.
    CwdChangedSpecific = "CwdChanged",
    /// For hooks of `FileChanged`.
    FileChangedSpecific = "FileChanged",
}

macro_rules! elicitation_outputs {
    ($( $(#[$meta:meta])* $specific:ident = $name:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $specific ["hookEventName" = $name] {
                /// Response to the server.
                action: opt ElicitationAction,
                /// Values of the form.
                content: opt Json,
            }
        }

        impl $specific {
            /// Fills in the form.
            pub fn accept(content: impl Into<Json>) -> Self {
                let content = Maybe::Value(content.into());
                Self { action: ElicitationAction::Accept.into(), content, ..Self::default() }
            }

            /// Declines the elicitation request.
            pub fn decline() -> Self {
                Self { action: ElicitationAction::Decline.into(), ..Self::default() }
            }
        }
    )+ };
}

elicitation_outputs! {
    /// For hooks of `Elicitation`.
    ElicitationSpecific = "Elicitation",
    /// For hooks of `ElicitationResult`.
    ElicitationResultSpecific = "ElicitationResult",
}

macro_rules! context_outputs {
    ($( $(#[$meta:meta])* $specific:ident = $name:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $specific ["hookEventName" = $name] {
                /// Text added to the conversation for the model.
                additional_context: opt String = "additionalContext",
            }
        }
    )+ };
}

context_outputs! {
    /// For hooks of `PostToolUseFailure`.
    PostToolUseFailureSpecific = "PostToolUseFailure",
    /// For hooks of `PostToolBatch`.
    PostToolBatchSpecific = "PostToolBatch",
    /// For hooks of `Notification`.
    NotificationSpecific = "Notification",
    /// For hooks of `Stop`; additional context for the model continues the turn.
    StopSpecific = "Stop",
    /// For hooks of `SubagentStart`.
    SubagentStartSpecific = "SubagentStart",
    /// For hooks of `SubagentStop`; additional context for the subagent continues it.
    SubagentStopSpecific = "SubagentStop",
    /// For hooks of `PostModelSwitch`.
    PostModelSwitchSpecific = "PostModelSwitch",
    /// For hooks of `Setup`.
    SetupSpecific = "Setup",
}

macro_rules! impl_additional_context {
    ($($specific:ident),+ $(,)?) => { $(
        impl HasAdditionalContext for $specific {
            fn set_additional_context(&mut self, context: String) {
                self.additional_context = Maybe::Value(context);
            }
        }
    )+ };
}

impl_additional_context! {
    PreToolUseSpecific, PostToolUseSpecific, PostToolUseFailureSpecific, PostToolBatchSpecific, NotificationSpecific,
    UserPromptSubmitSpecific, UserPromptExpansionSpecific, SessionStartSpecific, StopSpecific, SubagentStartSpecific,
    SubagentStopSpecific, PostModelSwitchSpecific, SetupSpecific,
}

macro_rules! impl_permission_decision {
    ($($specific:ident),+ $(,)?) => { $(
        impl CanDecide for $specific {
            fn allow() -> Self {
                Self { permission_decision: PermissionDecision::Allow.into(), ..Self::default() }
            }

            fn deny(reason: String) -> Self {
                let permission_decision = PermissionDecision::Deny.into();
                Self { permission_decision, permission_decision_reason: reason.into(), ..Self::default() }
            }
        }

        impl CanAsk for $specific {
            fn ask(reason: String) -> Self {
                let permission_decision = PermissionDecision::Ask.into();
                Self { permission_decision, permission_decision_reason: reason.into(), ..Self::default() }
            }
        }
    )+ };
}

impl_permission_decision!(PreToolUseSpecific, PreModelSwitchSpecific);

impl CanDecide for PermissionRequestSpecific {
    fn allow() -> Self {
        Self { decision: PermissionRequestDecision::Allow(Box::default()), ..Self::default() }
    }

    fn deny(reason: String) -> Self {
        let deny = Deny { message: reason.into(), ..Deny::default() };
        Self { decision: PermissionRequestDecision::Deny(Box::new(deny)), ..Self::default() }
    }
}
