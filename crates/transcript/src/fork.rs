//! Forking: the same history under another session id, in a file of its own.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use quipu_message::bookkeeping::Mode;
use quipu_message::{Entry, Head, Line, SessionId, Uuid, line::mend};

use crate::append::{AppendError, sync_folder};
use crate::lines::{Lines, Piece};
use crate::problem::FileError;
use crate::read::load;

/// What to fork, and into what.
#[derive(Debug, Clone)]
pub struct Fork<'a> {
    /// The file of the session.
    pub from: &'a Path,
    /// The new file; it must not exist.
    pub to: &'a Path,
    /// The new session.
    pub session_id: &'a SessionId,
    /// The prompt that the copied prompts are credited to.
    pub prompt_id: &'a str,
    /// The last line to copy; none copies the whole history.
    pub at: Option<&'a Uuid>,
}

impl Fork<'_> {
    /// Makes the fork; returns how many entries it holds. Ids are kept, so that
    /// readers see what is a copy; the log of API calls stays with the original.
    /// The new file appears whole or not at all.
    pub fn run(&self) -> Result<u64, AppendError> {
        let create = |source| AppendError::Create { path: self.to.to_owned(), source };
        let open = |source| AppendError::Open { path: self.from.to_owned(), source };
        let chosen = self.at.map(|at| self.lines_to(at)).transpose()?;
        let mut lines = Lines::new(File::open(self.from).map_err(open)?);
        let folder = self.to.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(create)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(create)?;
        let mut out = BufWriter::new(file.as_file_mut());
        let mode = Mode { mode: "normal".to_owned(), session_id: self.session_id.clone().into(), ..Mode::default() };
        let mode = Line::of(&Entry::Mode(Box::new(mode))).map_err(AppendError::Serialise)?;
        writeln!(out, "{}", mode.as_str()).map_err(create)?;
        let mut copied = 0;
        while let Some(piece) = lines.next().map_err(open)? {
            let Piece::Line { number, bytes, .. } = piece else { continue };
            if chosen.as_ref().is_none_or(|chosen| chosen.contains(&number))
                && let Some(line) = self.copy(bytes)
            {
                writeln!(out, "{}", line.as_str()).map_err(create)?;
                copied += 1;
            }
        }
        out.flush().map_err(create)?;
        drop(out);
        file.as_file().sync_all().map_err(create)?;
        file.persist_noclobber(self.to).map_err(|error| create(error.error))?;
        sync_folder(folder).map_err(create)?;
        Ok(copied)
    }

    /// The line under the new session; none for what is not part of the conversation.
    fn copy(&self, bytes: &[u8]) -> Option<Line> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mended = mend(text);
        let head = Head::read(&mended).ok()?;
        head.uuid.as_ref()?;
        let mut line = Line::parse(text).ok()?.in_session(self.session_id).ok()?;
        if head.prompt_id.is_some() {
            line = line.of_prompt(self.prompt_id).ok()?;
        }
        Some(line)
    }

    fn lines_to(&self, at: &Uuid) -> Result<HashSet<u64>, AppendError> {
        let talk = load(self.from).map_err(|error| match error {
            FileError::Open { path, source } | FileError::Read { path, source, .. } => {
                AppendError::Open { path, source }
            }
        })?;
        match talk.path_to(at) {
            Some(path) => Ok(path.iter().map(|node| node.line).collect()),
            None => Err(AppendError::NoEntry { path: self.from.to_owned(), uuid: at.clone() }),
        }
    }
}
