//! `attachment` lines: what the program tells the model beside the user's words.

use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::values::{CommandMode, TaskState};
use crate::{Content, Envelope, Json, Role, ToolUseId, Uuid};

mod details;
mod for_model;

pub use details::{EnvironmentSnapshot, ModelIdentityDetails, OutputStyleDetails};
pub use for_model::system_reminder;

wire! {
    /// An `attachment` line. It is part of the chain of parents: the parent of an
    /// answer is usually an attachment, not the prompt.
    pub struct AttachmentEntry ["type" = "attachment"] with envelope: Envelope {
        /// What is attached.
        attachment: req Attachment,
        /// The messages it became in the request.
        rendered: opt Vec<RenderedMessage>,
        /// The role it was sent in.
        rendered_role: opt Role = "renderedRole",
        /// Whether it was sent in the same message as tool results.
        rendered_beside_tool_result: opt bool = "renderedBesideToolResult",
    }
}

wire! {
    /// One piece of text an attachment became in the request.
    pub struct RenderedMessage {
        /// Text that is shown.
        content: opt Content,
    }
}

impl Attachment {
    /// How long a hook ran, in milliseconds; `None` for other attachments and older files.
    pub fn hook_duration_ms(&self) -> Option<u64> {
        match self {
            Self::HookSucceeded(hook) => Some(hook.duration_ms.get()?.as_f64()? as u64),
            _ => None,
        }
    }

    /// The tool call and the event of a hook's attachment.
    pub fn hook_tool_use_and_event(&self) -> Option<(&ToolUseId, &str)> {
        macro_rules! hook_fields {
            ($($variant:ident),+) => {
                match self {
                    $( Self::$variant(a) => Some((a.tool_use_id.get()?, a.hook_event.text()?)), )+
                    _ => None,
                }
            };
        }
        hook_fields!(HookContext, HookBlocked, HookFailed, HookCancelled, HookSucceeded, HookMessage, HookStopped)
    }
}

open_enum! {
    /// What is attached. Types not seen in recordings are those that published
    /// readers know of.
    pub enum Attachment by "type" {
        /// The subagents on offer changed.
        "agent_listing_delta" => AgentListing(AgentListing),
        /// Automatic mode was entered.
        "auto_mode" => AutoMode(AutoMode),
        /// How much of the budget is left.
        "budget_usd" => BudgetUsd(BudgetUsd),
        /// Tools that a slash command allows.
        "command_permissions" => CommandPermissions(CommandPermissions),
        /// Sections that were moved out of the system prompt.
        "context_sections" => ContextSections(ContextSections),
        /// The day.
        "date" => Date(Date),
        /// The tools that are loaded on demand changed.
        "deferred_tools_delta" => DeferredTools(DeferredTools),
        /// Definitions of tools that were loaded on demand.
        "deferred_tools_record" => DeferredToolsRecord(DeferredToolsRecord),
        /// Where the program runs.
        "environment" => Environment(Environment),
        /// A file the user mentioned.
        "file" => File(File),
        /// What a hook adds for the model.
        "hook_additional_context" => HookContext(HookContext),
        /// A hook stopped something.
        "hook_blocking_error" => HookBlocked(HookBlocked),
        /// A hook failed without stopping anything.
        "hook_non_blocking_error" => HookFailed(HookFailed),
        /// A hook was broken off.
        "hook_cancelled" => HookCancelled(HookCancelled),
        /// A hook ran.
        "hook_success" => HookSucceeded(HookSucceeded),
        /// What a hook tells the user.
        "hook_system_message" => HookMessage(HookMessage),
        /// A hook ended the turn.
        "hook_stopped_continuation" => HookStopped(HookStopped),
        /// The instruction files that were read.
        "instructions" => Instructions(Instructions),
        /// The limit of turns was hit.
        "max_turns_reached" => MaxTurnsReached(MaxTurnsReached),
        /// The model that answers.
        "model" => ModelIdentity(ModelIdentity),
        /// The output style in force.
        "output_style" => OutputStyle(OutputStyle),
        /// The output style's own text.
        "output_style_instructions" => OutputStyleInstructions(OutputStyleInstructions),
        /// Plan mode is on.
        "plan_mode" => PlanMode(PlanMode),
        /// Plan mode ended.
        "plan_mode_exit" => PlanModeExit(PlanModeExit),
        /// The system prompt and tools as sent.
        "prompt_snapshot" => PromptSnapshot(PromptSnapshot),
        /// Words the user sent while a turn ran.
        "queued_command" => QueuedCommand(QueuedCommand),
        /// How commits and pull requests are signed.
        "remote_session_change" => RemoteSession(RemoteSession),
        /// Facts about the session.
        "session_context" => SessionContext(SessionContext),
        /// A reminder after a turn without words.
        "silent_turn_reminder" => SilentTurnReminder(SilentTurnReminder),
        /// The skills on offer.
        "skill_listing" => SkillListing(SkillListing),
        /// The answer in the asked-for form.
        "structured_output" => StructuredOutput(StructuredOutput),
        /// How many tokens are used.
        "total_tokens_reminder" => TotalTokensReminder(TotalTokensReminder),
        /// An unknown slash command.
        "unknown_command_fallback" => UnknownCommand(UnknownCommand),
        /// A reminder of the task list.
        "todo_reminder" => TodoReminder(TodoReminder),
        /// A reminder of the task list.
        "task_reminder" => TaskReminder(TaskReminder),
        /// How a background task stands.
        "task_status" => TaskStatus(TaskStatus),
        /// A file that changed outside of the session.
        "edited_text_file" => EditedFile(EditedFile),
        /// A file named after a compaction instead of shown.
        "compact_file_reference" => CompactedFile(CompactedFile),
        /// A folder the user mentioned.
        "directory" => Directory(Directory),
        /// Instructions found in a subfolder.
        "nested_memory" => NestedMemory(NestedMemory),
        /// A reminder the model must see.
        "critical_system_reminder" => CriticalReminder(CriticalReminder),
        /// A resource of an MCP server.
        "mcp_resource" => McpResource(McpResource),
        /// Problems the editor reports.
        "diagnostics" => Diagnostics(Diagnostics),
        /// Skills used before a compaction.
        "invoked_skills" => InvokedSkills(InvokedSkills),
        /// Midnight passed.
        "date_change" => DateChange(DateChange),
    }
}

