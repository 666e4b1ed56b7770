//! Open enums for string fields of tool inputs and outputs.

use crate::macros::open_str_enum;

open_str_enum! {
    /// What Grep returns.
    pub enum GrepMode {
        /// The matching lines.
        "content" => Content,
        /// The names of files with matches, the default.
        "files_with_matches" => FilesWithMatches,
        /// The number of matches in each file.
        "count" => Count,
    }
}

open_str_enum! {
    /// Kind of a notebook cell.
    pub enum CellType {
        /// Source code, with its outputs.
        "code" => Code,
        /// Text in Markdown.
        "markdown" => Markdown,
    }
}

open_str_enum! {
    /// What NotebookEdit does with a cell.
    pub enum CellEditMode {
        /// Replaces its source, the default.
        "replace" => Replace,
        /// Inserts a new cell after it.
        "insert" => Insert,
        /// Removes it.
        "delete" => Delete,
    }
}

open_str_enum! {
    /// State of an item of the to-do list.
    pub enum TodoStatus {
        /// Not started yet.
        "pending" => Pending,
        /// The model works on it.
        "in_progress" => InProgress,
        /// Done.
        "completed" => Completed,
    }
}

open_str_enum! {
    /// What kind of file Read has read.
    pub enum ReadKind {
        /// A text file.
        "text" => Text,
        /// An image.
        "image" => Image,
        /// A PDF document.
        "pdf" => Pdf,
        /// A Jupyter notebook.
        "notebook" => Notebook,
    }
}

open_str_enum! {
    /// What Write did.
    pub enum WriteKind {
        /// The file is new.
        "create" => Create,
        /// The file existed before.
        "update" => Update,
    }
}

open_str_enum! {
    /// Whether TaskOutput returned the final output of a task.
    pub enum RetrievalStatus {
        /// The task has ended.
        "success" => Success,
        /// The task was still running when the waiting time was over.
        "timeout" => Timeout,
        /// The task is running, and the call did not wait.
        "not_ready" => NotReady,
    }
}
