//! Hooks: what a program of the person's is told when something happens, and what
//! it may answer.

use crate::macros::wire;
use crate::{AgentId, Json, SessionId, ToolUseId};

wire! {
    /// What a hook is told. Which fields are there depends on the event.
    pub struct HookInput {
        /// The session.
        session_id: opt SessionId = "session_id",
        /// The session's file.
        transcript_path: opt String = "transcript_path",
        /// The working directory.
        cwd: opt String = "cwd",
        /// The prompt under way.
        prompt_id: opt String = "prompt_id",
        /// The permission mode.
        permission_mode: opt String = "permission_mode",
        /// The subagent.
        agent_id: opt AgentId = "agent_id",
        /// Which kind of subagent.
        agent_type: opt String = "agent_type",
        /// The event.
        hook_event_name: req String = "hook_event_name",
        /// What the person said.
        prompt: opt String = "prompt",
        /// The tool.
        tool_name: opt String = "tool_name",
        /// What it is called with.
        tool_input: opt Json = "tool_input",
        /// What it gave, in its own form.
        tool_response: opt Json = "tool_response",
        /// The call.
        tool_use_id: opt ToolUseId = "tool_use_id",
        /// Why the tool failed.
        error: opt String = "error",
        /// Whether it was broken off.
        is_interrupt: opt bool = "is_interrupt",
        /// How long the tool ran.
        duration_ms: opt u64 = "duration_ms",
        /// The calls of one answer.
        tool_calls: opt Vec<HookCall> = "tool_calls",
        /// Rules that would allow the call.
        permission_suggestions: opt Json = "permission_suggestions",
        /// Whether a hook has kept the turn going before.
        stop_hook_active: opt bool = "stop_hook_active",
        /// The answer the turn would end with.
        last_assistant_message: opt String = "last_assistant_message",
        /// The subagent's file.
        agent_transcript_path: opt String = "agent_transcript_path",
        /// Why the session begins.
        source: opt String = "source",
        /// The folder that was opened.
        directory: opt String = "directory",
        /// Why the session ends.
        reason: opt String = "reason",
        /// `manual` or `auto`.
        trigger: opt String = "trigger",
        /// What the person asked of the summary.
        custom_instructions: opt String = "custom_instructions",
        /// The summary.
        compact_summary: opt String = "compact_summary",
        /// The words of a notice.
        message: opt String = "message",
        /// The instruction file.
        file_path: opt String = "file_path",
        /// Whose instructions.
        memory_type: opt String = "memory_type",
        /// Why the file was read.
        load_reason: opt String = "load_reason",
    }
}

wire! {
    /// One call of an answer, as a hook sees it.
    pub struct HookCall {
        /// The tool.
        tool_name: req String = "tool_name",
        /// What the model called it with.
        tool_input: req Json = "tool_input",
        /// The call.
        tool_use_id: req ToolUseId = "tool_use_id",
        /// What the model is told.
        tool_response: opt Json = "tool_response",
    }
}

wire! {
    /// What a hook answers; `{}` is nothing.
    pub struct HookOutput {
        /// `false` ends the turn.
        go_on: opt bool = "continue",
        /// Why.
        stop_reason: opt String = "stopReason",
        /// What the hook printed is not shown.
        suppress_output: opt bool = "suppressOutput",
        /// `approve` or `block`.
        decision: opt String = "decision",
        /// Why.
        reason: opt String = "reason",
        /// What the person is told.
        system_message: opt String = "systemMessage",
        /// What only this event knows.
        specific: opt HookSpecific = "hookSpecificOutput",
    }
}

wire! {
    /// What only one event's hooks may answer.
    pub struct HookSpecific {
        /// The event.
        hook_event_name: opt String = "hookEventName",
        /// `allow`, `deny` or `ask`; anything else is no decision.
        permission_decision: opt String = "permissionDecision",
        /// Why.
        permission_decision_reason: opt String = "permissionDecisionReason",
        /// The input to run the tool with.
        updated_input: opt Json = "updatedInput",
        /// The output to show the model.
        updated_tool_output: opt Json = "updatedToolOutput",
        /// What the model is told beside.
        additional_context: opt String = "additionalContext",
        /// The answer of a `PermissionRequest` hook.
        decision: opt Json = "decision",
    }
}
