//! The Write tool: creates or replaces a file.

use futures_util::future::BoxFuture;
use quipu_message::tool::output::WriteOutput;
use quipu_message::tool::{WriteInput, WriteKind};
use quipu_message::{Maybe, ToolName};
use serde_json::{Value, json};

use super::file_change::{FILE_STATE_NOTE, OriginalFile, create_file};
use super::{into_output, parse_input};
use crate::line_diff::diff_hunks;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// The Write tool.
#[derive(Debug, Clone, Copy)]
pub struct Write;

impl Tool for Write {
    fn name(&self) -> ToolName {
        ToolName::Write
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Writes a whole file, new or in place of what is there. To change part of a file, use Edit."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, as an absolute path"},
                    "content": {"type": "string", "description": "All the file shall hold"},
                },
                "required": ["file_path", "content"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(run(input, workspace, call).await) })
    }
}

async fn run(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let WriteInput { file_path, content, .. } = parse_input(input)?;
    let target = call.resolve_target(&file_path, workspace);
    let path = target.given.clone();
    let name = path.to_string_lossy().into_owned();
    if path.is_dir() {
        return Err(ToolOutput::failure(format!("EISDIR: illegal operation on a directory, open '{name}'")));
    }
    let mut raw =
        WriteOutput { file_path: name.clone(), content, user_modified: false.into(), ..WriteOutput::default() };
    let words = match OriginalFile::read(target.clone(), workspace).await? {
        Some(before) => {
            before.write(&raw.content, workspace).await?;
            raw.kind = WriteKind::Update;
            raw.structured_patch = diff_hunks(&before.text, &raw.content);
            raw.original_file = before.text.into();
            format!("The file {name} has been updated successfully. {FILE_STATE_NOTE}")
        }
        None => {
            create_file(&target, &raw.content, workspace).await?;
            raw.kind = WriteKind::Create;
            raw.original_file = Maybe::Null;
            format!("File created successfully at: {name} {FILE_STATE_NOTE}")
        }
    };
    Ok(ToolOutput::new(words, &raw))
}
