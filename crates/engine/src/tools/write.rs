//! Write: a whole file.

use futures_util::future::BoxFuture;
use quipu_message::Maybe;
use quipu_message::tool::WriteInput;
use quipu_message::tool::output::WriteOutput;
use serde_json::{Value, json};

use super::change::{Before, CURRENT, create, patch};
use super::{input, settle};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

/// Writes files.
#[derive(Debug, Clone, Copy)]
pub struct Write;

impl Tool for Write {
    fn definition(&self) -> Definition {
        Definition {
            name: "Write".into(),
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

    fn effect(&self, _: &Value) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { settle(run(call_input, place, call).await) })
    }
}

async fn run(call_input: Value, place: &Place, call: &Call) -> Result<Output, Output> {
    let WriteInput { file_path, content, .. } = input(call_input)?;
    let target = call.target(&file_path, place);
    let path = target.given.clone();
    let name = path.to_string_lossy().into_owned();
    if path.is_dir() {
        return Err(Output::failure(format!("EISDIR: illegal operation on a directory, open '{name}'")));
    }
    let mut raw =
        WriteOutput { file_path: name.clone(), content, user_modified: false.into(), ..WriteOutput::default() };
    let words = match Before::look(target.clone(), place).await? {
        Some(before) => {
            before.change(&raw.content, place).await?;
            raw.kind = "update".into();
            raw.structured_patch = patch(&before.text, &raw.content);
            raw.original_file = before.text.into();
            format!("The file {name} has been updated successfully. {CURRENT}")
        }
        None => {
            create(&target, &raw.content, place).await?;
            raw.kind = "create".into();
            raw.original_file = Maybe::Null;
            format!("File created successfully at: {name} {CURRENT}")
        }
    };
    Ok(Output::new(words, &raw))
}
