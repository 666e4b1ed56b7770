//! Hooks: what a program of the person's or a callback of the host is told when
//! something happens, and what it may answer.
//!
//! ```text
//!   agent ── HookInput ──▶ one struct an event, a HookEvent     hook/event.rs
//!   agent ◀── HookAnswer ── what any hook may answer            hook/answer.rs
//!                 └──────── what only this event's hooks may    hook/specific.rs
//! ```

use serde_json::Number;

use crate::Json;
use crate::macros::{part, wire};

mod answer;
mod base;
mod event;
mod specific;

#[cfg(test)]
mod tests;

pub use answer::{AnswerTo, HookAnswer, PreToolUseAnswer};
pub use base::{BackgroundTask, Effort, HookBase, HookCall, McpOrigin, SessionCron};
pub use event::{
    ConfigChange, CwdChanged, DirectoryAdded, EVENTS, Elicitation, ElicitationResult, FileChanged, HookEvent,
    HookInput, InstructionsLoaded, MessageDisplay, Notification, PermissionDenied, PermissionRequest, PostCompact,
    PostModelSwitch, PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact, PreModelSwitch, PreToolUse,
    SessionEnd, SessionStart, Setup, Stop, StopFailure, SubagentStart, SubagentStop, TaskCompleted, TaskCreated,
    TeammateIdle, UserPromptExpansion, UserPromptSubmit, WorktreeCreate, WorktreeRemove,
};
pub use specific::{
    Asks, CwdChangedSpecific, Decides, ElicitationAction, ElicitationResultSpecific, ElicitationSpecific,
    FileChangedSpecific, Informs, MessageDisplaySpecific, NoSpecific, NotificationSpecific, PermissionDecision,
    PermissionDeniedSpecific, PermissionRequestSpecific, PostModelSwitchSpecific, PostToolBatchSpecific,
    PostToolUseFailureSpecific, PostToolUseSpecific, PreModelSwitchSpecific, PreToolUseSpecific, RequestDecision,
    SessionStartSpecific, SetupSpecific, StopSpecific, SubagentStartSpecific, SubagentStopSpecific,
    UserPromptExpansionSpecific, UserPromptSubmitSpecific, WorktreeCreateSpecific,
};

part! {
    /// What any hook may answer.
    pub struct HookCommon {
        /// `false` ends the turn.
        go_on: bool = "continue",
        /// Why.
        stop_reason: String = "stopReason",
        /// What the hook printed is not shown.
        suppress_output: bool = "suppressOutput",
        /// `approve` or `block`.
        decision: String,
        /// Why.
        reason: String,
        /// What the person is told.
        system_message: String = "systemMessage",
        /// A notice or title for the person's terminal, as an escape sequence.
        terminal_sequence: String = "terminalSequence",
        /// `true`: the hook goes on by itself and the agent does not wait for it.
        is_async: bool = "async",
        /// For how many milliseconds it may.
        async_timeout: Number = "asyncTimeout",
    }
}

wire! {
    /// What a hook answers, read by one who knows no event; `{}` is nothing.
    pub struct HookOutput with common: HookCommon {
        /// What only one event's hooks may answer.
        specific: opt HookSpecific = "hookSpecificOutput",
    }
}

wire! {
    /// What changes the course of a turn, of all that hooks of some event may answer.
    pub struct HookSpecific {
        /// The event.
        hook_event_name: opt String = "hookEventName",
        /// Whether the tool may run; a word nobody knows is no decision.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Why.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// The input to run the tool with.
        updated_input: opt Json = "updatedInput",
        /// The output to show the model.
        updated_tool_output: opt Json = "updatedToolOutput",
        /// What the model is told beside.
        additional_context: opt String = "additionalContext",
        /// The answer of a `PermissionRequest` hook.
        decision: opt Json,
    }
}
