//! What the well-known tools give besides the words for the model: their own
//! form of the result, which session files keep beside it.

use serde_json::Number;

use crate::macros::wire;
use crate::values::{TaskState, TaskType};
use crate::{Json, ToolUseId};

wire! {
    /// What reading a file gave.
    pub struct ReadOutput {
        /// `text`, `image`, `pdf` or `notebook`.
        kind: req String = "type",
        /// The file.
        file: req ReadFileOutput,
    }
}

wire! {
    /// A file as it was read.
    pub struct ReadFileOutput {
        /// Path of the file.
        file_path: opt String = "filePath",
        /// Lines that were read.
        content: opt String,
        /// The file in base64.
        base64: opt String,
        /// The media type of an image.
        media_type: opt String = "type",
        /// How long the file is, in bytes.
        original_size: opt u64 = "originalSize",
        /// The cells of a notebook.
        cells: opt Vec<Json>,
        /// How many lines were read.
        num_lines: opt u64 = "numLines",
        /// The first of them.
        start_line: opt u64 = "startLine",
        /// How many lines there are.
        total_lines: opt u64 = "totalLines",
    }
}

wire! {
    /// What writing a file gave.
    pub struct WriteOutput {
        /// `create` or `update`.
        kind: req String = "type",
        /// Path of the file.
        file_path: req String = "filePath",
        /// New contents of the file.
        content: req String,
        /// The change as diff hunks.
        structured_patch: req Vec<Hunk> = "structuredPatch",
        /// What it held before; `null` when it is new.
        original_file: opt String = "originalFile",
        /// Whether the user edited the proposed change.
        user_modified: opt bool = "userModified",
    }
}

wire! {
    /// What changing a file gave.
    pub struct EditOutput {
        /// Path of the file.
        file_path: req String = "filePath",
        /// What was there.
        old_string: req String = "oldString",
        /// What is there.
        new_string: req String = "newString",
        /// Contents of the file before the change.
        original_file: opt String = "originalFile",
        /// The change as diff hunks.
        structured_patch: req Vec<Hunk> = "structuredPatch",
        /// Whether the user edited the proposed change.
        user_modified: opt bool = "userModified",
        /// Whether it was changed everywhere.
        replace_all: opt bool = "replaceAll",
    }
}

wire! {
    /// What changing a file in several places gave.
    pub struct MultiEditOutput {
        /// Path of the file.
        file_path: req String = "filePath",
        /// Contents of the file before the change.
        original_file: opt String = "originalFileContents",
        /// The change as diff hunks.
        structured_patch: opt Vec<Hunk> = "structuredPatch",
    }
}

wire! {
    /// One stretch of a patch.
    pub struct Hunk {
        /// Its first line before.
        old_start: req u64 = "oldStart",
        /// How many lines before.
        old_lines: req u64 = "oldLines",
        /// Its first line after.
        new_start: req u64 = "newStart",
        /// How many lines after.
        new_lines: req u64 = "newLines",
        /// The lines, each after a space, a minus or a plus.
        lines: req Vec<String>,
    }
}

wire! {
    /// What changing a notebook gave.
    pub struct NotebookEditOutput {
        /// The source of the cell.
        new_source: req String,
        /// The cell.
        cell_id: opt String,
        /// `code` or `markdown`.
        cell_type: req String,
        /// The language of the notebook.
        language: req String,
        /// `replace`, `insert` or `delete`.
        edit_mode: req String,
        /// Why it failed; empty when it did not.
        error: req String,
        /// The notebook.
        notebook_path: req String,
        /// Contents of the file before the change.
        original_file: req String,
        /// What it holds.
        updated_file: req String,
    }
}

