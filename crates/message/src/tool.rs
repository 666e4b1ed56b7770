//! Inputs of the well-known tools.

use std::collections::BTreeMap;

use crate::macros::wire;
use crate::values::{TaskState, TaskType};
use crate::{AgentId, Json, ToolUse};

mod name;
pub mod output;
mod server;
mod values;

pub use name::ToolName;
pub use server::ServerTool;
pub use values::{CellEditMode, CellType, GrepMode, ReadKind, RetrievalStatus, TodoStatus, WriteKind};

/// Arguments of a tool call, typed for well-known tools.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is the tool of that name")]
pub enum ToolInput {
    Read(ReadInput),
    Write(WriteInput),
    Edit(EditInput),
    MultiEdit(MultiEditInput),
    NotebookEdit(NotebookEditInput),
    Bash(BashInput),
    Glob(GlobInput),
    Grep(GrepInput),
    TodoWrite(TodoWriteInput),
    WebFetch(WebFetchInput),
    WebSearch(WebSearchInput),
    /// `Task` in older versions, `Agent` in newer ones.
    Agent(AgentInput),
    Skill(SkillInput),
    ExitPlanMode(ExitPlanModeInput),
    AskUserQuestion(AskUserQuestionInput),
    /// A tool without a type here, or an input that does not match its type.
    Other(Json),
}

impl ToolInput {
    /// Reads the input of a call.
    pub fn from_tool_use(call: &ToolUse) -> Self {
        Self::from_name_and_json(&call.name, &call.input)
    }

    /// Reads an input by the tool's name, in any case.
    pub fn from_name_and_json(name: &ToolName, input: &Json) -> Self {
        let read = match ToolName::from_any_case(name.as_str()) {
            ToolName::Read => input.read().map(Self::Read),
            ToolName::Write => input.read().map(Self::Write),
            ToolName::Edit => input.read().map(Self::Edit),
            ToolName::MultiEdit => input.read().map(Self::MultiEdit),
            ToolName::NotebookEdit => input.read().map(Self::NotebookEdit),
            ToolName::Bash => input.read().map(Self::Bash),
            ToolName::Glob => input.read().map(Self::Glob),
            ToolName::Grep => input.read().map(Self::Grep),
            ToolName::TodoWrite => input.read().map(Self::TodoWrite),
            ToolName::WebFetch => input.read().map(Self::WebFetch),
            ToolName::WebSearch => input.read().map(Self::WebSearch),
            ToolName::Task | ToolName::Agent => input.read().map(Self::Agent),
            ToolName::Skill => input.read().map(Self::Skill),
            ToolName::ExitPlanMode => input.read().map(Self::ExitPlanMode),
            ToolName::AskUserQuestion => input.read().map(Self::AskUserQuestion),
            _ => return Self::Other(input.clone()),
        };
        read.unwrap_or_else(|_| Self::Other(input.clone()))
    }
}

/// The one argument that describes a call of a tool without a model here; `None` if no argument
/// is known to, or the call does not have it.
pub fn key_argument(name: &ToolName, input: &Json) -> Option<String> {
    let key = match ToolName::from_any_case(name.as_str()) {
        ToolName::BashOutput => "bash_id",
        ToolName::KillShell => "shell_id",
        ToolName::TaskOutput | ToolName::TaskStop => "task_id",
        ToolName::TaskCreate => "subject",
        ToolName::TaskGet => "taskId",
        ToolName::Ls => "path",
        ToolName::NotebookRead => "notebook_path",
        ToolName::ToolSearch | ToolName::ServerWebSearch => "query",
        ToolName::SlashCommand | ToolName::Monitor => "command",
        ToolName::SendMessage => "to",
        ToolName::ServerWebFetch => "url",
        _ => return None,
    };
    Some(crate::text::find_string_field(input.text(), key).ok()??.to_string())
}

wire! {
    /// Input of Read.
    pub struct ReadInput {
        /// Path of the file.
        file_path: req String,
        /// Number of the first line, from 1.
        offset: opt u64,
        /// Number of lines.
        limit: opt u64,
        /// Pages of a PDF file, such as `3` or `1-5`.
        pages: opt String,
    }
}

