//! Reads what is needed to continue a session file, in one pass over the heads of its lines.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Head, SessionId, Uuid};

use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;

/// State of a session file that is needed to append to it.
#[derive(Debug, Default)]
pub struct TranscriptState {
    /// UUIDs of all entries.
    pub uuids: HashSet<Uuid>,
    /// UUID of the entry to continue from; `None` if there is no entry yet.
    pub leaf_uuid: Option<Uuid>,
    /// Session id in the last entry of the chain.
    pub session_id: Option<SessionId>,
    /// Number of lines in the file.
    pub lines: u64,
    has_main_entries: bool,
}

impl TranscriptState {
    /// Reads a file. Lines that cannot be parsed are counted and skipped.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        let mut lines = LineReader::new(file);
        let mut state = Self::default();
        loop {
            let offset = lines.offset();
            let line = lines.next().map_err(|source| FileError::Read { path: path.to_owned(), offset, source })?;
            let Some(line) = line else { return Ok(state) };
            state.lines += 1;
            let RawLine::Line { bytes, .. } = line else { continue };
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let text = replace_lone_surrogates(text);
            let Ok(head) = Head::read(&text) else { continue };
            state.push(&head);
        }
    }

    fn push(&mut self, head: &Head<'_>) {
        let Some(uuid) = head.uuid.as_deref().map(Uuid::from) else { return };
        // Old session files also hold entries of subagents; the file of a subagent holds nothing else.
        let is_sidechain = head.is_sidechain == Some(true);
        if head.is_chain_entry() && !(is_sidechain && self.has_main_entries) {
            self.has_main_entries |= !is_sidechain;
            if let Some(session) = &head.session_id
                && self.session_id.as_ref().is_none_or(|known| known.as_str() != &**session)
            {
                self.session_id = Some(SessionId::from(&**session));
            }
            self.leaf_uuid = Some(uuid.clone());
        }
        self.uuids.insert(uuid);
    }
}
