//! The TodoWrite tool.

use futures_util::future::BoxFuture;
use quipu_message::tool::output::TodoWriteOutput;
use quipu_message::tool::{TodoStatus, TodoWriteInput};
use quipu_message::{Json, ToolName};
use serde_json::{Value, json};

use super::{into_output, parse_input};
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// The TodoWrite tool.
#[derive(Debug, Clone, Copy)]
pub struct TodoWrite;

impl Tool for TodoWrite {
    fn name(&self) -> ToolName {
        ToolName::TodoWrite
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Writes the task list, which the user sees. Use it for work of three steps or more: give \
                          the whole list each time, have one task in progress, and mark each as completed as soon \
                          as it is."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "description": "The whole list",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string", "description": "What to do: \"Run the tests\""},
                                "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                                "activeForm": {"type": "string", "description": "The same while it is done: \"Running the tests\""},
                            },
                            "required": ["content", "status", "activeForm"],
                        },
                    },
                },
                "required": ["todos"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, _: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(run(input, workspace)) })
    }
}

fn run(input: Value, workspace: &Workspace) -> Result<ToolOutput, ToolOutput> {
    let list: TodoWriteInput = parse_input(input)?;
    let todos: Vec<Json> = list.todos.iter().map(Json::from_serialize).collect();
    // A list with only completed items is cleared.
    let done = list.todos.iter().all(|todo| todo.status == TodoStatus::Completed.into());
    let old_todos = workspace.set_todos(if done { Vec::new() } else { todos.clone() });
    let raw = TodoWriteOutput { old_todos, new_todos: todos, ..TodoWriteOutput::default() };
    let words = "Todos have been modified successfully. Go on with the current task, and keep the list up to date.";
    Ok(ToolOutput::new(words, &raw))
}