wire! {
    /// Input of Write.
    pub struct WriteInput {
        /// Path of the file.
        file_path: req String,
        /// New contents of the file.
        content: req String,
    }
}

wire! {
    /// Input of Edit.
    pub struct EditInput {
        /// Path of the file.
        file_path: req String,
        /// Text to replace.
        old_string: req String,
        /// Replacement.
        new_string: req String,
        /// Whether to replace every occurrence.
        replace_all: opt bool,
    }
}

wire! {
    /// Input of MultiEdit.
    pub struct MultiEditInput {
        /// Path of the file.
        file_path: req String,
        /// Edits, applied in order.
        edits: req Vec<MultiEditOperation>,
    }
}

wire! {
    /// One edit of a [`MultiEditInput`].
    pub struct MultiEditOperation {
        /// Text to replace.
        old_string: req String,
        /// Replacement.
        new_string: req String,
        /// Whether to replace every occurrence.
        replace_all: opt bool,
    }
}

wire! {
    /// Input of NotebookEdit.
    pub struct NotebookEditInput {
        /// Path of the notebook.
        notebook_path: req String,
        /// Id of the cell.
        cell_id: opt String,
        /// New source of the cell.
        new_source: req String,
        /// Kind of the cell.
        cell_type: opt CellType,
        /// What to do with the cell; replace it if absent.
        edit_mode: opt CellEditMode,
    }
}

wire! {
    /// Input of Bash.
    pub struct BashInput {
        /// Shell command.
        command: req String,
        /// Purpose of the command in a few words.
        description: opt String,
        /// Timeout in milliseconds.
        timeout: opt u64,
        /// Whether the turn continues without waiting for the command.
        run_in_background: opt bool,
    }
}

wire! {
    /// Input of Glob.
    pub struct GlobInput {
        /// Pattern that file names must match.
        pattern: req String,
        /// Folder to search in.
        path: opt String,
    }
}

wire! {
    /// Input of Grep.
    pub struct GrepInput {
        /// Regular expression that lines must match.
        pattern: req String,
        /// File or folder to search in.
        path: opt String,
        /// Pattern that file names must match.
        glob: opt String,
        /// What to return; the names of files if absent.
        output_mode: opt GrepMode,
        /// File type, for example `rust`.
        file_type: opt String = "type",
        /// Number of lines to show after each match.
        after: opt u64 = "-A",
        /// Number of lines to show before each match.
        before: opt u64 = "-B",
        /// Number of lines to show before and after each match.
        around: opt u64 = "-C",
        /// Same as `-C`.
        context: opt u64,
        /// Whether case is ignored.
        ignore_case: opt bool = "-i",
        /// Whether line numbers are shown.
        line_numbers: opt bool = "-n",
        /// Whether only the matched text is shown.
        only_matching: opt bool = "-o",
        /// Whether a match may span lines.
        multiline: opt bool,
        /// Maximum number of results; 0 means all.
        head_limit: opt u64,
        /// Number of results to skip.
        offset: opt u64,
    }
}

wire! {
    /// Input of TodoWrite.
    pub struct TodoWriteInput {
        /// The complete list of tasks.
        todos: req Vec<Todo>,
    }
}

wire! {
    /// One task of a [`TodoWriteInput`].
    pub struct Todo {
        /// Task as an instruction.
        content: req String,
        /// State of the task.
        status: opt TodoStatus,
        /// Task in the present continuous, shown while it is in progress.
        active_form: opt String = "activeForm",
    }
}

wire! {
    /// Input of TaskOutput.
    pub struct TaskOutputInput {
        /// Id of the task.
        task_id: req String,
        /// Whether to wait until the task ends.
        block: opt bool,
        /// How long to wait, in milliseconds.
        timeout: opt u64,
    }
}

wire! {
    /// Input of TaskStop.
    pub struct TaskStopInput {
        /// Id of the task.
        task_id: opt String,
        /// Id of the task in older calls.
        shell_id: opt String,
    }
}

wire! {
    /// Input of WebFetch.
    pub struct WebFetchInput {
        /// URL of the page.
        url: req String,
        /// What to extract from the page.
        prompt: opt String,
    }
}

