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
    /// Outcome of one run of a hook.
    pub enum HookRunOutcome {
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

open_str_enum! {
    /// What a notification is about.
    pub enum NotificationType {
        /// A tool call needs permission.
        "permission_prompt" => PermissionPrompt,
        /// The agent has waited for a prompt for a while.
        "idle_prompt" => IdlePrompt,
        /// A login has succeeded.
        "auth_success" => AuthSuccess,
        /// An MCP server asks the user a question.
        "elicitation_dialog" => ElicitationDialog,
    }
}

open_str_enum! {
    /// What a prompt is expanded from.
    pub enum ExpansionType {
        /// A slash command.
        "slash_command" => SlashCommand,
        /// A prompt of an MCP server.
        "mcp_prompt" => McpPrompt,
    }
}

open_str_enum! {
    /// Which prices an estimate uses.
    pub enum PriceSource {
        /// Prices of the settings.
        "configured" => Configured,
        /// Prices of the model in the built-in list.
        "catalog" => Catalog,
        /// Prices for models that are not in the list.
        "default" => Default,
    }
}

open_str_enum! {
    /// What started the setup of a project.
    pub enum SetupTrigger {
        /// The first run in the project.
        "init" => Init,
        /// A regular check.
        "maintenance" => Maintenance,
    }
}

open_str_enum! {
    /// How the user answers the question of an MCP server.
    pub enum ElicitationMode {
        /// In a form.
        "form" => Form,
        /// On a web page.
        "url" => Url,
    }
}

open_str_enum! {
    /// What happened to a watched file.
    pub enum FileEvent {
        /// Its content changed.
        "change" => Change,
        /// It is new.
        "add" => Add,
        /// It was removed.
        "unlink" => Unlink,
    }
}

open_str_enum! {
    /// How a folder was added to the session.
    pub enum DirectorySource {
        /// By a slash command.
        "slash_command" => SlashCommand,
        /// By the host, as the root of a repository.
        "register_repo_root" => RegisterRepoRoot,
    }
}

open_str_enum! {
    /// Which settings an instruction file belongs to.
    pub enum MemoryType {
        /// The user's, for all projects.
        "User" => User,
        /// The project's, committed.
        "Project" => Project,
        /// The user's for the project.
        "Local" => Local,
        /// An administrator's.
        "Managed" => Managed,
    }
}
