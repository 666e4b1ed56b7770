//! Inputs of hooks, one struct for each event.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Number;

use super::base::{HookBackgroundTask, HookInputBase, HookMcpServer, HookToolCall, SessionCron};
use super::specific::*;
use super::values::{
    ConfigChangeSource, DirectorySource, ElicitationMode, ExpansionType, FileEvent, InstructionsLoadReason, MemoryType,
    ModelSwitchSource, NotificationType, PriceSource, PromptAuthor, SessionEndReason, SessionStartSource, SetupTrigger,
};
use crate::control::permission::PermissionUpdate;
use crate::macros::{open_enum, wire};
use crate::user_assistant::AssistantErrorKind;
use crate::values::{CacheLifetime, CompactTrigger, ElicitationAction};
use crate::{Json, ToolName, ToolUseId};

/// A hook event: the type of its input, with its name and the type of its output.
pub trait HookEvent: DeserializeOwned + Serialize + Debug + Clone + Send + Sync + 'static {
    /// Name of the event, as in `hook_event_name` and in settings.
    const NAME: &'static str;
    /// Output fields that only hooks of this event may set.
    type Specific: Serialize + Debug + Clone + Send + Sync + 'static;

    /// The input fields that all events share.
    fn base(&self) -> &HookInputBase;
}

