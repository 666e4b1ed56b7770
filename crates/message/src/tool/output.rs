//! Results of the well-known tools in the tools' own form, which session files have beside the text for the
//! model.

use serde_json::Number;

use super::{CellEditMode, CellType, GrepMode, ReadKind, RetrievalStatus, WriteKind};
use crate::macros::wire;
use crate::values::{TaskState, TaskType};
use crate::{Json, ToolName, ToolUseId};

wire! {
    /// Result of Read.
    pub struct ReadOutput {
        /// Kind of the file.
        kind: req ReadKind = "type",
        /// The part of the file that was read.
        file: req ReadFileOutput,
    }
}

wire! {
    /// A file that was read.
    pub struct ReadFileOutput {
        /// Path of the file.
        file_path: opt String = "filePath",
        /// Lines that were read.
        content: opt String,
        /// The file in base64.
        base64: opt String,
        /// Media type of an image.
        media_type: opt String = "type",
        /// Size of the file in bytes.
        original_size: opt u64 = "originalSize",
        /// Cells of a notebook.
        cells: opt Vec<Json>,
        /// Number of lines that were read.
        num_lines: opt u64 = "numLines",
        /// Number of the first line, from 1.
        start_line: opt u64 = "startLine",
        /// Number of lines of the file.
        total_lines: opt u64 = "totalLines",
    }
}

wire! {
    /// Result of Write.
    pub struct WriteOutput {
        /// Whether the file is new.
        kind: req WriteKind = "type",
        /// Path of the file.
        file_path: req String = "filePath",
        /// New contents of the file.
        content: req String,
        /// The change as diff hunks.
        structured_patch: req Vec<Hunk> = "structuredPatch",
        /// Content before the change; `null` if the file is new.
        original_file: opt String = "originalFile",
        /// Whether the user edited the proposed change.
        user_modified: opt bool = "userModified",
    }
}

wire! {
    /// Result of Edit.
    pub struct EditOutput {
        /// Path of the file.
        file_path: req String = "filePath",
        /// The replaced text.
        old_string: req String = "oldString",
        /// The new text.
        new_string: req String = "newString",
        /// Contents of the file before the change.
        original_file: opt String = "originalFile",
        /// The change as diff hunks.
        structured_patch: req Vec<Hunk> = "structuredPatch",
        /// Whether the user edited the proposed change.
        user_modified: opt bool = "userModified",
        /// Whether every occurrence was replaced.
        replace_all: opt bool = "replaceAll",
    }
}

wire! {
    /// Result of MultiEdit.
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
    /// One hunk of a diff.
    pub struct Hunk {
        /// First line before the change.
        old_start: req u64 = "oldStart",
        /// Number of lines before the change.
        old_lines: req u64 = "oldLines",
        /// First line after the change.
        new_start: req u64 = "newStart",
        /// Number of lines after the change.
        new_lines: req u64 = "newLines",
        /// The lines, each with a leading space, `-` or `+`.
        lines: req Vec<String>,
    }
}

wire! {
    /// Result of NotebookEdit.
    pub struct NotebookEditOutput {
        /// New source of the cell.
        new_source: req String,
        /// Id of the cell.
        cell_id: opt String,
        /// Kind of the cell.
        cell_type: req CellType,
        /// Language of the notebook.
        language: req String,
        /// What was done with the cell.
        edit_mode: req CellEditMode,
        /// Error message; empty if it succeeded.
        error: req String,
        /// Path of the notebook.
        notebook_path: req String,
        /// Content of the file before the change.
        original_file: req String,
        /// Content of the file after the change.
        updated_file: req String,
    }
}

