//! Output of Read for notebooks.

use quipu_message::tool::ReadKind;
use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::{Block, Image, Json};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{MAX_IMAGE_BASE64, base64_source};
use crate::tool::ToolOutput;

/// Maximum length of the output of a cell, in characters.
const MAX_OUTPUT_CHARS: usize = 10_000;

/// Maximum number of blocks: sources and outputs of all cells.
const MAX_BLOCKS: usize = 2000;

/// A notebook whose cells are not parsed yet.
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: Option<Vec<&'a RawValue>>,
}

/// Converts a notebook to blocks: source and outputs of each cell.
pub(super) fn notebook_output(name: String, bytes: &[u8]) -> Result<ToolOutput, ToolOutput> {
    let unreadable = |e| ToolOutput::failure(format!("{name} is not a notebook that can be read: {e}."));
    let book: Notebook<'_> = serde_json::from_slice(bytes).map_err(unreadable)?;
    let Some(cells) = book.cells else {
        return Err(ToolOutput::failure(format!("{name} is not a notebook: it has no cells.")));
    };
    let too_long = || {
        let limit = format!("has more than {MAX_BLOCKS} sources and outputs of cells");
        ToolOutput::failure(format!("{name} {limit}. Search it with Grep, or cut it with Bash."))
    };
    if cells.len() > MAX_BLOCKS {
        return Err(too_long());
    }
    let mut blocks = Vec::new();
    let mut raw = Vec::new();
    for (i, cell) in cells.into_iter().enumerate() {
        let cell: Value = serde_json::from_str(cell.get()).map_err(unreadable)?;
        let id = cell["id"].as_str().map_or_else(|| format!("cell-{i}"), str::to_owned);
        let kind = cell["cell_type"].as_str().unwrap_or("code");
        let source = join_text(&cell["source"]);
        let mark = if kind == "code" { String::new() } else { format!("<cell_type>{kind}</cell_type>") };
        blocks.push(Block::new_text(format!("<cell id=\"{id}\">{mark}{source}</cell id=\"{id}\">")));
        raw.push(Json::from(json!({"cellType": kind, "source": source, "cell_id": id})));
        let outputs = cell["outputs"].as_array().into_iter().flatten();
        outputs.take(MAX_BLOCKS + 1).for_each(|output| push_cell_output(output, &mut blocks));
        if blocks.len() > MAX_BLOCKS {
            return Err(too_long());
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::new_text("<system-reminder>The notebook has no cells.</system-reminder>"));
    }
    let file = ReadFileOutput { file_path: name.into(), cells: raw.into(), ..Default::default() };
    Ok(ToolOutput::new(blocks, &ReadOutput { kind: ReadKind::Notebook, file, ..Default::default() }))
}

fn push_cell_output(output: &Value, blocks: &mut Vec<Block>) {
    let data = &output["data"];
    let mut text = match output["output_type"].as_str() {
        Some("stream") => join_text(&output["text"]),
        Some("error") => join_text(&output["traceback"]),
        _ => join_text(&data["text/plain"]),
    };
    if let Some((end, _)) = text.char_indices().nth(MAX_OUTPUT_CHARS) {
        text.truncate(end);
        text.push_str("\n[cut]");
    }
    if !text.is_empty() {
        blocks.push(Block::new_text(text));
    }
    for media_type in ["image/png", "image/jpeg"] {
        let picture: String = join_text(&data[media_type]).split_whitespace().collect();
        if picture.len() > MAX_IMAGE_BASE64 {
            blocks.push(Block::new_text("[An image was left out: it is too large.]".to_owned()));
        } else if !picture.is_empty() {
            let image = Image { source: base64_source(media_type, picture), ..Default::default() };
            blocks.push(Block::Image(Box::new(image)));
        }
    }
}

/// Returns text that a notebook stores as a string or as a list of lines.
fn join_text(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_with_too_many_cells_or_outputs_is_refused() {
        let read = |cells: usize, outputs: usize| {
            let outputs = vec![json!({"output_type": "stream", "text": "x"}); outputs];
            let book = json!({"cells": vec![json!({"source": ["a", "b"], "outputs": outputs}); cells]});
            notebook_output("n.ipynb".to_owned(), book.to_string().as_bytes())
        };
        assert!(read(MAX_BLOCKS, 0).is_ok());
        assert!(read(MAX_BLOCKS + 1, 0).is_err());
        assert!(read(1, MAX_BLOCKS - 1).is_ok());
        assert!(read(1, MAX_BLOCKS).is_err());
    }

    #[test]
    fn an_image_that_the_api_would_refuse_is_left_out() {
        let blocks = |length: usize| {
            let mut blocks = Vec::new();
            let data = json!({"image/png": "A".repeat(length)});
            push_cell_output(&json!({"output_type": "display_data", "data": data}), &mut blocks);
            blocks
        };
        assert!(matches!(blocks(MAX_IMAGE_BASE64)[..], [Block::Image(_)]));
        assert_eq!(blocks(MAX_IMAGE_BASE64 + 1)[0].text(), Some("[An image was left out: it is too large.]"));
    }
}
