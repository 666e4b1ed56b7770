//! Calls of one or several sources.

use std::path::PathBuf;

use crate::call::Call;
use crate::import::CaptureFormat;
use crate::prompt_store::PromptStore;

/// Calls of one or several sources, and the texts of their requests and responses.
#[derive(Debug, Default)]
pub struct Trace {
    /// Calls in the order in which they were added.
    pub calls: Vec<Call>,
    /// Texts and messages that the calls refer to.
    pub prompts: PromptStore,
    /// Files that were imported, in order.
    pub sources: Vec<Source>,
    /// What could not be read.
    pub problems: Vec<TraceProblem>,
}

/// A file that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Format of its content.
    pub format: CaptureFormat,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceProblem {
    /// Position of the file in [`Trace::sources`]; 0 if calls were added without a file.
    pub source: usize,
    /// Line, entry or document of the file, from 1; 0 if the problem concerns the whole file.
    pub line: u64,
    /// What was read and why it failed.
    pub message: String,
}
