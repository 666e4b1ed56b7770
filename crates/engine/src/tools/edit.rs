//! Edit: one text in a file put in the place of another.

use futures_util::future::BoxFuture;
use quipu_message::tool::EditInput;
use quipu_message::tool::output::EditOutput;
use serde_json::{Value, json};

use super::change::{Before, CURRENT, create, patch};
use super::{input, settle};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

/// Changes files.
#[derive(Debug, Clone, Copy)]
pub struct Edit;

impl Tool for Edit {
    fn definition(&self) -> Definition {
        Definition {
            name: "Edit".into(),
            description: "Puts `new_string` in the place of `old_string` in a file that was read before. \
                          `old_string` must be in the file exactly as given, spaces included and without line \
                          numbers, and only once unless `replace_all` is set."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, as an absolute path"},
                    "old_string": {"type": "string", "description": "The text to replace"},
                    "new_string": {"type": "string", "description": "The text to put there"},
                    "replace_all": {"type": "boolean", "description": "Replace it everywhere (default: false)"},
                },
                "required": ["file_path", "old_string", "new_string"],
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
    let edit: EditInput = input(call_input)?;
    let target = call.target(&edit.file_path, place);
    let path = target.given.clone();
    let name = path.to_string_lossy().into_owned();
    if edit.old_string == edit.new_string {
        return Err(Output::misuse("No changes to make: old_string and new_string are the same."));
    }
    if path.extension().is_some_and(|ext| ext == "ipynb") {
        return Err(Output::misuse("This is a notebook. Change it with NotebookEdit."));
    }
    if path.is_dir() {
        return Err(Output::failure(format!("EISDIR: illegal operation on a directory, read '{name}'")));
    }
    let all = edit.replace_all.is_true();
    let (original, updated, words) = match Before::look(target.clone(), place).await? {
        None if edit.old_string.is_empty() => {
            create(&target, &edit.new_string, place).await?;
            (String::new(), edit.new_string.clone(), format!("File created successfully at: {name} {CURRENT}"))
        }
        None => {
            let cwd = place.cwd();
            let note = format!("Note: your current working directory is {}.", cwd.display());
            return Err(Output::misuse(format!("File does not exist. {note}")));
        }
        Some(before) => {
            let updated = replaced(&before.text, &edit, all)?;
            before.change(&updated, place).await?;
            let words = match all {
                true => {
                    format!("The file {name} has been updated. All occurrences were successfully replaced. {CURRENT}")
                }
                false => format!("The file {name} has been updated successfully. {CURRENT}"),
            };
            (before.text, updated, words)
        }
    };
    let raw = EditOutput {
        file_path: name,
        structured_patch: patch(&original, &updated),
        old_string: edit.old_string,
        new_string: edit.new_string,
        original_file: original.into(),
        user_modified: false.into(),
        replace_all: all.into(),
        ..EditOutput::default()
    };
    Ok(Output::new(words, &raw))
}

fn replaced(text: &str, edit: &EditInput, all: bool) -> Result<String, Output> {
    let (old, new) = (edit.old_string.replace("\r\n", "\n"), edit.new_string.as_str());
    if old.is_empty() {
        let message = "Cannot create the file: it is already there, and not empty.";
        return if text.trim().is_empty() { Ok(new.to_owned()) } else { Err(Output::misuse(message)) };
    }
    // A file may mix line ends, and then only what is really there counts.
    let old = if text.contains(&old) { old } else { edit.old_string.clone() };
    match text.matches(old.as_str()).count() {
        0 => Err(Output::misuse(format!("String to replace not found in file.\nString: {}", edit.old_string))),
        1 => Ok(text.replacen(&old, new, 1)),
        _ if all => Ok(text.replace(&old, new)),
        count => Err(Output::misuse(format!(
            "The string to replace is in the file {count} times. Set replace_all to change them all, or give more \
             of the text around it so that it names one place.\nString: {}",
            edit.old_string
        ))),
    }
}
