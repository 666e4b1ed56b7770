//! The Read tool: numbered lines of text files, images, PDFs and notebooks.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::tool::{ReadInput, ReadKind};
use quipu_message::values::MediaSourceKind;
use quipu_message::{Block, Document, Image, MediaSource, ToolName};
use serde_json::{Value, json};

use super::{into_output, parse_input};
use crate::path::TargetPath;
use crate::pdf::{self, MAX_DOCUMENT_BYTES, PageRange};
use crate::safe_file;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

mod notebook;

/// Number of lines if the call sets none.
const DEFAULT_LINES: usize = 2000;
/// Maximum length of a line in the output, in characters.
const MAX_LINE_CHARS: usize = 2000;
/// Maximum size of the output, about 25,000 tokens.
const MAX_TEXT_BYTES: usize = 100_000;
/// Maximum size of a file that tools read or change.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum size of an image that the API accepts, as base64.
pub(crate) const MAX_IMAGE_BASE64: usize = 5 << 20;
/// Maximum number of pages of a PDF that is read whole: the API accepts no more of a model with the
/// usual context.
const MAX_WHOLE_PDF_PAGES: usize = 100;

/// The Read tool.
#[derive(Debug, Clone, Copy)]
pub struct Read;

impl Tool for Read {
    fn name(&self) -> ToolName {
        ToolName::Read
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Reads a file. Text comes with line numbers (number, tab, line), at most 2000 lines from \
                          `offset` on; long files are read in parts with `offset` and `limit`. Images and PDF files \
                          are shown to you; of a long PDF (over 10 pages) choose some with `pages`. Notebooks come \
                          cell by cell. Folders cannot be read: list them with Bash or Glob. Several files can be \
                          read in one answer."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, best as an absolute path"},
                    "offset": {"type": "integer", "minimum": 0, "description": "The first line to read, counted from 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
                    "pages": {"type": "string", "description": "The pages of a PDF file to read, such as 3 or 1-5; at most 20"},
                },
                "required": ["file_path"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(run(input, workspace, call).await) })
    }
}

async fn run(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let request: ReadInput = parse_input(input)?;
    let target = call.resolve_target(&request.file_path, workspace);
    let bytes = read_bytes(&target, workspace).await?;
    let path = target.given;
    workspace.mark_seen(&path, &bytes);
    let name = path.to_string_lossy().into_owned();
    if let Some(media_type) = image_type(&bytes) {
        return image_output(media_type, &bytes);
    }
    if bytes.starts_with(b"%PDF-") {
        return document_output(name, bytes, request.pages.text().unwrap_or_default(), workspace).await;
    }
    if path.extension().is_some_and(|ext| ext == "ipynb") {
        return notebook::notebook_output(name, &bytes);
    }
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        return Err(ToolOutput::failure(format!("{name} is a binary file, which cannot be read as text.")));
    }
    text_output(name, &bytes, request.offset.into_option(), request.limit.into_option())
}

/// Reads a file; the error is the output for the model.
async fn read_bytes(target: &TargetPath, workspace: &Workspace) -> Result<Vec<u8>, ToolOutput> {
    let path = target.given.display();
    read_regular_file(target).await.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => file_not_found(workspace),
        io::ErrorKind::IsADirectory => {
            ToolOutput::failure(format!("EISDIR: illegal operation on a directory, read '{path}'"))
        }
        io::ErrorKind::FileTooLarge => ToolOutput::failure(format!(
            "{path} holds more than the {} that can be read. Search it with Grep, or cut it with Bash.",
            format_size(MAX_FILE_BYTES)
        )),
        _ => ToolOutput::failure(format!("{path} cannot be read: {e}.")),
    })
}

/// Reads a regular file of at most [`MAX_FILE_BYTES`].
pub(super) async fn read_regular_file(target: &TargetPath) -> io::Result<Vec<u8>> {
    let Some(real) = target.real.clone() else {
        return Err(io::Error::other("its links form a ring, or its path is too long"));
    };
    let read = tokio::task::spawn_blocking(move || safe_file::read(&real, MAX_FILE_BYTES));
    read.await.map_err(io::Error::other)?
}

fn file_not_found(workspace: &Workspace) -> ToolOutput {
    let cwd = workspace.cwd();
    ToolOutput::failure(format!("File does not exist. Note: your current working directory is {}.", cwd.display()))
}

