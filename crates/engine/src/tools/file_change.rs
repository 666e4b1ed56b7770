//! What Write, Edit and NotebookEdit have in common: a file, looked at, then changed.

use std::io;
use std::path::Path;

use quipu_message::tool::output::Hunk;
use similar::{ChangeTag, TextDiff};

use super::read::read_regular_file;
use crate::path::TargetPath;
use crate::safe_file;
use crate::tool::{FileKnowledge, ToolOutput, Workspace};

/// Unchanged lines kept around a change.
const CONTEXT_LINES: usize = 3;

/// What the model is told behind a change.
pub(super) const FILE_STATE_NOTE: &str = "(file state is current in your context — no need to Read it back)";

/// A text file as it is before a change.
pub(super) struct OriginalFile {
    target: TargetPath,
    bytes: Vec<u8>,
    /// Its text, lines ended by `\n` alone.
    pub(super) text: String,
    uses_crlf: bool,
    has_byte_order_mark: bool,
    /// Whether the model has seen it as it is.
    pub(super) is_seen: bool,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl OriginalFile {
    /// Looks at a file; `None` if there is no file. One that changed after the model saw it is an
    /// error; one that it never saw is not.
    pub(super) async fn read(target: TargetPath, place: &Workspace) -> Result<Option<Self>, ToolOutput> {
        let path = &target.given;
        let bytes = match read_regular_file(&target).await {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(write_error(path, &e)),
        };
        let is_known = match place.knowledge_of(path, &bytes) {
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
        // Only where every line ends so can the ends be put back as they were.
        let crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
        let text = if crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
        Ok(Some(Self { target, text, uses_crlf: crlf, has_byte_order_mark: mark, bytes, is_seen: is_known }))
    }

    /// Puts `text` into the file, in the manner of what was there.
    pub(super) async fn write(&self, text: &str, place: &Workspace) -> Result<(), ToolOutput> {
        let text = if self.uses_crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
        let text = if self.has_byte_order_mark { format!("{BYTE_ORDER_MARK}{text}") } else { text };
        write_file(&self.target, Some(&self.bytes), &text, place).await
    }
}

/// Makes a new file, and the folders above it.
pub(super) async fn create_file(target: &TargetPath, text: &str, place: &Workspace) -> Result<(), ToolOutput> {
    write_file(target, None, text, place).await
}

async fn write_file(target: &TargetPath, old: Option<&[u8]>, text: &str, place: &Workspace) -> Result<(), ToolOutput> {
    let path = &target.given;
    place.before_change(path, old).map_err(|e| write_error(path, &e))?;
    let (real, exists, bytes) = (target.real.clone().unwrap_or_default(), old.is_some(), text.to_owned());
    let write = move || match exists {
        true => safe_file::replace(&real, bytes.as_bytes()),
        false => safe_file::create(&real, bytes.as_bytes()),
    };
    let written = tokio::task::spawn_blocking(write).await.map_err(io::Error::other);
    written.flatten().map_err(|e| write_error(path, &e))?;
    place.mark_seen(path, text.as_bytes());
    Ok(())
}

fn write_error(path: &Path, error: &io::Error) -> ToolOutput {
    ToolOutput::failure(format!("{} cannot be changed: {error}.", path.display()))
}

/// What changes between two texts, in hunks.
pub(super) fn diff_hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old, new);
    let hunk = |group: &Vec<similar::DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        Some(Hunk {
            old_start: first.old_range().start as u64 + 1,
            old_lines: (last.old_range().end - first.old_range().start) as u64,
            new_start: first.new_range().start as u64 + 1,
            new_lines: (last.new_range().end - first.new_range().start) as u64,
            lines,
            ..Hunk::default()
        })
    };
    diff.grouped_ops(CONTEXT_LINES).iter().filter_map(hunk).collect()
}
