//! What only one event's hooks may answer: `hookSpecificOutput`.

use serde::{Serialize, Serializer};

use crate::control::{Allow, Deny};
use crate::macros::{open_enum, open_str_enum, wire};
use crate::{Json, Maybe};

/// For events whose hooks have nothing more to answer than any hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSpecific {}

impl Serialize for NoSpecific {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

/// Can tell the model something beside.
pub trait HasAdditionalContext: Default {
    /// Tells it.
    fn set_additional_context(&mut self, context: String);
}

/// Can decide whether something may be done.
pub trait CanDecide: Sized {
    /// It may.
    fn allow() -> Self;
    /// It may not, and why.
    fn deny(reason: String) -> Self;
}

/// Can leave the decision to the user.
pub trait CanAsk: CanDecide {
    /// The user is asked, and told why.
    fn ask(reason: String) -> Self;
}

open_str_enum! {
    /// Whether something may be done.
    pub enum PermissionDecision {
        /// It may, without asking.
        "allow" => Allow,
        /// It may not.
        "deny" => Deny,
        /// The user is asked.
        "ask" => Ask,
        /// The turn ends here, and the host goes on later.
        "defer" => Defer,
    }
}

open_str_enum! {
    /// How the user answers an MCP server.
    pub enum ElicitationAction {
        /// Fills the form in.
        "accept" => Accept,
        /// Declines the elicitation request.
        "decline" => Decline,
        /// Says nothing.
        "cancel" => Cancel,
    }
}

wire! {
    /// For hooks of `PreToolUse`.
    pub struct PreToolUseSpecific ["hookEventName" = "PreToolUse"] {
        /// Whether the tool may run.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Reason for the decision, shown to the user or the model.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// The input to run it with.
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
        /// The output to show the model.
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
        /// The session's title from now on.
        session_title: opt String = "sessionTitle",
        /// A blocked prompt is not shown again.
        suppress_original_prompt: opt bool = "suppressOriginalPrompt",
    }
}

wire! {
    /// For hooks of `UserPromptExpansion`.
    pub struct UserPromptExpansionSpecific ["hookEventName" = "UserPromptExpansion"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// A blocked prompt is not shown again.
        suppress_original_prompt: opt bool = "suppressOriginalPrompt",
    }
}

wire! {
    /// For hooks of `SessionStart`.
    pub struct SessionStartSpecific ["hookEventName" = "SessionStart"] {
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// What the user says first.
        initial_user_message: opt String = "initialUserMessage",
        /// The session's title.
        session_title: opt String = "sessionTitle",
        /// Files to watch.
        watch_paths: opt Vec<String> = "watchPaths",
        /// Skills and commands are looked for again.
        reload_skills: opt bool = "reloadSkills",
    }
}

wire! {
    /// For hooks of `PreModelSwitch`.
    pub struct PreModelSwitchSpecific ["hookEventName" = "PreModelSwitch"] {
        /// Whether the model may take over.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Reason for the decision, shown to the user or the model.
        permission_decision_reason: opt String = "permissionDecisionReason",
    }
}

wire! {
    /// For hooks of `PermissionRequest`.
    pub struct PermissionRequestSpecific ["hookEventName" = "PermissionRequest"] {
        /// What the user need not be asked any more.
        decision: req PermissionRequestDecision,
    }
}

open_enum! {
    /// What a hook answers in the user's place.
    pub enum PermissionRequestDecision by "behavior" {
        /// The tool may run.
        "allow" => Allow(Allow),
        /// The tool may not run.
        "deny" => Deny(Deny),
    }
}

wire! {
    /// For hooks of `PermissionDenied`.
    pub struct PermissionDeniedSpecific ["hookEventName" = "PermissionDenied"] {
        /// The model may try again.
        retry: opt bool,
    }
}

wire! {
    /// For hooks of `WorktreeCreate`.
    pub struct WorktreeCreateSpecific ["hookEventName" = "WorktreeCreate"] {
        /// Where the worktree is.
        worktree_path: req String = "worktreePath",
    }
}

wire! {
    /// For hooks of `MessageDisplay`.
    pub struct MessageDisplaySpecific ["hookEventName" = "MessageDisplay"] {
        /// What is shown in place of the piece.
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
                /// How the server is answered.
                action: opt ElicitationAction,
                /// Text that is shown.
                content: opt Json,
            }
        }

        impl $specific {
            /// Fills the form in.
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