wire! {
    /// What a shell command gave.
    pub struct BashOutput {
        /// Standard output of the command.
        stdout: req String,
        /// Standard error of the command, or a note of the tool.
        stderr: req String,
        /// Whether it was stopped.
        interrupted: req bool,
        /// Whether the output is a picture.
        is_image: req bool = "isImage",
        /// What the exit code means, when it is not an error.
        return_code_interpretation: opt String = "returnCodeInterpretation",
        /// The task that goes on in the background.
        background_task_id: opt String = "backgroundTaskId",
        /// Whether silence is normal for it.
        no_output_expected: opt bool = "noOutputExpected",
        /// Where all of a long output is.
        persisted_output_path: opt String = "persistedOutputPath",
        /// How long all of it is, in bytes.
        persisted_output_size: opt u64 = "persistedOutputSize",
    }
}

wire! {
    /// What a background task printed.
    pub struct TaskOutput {
        /// `success`, `timeout` or `not_ready`.
        retrieval_status: req String,
        /// The task.
        task: req TaskDetails,
    }
}

wire! {
    /// A background task.
    pub struct TaskDetails {
        /// Id of the task.
        task_id: req String,
        /// `local_bash` for shell commands.
        task_type: req TaskType,
        /// `running`, `completed`, `failed` or `killed`.
        status: req TaskState,
        /// What it is for.
        description: req String,
        /// What it printed.
        output: req String,
        /// Exit code of the process.
        exit_code: opt i64 = "exitCode",
    }
}

wire! {
    /// What stopping a background task gave.
    pub struct TaskStopOutput {
        /// What happened, in words.
        message: req String,
        /// Id of the task.
        task_id: req String,
        /// `local_bash` for shell commands.
        task_type: req TaskType,
    }
}

wire! {
    /// What finding files gave.
    pub struct GlobOutput {
        /// The files.
        filenames: req Vec<String>,
        /// Duration in milliseconds.
        duration_ms: req u64 = "durationMs",
        /// How many files.
        num_files: req u64 = "numFiles",
        /// Whether there are more.
        truncated: req bool,
    }
}

wire! {
    /// What finding lines gave.
    pub struct GrepOutput {
        /// `content`, `files_with_matches` or `count`.
        mode: req String,
        /// How many files.
        num_files: opt u64 = "numFiles",
        /// The files.
        filenames: req Vec<String>,
        /// Matching lines, for `content`.
        content: opt String,
        /// How many lines.
        num_lines: opt u64 = "numLines",
        /// How many matches.
        num_matches: opt u64 = "numMatches",
        /// The limit that cut the result short.
        applied_limit: opt u64 = "appliedLimit",
        /// How much was left out at the start.
        applied_offset: opt u64 = "appliedOffset",
    }
}

wire! {
    /// What writing the task list gave.
    pub struct TodoWriteOutput {
        /// The list before.
        old_todos: req Vec<Json> = "oldTodos",
        /// The list now.
        new_todos: req Vec<Json> = "newTodos",
    }
}

wire! {
    /// What reading a web page gave.
    pub struct WebFetchOutput {
        /// How long the page is.
        bytes: req u64,
        /// The status.
        code: req u64,
        /// The status in words.
        code_text: req String = "codeText",
        /// Text that the model is given.
        result: req String,
        /// Duration in milliseconds.
        duration_ms: req u64 = "durationMs",
        /// The page.
        url: req String,
    }
}

wire! {
    /// What searching the web gave.
    pub struct WebSearchOutput {
        /// The query.
        query: req String,
        /// In their order: [`WebSearchHits`], and texts the model wrote.
        results: req Vec<Json>,
        /// How long it took, in seconds.
        duration_seconds: opt Number = "durationSeconds",
        /// How often was searched.
        search_count: opt u64 = "searchCount",
    }
}

wire! {
    /// What one search found.
    pub struct WebSearchHits {
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// Pages that were found.
        content: req Vec<WebSearchLink>,
    }
}

wire! {
    /// A page that a search found.
    pub struct WebSearchLink {
        /// Title of the page.
        title: req String,
        /// Address of the page.
        url: req String,
    }
}

wire! {
    /// What a search over tools found.
    pub struct ToolSearchOutput {
        /// Names of the tools that were loaded.
        matches: req Vec<String>,
        /// The query.
        query: req String,
        /// How many tools there are to load.
        total_deferred_tools: req u64,
    }
}
