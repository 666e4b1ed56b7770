//! Read: a file's lines with their numbers, or what else a file is.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use quipu_message::tool::ReadInput;
use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::{Block, Document, Image, Source};
use serde_json::{Value, json};

use super::{input, settle};
use crate::tool::{Call, Definition, Effect, Output, Place, Target, Tool, open};

mod notebook;

/// How many lines are read when the call does not say.
const LINES: usize = 2000;
/// How much of a line is shown, in characters.
const LINE_LENGTH: usize = 2000;
/// How much text a call may give, in bytes: about 25,000 tokens.
const MOST_TEXT: usize = 100_000;
/// The longest file that is read at all.
const LONGEST: u64 = 64 << 20;
/// The longest image the API takes, in base64.
pub(crate) const MAX_IMAGE_BASE64: usize = 5 << 20;
/// The longest document the API takes.
const LONGEST_DOCUMENT: usize = 24 << 20;

/// Reads files.
#[derive(Debug, Clone, Copy)]
pub struct Read;

impl Tool for Read {
    fn definition(&self) -> Definition {
        Definition {
            name: "Read".into(),
            description: "Reads a file. Text comes with line numbers (number, tab, line), at most 2000 lines from \
                          `offset` on; long files are read in parts with `offset` and `limit`. Images and PDF files \
                          are shown to you, notebooks come cell by cell. Folders cannot be read: list them with Bash \
                          or Glob. Several files can be read in one answer."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, best as an absolute path"},
                    "offset": {"type": "integer", "minimum": 0, "description": "The first line to read, counted from 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
                },
                "required": ["file_path"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { settle(run(call_input, place, call).await) })
    }
}

async fn run(call_input: Value, place: &Place, call: &Call) -> Result<Output, Output> {
    let wanted: ReadInput = input(call_input)?;
    let target = call.target(&wanted.file_path, place);
    let bytes = bytes_of(&target, place).await?;
    let path = target.given;
    place.remember(&path, &bytes);
    let name = path.to_string_lossy().into_owned();
    if let Some(media_type) = image_type(&bytes) {
        return image(media_type, &bytes);
    }
    if bytes.starts_with(b"%PDF-") {
        return document(name, &bytes);
    }
    if path.extension().is_some_and(|ext| ext == "ipynb") {
        return notebook::read(name, &bytes);
    }
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        return Err(Output::failure(format!("{name} is a binary file, which cannot be read as text.")));
    }
    text(name, &bytes, wanted.offset.into_option(), wanted.limit.into_option())
}

/// The bytes of a file that is there, is a regular file and is not too long.
async fn bytes_of(target: &Target, place: &Place) -> Result<Vec<u8>, Output> {
    let path = target.given.display();
    contents(target).await.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => missing(place),
        io::ErrorKind::IsADirectory => {
            Output::failure(format!("EISDIR: illegal operation on a directory, read '{path}'"))
        }
        io::ErrorKind::FileTooLarge => Output::failure(format!(
            "{path} holds more than the {} that can be read. Search it with Grep, or cut it with Bash.",
            size(LONGEST)
        )),
        _ => Output::failure(format!("{path} cannot be read: {e}.")),
    })
}

/// What a regular file holds, no longer than anybody reads.
pub(super) async fn contents(target: &Target) -> io::Result<Vec<u8>> {
    let Some(real) = target.real.clone() else { return Err(io::Error::other("its links form a ring")) };
    let read = tokio::task::spawn_blocking(move || open::read(&real, LONGEST));
    read.await.map_err(io::Error::other)?
}

fn missing(place: &Place) -> Output {
    let cwd = place.cwd();
    Output::failure(format!("File does not exist. Note: your current working directory is {}.", cwd.display()))
}

fn text(name: String, bytes: &[u8], offset: Option<u64>, limit: Option<u64>) -> Result<Output, Output> {
    let all = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)).replace("\r\n", "\n");
    let lines: Vec<&str> = all.split('\n').collect();
    let first = usize::try_from(offset.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
    let count = limit.map_or(LINES, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let shown: Vec<&str> = lines.iter().skip(first - 1).take(count).copied().collect();
    let words = if all.is_empty() {
        "<system-reminder>The file is there, and it is empty.</system-reminder>".to_owned()
    } else if shown.is_empty() {
        let total = lines.len();
        format!("<system-reminder>The file has {total} lines, so there is none at {first}.</system-reminder>")
    } else {
        let rows = shown.iter().enumerate().map(|(i, line)| format!("{}\t{}", first + i, cut(line)));
        rows.collect::<Vec<_>>().join("\n")
    };
    if words.len() > MOST_TEXT {
        return Err(Output::failure(format!(
            "The content ({} in {} lines) is more than one call may return ({}). Read it in parts with offset and \
             limit, or search it with Grep.",
            size(words.len() as u64),
            shown.len(),
            size(MOST_TEXT as u64)
        )));
    }
    let file = ReadFileOutput {
        file_path: name.into(),
        content: shown.join("\n").into(),
        num_lines: (shown.len() as u64).into(),
        start_line: (first as u64).into(),
        total_lines: (lines.len() as u64).into(),
        ..Default::default()
    };
    Ok(Output::new(words, &ReadOutput { kind: "text".into(), file, ..Default::default() }))
}

/// A line, cut when it is longer than anybody reads.
fn cut(line: &str) -> &str {
    line.char_indices().nth(LINE_LENGTH).map_or(line, |(end, _)| &line[..end])
}

fn image(media_type: &str, bytes: &[u8]) -> Result<Output, Output> {
    let data = BASE64.encode(bytes);
    if data.len() > MAX_IMAGE_BASE64 {
        return Err(Output::failure(format!(
            "The image holds {}, which is {} in base64; at most {} of that can be shown. Make it smaller first.",
            size(bytes.len() as u64),
            size(data.len() as u64),
            size(MAX_IMAGE_BASE64 as u64)
        )));
    }
    let file = ReadFileOutput {
        base64: data.clone().into(),
        media_type: media_type.to_owned().into(),
        original_size: (bytes.len() as u64).into(),
        ..Default::default()
    };
    let block = Block::Image(Box::new(Image { source: source(media_type, data), ..Default::default() }));
    Ok(Output::new(vec![block], &ReadOutput { kind: "image".into(), file, ..Default::default() }))
}

fn document(name: String, bytes: &[u8]) -> Result<Output, Output> {
    if bytes.len() > LONGEST_DOCUMENT {
        return Err(Output::failure(format!(
            "The document holds {}; at most {} can be shown. Split it first.",
            size(bytes.len() as u64),
            size(LONGEST_DOCUMENT as u64)
        )));
    }
    let data = BASE64.encode(bytes);
    let words = Block::new_text(format!("PDF file read: {name} ({})", size(bytes.len() as u64)));
    let file = ReadFileOutput {
        file_path: name.into(),
        base64: data.clone().into(),
        original_size: (bytes.len() as u64).into(),
        ..Default::default()
    };
    let block = Block::Document(Box::new(Document { source: source("application/pdf", data), ..Default::default() }));
    Ok(Output::new(vec![words, block], &ReadOutput { kind: "pdf".into(), file, ..Default::default() }))
}

fn source(media_type: &str, data: String) -> Source {
    let media_type = media_type.to_owned().into();
    Source { kind: "base64".into(), media_type, data: data.into(), ..Default::default() }
}

/// What kind of picture the bytes are, told by how they begin.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A number of bytes in words.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1}KB", bytes as f64 / 1024.0),
        _ => format!("{:.1}MB", bytes as f64 / 1_048_576.0),
    }
}
