//! The built-in tools.

use std::sync::Arc;

use quipu_message::Json;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::{Tool, ToolOutput};

mod file_change;

pub mod bash;
pub mod edit;
pub mod glob;
pub mod grep;
pub mod notebook_edit;
pub mod read;
pub mod tasks;
pub mod todo_write;
pub mod web_fetch;
pub mod write;

/// Returns the tools that every session has.
pub fn builtin_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::Bash),
        Arc::new(edit::Edit),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(notebook_edit::NotebookEdit),
        Arc::new(read::Read),
        Arc::new(tasks::TaskOutput),
        Arc::new(tasks::TaskStop),
        Arc::new(todo_write::TodoWrite),
        Arc::new(web_fetch::WebFetch),
        Arc::new(write::Write),
    ]
}

/// Deserializes an input that passed [`validate_input`](crate::tool::validate_input).
fn parse_input<T: DeserializeOwned>(input: Value) -> Result<T, ToolOutput> {
    Json::from(input).read().map_err(|e| ToolOutput::tool_use_error(format!("InputValidationError: {e}")))
}

/// Returns the output of a tool, whether it succeeded or failed.
fn into_output(done: Result<ToolOutput, ToolOutput>) -> ToolOutput {
    done.unwrap_or_else(|failure| failure)
}
