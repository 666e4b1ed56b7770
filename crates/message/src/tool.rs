//! What the well-known tools are called with, for those who show or run them.

use std::collections::BTreeMap;

use crate::macros::wire;
use crate::values::{TaskState, TaskType};
use crate::{AgentId, Json, ToolUse};

pub mod output;

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
    /// A tool without a model here, or an input that does not fit its model.
    Other(Json),
}

impl ToolInput {
    /// Reads the input of a call.
    pub fn from_tool_use(call: &ToolUse) -> Self {
        Self::from_name_and_json(&call.name, &call.input)
    }

    /// Reads an input by the tool's name, in any case.
    pub fn from_name_and_json(name: &str, input: &Json) -> Self {
        let read = match &*name.to_ascii_lowercase() {
            "read" => input.read().map(Self::Read),
            "write" => input.read().map(Self::Write),
            "edit" => input.read().map(Self::Edit),
            "multiedit" => input.read().map(Self::MultiEdit),
            "notebookedit" => input.read().map(Self::NotebookEdit),
            "bash" => input.read().map(Self::Bash),
            "glob" => input.read().map(Self::Glob),
            "grep" => input.read().map(Self::Grep),
            "todowrite" => input.read().map(Self::TodoWrite),
            "webfetch" => input.read().map(Self::WebFetch),
            "websearch" => input.read().map(Self::WebSearch),
            "task" | "agent" => input.read().map(Self::Agent),
            "skill" => input.read().map(Self::Skill),
            "exitplanmode" => input.read().map(Self::ExitPlanMode),
            "askuserquestion" => input.read().map(Self::AskUserQuestion),
            _ => return Self::Other(input.clone()),
        };
        read.unwrap_or_else(|_| Self::Other(input.clone()))
    }
}

/// Whether a tool starts a subagent.
pub fn is_agent_tool(name: &str) -> bool {
    name.eq_ignore_ascii_case("Task") || name.eq_ignore_ascii_case("Agent")
}

/// Whether a tool searches the web, which costs money beside tokens.
pub fn is_web_search_tool(name: &str) -> bool {
    name == WEB_SEARCH_TOOL
}

/// The name of the tool that searches the web, for those who look for it in bytes.
pub const WEB_SEARCH_TOOL: &str = "WebSearch";

/// Tools without a model here whose calls one argument tells.
const KEY_ARGUMENTS: [(&str, &str); 14] = [
    ("BashOutput", "bash_id"),
    ("KillShell", "shell_id"),
    ("TaskOutput", "task_id"),
    ("TaskStop", "task_id"),
    ("TaskCreate", "subject"),
    ("TaskGet", "taskId"),
    ("LS", "path"),
    ("NotebookRead", "notebook_path"),
    ("ToolSearch", "query"),
    ("SlashCommand", "command"),
    ("Monitor", "command"),
    ("SendMessage", "to"),
    ("web_search", "query"),
    ("web_fetch", "url"),
];

/// The one argument that tells what a call does, for tools without a model.
pub fn key_argument(name: &str, input: &Json) -> Option<String> {
    let (_, key) = KEY_ARGUMENTS.iter().find(|(tool, _)| tool.eq_ignore_ascii_case(name))?;
    Some(crate::text::find_string_field(input.text(), key).ok()??.to_string())
}

wire! {
    /// Reads a file.
    pub struct ReadInput {
        /// Path of the file.
        file_path: req String,
        /// Number of the first line, from 1.
        offset: opt u64,
        /// Number of lines.
        limit: opt u64,
    }
}

wire! {
    /// Writes a file.
    pub struct WriteInput {
        /// Path of the file.
        file_path: req String,
        /// New contents of the file.
        content: req String,
    }
}

wire! {
    /// Changes a file in one place.
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
    /// Changes a file in several places.
    pub struct MultiEditInput {
        /// Path of the file.
        file_path: req String,
        /// Edits, applied in order.
        edits: req Vec<MultiEditOperation>,
    }
}

wire! {
    /// One of several changes.
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
    /// Changes a cell of a notebook.
    pub struct NotebookEditInput {
        /// Path of the notebook.
        notebook_path: req String,
        /// Id of the cell.
        cell_id: opt String,
        /// New source of the cell.
        new_source: req String,
        /// `code` or `markdown`.
        cell_type: opt String,
        /// `replace`, `insert` or `delete`.
        edit_mode: opt String,
    }
}

wire! {
    /// Runs a shell command.
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
    /// Finds files by name.
    pub struct GlobInput {
        /// The pattern.
        pattern: req String,
        /// Folder to search in.
        path: opt String,
    }
}

