//! The TaskOutput and TaskStop tools.

use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::ToolName;
use quipu_message::tool::output::{TaskDetails as TaskWire, TaskOutput as TaskOutputWire, TaskStopOutput};
use quipu_message::tool::{RetrievalStatus, TaskOutputInput, TaskStopInput};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{into_output, parse_input};
use crate::tool::{CallContext, Task, TaskKind, TaskStatus, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// Maximum length of the output of a running task, in characters.
const MAX_OUTPUT_CHARS: usize = 30_000;
/// Default and maximum time that TaskOutput waits.
const DEFAULT_WAIT_MS: u64 = 30_000;
const MAX_WAIT_MS: u64 = 600_000;

/// The TaskOutput tool.
#[derive(Debug, Clone, Copy)]
pub struct TaskOutput;

impl Tool for TaskOutput {
    fn name(&self) -> ToolName {
        ToolName::TaskOutput
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Gives the output of a command in the background, or the report of a subagent there. Waits \
                          for its end, unless `block` is false or `timeout` comes first."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "description": "The task"},
                    "block": {"type": "boolean", "description": "Wait for its end (default: true)"},
                    "timeout": {"type": "integer", "minimum": 0, "description": "How long to wait, in milliseconds (default: 30000)"},
                },
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        // A result marks the task as seen, so it must not be lost with an incomplete response.
        ToolEffect::Independent
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(task_output(input, workspace, call).await) })
    }
}

async fn task_output(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let request: TaskOutputInput = parse_input(input)?;
    let task = workspace.tasks().find(&request.task_id).ok_or_else(|| task_not_found(&request.task_id))?;
    let wait = request.timeout.get().copied().unwrap_or(DEFAULT_WAIT_MS).min(MAX_WAIT_MS);
    let blocks = request.block.get().copied().unwrap_or(true);
    if blocks {
        let ended = timeout(Duration::from_millis(wait), task.wait());
        tokio::select! {
            _ = ended => {}
            () = call.cancel.cancelled() => {}
        }
    }
    let status = task.status();
    let retrieval_status = match status {
        TaskStatus::Running if blocks => RetrievalStatus::Timeout,
        TaskStatus::Running => RetrievalStatus::NotReady,
        _ => RetrievalStatus::Success,
    };
    if status != TaskStatus::Running {
        task.mark_seen();
    }
    let exit_code = match status {
        TaskStatus::Exited(code) if task.kind == TaskKind::Command => Some(i64::from(code)),
        _ => None,
    };
    let kind = task.kind.wire_type();
    let raw = TaskOutputWire {
        retrieval_status: retrieval_status.clone(),
        task: TaskWire {
            task_id: task.id.clone(),
            task_type: kind.clone(),
            status: status.wire_state(),
            description: task.description.clone(),
            output: task_text(&task),
            exit_code: exit_code.into(),
            ..TaskWire::default()
        },
        ..TaskOutputWire::default()
    };
    let code = exit_code.map(|code| format!("<exit_code>{code}</exit_code>\n\n")).unwrap_or_default();
    let words = format!(
        "<retrieval_status>{retrieval_status}</retrieval_status>\n\n<task_id>{}</task_id>\n\n<task_type>{kind}</task_type>\n\n<status>{}</status>\n\n{code}<output>\n{}\n</output>",
        task.id,
        status.wire_state(),
        raw.task.output
    );
    Ok(ToolOutput::new(words, &raw))
}

/// Returns the output of a task; while it runs, from its file.
fn task_text(task: &Task) -> String {
    task.output().unwrap_or_else(|| {
        let bytes = std::fs::read(&task.output_path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let skip = text.chars().count().saturating_sub(MAX_OUTPUT_CHARS);
        text.chars().skip(skip).collect::<String>().trim_end().to_owned()
    })
}

fn task_not_found(id: &str) -> ToolOutput {
    ToolOutput::tool_use_error(format!("No task found with ID: {id}"))
}

/// The TaskStop tool.
#[derive(Debug, Clone, Copy)]
pub struct TaskStop;

impl Tool for TaskStop {
    fn name(&self) -> ToolName {
        ToolName::TaskStop
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Ends a command or a subagent in the background, and all it has started.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {"task_id": {"type": "string", "description": "The task"}},
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, _: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(stop_task(input, workspace).await) })
    }
}

async fn stop_task(input: Value, workspace: &Workspace) -> Result<ToolOutput, ToolOutput> {
    let request: TaskStopInput = parse_input(input)?;
    let id = request.task_id.text().unwrap_or_default();
    let task = workspace.tasks().find(id).ok_or_else(|| task_not_found(id))?;
    if !workspace.tasks().stop(id) {
        let status = task.status().wire_state();
        return Err(ToolOutput::tool_use_error(format!("Task {id} is not running (status: {status})")));
    }
    task.mark_seen();
    task.wait().await;
    let raw = TaskStopOutput {
        message: format!("Successfully stopped task: {id} ({})", task.description),
        task_type: task.kind.wire_type(),
        task_id: task.id,
        ..TaskStopOutput::default()
    };
    let words = quipu_message::Json::from_serialize(&raw).text().to_owned();
    Ok(ToolOutput::new(words, &raw))
}
