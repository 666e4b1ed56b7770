//! What must be known of a session's file to go on with it: one pass over the
//! heads of its lines.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Head, SessionId, Uuid};

use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;

/// What a session's file holds, as far as going on with it needs.
#[derive(Debug, Default)]
pub struct TranscriptState {
    /// The ids of its lines.
    pub uuids: HashSet<Uuid>,
    /// The line a resume goes on from.
    pub leaf_uuid: Option<Uuid>,
    /// The session that its last line names.
    pub session_id: Option<SessionId>,
    /// How many lines it has.
    pub lines: u64,
    has_main_entries: bool,
}

impl TranscriptState {
    /// Reads a file.
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
        // Old files hold subagents' lines too; a subagent's own file nothing else.
        let side = head.is_sidechain == Some(true);
        if head.is_chain_entry() && !(side && self.has_main_entries) {
            self.has_main_entries |= !side;
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