wire! {
    /// Result of Bash.
    pub struct BashOutput {
        /// Standard output of the command.
        stdout: req String,
        /// Standard error of the command, or a note of the tool.
        stderr: req String,
        /// Whether the command was interrupted.
        interrupted: req bool,
        /// Whether the output is an image.
        is_image: req bool = "isImage",
        /// Meaning of an exit code that is not an error.
        return_code_interpretation: opt String = "returnCodeInterpretation",
        /// Id of the background task, if the command runs in the background.
        background_task_id: opt String = "backgroundTaskId",
        /// Whether the command normally prints nothing.
        no_output_expected: opt bool = "noOutputExpected",
        /// Path of the file with the complete output, if it was too long.
        persisted_output_path: opt String = "persistedOutputPath",
        /// Size of the complete output in bytes.
        persisted_output_size: opt u64 = "persistedOutputSize",
    }
}

wire! {
    /// Result of TaskOutput.
    pub struct TaskOutput {
        /// Whether this is the final output.
        retrieval_status: req RetrievalStatus,
        /// The task with its output.
        task: req TaskDetails,
    }
}

wire! {
    /// A background task with its output.
    pub struct TaskDetails {
        /// Id of the task.
        task_id: req String,
        /// `local_bash` for shell commands.
        task_type: req TaskType,
        /// `running`, `completed`, `failed` or `killed`.
        status: req TaskState,
        /// Description of the task.
        description: req String,
        /// Output of the task.
        output: req String,
        /// Exit code of the process.
        exit_code: opt i64 = "exitCode",
    }
}

wire! {
    /// Result of TaskStop.
    pub struct TaskStopOutput {
        /// Message for the user.
        message: req String,
        /// Id of the task.
        task_id: req String,
        /// `local_bash` for shell commands.
        task_type: req TaskType,
    }
}

wire! {
    /// Result of Glob.
    pub struct GlobOutput {
        /// Paths of the files.
        filenames: req Vec<String>,
        /// Duration in milliseconds.
        duration_ms: req u64 = "durationMs",
        /// Number of files.
        num_files: req u64 = "numFiles",
        /// Whether there are more files.
        truncated: req bool,
    }
}

wire! {
    /// Result of Grep.
    pub struct GrepOutput {
        /// What was returned.
        mode: req GrepMode,
        /// Number of files with matches.
        num_files: opt u64 = "numFiles",
        /// Paths of the files with matches.
        filenames: req Vec<String>,
        /// Matching lines, for `content`.
        content: opt String,
        /// Number of lines in `content`.
        num_lines: opt u64 = "numLines",
        /// Number of matches.
        num_matches: opt u64 = "numMatches",
        /// The limit that was applied; absent if all results are shown.
        applied_limit: opt u64 = "appliedLimit",
        /// Number of results that were skipped.
        applied_offset: opt u64 = "appliedOffset",
    }
}

wire! {
    /// Result of TodoWrite.
    pub struct TodoWriteOutput {
        /// The previous list.
        old_todos: req Vec<Json> = "oldTodos",
        /// The new list.
        new_todos: req Vec<Json> = "newTodos",
    }
}

wire! {
    /// Result of WebFetch.
    pub struct WebFetchOutput {
        /// Size of the page in bytes.
        bytes: req u64,
        /// HTTP status code.
        code: req u64,
        /// Text of the HTTP status.
        code_text: req String = "codeText",
        /// Text for the model.
        result: req String,
        /// Duration in milliseconds.
        duration_ms: req u64 = "durationMs",
        /// URL of the page.
        url: req String,
    }
}

wire! {
    /// Result of WebSearch.
    pub struct WebSearchOutput {
        /// The query.
        query: req String,
        /// [`WebSearchHits`] and texts of the model, in order.
        results: req Vec<Json>,
        /// Duration in seconds.
        duration_seconds: opt Number = "durationSeconds",
        /// Number of searches.
        search_count: opt u64 = "searchCount",
    }
}

wire! {
    /// Results of one search.
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
    /// Result of ToolSearch.
    pub struct ToolSearchOutput {
        /// Names of the tools that were loaded.
        matches: req Vec<ToolName>,
        /// The query.
        query: req String,
        /// Number of tools that can be loaded.
        total_deferred_tools: req u64,
    }
}