wire! {
    /// The subagents on offer changed.
    pub struct AgentListing ["type" = "agent_listing_delta"] {
        /// Types that came.
        added_types: opt Vec<String> = "addedTypes",
        /// How they are described.
        added_lines: opt Vec<String> = "addedLines",
        /// Types that went.
        removed_types: opt Vec<String> = "removedTypes",
        /// Whether it is the first listing.
        is_initial: opt bool = "isInitial",
    }
}

wire! {
    /// Automatic mode was entered.
    pub struct AutoMode ["type" = "auto_mode"] {
        /// Whether permission checks are off.
        bypass: opt bool,
    }
}

wire! {
    /// How much of the budget is left.
    pub struct BudgetUsd ["type" = "budget_usd"] {
        /// Dollars spent.
        used: opt Number,
        /// Dollars allowed.
        total: opt Number,
        /// Dollars left.
        remaining: opt Number,
    }
}

wire! {
    /// Tools that a slash command allows.
    pub struct CommandPermissions ["type" = "command_permissions"] {
        /// Rules.
        allowed_tools: opt Vec<String> = "allowedTools",
        /// The model that answers the prompt, if it names one.
        model: opt String,
    }
}

wire! {
    /// Sections that `--exclude-dynamic-system-prompt-sections` moved from the system
    /// prompt to the first user message.
    pub struct ContextSections ["type" = "context_sections"] {
        /// The sections, in the order they were sent.
        sections: opt Vec<ContextSection>,
    }
}

wire! {
    /// One section of a [`ContextSections`] attachment.
    pub struct ContextSection {
        /// Heading, for example `Memory`.
        name: opt String,
        /// Text of the section.
        text: opt String,
    }
}

wire! {
    /// The day.
    pub struct Date ["type" = "date"] {
        /// As `2026-11-15`.
        date: opt String,
    }
}

wire! {
    /// The tools that are loaded on demand changed.
    pub struct DeferredTools ["type" = "deferred_tools_delta"] {
        /// Tools that came.
        added_names: opt Vec<String> = "addedNames",
        /// How they are listed.
        added_lines: opt Vec<String> = "addedLines",
        /// Tools that went.
        removed_names: opt Vec<String> = "removedNames",
    }
}

wire! {
    /// Definitions of tools that `ToolSearch` loaded.
    pub struct DeferredToolsRecord ["type" = "deferred_tools_record"] {
        /// Tool definitions as sent to the API.
        entries: opt Json,
    }
}

