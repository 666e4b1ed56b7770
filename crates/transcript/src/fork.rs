//! Forking: the same history under another session id, in a file of its own.

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

/// What is changed in each line.
type LineEdit<'a> = &'a mut dyn FnMut(Line) -> Result<Line, SpliceError>;

impl Fork<'_> {
    /// Makes the fork; returns how many entries it holds. Ids are kept, so that
    /// readers see what is a copy; the log of API calls stays with the original.
    /// The new file appears whole or not at all.
    pub fn run(&self) -> Result<u64, ForkError> {
        let (file, copied) = self.write_copy(&[], &mut Ok)?;
        self.persist(file)?;
        Ok(copied)
    }

    /// Makes the fork with ids of its own, made by `fresh`, and `notes` at its end. Each
    /// line says of which line of which session it is a copy. A fork that would hold no
    /// entry is an error.
    pub fn run_with_new_ids(
        &self,
        of: &SessionId,
        notes: &[Entry],
        fresh: &mut dyn FnMut() -> Uuid,
    ) -> Result<u64, ForkError> {
        let mut names: HashMap<Box<str>, Uuid> = HashMap::new();
        let mut rename = |id: &str| match names.get(id) {
            Some(name) => name.clone(),
            None => names.entry(id.into()).or_insert_with(&mut *fresh).clone(),
        };
        let (file, copied) = self.write_copy(notes, &mut |line| line.copy_with_new_ids(of, &mut rename))?;
        if copied == 0 {
            return Err(ForkError::Empty { path: self.from.to_owned() });
        }
        self.persist(file)?;
        Ok(copied)
    }

    fn write_copy(&self, notes: &[Entry], change: LineEdit<'_>) -> Result<(NamedTempFile, u64), ForkError> {
        let create = |source| ForkError::Create { path: self.to.to_owned(), source };
        let chosen = self.last_uuid.map(|at| self.lines_on_path(at)).transpose()?;
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
            let Some(piece) = lines.next().map_err(read)? else { break };
            let RawLine::Line { number, bytes, .. } = piece else { continue };
            let is_chosen = chosen.as_ref().is_none_or(|chosen| chosen.contains(&number));
            if let Some((line, in_talk)) = self.copy_line(bytes, is_chosen, change) {
                put(&line)?;
                copied += u64::from(in_talk);
            }
        }
        for note in notes {
            put(&Line::from_serialize(note).map_err(ForkError::Serialize)?)?;
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

    /// The line under the new session, and whether it is an entry of the conversation;
    /// none for what the fork does not need.
    fn copy_line(&self, bytes: &[u8], is_chosen: bool, change: LineEdit<'_>) -> Option<(Line, bool)> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mended = replace_lone_surrogates(text);
        let head = Head::read(&mended).ok()?;
        let in_talk = is_chosen && head.uuid.is_some();
        if !in_talk && !head.is_chain_amendment() {
            return None;
        }
        let mut line = Line::parse(text).ok()?.with_session_id(self.session_id).ok()?;
        if head.prompt_id.is_some() {
            line = line.with_prompt_id(self.prompt_id).ok()?;
        }
        Some((change(line).ok()?, in_talk))
    }

    fn lines_on_path(&self, at: &Uuid) -> Result<HashSet<u64>, ForkError> {
        let talk = load_session(self.from)?;
        match talk.path_to(at) {
            Some(path) => Ok(path.iter().map(|node| node.line).collect()),
            None => Err(ForkError::EntryNotFound { path: self.from.to_owned(), uuid: at.clone() }),
        }
    }
}
