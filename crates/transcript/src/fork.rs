//! Forks a session: copies its entries to a new file under a new session id.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use quipu_message::bookkeeping::ModeEntry;
use quipu_message::line::{SpliceError, replace_lone_surrogates};
use quipu_message::{Entry, Head, Line, SessionId, Uuid};
use tempfile::NamedTempFile;

use crate::append::sync_folder;
use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;
use crate::read::load_session;

/// Which session to fork and where to write the copy.
#[derive(Debug, Clone)]
pub struct Fork<'a> {
    /// Path of the session file to copy.
    pub from: &'a Path,
    /// Path of the new file, which must not exist.
    pub to: &'a Path,
    /// Id of the new session.
    pub session_id: &'a SessionId,
    /// Prompt id that replaces the prompt ids of the copied entries.
    pub prompt_id: &'a str,
    /// UUID of the last entry to copy; `None` copies all entries.
    pub last_uuid: Option<&'a Uuid>,
}

/// Why a session could not be forked. The original is unchanged and there is no new file.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The original cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// The new file cannot be written, or exists already.
    #[error("cannot create {}", path.display())]
    Create {
        /// Path of the new file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A new entry cannot be written as JSON.
    #[error("cannot write an entry as JSON")]
    Serialize(#[source] serde_json::Error),
    /// The original has no entry with the UUID of [`Fork::last_uuid`].
    #[error("no entry {uuid} in {}", path.display())]
    EntryNotFound {
        /// Path of the original.
        path: PathBuf,
        /// UUID that was asked for.
        uuid: Uuid,
    },
    /// The original has no entry that a fork could hold.
    #[error("{} holds nothing to fork", path.display())]
    Empty {
        /// Path of the original.
        path: PathBuf,
    },
}

impl ForkError {
    /// Stable code for scripts, such as `append.no_entry`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read(error) => error.code(),
            Self::Create { .. } => "append.cannot_create",
            Self::Serialize(_) => "append.not_json",
            Self::EntryNotFound { .. } => "append.no_entry",
            Self::Empty { .. } => "append.nothing_to_fork",
        }
    }
}

/// Edits each copied line.
type LineEdit<'a> = &'a mut dyn FnMut(Line) -> Result<Line, SpliceError>;

impl Fork<'_> {
    /// Writes the fork and returns the number of entries in it. UUIDs are kept, so that readers see
    /// which entries are copies. Records of API calls are not copied. The new file appears whole or
    /// not at all.
    pub fn run(&self) -> Result<u64, ForkError> {
        let (file, copied) = self.write_copy(&[], &mut Ok)?;
        self.persist(file)?;
        Ok(copied)
    }

    /// Writes the fork with new UUIDs from `new_id` and appends `trailing_entries`. Each line names
    /// the entry and session it was copied from. Fails if the fork would have no entry.
    pub fn run_with_new_ids(
        &self,
        source_session: &SessionId,
        trailing_entries: &[Entry],
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<u64, ForkError> {
        let mut new_ids: HashMap<Box<str>, Uuid> = HashMap::new();
        let mut rename = |id: &str| match new_ids.get(id) {
            Some(name) => name.clone(),
            None => new_ids.entry(id.into()).or_insert_with(&mut *new_id).clone(),
        };
        let (file, copied) =
            self.write_copy(trailing_entries, &mut |line| line.copy_with_new_ids(source_session, &mut rename))?;
        if copied == 0 {
            return Err(ForkError::Empty { path: self.from.to_owned() });
        }
        self.persist(file)?;
        Ok(copied)
    }

    fn write_copy(&self, trailing_entries: &[Entry], edit: LineEdit<'_>) -> Result<(NamedTempFile, u64), ForkError> {
        let create = |source| ForkError::Create { path: self.to.to_owned(), source };
        let path_lines = self.last_uuid.map(|at| self.lines_on_path(at)).transpose()?;
        let mut lines = LineReader::new(
            File::open(self.from).map_err(|source| FileError::Open { path: self.from.to_owned(), source })?,
        );
        crate::append::create_private_folder(self.target_folder()).map_err(create)?;
        let mut file = NamedTempFile::new_in(self.target_folder()).map_err(create)?;
        let mut out = BufWriter::new(file.as_file_mut());
        let mut put = |line: &Line| writeln!(out, "{}", line.as_str()).map_err(create);
        let mode =
            ModeEntry { mode: "normal".to_owned(), session_id: self.session_id.clone().into(), ..ModeEntry::default() };
        put(&Line::from_serialize(&Entry::Mode(Box::new(mode))).map_err(ForkError::Serialize)?)?;
        let mut copied = 0;
        loop {
            let offset = lines.offset();
            let read = |source| FileError::Read { path: self.from.to_owned(), offset, source };
            let Some(raw_line) = lines.next().map_err(read)? else { break };
            let RawLine::Line { number, bytes, .. } = raw_line else { continue };
            let is_on_path = path_lines.as_ref().is_none_or(|path_lines| path_lines.contains(&number));
            if let Some((line, is_conversation_entry)) = self.copy_line(bytes, is_on_path, edit) {
                put(&line)?;
                copied += u64::from(is_conversation_entry);
            }
        }
        for entry in trailing_entries {
            put(&Line::from_serialize(entry).map_err(ForkError::Serialize)?)?;
        }
        out.flush().map_err(create)?;
        drop(out);
        Ok((file, copied))
    }

    fn persist(&self, file: NamedTempFile) -> Result<(), ForkError> {
        let create = |source| ForkError::Create { path: self.to.to_owned(), source };
        file.as_file().sync_all().map_err(create)?;
        file.persist_noclobber(self.to).map_err(|error| create(error.error))?;
        sync_folder(self.target_folder()).map_err(create)
    }

    fn target_folder(&self) -> &Path {
        self.to.parent().unwrap_or(Path::new("."))
    }

    /// The line for the new session, and whether it is an entry of the conversation. `None` for
    /// lines that the fork does not need.
    fn copy_line(&self, bytes: &[u8], is_on_path: bool, edit: LineEdit<'_>) -> Option<(Line, bool)> {
        let text = std::str::from_utf8(bytes).ok()?;
        let readable = replace_lone_surrogates(text);
        let head = Head::read(&readable).ok()?;
        let is_conversation_entry = is_on_path && head.uuid.is_some();
        if !is_conversation_entry && !head.is_chain_amendment() {
            return None;
        }
        let mut line = Line::parse(text).ok()?.with_session_id(self.session_id).ok()?;
        if head.prompt_id.is_some() {
            line = line.with_prompt_id(self.prompt_id).ok()?;
        }
        Some((edit(line).ok()?, is_conversation_entry))
    }

    fn lines_on_path(&self, at: &Uuid) -> Result<HashSet<u64>, ForkError> {
        let conversation = load_session(self.from)?;
        match conversation.path_to(at) {
            Some(path) => Ok(path.iter().map(|node| node.line).collect()),
            None => Err(ForkError::EntryNotFound { path: self.from.to_owned(), uuid: at.clone() }),
        }
    }
}