wire! {
    /// Where the program runs.
    pub struct Environment ["type" = "environment"] {
        /// Directory, platform, shell.
        snapshot: opt Json,
    }
}

wire! {
    /// A file the user mentioned.
    pub struct File ["type" = "file"] {
        /// Its path.
        filename: opt String,
        /// Contents of the file in the form of the Read tool.
        content: opt Json,
        /// Its path as shown.
        display_path: opt String = "displayPath",
    }
}

wire! {
    /// What a hook adds for the model.
    pub struct HookContext ["type" = "hook_additional_context"] {
        /// Text for the model.
        content: opt Json,
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
    }
}

wire! {
    /// A hook stopped something.
    pub struct HookBlocked ["type" = "hook_blocking_error"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// Why.
        blocking_error: opt Json = "blockingError",
    }
}

wire! {
    /// A hook failed without stopping anything.
    pub struct HookFailed ["type" = "hook_non_blocking_error"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// Standard output of the hook.
        stdout: opt String,
        /// Standard error of the hook.
        stderr: opt String,
        /// Exit code of the process.
        exit_code: opt Number = "exitCode",
    }
}

wire! {
    /// A hook was broken off.
    pub struct HookCancelled ["type" = "hook_cancelled"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
    }
}

wire! {
    /// A hook ran.
    pub struct HookSucceeded ["type" = "hook_success"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// Output of the hook as text.
        content: opt Json,
        /// Standard output of the hook.
        stdout: opt String,
        /// Standard error of the hook.
        stderr: opt String,
        /// Exit code of the process.
        exit_code: opt Number = "exitCode",
        /// The command.
        command: opt String,
        /// Duration in milliseconds.
        duration_ms: opt Number = "durationMs",
    }
}

wire! {
    /// What a hook tells the user.
    pub struct HookMessage ["type" = "hook_system_message"] {
        /// Text for the user.
        content: opt Json,
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
    }
}

wire! {
    /// A hook ended the turn.
    pub struct HookStopped ["type" = "hook_stopped_continuation"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// Why.
        message: opt Json,
    }
}

wire! {
    /// The instruction files that were read.
    pub struct Instructions ["type" = "instructions"] {
        /// Their paths and text.
        files: opt Json,
    }
}

wire! {
    /// The limit of turns was hit.
    pub struct MaxTurnsReached ["type" = "max_turns_reached"] {
        /// The limit.
        max_turns: opt u64 = "maxTurns",
        /// The count.
        turn_count: opt u64 = "turnCount",
    }
}

wire! {
    /// The model that answers.
    pub struct ModelIdentity ["type" = "model"] {
        /// Its names and dates.
        identity: opt Json,
        /// How it is announced.
        text: opt String,
    }
}

wire! {
    /// The output style in force.
    pub struct OutputStyle ["type" = "output_style"] {
        /// Name of the style.
        style: opt String,
    }
}

wire! {
    /// The output style's own text.
    pub struct OutputStyleInstructions ["type" = "output_style_instructions"] {
        /// Name (`name`) and text (`prompt`) of the style.
        style: opt Json,
    }
}

wire! {
    /// Plan mode is on.
    pub struct PlanMode ["type" = "plan_mode"] {
        /// How much is said about it.
        reminder_type: opt String = "reminderType",
        /// Whether a subagent plans.
        is_sub_agent: opt bool = "isSubAgent",
        /// The plan.
        plan_file_path: opt String = "planFilePath",
        /// Whether the plan is there.
        plan_exists: opt bool = "planExists",
    }
}

wire! {
    /// Plan mode ended.
    pub struct PlanModeExit ["type" = "plan_mode_exit"] {
        /// The plan.
        plan_file_path: opt String = "planFilePath",
        /// Whether the plan is there.
        plan_exists: opt bool = "planExists",
    }
}

wire! {
    /// The system prompt and tools as sent.
    pub struct PromptSnapshot ["type" = "prompt_snapshot"] {
        /// The parts of the prompt.
        system_prompt: opt Json = "systemPrompt",
        /// The tools.
        tools: opt Json,
        /// How context is announced.
        context_rendering: opt String = "contextRendering",
        /// Which program wrote it: `quipu-agent`. Absent in files of Claude Code.
        writer: opt String,
    }
}

wire! {
    /// Words the user sent while a turn ran.
    pub struct QueuedCommand ["type" = "queued_command"] {
        /// The words.
        prompt: opt Content,
        /// The line they came in.
        source_uuid: opt Uuid,
        /// Names the delivery; the `queue-operation` that removes them has the same.
        delivery_id: opt String,
        /// How they are meant.
        command_mode: opt CommandMode = "commandMode",
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
    }
}

