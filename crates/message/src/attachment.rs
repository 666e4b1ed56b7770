//! `attachment` lines: context that the agent sends to the model beside the user's text.

use serde_json::Number;

use crate::macros::{open_enum, wire};
use crate::values::{CommandMode, TaskState};
use crate::{Content, Envelope, Json, Role, ToolUseId, Uuid};

mod details;
mod for_model;

pub use details::{EnvironmentSnapshot, ModelIdentityDetails, OutputStyleDetails};
pub use for_model::system_reminder;

wire! {
    /// An `attachment` line. It is part of the parent chain: the parent of an answer is usually an
    /// attachment, not the prompt.
    pub struct AttachmentEntry ["type" = "attachment"] with envelope: Envelope {
        /// The attachment itself.
        attachment: req Attachment,
        /// The messages that were sent for it, since 2.1.3xx.
        rendered: opt Vec<RenderedMessage>,
        /// Role of those messages: `system` or `user`.
        rendered_role: opt Role = "renderedRole",
        /// Whether it was sent in the same message as tool results.
        rendered_beside_tool_result: opt bool = "renderedBesideToolResult",
    }
}

wire! {
    /// One message that was sent for an attachment.
    pub struct RenderedMessage {
        /// Text or blocks of the message.
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

    /// The tool call and the event of a hook's attachment; `None` for other attachments.
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
    /// The attachment of a line, by its `type`. Types that are in no recording are those that published
    /// readers support.
    pub enum Attachment by "type" {
        /// Change of the list of subagents.
        "agent_listing_delta" => AgentListing(AgentListing),
        /// Start of the mode `auto`.
        "auto_mode" => AutoMode(AutoMode),
        /// Use of the session's budget.
        "budget_usd" => BudgetUsd(BudgetUsd),
        /// Tools that a slash command allows.
        "command_permissions" => CommandPermissions(CommandPermissions),
        /// Sections that were moved out of the system prompt.
        "context_sections" => ContextSections(ContextSections),
        /// The current date.
        "date" => Date(Date),
        /// Change of the list of tools that are loaded on demand.
        "deferred_tools_delta" => DeferredTools(DeferredTools),
        /// Definitions of tools that were loaded on demand.
        "deferred_tools_record" => DeferredToolsRecord(DeferredToolsRecord),
        /// Machine and folders of the session.
        "environment" => Environment(Environment),
        /// A file that the user mentioned.
        "file" => File(File),
        /// Additional context of a hook for the model.
        "hook_additional_context" => HookContext(HookContext),
        /// A hook that blocked an operation.
        "hook_blocking_error" => HookBlocked(HookBlocked),
        /// A hook that failed without blocking anything.
        "hook_non_blocking_error" => HookFailed(HookFailed),
        /// A hook that was cancelled.
        "hook_cancelled" => HookCancelled(HookCancelled),
        /// A hook that succeeded.
        "hook_success" => HookSucceeded(HookSucceeded),
        /// A message of a hook for the user.
        "hook_system_message" => HookMessage(HookMessage),
        /// A hook that ended the turn.
        "hook_stopped_continuation" => HookStopped(HookStopped),
        /// The instruction files of the session.
        "instructions" => Instructions(Instructions),
        /// The turn limit was reached.
        "max_turns_reached" => MaxTurnsReached(MaxTurnsReached),
        /// The model of the session.
        "model" => ModelIdentity(ModelIdentity),
        /// Name of the current output style.
        "output_style" => OutputStyle(OutputStyle),
        /// Name and text of the current output style.
        "output_style_instructions" => OutputStyleInstructions(OutputStyleInstructions),
        /// Plan mode is active.
        "plan_mode" => PlanMode(PlanMode),
        /// Plan mode has ended.
        "plan_mode_exit" => PlanModeExit(PlanModeExit),
        /// System prompt and tools of the session.
        "prompt_snapshot" => PromptSnapshot(PromptSnapshot),
        /// A prompt that was added to a running turn.
        "queued_command" => QueuedCommand(QueuedCommand),
        /// Attribution lines for commits and pull requests.
        "remote_session_change" => RemoteSession(RemoteSession),
        /// Facts about the session.
        "session_context" => SessionContext(SessionContext),
        /// A reminder after a turn without text.
        "silent_turn_reminder" => SilentTurnReminder(SilentTurnReminder),
        /// The list of skills.
        "skill_listing" => SkillListing(SkillListing),
        /// The structured answer of a run with a JSON schema.
        "structured_output" => StructuredOutput(StructuredOutput),
        /// A reminder with the number of tokens used.
        "total_tokens_reminder" => TotalTokensReminder(TotalTokensReminder),
        /// A slash command that does not exist.
        "unknown_command_fallback" => UnknownCommand(UnknownCommand),
        /// A reminder of the todo list.
        "todo_reminder" => TodoReminder(TodoReminder),
        /// A reminder of the task list.
        "task_reminder" => TaskReminder(TaskReminder),
        /// Status of a background task.
        "task_status" => TaskStatus(TaskStatus),
        /// A file that was changed outside the session.
        "edited_text_file" => EditedFile(EditedFile),
        /// A file that was read before a compaction, without its content.
        "compact_file_reference" => CompactedFile(CompactedFile),
        /// A folder that the user mentioned.
        "directory" => Directory(Directory),
        /// Instructions in a subfolder.
        "nested_memory" => NestedMemory(NestedMemory),
        /// A reminder with high priority.
        "critical_system_reminder" => CriticalReminder(CriticalReminder),
        /// A resource of an MCP server that the user mentioned.
        "mcp_resource" => McpResource(McpResource),
        /// Diagnostics of the editor.
        "diagnostics" => Diagnostics(Diagnostics),
        /// Skills that were used before a compaction.
        "invoked_skills" => InvokedSkills(InvokedSkills),
        /// The date has changed.
        "date_change" => DateChange(DateChange),
    }
}

wire! {
    /// Change of the list of subagents.
    pub struct AgentListing ["type" = "agent_listing_delta"] {
        /// Subagent types that were added.
        added_types: opt Vec<String> = "addedTypes",
        /// Descriptions of the added types, one line each.
        added_lines: opt Vec<String> = "addedLines",
        /// Subagent types that were removed.
        removed_types: opt Vec<String> = "removedTypes",
        /// Whether it is the first list of the session.
        is_initial: opt bool = "isInitial",
    }
}

wire! {
    /// Start of the mode `auto`.
    pub struct AutoMode ["type" = "auto_mode"] {
        /// Seen on the wire; its meaning is not established.
        bypass: opt bool,
    }
}

wire! {
    /// Use of the session's budget, in US dollars.
    pub struct BudgetUsd ["type" = "budget_usd"] {
        /// Cost so far.
        used: opt Number,
        /// The budget.
        total: opt Number,
        /// Budget minus cost.
        remaining: opt Number,
    }
}

wire! {
    /// Tools that a slash command allows.
    pub struct CommandPermissions ["type" = "command_permissions"] {
        /// Allow rules, as in `Bash(git log:*)`.
        allowed_tools: opt Vec<String> = "allowedTools",
        /// Model for the command's prompt; absent if the command names none.
        model: opt String,
    }
}

wire! {
    /// Sections that `--exclude-dynamic-system-prompt-sections` moved from the system prompt to the first
    /// user message.
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
    /// The current date.
    pub struct Date ["type" = "date"] {
        /// The date, for example `2026-11-15`.
        date: opt String,
    }
}

wire! {
    /// Change of the list of tools that are loaded on demand.
    pub struct DeferredTools ["type" = "deferred_tools_delta"] {
        /// Names of tools that were added.
        added_names: opt Vec<String> = "addedNames",
        /// The added tools as the model sees them, one line each.
        added_lines: opt Vec<String> = "addedLines",
        /// Names of tools that were removed.
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
    /// Machine and folders of the session.
    pub struct Environment ["type" = "environment"] {
        /// Folders, platform and shell; see [`EnvironmentSnapshot`].
        snapshot: opt Json,
    }
}

wire! {
    /// A file that the user mentioned.
    pub struct File ["type" = "file"] {
        /// Path of the file.
        filename: opt String,
        /// Content of the file in the form of a Read result.
        content: opt Json,
        /// Path as shown to the user.
        display_path: opt String = "displayPath",
    }
}

wire! {
    /// Additional context of a hook for the model.
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
    /// A hook that blocked an operation.
    pub struct HookBlocked ["type" = "hook_blocking_error"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// The reason: `blockingError` and `command`.
        blocking_error: opt Json = "blockingError",
    }
}

wire! {
    /// A hook that failed without blocking anything.
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
    /// A hook that was cancelled.
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
    /// A hook that succeeded.
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
        /// The hook's command.
        command: opt String,
        /// Duration in milliseconds.
        duration_ms: opt Number = "durationMs",
    }
}

wire! {
    /// A message of a hook for the user.
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
    /// A hook that ended the turn.
    pub struct HookStopped ["type" = "hook_stopped_continuation"] {
        /// Event and matcher of the hook, for example `PreToolUse:Bash`.
        hook_name: opt String = "hookName",
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
        /// Name of the hook event, for example `PreToolUse`.
        hook_event: opt String = "hookEvent",
        /// The reason.
        message: opt Json,
    }
}

wire! {
    /// The instruction files of the session: `CLAUDE.md` and its imports.
    pub struct Instructions ["type" = "instructions"] {
        /// Path, type and content of each file.
        files: opt Json,
    }
}

wire! {
    /// The turn limit was reached.
    pub struct MaxTurnsReached ["type" = "max_turns_reached"] {
        /// The limit.
        max_turns: opt u64 = "maxTurns",
        /// Number of turns so far.
        turn_count: opt u64 = "turnCount",
    }
}

wire! {
    /// The model of the session.
    pub struct ModelIdentity ["type" = "model"] {
        /// Model id and names; see [`ModelIdentityDetails`].
        identity: opt Json,
        /// The text that was sent.
        text: opt String,
    }
}

wire! {
    /// Name of the current output style.
    pub struct OutputStyle ["type" = "output_style"] {
        /// Name of the style.
        style: opt String,
    }
}

wire! {
    /// Name and text of the current output style.
    pub struct OutputStyleInstructions ["type" = "output_style_instructions"] {
        /// The style's `name` and `prompt`.
        style: opt Json,
    }
}

wire! {
    /// Plan mode is active.
    pub struct PlanMode ["type" = "plan_mode"] {
        /// Length of the reminder; only `full` was seen.
        reminder_type: opt String = "reminderType",
        /// Whether it is for a subagent.
        is_sub_agent: opt bool = "isSubAgent",
        /// Path of the plan file.
        plan_file_path: opt String = "planFilePath",
        /// Whether the plan file exists.
        plan_exists: opt bool = "planExists",
    }
}

wire! {
    /// Plan mode has ended.
    pub struct PlanModeExit ["type" = "plan_mode_exit"] {
        /// Path of the plan file.
        plan_file_path: opt String = "planFilePath",
        /// Whether the plan file exists.
        plan_exists: opt bool = "planExists",
    }
}

wire! {
    /// System prompt and tools of the session.
    pub struct PromptSnapshot ["type" = "prompt_snapshot"] {
        /// The parts of the system prompt, a list of strings.
        system_prompt: opt Json = "systemPrompt",
        /// Name, description and schema of each tool.
        tools: opt Json,
        /// How context is sent; only `announced` was seen.
        context_rendering: opt String = "contextRendering",
        /// Program that wrote it: `quipu-agent`; absent in files of Claude Code.
        writer: opt String,
    }
}

wire! {
    /// A prompt that was added to a running turn.
    pub struct QueuedCommand ["type" = "queued_command"] {
        /// The prompt.
        prompt: opt Content,
        /// UUID of the user line with the prompt.
        source_uuid: opt Uuid,
        /// Id of the delivery; the `queue-operation` that removes the prompt has the same.
        delivery_id: opt String,
        /// Kind of the queued command, such as `prompt`.
        command_mode: opt CommandMode = "commandMode",
        /// Time of the prompt, as ISO 8601 text.
        timestamp: opt String,
    }
}

wire! {
    /// Attribution lines for commits and pull requests.
    pub struct RemoteSession ["type" = "remote_session_change"] {
        /// URL of the session.
        url: opt String,
        /// Trailer for commits.
        commit: opt String,
        /// Footer for pull requests.
        pr: opt String,
    }
}

wire! {
    /// Facts about the session.
    pub struct SessionContext ["type" = "session_context"] {
        /// The facts; only an empty object was seen.
        context: opt Json,
    }
}

wire! {
    /// A reminder after a turn without text.
    pub struct SilentTurnReminder ["type" = "silent_turn_reminder"] {
        /// Text of the reminder.
        text: opt String,
    }
}

wire! {
    /// The list of skills.
    pub struct SkillListing ["type" = "skill_listing"] {
        /// The list as the model sees it.
        content: opt String,
        /// Number of skills.
        skill_count: opt u64 = "skillCount",
        /// Whether it is the first list of the session.
        is_initial: opt bool = "isInitial",
        /// Names of the skills.
        names: opt Vec<String>,
    }
}

wire! {
    /// The structured answer of a run with a JSON schema.
    pub struct StructuredOutput ["type" = "structured_output"] {
        /// The answer, valid for the schema.
        data: opt Json,
        /// Id of the tool call.
        tool_use_id: opt ToolUseId = "toolUseID",
    }
}

wire! {
    /// A reminder with the number of tokens used.
    pub struct TotalTokensReminder ["type" = "total_tokens_reminder"] {
        /// Text of the reminder.
        text: opt String,
    }
}

wire! {
    /// A slash command that does not exist.
    pub struct UnknownCommand ["type" = "unknown_command_fallback"] {
        /// Name of the command.
        command_name: opt String = "commandName",
        /// Names of the commands that exist.
        available_command_names: opt Vec<String> = "availableCommandNames",
    }
}

wire! {
    /// A reminder of the todo list.
    pub struct TodoReminder ["type" = "todo_reminder"] {
        /// Tasks with their status.
        content: opt Json,
        /// Number of tasks.
        item_count: opt u64 = "itemCount",
    }
}

wire! {
    /// A reminder of the task list.
    pub struct TaskReminder ["type" = "task_reminder"] {
        /// Tasks with their status.
        content: opt Json,
        /// Number of tasks.
        item_count: opt u64 = "itemCount",
    }
}

wire! {
    /// Status of a background task.
    pub struct TaskStatus ["type" = "task_status"] {
        /// Id of the task.
        task_id: opt String = "taskId",
        /// The status.
        status: opt TaskState,
        /// Description of the task.
        description: opt String,
    }
}

wire! {
    /// A file that was changed outside the session.
    pub struct EditedFile ["type" = "edited_text_file"] {
        /// Path of the file.
        filename: opt String,
        /// The changed lines.
        snippet: opt String,
    }
}

wire! {
    /// A file that was read before a compaction, without its content.
    pub struct CompactedFile ["type" = "compact_file_reference"] {
        /// Path of the file.
        filename: opt String,
        /// Path as shown to the user.
        display_path: opt String = "displayPath",
    }
}

wire! {
    /// A folder that the user mentioned.
    pub struct Directory ["type" = "directory"] {
        /// Path of the folder.
        path: opt String,
        /// Names of its files, one per line.
        content: opt String,
    }
}

wire! {
    /// Instructions in a subfolder.
    pub struct NestedMemory ["type" = "nested_memory"] {
        /// Path of the instruction file.
        path: opt String,
        /// Content of the instruction file.
        content: opt Json,
    }
}

wire! {
    /// A reminder with high priority.
    pub struct CriticalReminder ["type" = "critical_system_reminder"] {
        /// Text of the reminder.
        content: opt String,
    }
}

wire! {
    /// A resource of an MCP server that the user mentioned.
    pub struct McpResource ["type" = "mcp_resource"] {
        /// Name of the server.
        server: opt String,
        /// URI of the resource.
        uri: opt String,
        /// Content of the resource.
        content: opt Json,
    }
}

wire! {
    /// Diagnostics of the editor.
    pub struct Diagnostics ["type" = "diagnostics"] {
        /// Diagnostics, by file.
        files: opt Json,
        /// Whether they are new since the last attachment.
        is_new: opt bool = "isNew",
    }
}

wire! {
    /// Skills that were used before a compaction.
    pub struct InvokedSkills ["type" = "invoked_skills"] {
        /// Name and content of each skill.
        skills: opt Json,
    }
}

wire! {
    /// The date has changed.
    pub struct DateChange ["type" = "date_change"] {
        /// The new date.
        new_date: opt String = "newDate",
    }
}