/// Declares every event: its name, its input, and the type of its event-specific output.
macro_rules! hook_events {
    ($( $(#[$meta:meta])* $name:literal $event:ident outputs $specific:ident { $($fields:tt)* } )+) => {
        $(
            wire! {
                $(#[$meta])*
                pub struct $event ["hook_event_name" = $name] with base: HookInputBase { $($fields)* }
            }

            impl HookEvent for $event {
                const NAME: &'static str = $name;
                type Specific = $specific;

                fn base(&self) -> &HookInputBase {
                    &self.base
                }
            }
        )+

        open_enum! {
            /// The input of a hook, for any event.
            pub enum HookInput by "hook_event_name" {
                $( $(#[$meta])* $name => $event($event) ),+
            }
        }
    };
}

/// The name of every event.
pub const HOOK_EVENT_NAMES: &[&str] = HookInput::TAGS;

hook_events! {
    /// Before a tool call.
    "PreToolUse" PreToolUse outputs PreToolUseSpecific {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// The MCP server of the tool; absent for other tools.
        mcp_server: opt HookMcpServer,
    }

    /// After a tool call that succeeded.
    "PostToolUse" PostToolUse outputs PostToolUseSpecific {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Result of the tool in the tool's own form.
        tool_response: opt Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Duration in milliseconds.
        duration_ms: opt Number,
        /// The MCP server of the tool; absent for other tools.
        mcp_server: opt HookMcpServer,
    }

    /// After a tool call that failed.
    "PostToolUseFailure" PostToolUseFailure outputs PostToolUseFailureSpecific {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Error message of the tool.
        error: req String,
        /// Whether the tool call was interrupted.
        is_interrupt: opt bool,
        /// Duration in milliseconds.
        duration_ms: opt Number,
        /// The MCP server of the tool; absent for other tools.
        mcp_server: opt HookMcpServer,
    }

    /// After all tool calls of one answer.
    "PostToolBatch" PostToolBatch outputs PostToolBatchSpecific {
        /// The tool calls, with their input from the model.
        tool_calls: req Vec<HookToolCall>,
    }

    /// A notification is shown to the user.
    "Notification" Notification outputs NotificationSpecific {
        /// Text of the notification.
        message: req String,
        /// Title of the notification.
        title: opt String,
        /// What the notification is about.
        notification_type: opt NotificationType,
    }

    /// When a prompt is submitted.
    "UserPromptSubmit" UserPromptSubmit outputs UserPromptSubmitSpecific {
        /// Text of the prompt.
        prompt: req String,
        /// Origin of the prompt: `user`, `sdk`, `system`, `loop_wakeup`, `schedule_wakeup`, `poll_event`.
        source: opt PromptAuthor,
        /// Title of the session.
        session_title: opt String,
    }

    /// Before a command is expanded to a prompt.
    "UserPromptExpansion" UserPromptExpansion outputs UserPromptExpansionSpecific {
        /// What is expanded.
        expansion_type: opt ExpansionType,
        /// Name of the command.
        command_name: req String,
        /// Arguments of the command.
        command_args: opt String,
        /// Where the command is defined.
        command_source: opt String,
        /// What the user typed.
        prompt: opt String,
    }

    /// At the start of a session.
    "SessionStart" SessionStart outputs SessionStartSpecific {
        /// How the session was started: `startup`, `resume`, `clear`, `compact`, `fork`.
        source: req SessionStartSource,
        /// Model of the session.
        model: opt String,
        /// Title of the session.
        session_title: opt String,
        /// Seconds since the last response in a resumed session.
        seconds_since_last_response: opt Number,
        /// Tokens in the context of a resumed session.
        context_tokens: opt u64,
        /// Whether the prompt cache of a resumed session has probably expired.
        prompt_cache_likely_expired: opt bool,
        /// Estimated cost of writing the prompt cache again, in US dollars.
        estimated_cache_write_usd: opt Number,
    }

    /// At the end of a session.
    "SessionEnd" SessionEnd outputs NoSpecific {
        /// Reason: `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
        reason: req SessionEndReason,
    }

    /// Before the end of a turn.
    "Stop" Stop outputs StopSpecific {
        /// Whether a hook has already continued this turn.
        stop_hook_active: opt bool,
        /// The last answer of the turn.
        last_assistant_message: opt String,
        /// Background tasks that are running.
        background_tasks: opt Vec<HookBackgroundTask>,
        /// Scheduled prompts of the session.
        session_crons: opt Vec<SessionCron>,
    }

    /// After a turn that ended with an API error.
    "StopFailure" StopFailure outputs NoSpecific {
        /// Kind of the failure.
        error: req AssistantErrorKind,
        /// Details of the error.
        error_details: opt String,
        /// The last answer of the turn.
        last_assistant_message: opt String,
    }

    /// At the start of a subagent; the base has its id and type.
    "SubagentStart" SubagentStart outputs SubagentStartSpecific {}

    /// Before the end of a subagent; the base has its id and type.
    "SubagentStop" SubagentStop outputs SubagentStopSpecific {
        /// Whether a hook has already continued this subagent.
        stop_hook_active: opt bool,
        /// Path of the subagent's file.
        agent_transcript_path: opt String,
        /// The last answer of the subagent.
        last_assistant_message: opt String,
        /// Background tasks that are running.
        background_tasks: opt Vec<HookBackgroundTask>,
        /// Scheduled prompts of the session.
        session_crons: opt Vec<SessionCron>,
    }

    /// Before a compaction.
    "PreCompact" PreCompact outputs NoSpecific {
        /// `manual` or `auto`.
        trigger: req CompactTrigger,
        /// The user's instructions for the summary.
        custom_instructions: opt String,
    }

    /// After a compaction.
    "PostCompact" PostCompact outputs NoSpecific {
        /// `manual` or `auto`.
        trigger: req CompactTrigger,
        /// The summary.
        compact_summary: req String,
    }

    /// Before the model is changed.
    "PreModelSwitch" PreModelSwitch outputs PreModelSwitchSpecific {
        /// The current model.
        from_model: req String,
        /// The new model.
        to_model: req String,
        /// The requested name; `null` means the default model.
        requested_model: opt String,
        /// Who changes the model: `command`, `picker`, `sdk`.
        source: opt ModelSwitchSource,
        /// Tokens in the context, which the new model must read.
        context_tokens: opt u64,
        /// Whether the context is in the prompt cache of the current model.
        prompt_cache_warm: opt bool,
        /// Lifetime of prompt cache entries: `5m` or `1h`.
        cache_ttl: opt CacheLifetime,
        /// Estimated cost of writing the prompt cache for the new model, in US dollars.
        estimated_cache_write_usd: opt Number,
        /// Which prices the estimate uses.
        pricing: opt PriceSource,
    }

    /// After the model was changed.
    "PostModelSwitch" PostModelSwitch outputs PostModelSwitchSpecific {
        /// The previous model.
        from_model: req String,
        /// The current model.
        to_model: req String,
        /// The requested name; `null` means the default model.
        requested_model: opt String,
        /// Who changed the model: `command`, `picker`, `sdk`, `auto`, `resume`.
        source: opt ModelSwitchSource,
        /// Tokens in the context, which the new model must read.
        context_tokens: opt u64,
        /// Whether the context is in the prompt cache of the previous model.
        prompt_cache_warm: opt bool,
        /// Lifetime of prompt cache entries: `5m` or `1h`.
        cache_ttl: opt CacheLifetime,
        /// Estimated cost of writing the prompt cache for the new model, in US dollars.
        estimated_cache_write_usd: opt Number,
        /// Which prices the estimate uses.
        pricing: opt PriceSource,
    }

    /// Before the user is asked for a permission.
    "PermissionRequest" PermissionRequest outputs PermissionRequestSpecific {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Rule changes that would allow the call.
        permission_suggestions: opt Vec<PermissionUpdate>,
        /// The MCP server of the tool; absent for other tools.
        mcp_server: opt HookMcpServer,
    }

    /// After a tool call was denied without asking the user.
    "PermissionDenied" PermissionDenied outputs PermissionDeniedSpecific {
        /// Name of the tool.
        tool_name: req ToolName,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Reason for the denial.
        reason: opt String,
        /// The MCP server of the tool; absent for other tools.
        mcp_server: opt HookMcpServer,
    }

    /// When a project is set up.
    "Setup" Setup outputs SetupSpecific {
        /// What started the setup.
        trigger: req SetupTrigger,
    }

    /// When a teammate has no more work.
    "TeammateIdle" TeammateIdle outputs NoSpecific {
        /// Name of the teammate.
        teammate_name: req String,
        /// Name of the team.
        team_name: opt String,
    }

    /// After a task was created.
    "TaskCreated" TaskCreated outputs NoSpecific {
        /// Id of the task.
        task_id: req String,
        /// Subject of the task.
        task_subject: req String,
        /// Description of the task.
        task_description: opt String,
        /// Name of the teammate that the task belongs to.
        teammate_name: opt String,
        /// Name of the team.
        team_name: opt String,
    }

    /// After a task was completed.
    "TaskCompleted" TaskCompleted outputs NoSpecific {
        /// Id of the task.
        task_id: req String,
        /// Subject of the task.
        task_subject: req String,
        /// Description of the task.
        task_description: opt String,
        /// Name of the teammate that the task belongs to.
        teammate_name: opt String,
        /// Name of the team.
        team_name: opt String,
    }

    /// When an MCP server requests input from the user.
    "Elicitation" Elicitation outputs ElicitationSpecific {
        /// Name of the MCP server.
        mcp_server_name: req String,
        /// The question to the user.
        message: req String,
        /// How the user answers.
        mode: opt ElicitationMode,
        /// URL of the page to open, in mode `url`.
        url: opt String,
        /// Id of the elicitation.
        elicitation_id: opt String,
        /// JSON schema of the form.
        requested_schema: opt Json,
    }

    /// After the user responded to an MCP server.
    "ElicitationResult" ElicitationResult outputs ElicitationResultSpecific {
        /// Name of the MCP server.
        mcp_server_name: req String,
        /// Id of the elicitation.
        elicitation_id: opt String,
        /// How the user answers.
        mode: opt ElicitationMode,
        /// Response of the user.
        action: req ElicitationAction,
        /// Values of the form.
        content: opt Json,
    }

    /// After a settings file changed.
    "ConfigChange" ConfigChange outputs NoSpecific {
        /// Kind of file: `user_settings`, `project_settings`, `local_settings`, `policy_settings`, `skills`.
        source: req ConfigChangeSource,
        /// Path of the file.
        file_path: opt String,
    }

    /// When a worktree is needed; the hook creates it and returns its path.
    "WorktreeCreate" WorktreeCreate outputs WorktreeCreateSpecific {
        /// Name of the worktree.
        name: req String,
    }

    /// When a worktree is no longer needed.
    "WorktreeRemove" WorktreeRemove outputs NoSpecific {
        /// Path of the worktree.
        worktree_path: req String,
    }

    /// After an instruction file was read.
    "InstructionsLoaded" InstructionsLoaded outputs NoSpecific {
        /// Path of the file.
        file_path: req String,
        /// Which settings the file belongs to.
        memory_type: opt MemoryType,
        /// Reason: `session_start`, `nested_traversal`, `path_glob_match`, `include`, `compact`.
        load_reason: opt InstructionsLoadReason,
        /// Patterns of the files that the instructions apply to.
        globs: opt Vec<String>,
        /// Path of the file that caused it to be read.
        trigger_file_path: opt String,
        /// Path of the file that includes it.
        parent_file_path: opt String,
    }

    /// After the working directory changed.
    "CwdChanged" CwdChanged outputs CwdChangedSpecific {
        /// Path of the previous working directory.
        old_cwd: opt String,
        /// Path of the new working directory.
        new_cwd: req String,
    }

    /// After a watched file changed.
    "FileChanged" FileChanged outputs FileChangedSpecific {
        /// Path of the file.
        file_path: req String,
        /// What happened to the file.
        event: opt FileEvent,
    }

    /// After a working folder was added.
    "DirectoryAdded" DirectoryAdded outputs NoSpecific {
        /// Path of the folder.
        directory: req String,
        /// How it was added.
        source: opt DirectorySource,
    }

    /// Before a further part of an answer is shown.
    "MessageDisplay" MessageDisplay outputs MessageDisplaySpecific {
        /// Id of the turn.
        turn_id: opt String,
        /// Id of the answer, which is not the API's message id.
        message_id: opt String,
        /// Number of parts before this one.
        index: opt u64,
        /// Whether this is the last part.
        is_final: opt bool = "final",
        /// The text: whole lines, except at the end.
        delta: req String,
    }
}