wire! {
    /// How commits and pull requests are signed.
    pub struct RemoteSession ["type" = "remote_session_change"] {
        /// The session's address.
        url: opt String,
        /// The trailer of commits.
        commit: opt String,
        /// The footer of pull requests.
        pr: opt String,
    }
}

wire! {
    /// Facts about the session.
    pub struct SessionContext ["type" = "session_context"] {
        /// The facts.
        context: opt Json,
    }
}

wire! {
    /// A reminder after a turn without words.
    pub struct SilentTurnReminder ["type" = "silent_turn_reminder"] {
        /// The words.
        text: opt String,
    }
}

wire! {
    /// The skills on offer.
    pub struct SkillListing ["type" = "skill_listing"] {
        /// List of the skills as the model is given it.
        content: opt String,
        /// How many.
        skill_count: opt u64 = "skillCount",
        /// Whether it is the first listing.
        is_initial: opt bool = "isInitial",
        /// Their names.
        names: opt Vec<String>,
    }
}

wire! {
    /// The answer in the asked-for form.
    pub struct StructuredOutput ["type" = "structured_output"] {
        /// The answer.
        data: opt Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// How many tokens are used.
    pub struct TotalTokensReminder ["type" = "total_tokens_reminder"] {
        /// The words.
        text: opt String,
    }
}

wire! {
    /// An unknown slash command.
    pub struct UnknownCommand ["type" = "unknown_command_fallback"] {
        /// The command.
        command_name: opt String = "commandName",
        /// What there is.
        available_command_names: opt Vec<String> = "availableCommandNames",
    }
}

wire! {
    /// A reminder of the task list.
    pub struct TodoReminder ["type" = "todo_reminder"] {
        /// Tasks with their status.
        content: opt Json,
        /// How many.
        item_count: opt u64 = "itemCount",
    }
}

wire! {
    /// A reminder of the task list.
    pub struct TaskReminder ["type" = "task_reminder"] {
        /// Tasks with their status.
        content: opt Json,
        /// How many.
        item_count: opt u64 = "itemCount",
    }
}

wire! {
    /// How a background task stands.
    pub struct TaskStatus ["type" = "task_status"] {
        /// Id of the task.
        task_id: opt String = "taskId",
        /// How it stands.
        status: opt TaskState,
        /// What it does.
        description: opt String,
    }
}

wire! {
    /// A file that changed outside of the session.
    pub struct EditedFile ["type" = "edited_text_file"] {
        /// Its path.
        filename: opt String,
        /// What changed.
        snippet: opt String,
    }
}

wire! {
    /// A file named after a compaction instead of shown.
    pub struct CompactedFile ["type" = "compact_file_reference"] {
        /// Its path.
        filename: opt String,
        /// Its path as shown.
        display_path: opt String = "displayPath",
    }
}

wire! {
    /// A folder the user mentioned.
    pub struct Directory ["type" = "directory"] {
        /// Its path.
        path: opt String,
        /// Names in the folder.
        content: opt String,
    }
}

wire! {
    /// Instructions found in a subfolder.
    pub struct NestedMemory ["type" = "nested_memory"] {
        /// Their path.
        path: opt String,
        /// Text of the instruction file.
        content: opt Json,
    }
}

wire! {
    /// A reminder the model must see.
    pub struct CriticalReminder ["type" = "critical_system_reminder"] {
        /// Text that is shown.
        content: opt String,
    }
}

wire! {
    /// A resource of an MCP server.
    pub struct McpResource ["type" = "mcp_resource"] {
        /// The server.
        server: opt String,
        /// The resource.
        uri: opt String,
        /// Contents of the resource.
        content: opt Json,
    }
}

wire! {
    /// Problems the editor reports.
    pub struct Diagnostics ["type" = "diagnostics"] {
        /// By file.
        files: opt Json,
        /// Whether they are new.
        is_new: opt bool = "isNew",
    }
}

wire! {
    /// Skills used before a compaction.
    pub struct InvokedSkills ["type" = "invoked_skills"] {
        /// The skills.
        skills: opt Json,
    }
}

wire! {
    /// Midnight passed.
    pub struct DateChange ["type" = "date_change"] {
        /// The new day.
        new_date: opt String = "newDate",
    }
}