fn text_output(name: String, bytes: &[u8], offset: Option<u64>, limit: Option<u64>) -> Result<ToolOutput, ToolOutput> {
    let all = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)).replace("\r\n", "\n");
    let lines: Vec<&str> = all.split('\n').collect();
    let first = usize::try_from(offset.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
    let count = limit.map_or(DEFAULT_LINES, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let shown: Vec<&str> = lines.iter().skip(first - 1).take(count).copied().collect();
    let words = if all.is_empty() {
        "<system-reminder>The file is there, and it is empty.</system-reminder>".to_owned()
    } else if shown.is_empty() {
        let total = lines.len();
        format!("<system-reminder>The file has {total} lines, so there is none at {first}.</system-reminder>")
    } else {
        let rows = shown.iter().enumerate().map(|(i, line)| format!("{}\t{}", first + i, truncate_line(line)));
        rows.collect::<Vec<_>>().join("\n")
    };
    if words.len() > MAX_TEXT_BYTES {
        return Err(ToolOutput::failure(format!(
            "The content ({} in {} lines) is more than one call may return ({}). Read it in parts with offset and \
             limit, or search it with Grep.",
            format_size(words.len() as u64),
            shown.len(),
            format_size(MAX_TEXT_BYTES as u64)
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
    Ok(ToolOutput::new(words, &ReadOutput { kind: ReadKind::Text, file, ..Default::default() }))
}

/// Truncates a line to [`MAX_LINE_CHARS`].
fn truncate_line(line: &str) -> &str {
    line.char_indices().nth(MAX_LINE_CHARS).map_or(line, |(end, _)| &line[..end])
}

fn image_output(media_type: &str, bytes: &[u8]) -> Result<ToolOutput, ToolOutput> {
    let data = BASE64.encode(bytes);
    if data.len() > MAX_IMAGE_BASE64 {
        return Err(ToolOutput::failure(format!(
            "The image holds {}, which is {} in base64; at most {} of that can be shown. Make it smaller first.",
            format_size(bytes.len() as u64),
            format_size(data.len() as u64),
            format_size(MAX_IMAGE_BASE64 as u64)
        )));
    }
    let file = ReadFileOutput {
        base64: data.clone().into(),
        media_type: media_type.to_owned().into(),
        original_size: (bytes.len() as u64).into(),
        ..Default::default()
    };
    let block = Block::Image(Box::new(Image { source: base64_source(media_type, data), ..Default::default() }));
    Ok(ToolOutput::new(vec![block], &ReadOutput { kind: ReadKind::Image, file, ..Default::default() }))
}

/// Shows a PDF, or only its `pages` if that is not empty.
async fn document_output(
    name: String,
    bytes: Vec<u8>,
    pages: &str,
    workspace: &Workspace,
) -> Result<ToolOutput, ToolOutput> {
    let fail = |error: String| ToolOutput::failure(format!("{name} cannot be read: {error}."));
    let range = if pages.is_empty() { None } else { Some(pages.parse::<PageRange>().map_err(fail)?) };
    let reader = workspace.sandbox().launcher().ok_or_else(|| fail("there is no reader of PDF files".to_owned()))?;
    let read = pdf::read_pages(reader, &bytes, range).await.map_err(fail)?;
    let count = read.page_count;
    let original_size = bytes.len() as u64;
    let (data, words) = match range {
        Some(range) => {
            (read.document, format!("PDF pages read: {range} of {count} from {name} ({})", format_size(original_size)))
        }
        None if count > MAX_WHOLE_PDF_PAGES => {
            return Err(fail(format!(
                "it has {count} pages, and more than {MAX_WHOLE_PDF_PAGES} are not read at once. Choose some with the \
                 parameter `pages`, such as 1-5; at most 20 in one call"
            )));
        }
        None if bytes.len() > MAX_DOCUMENT_BYTES => {
            let (size, max) = (format_size(original_size), format_size(MAX_DOCUMENT_BYTES as u64));
            return Err(fail(format!(
                "it holds {size}, and at most {max} can be shown. Choose some pages with the parameter `pages`"
            )));
        }
        None => (bytes, format!("PDF file read: {name} ({})", format_size(original_size))),
    };
    let data = BASE64.encode(data);
    let file = ReadFileOutput {
        file_path: name.into(),
        base64: data.clone().into(),
        original_size: original_size.into(),
        ..Default::default()
    };
    let block =
        Block::Document(Box::new(Document { source: base64_source("application/pdf", data), ..Default::default() }));
    let raw = ReadOutput { kind: ReadKind::Pdf, file, ..Default::default() };
    Ok(ToolOutput::new(vec![Block::new_text(words), block], &raw))
}

fn base64_source(media_type: &str, data: String) -> MediaSource {
    let media_type = media_type.to_owned().into();
    MediaSource { kind: MediaSourceKind::Base64, media_type, data: data.into(), ..Default::default() }
}

/// Returns the media type of an image by its first bytes; `None` if it is not a supported image.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Formats a number of bytes, such as `1.5KB`.
pub(super) fn format_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1}KB", bytes as f64 / 1024.0),
        _ => format!("{:.1}MB", bytes as f64 / 1_048_576.0),
    }
}