wire! {
    /// Finds lines by pattern.
    pub struct GrepInput {
        /// The pattern.
        pattern: req String,
        /// File or folder to search in.
        path: opt String,
        /// Pattern that file names must match.
        glob: opt String,
        /// `content`, `files_with_matches` or `count`.
        output_mode: opt String,
        /// File type, for example `rust`.
        file_type: opt String = "type",
        /// How many lines after each match.
        after: opt u64 = "-A",
        /// How many lines before each match.
        before: opt u64 = "-B",
        /// How many lines on both sides.
        around: opt u64 = "-C",
        /// Same as `-C`.
        context: opt u64,
        /// Whether small and capital letters are the same.
        ignore_case: opt bool = "-i",
        /// Whether lines have their numbers.
        line_numbers: opt bool = "-n",
        /// Whether only what matched is shown.
        only_matching: opt bool = "-o",
        /// Whether a match may go over lines.
        multiline: opt bool,
        /// How many results at most; 0 means all.
        head_limit: opt u64,
        /// How many results to leave out first.
        offset: opt u64,
    }
}

wire! {
    /// Keeps a task list.
    pub struct TodoWriteInput {
        /// The tasks.
        todos: req Vec<Todo>,
    }
}

wire! {
    /// One task.
    pub struct Todo {
        /// Task as an instruction.
        content: req String,
        /// `pending`, `in_progress` or `completed`.
        status: opt String,
        /// The same while it is being done.
        active_form: opt String = "activeForm",
    }
}

wire! {
    /// Asks what a background task printed.
    pub struct TaskOutputInput {
        /// Id of the task.
        task_id: req String,
        /// Whether to wait for its end.
        block: opt bool,
        /// How long, in milliseconds.
        timeout: opt u64,
    }
}

wire! {
    /// Stops a background task.
    pub struct TaskStopInput {
        /// Id of the task.
        task_id: opt String,
        /// The same in older calls.
        shell_id: opt String,
    }
}

wire! {
    /// Reads a web page.
    pub struct WebFetchInput {
        /// The page.
        url: req String,
        /// What to look for.
        prompt: opt String,
    }
}

wire! {
    /// Searches the web.
    pub struct WebSearchInput {
        /// The query.
        query: req String,
        /// Domains to search only.
        allowed_domains: opt Vec<String>,
        /// Domains to leave out.
        blocked_domains: opt Vec<String>,
    }
}

wire! {
    /// Finds and loads tools.
    pub struct ToolSearchInput {
        /// `select:` and names, or words to look for.
        query: req String,
        /// How many tools to load at most.
        max_results: opt u64,
    }
}

wire! {
    /// Sets a subagent to work.
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
    }
}

wire! {
    /// Uses a skill.
    pub struct SkillInput {
        /// Name of the skill.
        skill: opt String,
        /// Arguments of the skill.
        args: opt String,
    }
}

wire! {
    /// Ends plan mode.
    pub struct ExitPlanModeInput {
        /// The plan.
        plan: opt String,
    }
}

wire! {
    /// What the user answered.
    pub struct AskUserQuestionOutput {
        /// The answers, by question.
        answers: opt BTreeMap<String, Json>,
    }
}

wire! {
    /// Asks the user.
    pub struct AskUserQuestionInput {
        /// The questions.
        questions: req Vec<UserQuestion>,
        /// The answers, by question.
        answers: opt BTreeMap<String, Json>,
    }
}

wire! {
    /// A question with its choices.
    pub struct UserQuestion {
        /// The question.
        question: opt String,
        /// The same in a word.
        header: opt String,
        /// The choices.
        options: opt Vec<QuestionOption>,
    }
}

wire! {
    /// A choice.
    pub struct QuestionOption {
        /// What it is called.
        label: opt String,
    }
}

wire! {
    /// What a subagent's call gave, in the tool's own form.
    pub struct AgentOutput {
        /// The subagent, whose lines are in a file of its own.
        agent_id: opt AgentId = "agentId",
        /// How it ended.
        status: opt TaskState,
        /// What it used.
        total_tokens: opt u64 = "totalTokens",
        /// What it was asked.
        prompt: opt String,
        /// Which kind of subagent.
        agent_type: opt String = "agentType",
        /// Final answer of the subagent, as content blocks.
        content: opt Json,
        /// The model it ran on.
        resolved_model: opt String = "resolvedModel",
        /// How long it took.
        total_duration_ms: opt u64 = "totalDurationMs",
        /// How many tools it used.
        total_tool_use_count: opt u64 = "totalToolUseCount",
        /// What its last call used.
        usage: opt crate::Usage,
        /// Whether it works in the background.
        is_async: opt bool = "isAsync",
        /// What it does, in a few words.
        description: opt String,
        /// Where its report will be.
        output_file: opt String = "outputFile",
    }
}

wire! {
    /// What a running task has used so far (stream).
    pub struct TaskUsage {
        /// Tokens.
        total_tokens: req u64,
        /// Tools.
        tool_uses: req u64,
        /// Duration in milliseconds.
        duration_ms: req u64,
    }
}

wire! {
    /// A task in the background (stream).
    pub struct BackgroundTask {
        /// Id of the task.
        task_id: req String,
        /// Id of this run of the task; a resumed task has several.
        run_id: opt String,
        /// Its kind.
        task_type: req TaskType,
        /// Which subagent.
        subagent_type: opt String,
        /// What it is for.
        description: req String,
    }
}

wire! {
    /// How a task changed (stream).
    pub struct TaskPatch {
        /// How it stands.
        status: req TaskState,
        /// When it ended, in milliseconds since 1970.
        end_time: opt i64,
    }
}
