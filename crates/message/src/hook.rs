//! Hooks: what a program of the user's or a callback of the host is given when
//! something happens, and what it may answer.
//!
//! ```text
//!   agent ── HookInput ──▶ one struct per event, a HookEvent    hook/event.rs
//!   agent ◀── HookOutput ── fields of every event              hook/output.rs
//!                 └──────── fields of one event                hook/specific.rs
//! ```

use serde_json::Number;

use crate::Json;
use crate::macros::{embedded_fields, wire};

mod base;
mod event;
mod output;
mod specific;
mod values;

#[cfg(test)]
mod tests;

pub use base::{HookBackgroundTask, HookEffort, HookInputBase, HookMcpServer, HookToolCall, SessionCron};
pub use event::{
    ConfigChange, CwdChanged, DirectoryAdded, Elicitation, ElicitationResult, FileChanged, HOOK_EVENT_NAMES, HookEvent,
    HookInput, InstructionsLoaded, MessageDisplay, Notification, PermissionDenied, PermissionRequest, PostCompact,
    PostModelSwitch, PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact, PreModelSwitch, PreToolUse,
    SessionEnd, SessionStart, Setup, Stop, StopFailure, SubagentStart, SubagentStop, TaskCompleted, TaskCreated,
    TeammateIdle, UserPromptExpansion, UserPromptSubmit, WorktreeCreate, WorktreeRemove,
};
pub use output::{HookOutput, HookOutputFor, PreToolUseOutput};
pub use specific::{
    CanAsk, CanDecide, CwdChangedSpecific, ElicitationAction, ElicitationResultSpecific, ElicitationSpecific,
    FileChangedSpecific, HasAdditionalContext, MessageDisplaySpecific, NoSpecific, NotificationSpecific,
    PermissionDecision, PermissionDeniedSpecific, PermissionRequestDecision, PermissionRequestSpecific,
    PostModelSwitchSpecific, PostToolBatchSpecific, PostToolUseFailureSpecific, PostToolUseSpecific,
    PreModelSwitchSpecific, PreToolUseSpecific, SessionStartSpecific, SetupSpecific, StopSpecific,
    SubagentStartSpecific, SubagentStopSpecific, UserPromptExpansionSpecific, UserPromptSubmitSpecific,
    WorktreeCreateSpecific,
};
pub use values::{
    ConfigChangeSource, HookDecision, HookOutcome, InstructionsLoadReason, ModelSwitchSource, PromptAuthor,
    SessionEndReason, SessionStartSource,
};

embedded_fields! {
    /// What any hook may answer.
    pub struct HookCommonOutput {
        /// `false` ends the turn.
        should_continue: bool = "continue",
        /// Why.
        stop_reason: String = "stopReason",
        /// What the hook printed is not shown.
        suppress_output: bool = "suppressOutput",
        /// `approve` or `block`.
        decision: HookDecision,
        /// Why.
        reason: String,
        /// Message for the user.
        system_message: String = "systemMessage",
        /// A notice or title for the user's terminal, as an escape sequence.
        terminal_sequence: String = "terminalSequence",
        /// `true`: the hook goes on by itself and the agent does not wait for it.
        is_async: bool = "async",
        /// For how many milliseconds it may.
        async_timeout: Number = "asyncTimeout",
    }
}

wire! {
    /// What a hook answers, read by one who knows no event; `{}` is nothing.
    pub struct AnyHookOutput with common: HookCommonOutput {
        /// What only one event's hooks may answer.
        specific: opt AnyHookSpecific = "hookSpecificOutput",
    }
}

wire! {
    /// What changes the course of a turn, of all that hooks of some event may answer.
    pub struct AnyHookSpecific {
        /// The event.
        hook_event_name: opt String = "hookEventName",
        /// Whether the tool may run; an unknown value is no decision.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Why.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// The input to run the tool with.
        updated_input: opt Json = "updatedInput",
        /// The output to show the model.
        updated_tool_output: opt Json = "updatedToolOutput",
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// The answer of a `PermissionRequest` hook.
        decision: opt Json,
    }
}
