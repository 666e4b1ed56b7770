//! The Edit tool: replaces text in a file.

use futures_util::future::BoxFuture;
use quipu_message::ToolName;
use quipu_message::tool::EditInput;
use quipu_message::tool::output::EditOutput;
use serde_json::{Value, json};

use super::file_change::{FILE_STATE_NOTE, OriginalFile, create_file};
use super::read::{MAX_FILE_BYTES, format_size};
use super::{into_output, parse_input};
use crate::line_diff::diff_hunks;
use crate::path::TargetPath;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// The Edit tool.
#[derive(Debug, Clone, Copy)]
pub struct Edit;

impl Tool for Edit {
    fn name(&self) -> ToolName {
        ToolName::Edit
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Puts `new_string` in the place of `old_string` in a file. \
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

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn precheck<'a>(
        &'a self,
        input: &'a Value,
        workspace: &'a Workspace,
        call: &'a CallContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move { plan_edit(input.clone(), workspace, call).await.err() })
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(run(input, workspace, call).await) })
    }
}

/// An edit that was checked and can be applied.
struct PlannedEdit {
    input: EditInput,
    target: TargetPath,
    /// Current file; `None` if it is to be created.
    original: Option<OriginalFile>,
    updated: String,
}

/// Checks a call and computes the new text; the error is the output for the model.
async fn plan_edit(input: Value, workspace: &Workspace, call: &CallContext) -> Result<PlannedEdit, ToolOutput> {
    let edit: EditInput = parse_input(input)?;
    let target = call.resolve_target(&edit.file_path, workspace);
    let path = &target.given;
    if edit.old_string == edit.new_string {
        return Err(ToolOutput::tool_use_error("No changes to make: old_string and new_string are the same."));
    }
    if path.extension().is_some_and(|ext| ext == "ipynb") {
        return Err(ToolOutput::tool_use_error("This is a notebook. Change it with NotebookEdit."));
    }
    if path.is_dir() {
        return Err(ToolOutput::failure(format!(
            "EISDIR: illegal operation on a directory, read '{}'",
            path.display()
        )));
    }
    let before = OriginalFile::read(target.clone(), workspace).await?;
    let updated = match &before {
        Some(before) => replace_text(&before.text, &edit, edit.replace_all.is_true())?,
        None if edit.old_string.is_empty() => edit.new_string.clone(),
        None => {
            let cwd = workspace.cwd();
            let note = format!("Note: your current working directory is {}.", cwd.display());
            return Err(ToolOutput::tool_use_error(format!("File does not exist. {note}")));
        }
    };
    Ok(PlannedEdit { input: edit, target, original: before, updated })
}

async fn run(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let PlannedEdit { input: edit, target, original: before, updated } = plan_edit(input, workspace, call).await?;
    let name = target.given.to_string_lossy().into_owned();
    let all = edit.replace_all.is_true();
    let words = match &before {
        None => {
            create_file(&target, &updated, workspace).await?;
            format!("File created successfully at: {name} {FILE_STATE_NOTE}")
        }
        Some(before) => {
            before.write(&updated, workspace).await?;
            let how = if all { ". All occurrences were successfully replaced." } else { " successfully." };
            let current = if before.is_seen { format!(" {FILE_STATE_NOTE}") } else { String::new() };
            format!("The file {name} has been updated{how}{current}")
        }
    };
    let original = before.map(|before| before.text).unwrap_or_default();
    let raw = EditOutput {
        file_path: name,
        structured_patch: diff_hunks(&original, &updated),
        old_string: edit.old_string,
        new_string: edit.new_string,
        original_file: original.into(),
        user_modified: false.into(),
        replace_all: all.into(),
        ..EditOutput::default()
    };
    Ok(ToolOutput::new(words, &raw))
}

fn replace_text(text: &str, edit: &EditInput, all: bool) -> Result<String, ToolOutput> {
    let (old, new) = (edit.old_string.replace("\r\n", "\n"), edit.new_string.as_str());
    if old.is_empty() {
        let message = "Cannot create the file: it is already there, and not empty.";
        return if text.trim().is_empty() { Ok(new.to_owned()) } else { Err(ToolOutput::tool_use_error(message)) };
    }
    // In a file with mixed line ends only the exact text counts.
    let old = if text.contains(&old) { old } else { edit.old_string.clone() };
    let count = text.matches(old.as_str()).count();
    let replaced = if all { count } else { 1 };
    let added = (replaced as u64).saturating_mul(new.len() as u64);
    let size = ((text.len() - replaced.min(count) * old.len()) as u64).saturating_add(added);
    if count > 0 && size > MAX_FILE_BYTES {
        let max = format_size(MAX_FILE_BYTES);
        return Err(ToolOutput::tool_use_error(format!(
            "The file would be larger than {max}, the most that can be read."
        )));
    }
    match count {
        0 => Err(ToolOutput::tool_use_error(format!(
            "String to replace not found in file.\nString: {}",
            edit.old_string
        ))),
        1 => Ok(text.replacen(&old, new, 1)),
        _ if all => Ok(text.replace(&old, new)),
        count => Err(ToolOutput::tool_use_error(format!(
            "The string to replace is in the file {count} times. Set replace_all to change them all, or give more \
             of the text around it so that it names one place.\nString: {}",
            edit.old_string
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_grow_is_not_too_large() {
        let part = |letter: &str| letter.repeat(1 << 20);
        let (text, new) = (part("a").repeat(40), part("b"));
        let edit = |new: String| EditInput { old_string: part("a"), new_string: new, ..EditInput::default() };
        assert_eq!(replace_text(&text, &edit(new), true).unwrap().len(), text.len());
        assert!(replace_text(&text, &edit(part("b").repeat(2)), true).is_err());
    }
}
