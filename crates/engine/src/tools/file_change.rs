//! Reading and changing a file, shared by Write, Edit and NotebookEdit.

use std::io;
use std::path::Path;

use super::read::read_regular_file;
use crate::path::TargetPath;
use crate::safe_file;
use crate::tool::{FileKnowledge, ToolOutput, Workspace};

/// Note at the end of the output of a change.
pub(super) const FILE_STATE_NOTE: &str = "(file state is current in your context — no need to Read it back)";

/// A text file before a change.
pub(super) struct OriginalFile {
    target: TargetPath,
    bytes: Vec<u8>,
    /// Text with `\n` as line end.
    pub(super) text: String,
    uses_crlf: bool,
    has_byte_order_mark: bool,
    /// Whether the model has seen the current content.
    pub(super) is_seen: bool,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl OriginalFile {
    /// Reads a file; `None` if it does not exist. Fails if it changed after the model saw it,
    /// but not if the model never saw it.
    pub(super) async fn read(target: TargetPath, workspace: &Workspace) -> Result<Option<Self>, ToolOutput> {
        let path = &target.given;
        let bytes = match read_regular_file(&target).await {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(write_error(path, &e)),
        };
        let is_known = match workspace.knowledge_of(path, &bytes) {
            FileKnowledge::Current => true,
            FileKnowledge::Unseen => false,
            FileKnowledge::Stale => {
                return Err(ToolOutput::tool_use_error(
                    "File has changed since it was read. Read it again before writing to it.",
                ));
            }
        };
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(ToolOutput::failure(format!("{} is not text in UTF-8, so it is left alone.", path.display())));
        };
        let mark = text.starts_with(BYTE_ORDER_MARK);
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        // The line ends can be restored only if all of them are `\r\n`.
        let crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
        let text = if crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
        Ok(Some(Self { target, text, uses_crlf: crlf, has_byte_order_mark: mark, bytes, is_seen: is_known }))
    }

    /// Replaces the content, with the line ends of the original.
    pub(super) async fn write(&self, text: &str, workspace: &Workspace) -> Result<(), ToolOutput> {
        let text = if self.uses_crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
        let text = if self.has_byte_order_mark { format!("{BYTE_ORDER_MARK}{text}") } else { text };
        write_file(&self.target, Some(&self.bytes), &text, workspace).await
    }
}

/// Creates a file and its missing parent folders.
pub(super) async fn create_file(target: &TargetPath, text: &str, workspace: &Workspace) -> Result<(), ToolOutput> {
    write_file(target, None, text, workspace).await
}

async fn write_file(
    target: &TargetPath,
    old: Option<&[u8]>,
    text: &str,
    workspace: &Workspace,
) -> Result<(), ToolOutput> {
    let path = &target.given;
    workspace.before_change(path, old).map_err(|e| write_error(path, &e))?;
    let (real, exists, bytes) = (target.real.clone().unwrap_or_default(), old.is_some(), text.to_owned());
    let write = move || match exists {
        true => safe_file::replace(&real, bytes.as_bytes()),
        false => safe_file::create(&real, bytes.as_bytes()),
    };
    let written = tokio::task::spawn_blocking(write).await.map_err(io::Error::other);
    written.flatten().map_err(|e| write_error(path, &e))?;
    workspace.mark_seen(path, text.as_bytes());
    Ok(())
}

fn write_error(path: &Path, error: &io::Error) -> ToolOutput {
    ToolOutput::failure(format!("{} cannot be changed: {error}.", path.display()))
}
