//! What must be known of a session's file to go on with it: one pass over the
//! heads of its lines.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use quipu_message::line::mend;
use quipu_message::{Head, SessionId, Uuid};

use crate::append::AppendError;
use crate::lines::{Lines, Piece};

/// What a session's file holds, as far as going on with it needs.
#[derive(Debug, Default)]
pub struct Resumed {
    /// The ids of its lines.
    pub known: HashSet<Uuid>,
    /// The line a resume goes on from.
    pub head: Option<Uuid>,
    /// The session that its last line names.
    pub session_id: Option<SessionId>,
    /// How many lines it has.
    pub lines: u64,
    has_main: bool,
}

impl Resumed {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, AppendError> {
        let fail = |source| AppendError::Open { path: path.to_owned(), source };
        let mut lines = Lines::new(File::open(path).map_err(fail)?);
        let mut resumed = Self::default();
        while let Some(piece) = lines.next().map_err(fail)? {
            resumed.lines += 1;
            let Piece::Line { bytes, .. } = piece else { continue };
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let text = mend(text);
            let Ok(head) = Head::read(&text) else { continue };
            resumed.push(&head);
        }
        Ok(resumed)
    }

    fn push(&mut self, head: &Head<'_>) {
        let Some(uuid) = head.uuid.as_deref().map(Uuid::from) else { return };
        // Old files hold subagents' lines too; a subagent's own file nothing else.
        let side = head.is_sidechain == Some(true);
        if head.in_chain() && !(side && self.has_main) {
            self.has_main |= !side;
            if let Some(session) = &head.session_id
                && self.session_id.as_ref().is_none_or(|known| known.as_str() != &**session)
            {
                self.session_id = Some(SessionId::from(&**session));
            }
            self.head = Some(uuid.clone());
        }
        self.known.insert(uuid);
    }
}
