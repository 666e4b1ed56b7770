//! Output of Read for notebooks.

use quipu_message::tool::ReadKind;
use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::{Block, Image, Json};
use serde_json::{Value, json};

use super::{MAX_IMAGE_BASE64, base64_source};
use crate::tool::ToolOutput;

/// Maximum length of the output of a cell, in characters.
const MAX_OUTPUT_CHARS: usize = 10_000;

/// Converts a notebook to blocks: source and outputs of each cell.
pub(super) fn notebook_output(name: String, bytes: &[u8]) -> Result<ToolOutput, ToolOutput> {
    let book: Value = serde_json::from_slice(bytes)
        .map_err(|e| ToolOutput::failure(format!("{name} is not a notebook that can be read: {e}.")))?;
    let Some(cells) = book["cells"].as_array() else {
        return Err(ToolOutput::failure(format!("{name} is not a notebook: it has no cells.")));
    };
    let mut blocks = Vec::new();
    let mut raw = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let id = cell["id"].as_str().map_or_else(|| format!("cell-{i}"), str::to_owned);
        let kind = cell["cell_type"].as_str().unwrap_or("code");
        let source = join_text(&cell["source"]);
        let mark = if kind == "code" { String::new() } else { format!("<cell_type>{kind}</cell_type>") };
        blocks.push(Block::new_text(format!("<cell id=\"{id}\">{mark}{source}</cell id=\"{id}\">")));
        raw.push(Json::from(json!({"cellType": kind, "source": source, "cell_id": id})));
        cell["outputs"].as_array().into_iter().flatten().for_each(|output| push_cell_output(output, &mut blocks));
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