wire! {
    /// Input of WebSearch.
    pub struct WebSearchInput {
        /// The query.
        query: req String,
        /// The only domains to search.
        allowed_domains: opt Vec<String>,
        /// Domains to exclude.
        blocked_domains: opt Vec<String>,
    }
}

wire! {
    /// Input of ToolSearch.
    pub struct ToolSearchInput {
        /// `select:` and tool names, or words to search for.
        query: req String,
        /// Maximum number of tools to load.
        max_results: opt u64,
    }
}

wire! {
    /// Input of Agent (`Task` in older versions).
    pub struct AgentInput {
        /// Task of the subagent.
        prompt: req String,
        /// Task in a few words.
        description: opt String,
        /// Type of the subagent.
        subagent_type: opt String,
        /// Model to use instead of the subagent's own.
        model: opt String,
        /// Whether the turn continues without waiting for the subagent.
        run_in_background: opt bool,
        /// `worktree` to work in a git worktree of its own.
        isolation: opt String,
    }
}

wire! {
    /// Input of Skill.
    pub struct SkillInput {
        /// Name of the skill.
        skill: opt String,
        /// Arguments of the skill.
        args: opt String,
    }
}

wire! {
    /// Input of ExitPlanMode.
    pub struct ExitPlanModeInput {
        /// The plan to approve.
        plan: opt String,
    }
}

wire! {
    /// Result of AskUserQuestion in the tool's own form.
    pub struct AskUserQuestionOutput {
        /// The answers, by question.
        answers: opt BTreeMap<String, Json>,
    }
}

wire! {
    /// Input of AskUserQuestion.
    pub struct AskUserQuestionInput {
        /// The questions.
        questions: req Vec<UserQuestion>,
        /// The answers, by question; set by the host.
        answers: opt BTreeMap<String, Json>,
    }
}

wire! {
    /// A question with its options.
    pub struct UserQuestion {
        /// Text of the question.
        question: opt String,
        /// Short label of the question.
        header: opt String,
        /// The options to choose from.
        options: opt Vec<QuestionOption>,
        /// Whether several options may be chosen.
        multi_select: opt bool = "multiSelect",
    }
}

wire! {
    /// An option of a question.
    pub struct QuestionOption {
        /// Text of the option.
        label: opt String,
        /// What the option means.
        description: opt String,
    }
}

wire! {
    /// Result of Agent in the tool's own form.
    pub struct AgentOutput {
        /// Id of the subagent; its lines are in a file of their own.
        agent_id: opt AgentId = "agentId",
        /// Status of the subagent.
        status: opt TaskState,
        /// Number of tokens of the subagent.
        total_tokens: opt u64 = "totalTokens",
        /// Prompt of the subagent.
        prompt: opt String,
        /// Type of the subagent.
        agent_type: opt String = "agentType",
        /// Final answer of the subagent, as content blocks.
        content: opt Json,
        /// Model of the subagent.
        resolved_model: opt String = "resolvedModel",
        /// Duration in milliseconds.
        total_duration_ms: opt u64 = "totalDurationMs",
        /// Number of tool calls of the subagent.
        total_tool_use_count: opt u64 = "totalToolUseCount",
        /// Usage of its last API call.
        usage: opt crate::Usage,
        /// Whether it runs in the background.
        is_async: opt bool = "isAsync",
        /// Task in a few words.
        description: opt String,
        /// Path of the file for its report.
        output_file: opt String = "outputFile",
    }
}

wire! {
    /// Usage of a running task (stream).
    pub struct TaskUsage {
        /// Number of tokens.
        total_tokens: req u64,
        /// Number of tool calls.
        tool_uses: req u64,
        /// Duration in milliseconds.
        duration_ms: req u64,
    }
}

wire! {
    /// A background task (stream).
    pub struct BackgroundTask {
        /// Id of the task.
        task_id: req String,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Type of the task.
        task_type: req TaskType,
        /// Type of the subagent; absent for commands.
        subagent_type: opt String,
        /// Description of the task.
        description: req String,
    }
}

wire! {
    /// Change of a task (stream).
    pub struct TaskPatch {
        /// Status of the task.
        status: req TaskState,
        /// When it ended, in milliseconds since 1970.
        end_time: opt i64,
    }
}
