//! Hooks: programs of the user or callbacks of the host that run at certain events, with their inputs and
//! outputs.
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

pub use crate::values::ElicitationAction;
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
    CanAsk, CanDecide, CwdChangedSpecific, ElicitationResultSpecific, ElicitationSpecific, FileChangedSpecific,
    HasAdditionalContext, MessageDisplaySpecific, NoSpecific, NotificationSpecific, PermissionDecision,
    PermissionDeniedSpecific, PermissionRequestDecision, PermissionRequestSpecific, PostModelSwitchSpecific,
    PostToolBatchSpecific, PostToolUseFailureSpecific, PostToolUseSpecific, PreModelSwitchSpecific, PreToolUseSpecific,
    SessionStartSpecific, SetupSpecific, StopSpecific, SubagentStartSpecific, SubagentStopSpecific,
    UserPromptExpansionSpecific, UserPromptSubmitSpecific, WorktreeCreateSpecific,
};
pub use values::{
    ConfigChangeSource, DirectorySource, ElicitationMode, ExpansionType, FileEvent, HookDecision, HookRunOutcome,
    InstructionsLoadReason, MemoryType, ModelSwitchSource, NotificationType, PriceSource, PromptAuthor,
    SessionEndReason, SessionStartSource, SetupTrigger,
};

embedded_fields! {
    /// Output fields that hooks of every event may set.
    pub struct HookCommonOutput {
        /// `false` ends the turn.
        should_continue: bool = "continue",
        /// Reason for ending the turn, shown to the user.
        stop_reason: String = "stopReason",
        /// Whether the hook's stdout is hidden from the user.
        suppress_output: bool = "suppressOutput",
        /// `approve` or `block`.
        decision: HookDecision,
        /// Reason for the decision.
        reason: String,
        /// Message for the user.
        system_message: String = "systemMessage",
        /// Escape sequence for the user's terminal, such as a notification or a title.
        terminal_sequence: String = "terminalSequence",
        /// `true` if the hook continues in the background and the agent does not wait for it.
        is_async: bool = "async",
        /// Time limit of such a hook, in milliseconds.
        async_timeout: Number = "asyncTimeout",
    }
}

wire! {
    /// The output of a hook of any event; `{}` changes nothing.
    pub struct AnyHookOutput with common: HookCommonOutput {
        /// The fields that only hooks of one event may set.
        specific: opt AnyHookSpecific = "hookSpecificOutput",
    }
}

wire! {
    /// Those of the event-specific output fields that can change a turn, for all events together.
    pub struct AnyHookSpecific {
        /// Name of the event.
        hook_event_name: opt String = "hookEventName",
        /// Decision on the tool call; an unknown value decides nothing.
        permission_decision: opt PermissionDecision = "permissionDecision",
        /// Reason for the decision.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// New input for the tool call.
        updated_input: opt Json = "updatedInput",
        /// New output of the tool for the model.
        updated_tool_output: opt Json = "updatedToolOutput",
        /// Text added to the conversation for the model.
        additional_context: opt String = "additionalContext",
        /// Decision of a `PermissionRequest` hook.
        decision: opt Json,
    }
}
