//! The NotebookEdit tool: changes one cell of a notebook.

use std::path::Path;

use futures_util::future::BoxFuture;
use quipu_message::ToolName;
use quipu_message::tool::output::NotebookEditOutput;
use quipu_message::tool::{CellEditMode, CellType, NotebookEditInput};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Value, json};

use super::file_change::OriginalFile;
use super::{into_output, parse_input};
use crate::clock::random_id;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// The NotebookEdit tool.
#[derive(Debug, Clone, Copy)]
pub struct NotebookEdit;

impl Tool for NotebookEdit {
    fn name(&self) -> ToolName {
        ToolName::NotebookEdit
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Replaces, inserts or deletes one cell of a Jupyter notebook (.ipynb) that was read before. \
                          A new cell comes after the cell named by `cell_id`, or first when none is named."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "notebook_path": {"type": "string", "description": "The notebook, as an absolute path"},
                    "cell_id": {"type": "string", "description": "The cell, as Read shows it"},
                    "new_source": {"type": "string", "description": "What the cell shall hold"},
                    "cell_type": {"type": "string", "enum": ["code", "markdown"], "description": "The kind of cell; needed to insert"},
                    "edit_mode": {"type": "string", "enum": ["replace", "insert", "delete"], "description": "What to do (default: replace)"},
                },
                "required": ["notebook_path", "new_source"],
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
    let edit: NotebookEditInput = parse_input(input)?;
    let target = call.resolve_target(&edit.notebook_path, workspace);
    let path = target.given.clone();
    if path.extension().is_none_or(|ext| ext != "ipynb") {
        return Err(ToolOutput::tool_use_error("This is not a notebook (.ipynb). Change it with Edit."));
    }
    let Some(before) = OriginalFile::read(target.clone(), workspace).await? else {
        return Err(ToolOutput::tool_use_error("Notebook file does not exist."));
    };
    if !before.is_seen {
        return Err(ToolOutput::tool_use_error("File has not been read yet. Read it first before writing to it."));
    }
    let mut book: Value = serde_json::from_str(&before.text)
        .map_err(|e| ToolOutput::failure(format!("{} is not a notebook that can be read: {e}.", path.display())))?;
    let mode = edit.edit_mode.get().cloned().unwrap_or(CellEditMode::Replace);
    let (words, cell_id, cell_type) = apply_edit(&mut book, &edit, &mode)?;
    let updated = to_notebook_text(&book, &before.text)
        .map_err(|e| ToolOutput::failure(format!("The notebook cannot be written: {e}.")))?;
    before.write(&updated, workspace).await?;
    let language = book["metadata"]["language_info"]["name"].as_str().unwrap_or("python").to_owned();
    let raw = edit_output(&path, &edit, mode, cell_id, cell_type, language, before.text, updated);
    Ok(ToolOutput::new(words, &raw))
}

/// Applies the edit; returns the text for the model, the id of the cell and its type.
fn apply_edit(
    book: &mut Value,
    edit: &NotebookEditInput,
    mode: &CellEditMode,
) -> Result<(String, Option<String>, CellType), ToolOutput> {
    // Cells have ids since format 4.5.
    let has_ids = book["nbformat"].as_u64() > Some(4) || book["nbformat_minor"].as_u64() >= Some(5);
    let Some(cells) = book["cells"].as_array_mut() else {
        return Err(ToolOutput::tool_use_error("The notebook has no cells."));
    };
    let named = edit.cell_id.text();
    let at = match named {
        Some(id) => Some(
            find_cell(cells, id)
                .ok_or_else(|| ToolOutput::tool_use_error(format!("There is no cell {id} in the notebook.")))?,
        ),
        None => None,
    };
    let source = edit.new_source.as_str();
    if *mode == CellEditMode::Insert {
        let Some(kind) = edit.cell_type.get() else {
            return Err(ToolOutput::tool_use_error("To insert a cell, say its cell_type."));
        };
        let id = has_ids.then(|| random_id("c"));
        let mut cell = json!({"cell_type": kind, "metadata": {}, "source": source});
        if let Some(id) = &id {
            cell["id"] = json!(id);
        }
        if *kind == CellType::Code {
            cell["execution_count"] = Value::Null;
            cell["outputs"] = json!([]);
        }
        cells.insert(at.map_or(0, |at| at + 1), cell);
        let shown = id.clone().unwrap_or_else(|| format!("cell-{}", at.map_or(0, |at| at + 1)));
        return Ok((format!("Inserted cell {shown} with {source}"), Some(shown), kind.clone()));
    }
    let (Some(at), Some(id)) = (at, named) else {
        return Err(ToolOutput::tool_use_error("Say which cell, by its cell_id."));
    };
    let current = || cells[at]["cell_type"].as_str().map_or(CellType::Code, CellType::from);
    let kind = edit.cell_type.get().cloned().unwrap_or_else(current);
    let id = Some(id.to_owned());
    if *mode == CellEditMode::Delete {
        cells.remove(at);
        return Ok((format!("Deleted cell {}", id.as_deref().unwrap_or_default()), id, kind));
    }
    let cell = &mut cells[at];
    cell["source"] = json!(source);
    cell["cell_type"] = json!(kind);
    match kind {
        // The outputs belong to the old source.
        CellType::Code => {
            cell["execution_count"] = Value::Null;
            cell["outputs"] = json!([]);
        }
        _ => {
            let fields = cell.as_object_mut();
            let _ = fields.map(|fields| (fields.shift_remove("execution_count"), fields.shift_remove("outputs")));
        }
    }
    Ok((format!("Updated cell {} with {source}", id.as_deref().unwrap_or_default()), id, kind))
}

/// Returns the index of a cell by its id or by `cell-N`.
fn find_cell(cells: &[Value], id: &str) -> Option<usize> {
    let by_id = cells.iter().position(|cell| cell["id"].as_str() == Some(id));
    let by_place = || id.strip_prefix("cell-")?.parse().ok().filter(|at| *at < cells.len());
    by_id.or_else(by_place)
}

/// Formats the notebook as Jupyter does: indented by one space, with the original final newline.
fn to_notebook_text(book: &Value, before: &str) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(b" ");
    book.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if before.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[allow(clippy::too_many_arguments, reason = "one for each field of the wire")]
fn edit_output(
    path: &Path,
    edit: &NotebookEditInput,
    mode: CellEditMode,
    cell_id: Option<String>,
    cell_type: CellType,
    language: String,
    original_file: String,
    updated_file: String,
) -> NotebookEditOutput {
    NotebookEditOutput {
        new_source: edit.new_source.clone(),
        cell_id: cell_id.into(),
        cell_type,
        language,
        edit_mode: mode,
        notebook_path: path.to_string_lossy().into_owned(),
        original_file,
        updated_file,
        ..NotebookEditOutput::default()
    }
}
