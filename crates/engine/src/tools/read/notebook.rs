//! Notebooks, cell by cell.

use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::{Block, Image, Json};
use serde_json::{Value, json};

use super::source;
use crate::tool::Output;

/// How much of a cell's output is shown, in characters.
const OUTPUT_LENGTH: usize = 10_000;

/// A notebook as blocks: each cell with its source and what it printed.
pub(super) fn read(name: String, bytes: &[u8]) -> Result<Output, Output> {
    let book: Value = serde_json::from_slice(bytes)
        .map_err(|e| Output::failure(format!("{name} is not a notebook that can be read: {e}.")))?;
    let Some(cells) = book["cells"].as_array() else {
        return Err(Output::failure(format!("{name} is not a notebook: it has no cells.")));
    };
    let mut blocks = Vec::new();
    let mut raw = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let id = cell["id"].as_str().map_or_else(|| format!("cell-{i}"), str::to_owned);
        let kind = cell["cell_type"].as_str().unwrap_or("code");
        let source = joined(&cell["source"]);
        let mark = if kind == "code" { String::new() } else { format!("<cell_type>{kind}</cell_type>") };
        blocks.push(Block::new_text(format!("<cell id=\"{id}\">{mark}{source}</cell id=\"{id}\">")));
        raw.push(Json::from(json!({"cellType": kind, "source": source, "cell_id": id})));
        cell["outputs"].as_array().into_iter().flatten().for_each(|output| show(output, &mut blocks));
    }
    if blocks.is_empty() {
        blocks.push(Block::new_text("<system-reminder>The notebook has no cells.</system-reminder>"));
    }
    let file = ReadFileOutput { file_path: name.into(), cells: raw.into(), ..Default::default() };
    Ok(Output::new(blocks, &ReadOutput { kind: "notebook".into(), file, ..Default::default() }))
}

fn show(output: &Value, blocks: &mut Vec<Block>) {
    let data = &output["data"];
    let mut text = match output["output_type"].as_str() {
        Some("stream") => joined(&output["text"]),
        Some("error") => joined(&output["traceback"]),
        _ => joined(&data["text/plain"]),
    };
    if let Some((end, _)) = text.char_indices().nth(OUTPUT_LENGTH) {
        text.truncate(end);
        text.push_str("\n[cut]");
    }
    if !text.is_empty() {
        blocks.push(Block::new_text(text));
    }
    for media_type in ["image/png", "image/jpeg"] {
        let picture: String = joined(&data[media_type]).split_whitespace().collect();
        if !picture.is_empty() {
            let image = Image { source: source(media_type, picture), ..Default::default() };
            blocks.push(Block::Image(Box::new(image)));
        }
    }
}

/// Text that a notebook holds as one string or as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}
