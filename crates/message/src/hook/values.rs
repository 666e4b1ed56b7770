//! Open enums for string fields of hook inputs and outputs.

use crate::macros::open_str_enum;

open_str_enum! {
    /// Decision in the output of a hook of any event.
    pub enum HookDecision {
        /// The tool call is permitted (older form of `permissionDecision: allow`).
        "approve" => Approve,
        /// The tool call, prompt or end of the turn is blocked.
        "block" => Block,
    }
}

open_str_enum! {
    /// Outcome of a hook.
    pub enum HookOutcome {
        /// Exit code 0.
        "success" => Success,
        /// An error.
        "error" => Error,
        /// The hook was cancelled.
        "cancelled" => Cancelled,
    }
}

open_str_enum! {
    /// How a session was started.
    pub enum SessionStartSource {
        /// As a new session.
        "startup" => Startup,
        /// By resuming an earlier one.
        "resume" => Resume,
        /// By `/clear`.
        "clear" => Clear,
        /// By a compaction.
        "compact" => Compact,
        /// By forking an earlier one.
        "fork" => Fork,
    }
}

open_str_enum! {
    /// Why a session ended.
    pub enum SessionEndReason {
        /// The user typed `/clear`.
        "clear" => Clear,
        /// Another session was resumed.
        "resume" => Resume,
        /// The user logged out.
        "logout" => Logout,
        /// The user closed the prompt.
        "prompt_input_exit" => PromptInputExit,
        /// Any other reason, for example the end of the input.
        "other" => OtherReason,
    }
}

open_str_enum! {
    /// Who submitted a prompt.
    pub enum PromptAuthor {
        /// The user typed it.
        "user" => User,
        /// The host sent it.
        "sdk" => Sdk,
        /// The agent wrote it.
        "system" => System,
        /// A loop started its next round.
        "loop_wakeup" => LoopWakeup,
        /// A scheduled time was reached.
        "schedule_wakeup" => ScheduleWakeup,
        /// A watched source reported an event.
        "poll_event" => PollEvent,
    }
}

open_str_enum! {
    /// Why an instruction file was read.
    pub enum InstructionsLoadReason {
        /// The session started.
        "session_start" => SessionStart,
        /// A tool worked in its folder.
        "nested_traversal" => NestedTraversal,
        /// A tool worked on a file that its patterns match.
        "path_glob_match" => PathGlobMatch,
        /// Another instruction file includes it.
        "include" => Include,
        /// The conversation was compacted.
        "compact" => Compact,
    }
}

open_str_enum! {
    /// Who changed the model.
    pub enum ModelSwitchSource {
        /// The user, with `/model`.
        "command" => Command,
        /// The user, in the model picker.
        "picker" => Picker,
        /// The host.
        "sdk" => Sdk,
        /// The agent.
        "auto" => Auto,
        /// A resumed session that ran on another model.
        "resume" => Resume,
    }
}

open_str_enum! {
    /// Which settings file changed.
    pub enum ConfigChangeSource {
        /// The user's settings.
        "user_settings" => UserSettings,
        /// The project's committed settings.
        "project_settings" => ProjectSettings,
        /// The user's settings for the project.
        "local_settings" => LocalSettings,
        /// Settings of an administrator.
        "policy_settings" => PolicySettings,
        /// A skill.
        "skills" => Skills,
    }
}
