//! Measures one session by reading its files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_conversation::MetricsBuilder;
use quipu_message::View;
use quipu_message::line::readable_text;

use crate::find;
use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;

/// Measures a session file together with the files of its subagents.
///
/// Reads every line once, as a view. Skips lines that cannot be parsed, and the rest of a
/// subagent file after an I/O error.
pub fn measure(path: &Path) -> Result<MetricsBuilder, FileError> {
    let mut session = MetricsBuilder::default();
    push_file(path, &mut session)?;
    for subagent in find::list_subagents(path).into_iter().chain(find::list_legacy_subagents(path)) {
        // The conversation of the subagent reports the same error.
        let _ = push_file(&subagent.path, &mut session);
    }
    Ok(session)
}

/// Measures any source, such as standard input.
pub fn measure_reader(input: impl Read) -> io::Result<MetricsBuilder> {
    let mut session = MetricsBuilder::default();
    push_lines(input, &mut session).map(|()| session)
}

fn push_file(path: &Path, session: &mut MetricsBuilder) -> Result<(), FileError> {
    for_each_view(path, |_, _, view| session.push(view))
}

fn push_lines(input: impl Read, session: &mut MetricsBuilder) -> io::Result<()> {
    read_views(input, |_, _, view| session.push(view))
}

/// Calls `visit` with the number, text and view of each line of a file. Skips lines that cannot
/// be parsed.
pub fn for_each_view(path: &Path, visit: impl FnMut(u64, &str, &View<'_>)) -> Result<(), FileError> {
    let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    read_views(file, visit).map_err(|source| FileError::Read { path: path.to_owned(), offset: 0, source })
}

fn read_views(input: impl Read, mut visit: impl FnMut(u64, &str, &View<'_>)) -> io::Result<()> {
    let mut lines = LineReader::new(input);
    while let Some(raw_line) = lines.next()? {
        if let RawLine::Line { number, bytes, .. } = raw_line {
            let text = readable_text(bytes);
            if let Ok(view) = View::read(&text) {
                visit(number, &text, &view);
            }
        }
    }
    Ok(())
}
