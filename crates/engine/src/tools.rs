//! The built-in tools.

use std::sync::{Arc, LazyLock};

use quipu_message::{Json, api};
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

/// The built-in tools. Their definitions never change, so they are encoded for requests only once.
static BUILTIN_TOOLS: LazyLock<Vec<(Arc<dyn Tool>, api::Tool)>> = LazyLock::new(|| {
    let tools: [Arc<dyn Tool>; 11] = [
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
    ];
    let with_definition = |tool: Arc<dyn Tool>| {
        let definition = tool.definition().into_wire();
        (tool, definition)
    };
    tools.into_iter().map(with_definition).collect()
});

/// Returns the tools that every session has.
pub fn builtin_tools() -> Vec<Arc<dyn Tool>> {
    BUILTIN_TOOLS.iter().map(|(tool, _)| Arc::clone(tool)).collect()
}

/// Returns the definition of a tool as requests contain it.
pub(crate) fn wire_definition(tool: &Arc<dyn Tool>) -> api::Tool {
    let builtin = BUILTIN_TOOLS.iter().find(|(builtin, _)| Arc::ptr_eq(builtin, tool));
    builtin.map_or_else(|| tool.definition().into_wire(), |(_, definition)| definition.clone())
}

/// Deserializes an input that passed [`validate_input`](crate::tool::validate_input).
fn parse_input<T: DeserializeOwned>(input: Value) -> Result<T, ToolOutput> {
    Json::from(input).read().map_err(|e| ToolOutput::tool_use_error(format!("InputValidationError: {e}")))
}

/// Returns the output of a tool, whether it succeeded or failed.
fn into_output(done: Result<ToolOutput, ToolOutput>) -> ToolOutput {
    done.unwrap_or_else(|failure| failure)
}
