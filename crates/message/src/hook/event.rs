//! Inputs of hooks, one struct for each event.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Number;

use super::base::{HookBackgroundTask, HookInputBase, HookMcpServer, HookToolCall, SessionCron};
use super::specific::*;
use super::values::{
    ConfigChangeSource, InstructionsLoadReason, ModelSwitchSource, PromptAuthor, SessionEndReason, SessionStartSource,
};
use crate::control::permission::PermissionUpdate;
use crate::macros::{open_enum, wire};
use crate::values::{CacheLifetime, CompactTrigger};
use crate::{Json, ToolUseId};

/// An event that hooks run on.
pub trait HookEvent: DeserializeOwned + Serialize + Debug + Clone + Send + Sync + 'static {
    /// Its name: what hooks register for, and what `hook_event_name` says.
    const NAME: &'static str;
    /// What only its hooks may answer.
    type Specific: Serialize + Debug + Clone + Send + Sync + 'static;

    /// Where and when it happened.
    fn base(&self) -> &HookInputBase;
}

/// Declares every event: its name, its struct, and what only its hooks may answer.
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
    /// A tool is about to run.
    "PreToolUse" PreToolUse outputs PreToolUseSpecific {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// The server of an MCP tool.
        mcp_server: opt HookMcpServer,
    }

    /// A tool has run.
    "PostToolUse" PostToolUse outputs PostToolUseSpecific {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// What it gave, in its own form.
        tool_response: opt Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Duration in milliseconds.
        duration_ms: opt Number,
        /// The server of an MCP tool.
        mcp_server: opt HookMcpServer,
    }

    /// A tool has failed.
    "PostToolUseFailure" PostToolUseFailure outputs PostToolUseFailureSpecific {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Why it failed.
        error: req String,
        /// Whether it was broken off.
        is_interrupt: opt bool,
        /// Duration in milliseconds.
        duration_ms: opt Number,
        /// The server of an MCP tool.
        mcp_server: opt HookMcpServer,
    }

    /// All calls of one answer have run.
    "PostToolBatch" PostToolBatch outputs PostToolBatchSpecific {
        /// The calls, with the input the model gave.
        tool_calls: req Vec<HookToolCall>,
    }

    /// A notification is shown to the user.
    "Notification" Notification outputs NotificationSpecific {
        /// The words.
        message: req String,
        /// Title of the notification.
        title: opt String,
        /// Which kind of notice.
        notification_type: opt String,
    }

    /// The user has said something.
    "UserPromptSubmit" UserPromptSubmit outputs UserPromptSubmitSpecific {
        /// What.
        prompt: req String,
        /// Who really: `user`, `sdk`, `system`, `loop_wakeup`, `schedule_wakeup`, `poll_event`.
        source: opt PromptAuthor,
        /// The session's title.
        session_title: opt String,
    }

    /// A command is about to become a prompt.
    "UserPromptExpansion" UserPromptExpansion outputs UserPromptExpansionSpecific {
        /// `slash_command` or `mcp_prompt`.
        expansion_type: opt String,
        /// The command.
        command_name: req String,
        /// What it is given.
        command_args: opt String,
        /// Where it comes from.
        command_source: opt String,
        /// What the user typed.
        prompt: opt String,
    }

    /// A session begins.
    "SessionStart" SessionStart outputs SessionStartSpecific {
        /// How: `startup`, `resume`, `clear`, `compact`, `fork`.
        source: req SessionStartSource,
        /// The model.
        model: opt String,
        /// The session's title.
        session_title: opt String,
        /// For how long the model of a resumed session has said nothing.
        seconds_since_last_response: opt Number,
        /// How much a resumed session holds.
        context_tokens: opt u64,
        /// Whether the API has probably forgotten it.
        prompt_cache_likely_expired: opt bool,
        /// What it costs to remind it.
        estimated_cache_write_usd: opt Number,
    }

    /// A session ends.
    "SessionEnd" SessionEnd outputs NoSpecific {
        /// Why: `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
        reason: req SessionEndReason,
    }

    /// A turn is about to end.
    "Stop" Stop outputs StopSpecific {
        /// Whether a hook has kept the turn going before.
        stop_hook_active: opt bool,
        /// The answer the turn would end with.
        last_assistant_message: opt String,
        /// What goes on in the background.
        background_tasks: opt Vec<HookBackgroundTask>,
        /// When the session wakes up again.
        session_crons: opt Vec<SessionCron>,
    }

    /// A turn has ended by a failure of the API.
    "StopFailure" StopFailure outputs NoSpecific {
        /// Which: `rate_limit`, `overloaded`, `authentication_failed` …
        error: req String,
        /// More about it.
        error_details: opt String,
        /// The last answer.
        last_assistant_message: opt String,
    }

    /// A subagent begins; the base names it.
    "SubagentStart" SubagentStart outputs SubagentStartSpecific {}

    /// A subagent is about to end; the base names it.
    "SubagentStop" SubagentStop outputs SubagentStopSpecific {
        /// Whether a hook has kept it going before.
        stop_hook_active: opt bool,
        /// Its file.
        agent_transcript_path: opt String,
        /// The answer it would end with.
        last_assistant_message: opt String,
        /// What goes on in the background.
        background_tasks: opt Vec<HookBackgroundTask>,
        /// When the session wakes up again.
        session_crons: opt Vec<SessionCron>,
    }

    /// The conversation is about to be summed up.
    "PreCompact" PreCompact outputs NoSpecific {
        /// `manual` or `auto`.
        trigger: req CompactTrigger,
        /// What the user asked of the summary.
        custom_instructions: opt String,
    }

    /// The conversation has been summed up.
    "PostCompact" PostCompact outputs NoSpecific {
        /// `manual` or `auto`.
        trigger: req CompactTrigger,
        /// The summary.
        compact_summary: req String,
    }

    /// Another model is about to take over.
    "PreModelSwitch" PreModelSwitch outputs PreModelSwitchSpecific {
        /// The model so far.
        from_model: req String,
        /// The model from now on.
        to_model: req String,
        /// What was asked for; `null` means the default.
        requested_model: opt String,
        /// Who asked: `command`, `picker`, `sdk`.
        source: opt ModelSwitchSource,
        /// How much it must read.
        context_tokens: opt u64,
        /// Whether the API still remembers that for the model so far.
        prompt_cache_warm: opt bool,
        /// For how long the API remembers: `5m` or `1h`.
        cache_ttl: opt CacheLifetime,
        /// What it costs to make it remember.
        estimated_cache_write_usd: opt Number,
        /// By which prices: `configured`, `catalog`, `default`.
        pricing: opt String,
    }

    /// Another model has taken over.
    "PostModelSwitch" PostModelSwitch outputs PostModelSwitchSpecific {
        /// The model so far.
        from_model: req String,
        /// The model from now on.
        to_model: req String,
        /// What was asked for; `null` means the default.
        requested_model: opt String,
        /// Who asked: `command`, `picker`, `sdk`, `auto`, `resume`.
        source: opt ModelSwitchSource,
        /// How much it must read.
        context_tokens: opt u64,
        /// Whether the API still remembers that for the model so far.
        prompt_cache_warm: opt bool,
        /// For how long the API remembers: `5m` or `1h`.
        cache_ttl: opt CacheLifetime,
        /// What it costs to make it remember.
        estimated_cache_write_usd: opt Number,
        /// By which prices: `configured`, `catalog`, `default`.
        pricing: opt String,
    }

    /// The user would be asked whether a tool may run.
    "PermissionRequest" PermissionRequest outputs PermissionRequestSpecific {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Changes of the rules that would allow it.
        permission_suggestions: opt Vec<PermissionUpdate>,
        /// The server of an MCP tool.
        mcp_server: opt HookMcpServer,
    }

    /// A tool was refused without asking the user.
    "PermissionDenied" PermissionDenied outputs PermissionDeniedSpecific {
        /// Name of the tool.
        tool_name: req String,
        /// Arguments of the tool call.
        tool_input: req Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId,
        /// Why.
        reason: opt String,
        /// The server of an MCP tool.
        mcp_server: opt HookMcpServer,
    }

    /// A project is set up.
    "Setup" Setup outputs SetupSpecific {
        /// `init` or `maintenance`.
        trigger: req String,
    }

    /// A teammate has nothing more to do.
    "TeammateIdle" TeammateIdle outputs NoSpecific {
        /// Who.
        teammate_name: req String,
        /// The team.
        team_name: opt String,
    }

    /// A task was made.
    "TaskCreated" TaskCreated outputs NoSpecific {
        /// Id of the task.
        task_id: req String,
        /// What it is about.
        task_subject: req String,
        /// More about it.
        task_description: opt String,
        /// Whose it is.
        teammate_name: opt String,
        /// The team.
        team_name: opt String,
    }

    /// A task is done.
    "TaskCompleted" TaskCompleted outputs NoSpecific {
        /// Id of the task.
        task_id: req String,
        /// What it is about.
        task_subject: req String,
        /// More about it.
        task_description: opt String,
        /// Whose it is.
        teammate_name: opt String,
        /// The team.
        team_name: opt String,
    }

    /// An MCP server asks the user a question.
    "Elicitation" Elicitation outputs ElicitationSpecific {
        /// Name of the MCP server.
        mcp_server_name: req String,
        /// The question.
        message: req String,
        /// `form` or `url`.
        mode: opt String,
        /// The page to answer on.
        url: opt String,
        /// The question's id.
        elicitation_id: opt String,
        /// The form of the answer.
        requested_schema: opt Json,
    }

    /// The user has answered an MCP server.
    "ElicitationResult" ElicitationResult outputs ElicitationResultSpecific {
        /// Name of the MCP server.
        mcp_server_name: req String,
        /// The question's id.
        elicitation_id: opt String,
        /// `form` or `url`.
        mode: opt String,
        /// How.
        action: req ElicitationAction,
        /// Values the user filled in.
        content: opt Json,
    }

    /// A settings file has changed.
    "ConfigChange" ConfigChange outputs NoSpecific {
        /// Whose: `user_settings`, `project_settings`, `local_settings`, `policy_settings`, `skills`.
        source: req ConfigChangeSource,
        /// Path of the file.
        file_path: opt String,
    }

    /// A worktree is needed: the hook makes it and says where it is.
    "WorktreeCreate" WorktreeCreate outputs WorktreeCreateSpecific {
        /// Its name.
        name: req String,
    }

    /// A worktree is no longer needed.
    "WorktreeRemove" WorktreeRemove outputs NoSpecific {
        /// Where it is.
        worktree_path: req String,
    }

    /// A file of instructions was read.
    "InstructionsLoaded" InstructionsLoaded outputs NoSpecific {
        /// Path of the file.
        file_path: req String,
        /// Whose: `User`, `Project`, `Local`, `Managed`.
        memory_type: opt String,
        /// Why: `session_start`, `nested_traversal`, `path_glob_match`, `include`, `compact`.
        load_reason: opt InstructionsLoadReason,
        /// For which files it holds.
        globs: opt Vec<String>,
        /// The file that made it relevant.
        trigger_file_path: opt String,
        /// The file that includes it.
        parent_file_path: opt String,
    }

    /// The working directory has changed.
    "CwdChanged" CwdChanged outputs CwdChangedSpecific {
        /// Where it was.
        old_cwd: opt String,
        /// Where it is.
        new_cwd: req String,
    }

    /// A watched file has changed.
    "FileChanged" FileChanged outputs FileChangedSpecific {
        /// Path of the file.
        file_path: req String,
        /// `change`, `add` or `unlink`.
        event: opt String,
    }

    /// A folder was opened to the agent.
    "DirectoryAdded" DirectoryAdded outputs NoSpecific {
        /// The folder.
        directory: req String,
        /// How: `slash_command` or `register_repo_root`.
        source: opt String,
    }

    /// More of an answer is about to be shown.
    "MessageDisplay" MessageDisplay outputs MessageDisplaySpecific {
        /// The turn.
        turn_id: opt String,
        /// The answer, by an id of its own.
        message_id: opt String,
        /// How many pieces came before.
        index: opt u64,
        /// Whether this is the last piece.
        is_final: opt bool = "final",
        /// The piece: whole lines, except at the end.
        delta: req String,
    }
}
